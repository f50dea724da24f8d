//! Finds out who the request is from (upstream WithAuthentication).

use std::sync::Arc;

use ::http::HeaderValue;

use crate::{
    api::ApiError,
    auth::authn::Authenticators,
    server::{
        context::Exchange,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::Metrics,
};

pub struct Authentication {
    pub authenticators: Arc<Authenticators>,
    pub metrics: &'static Metrics,
}

impl Layer for Authentication {
    fn name(&self) -> &'static str {
        "authentication"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        // The server's own calls come with their user decided.
        if cx.user.is_some() {
            return next.run(cx);
        }
        Box::pin(async move {
            match self.authenticators.authenticate(&mut cx.parts, &cx.conn).await {
                Ok(caller) => {
                    self.metrics.authentication_attempts.with(["success"]).inc();
                    cx.warnings.extend(caller.warnings.iter().map(|text| (*text).to_owned()));
                    let unknown = caller.is_anonymous() && cx.conn.http2;
                    cx.user = Some(caller.user);
                    let mut response = next.run(cx).await;
                    if unknown {
                        close(&mut response);
                    }
                    response
                }
                Err(refusal) => {
                    tracing::debug!(reason = refusal.reason, audit_id = cx.audit_id, "unable to authenticate the request");
                    cx.warnings.extend(refusal.warnings.iter().map(|text| (*text).to_owned()));
                    self.refuse(cx)
                }
            }
        })
    }
}

impl Authentication {
    fn refuse(&self, cx: &Exchange) -> crate::server::http::Response {
        self.metrics.authentication_attempts.with(["failure"]).inc();
        let mut response = respond::error(cx, &ApiError::unauthorized());
        if cx.conn.http2 {
            close(&mut response);
        }
        response
    }
}

/// Who nobody knows may not keep an HTTP/2 connection open (gate UnauthenticatedHTTP2DOSMitigation).
fn close(response: &mut crate::server::http::Response) {
    response.headers_mut().insert("connection", HeaderValue::from_static("close"));
}
