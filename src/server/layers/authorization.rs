//! Asks whether the user may do this (upstream WithAuthorization).

use std::sync::Arc;

use crate::{
    api::ApiError,
    auth::authz::{Authorizer, Union, forbidden_status},
    server::{
        attributes::RequestAttributes,
        context::Exchange,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
};

pub struct Authorization {
    pub authorizer: Arc<Union>,
}

impl Layer for Authorization {
    fn name(&self) -> &'static str {
        "authorization"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            let Some(user) = cx.user.clone() else { return respond::error(cx, &ApiError::internal("no user found for request")) };
            let request = RequestAttributes::new(&cx.info);
            let attributes = request.of(&user);
            let decision = self.authorizer.authorize(&attributes).await;
            if decision.allowed() {
                return next.run(cx).await;
            }
            if let Some(cause) = &decision.error {
                tracing::debug!(cause, audit_id = cx.audit_id, "authorization is incomplete");
            }
            let mut response = respond::error(cx, &forbidden_status(&attributes, &decision.reason));
            response.headers_mut().insert("x-content-type-options", ::http::HeaderValue::from_static("nosniff"));
            response
        })
    }
}
