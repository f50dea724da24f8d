//! Lets a user act as another where they may (upstream WithConstrainedImpersonation).

use std::sync::Arc;

use crate::{
    api::ApiError,
    auth::{
        authz::Union,
        impersonation::{Impersonator, wanted_user},
    },
    server::{
        attributes::RequestAttributes,
        context::Exchange,
        http::Response,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
};

pub struct Impersonation {
    pub impersonator: Arc<Impersonator>,
    pub authorizer: Arc<Union>,
}

impl Layer for Impersonation {
    fn name(&self) -> &'static str {
        "impersonation"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        if !cx.parts.headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            return next.run(cx);
        }
        Box::pin(async move {
            match self.impersonate(cx).await {
                Ok(()) => next.run(cx).await,
                Err(error) => refused(cx, &error),
            }
        })
    }
}

impl Impersonation {
    async fn impersonate(&self, cx: &mut Exchange) -> Result<(), ApiError> {
        let Some(wanted) = wanted_user(&mut cx.parts.headers)? else { return Ok(()) };
        let caller = cx.user.clone().ok_or_else(|| ApiError::internal("no user found for request"))?;
        let request = RequestAttributes::new(&cx.info);
        let impersonated = self.impersonator.impersonate(&*self.authorizer, &wanted, &request.of(&caller)).await?;
        cx.user = Some(impersonated.user);
        Ok(())
    }
}

fn refused(cx: &Exchange, error: &ApiError) -> Response {
    let mut response = respond::error(cx, error);
    response.headers_mut().insert("x-content-type-options", ::http::HeaderValue::from_static("nosniff"));
    response
}
