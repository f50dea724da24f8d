//! Counts short requests, so that shutdown can wait for them (upstream WithWaitGroup).

use std::sync::Arc;

use ::http::HeaderValue;

use super::retry_after::exempt;
use crate::{
    api::ApiError,
    server::{
        context::Exchange,
        lifecycle::Lifecycle,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
};

pub struct WaitGroup {
    pub lifecycle: Arc<Lifecycle>,
}

impl Layer for WaitGroup {
    fn name(&self) -> &'static str {
        "wait-group"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        if exempt(cx) {
            return next.run(cx);
        }
        let draining = self.lifecycle.not_accepting_new_request.is_fired();
        if draining {
            return Box::pin(async move {
                let error = ApiError::service_unavailable("apiserver is shutting down");
                let mut response = respond::response(
                    503,
                    "application/json",
                    crate::server::http::Body::Full(crate::object::to_vec(&error.to_value()).into()),
                );
                response.headers_mut().insert("retry-after", HeaderValue::from_static("1"));
                response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
                response
            });
        }
        if cx.info.long_running() {
            return next.run(cx);
        }
        let counted = self.lifecycle.enter();
        Box::pin(async move {
            let response = next.run(cx).await;
            drop(counted);
            response
        })
    }
}
