//! Sends late requests elsewhere while the server drains (upstream WithRetryAfter; `--shutdown-send-retry-after`).

use std::sync::Arc;

use ::http::HeaderValue;

use crate::server::{
    context::Exchange,
    lifecycle::Lifecycle,
    respond,
    stack::{Layer, LayerFuture, Next},
};

pub struct RetryAfter {
    pub lifecycle: Arc<Lifecycle>,
}

impl Layer for RetryAfter {
    fn name(&self) -> &'static str {
        "retry-after"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        if !self.lifecycle.not_accepting_new_request.is_fired() || exempt(cx) {
            return next.run(cx);
        }
        Box::pin(async {
            let mut response = respond::text_error(429, "The apiserver is shutting down, please try again later.");
            response.headers_mut().insert("connection", HeaderValue::from_static("close"));
            response.headers_mut().insert("retry-after", HeaderValue::from_static("5"));
            response
        })
    }
}

/// What has to work until the end: probes, metrics, and the server's own calls.
pub fn exempt(cx: &Exchange) -> bool {
    let path = cx.path();
    ["/readyz", "/livez", "/healthz", "/metrics"].iter().any(|prefix| path.starts_with(prefix))
        || ["kenter/", "kube-apiserver/"].iter().any(|own| cx.header("user-agent").starts_with(own))
}
