//! Finds out who the request is from (upstream WithAuthentication).

use std::sync::Arc;

use ::http::HeaderValue;

use crate::{
    api::ApiError,
    auth::authn::{Authenticator, Credentials},
    server::{
        context::Exchange,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::Metrics,
};

pub struct Authentication {
    pub authenticator: Arc<Authenticator>,
    pub metrics: Arc<Metrics>,
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
            let credentials = Credentials { parts: &cx.parts, conn: &cx.conn, path: cx.parts.uri.path() };
            let outcome = self.authenticator.authenticate(&credentials);
            match outcome {
                Ok(Some(user)) => {
                    let anonymous = user.name == crate::auth::user::ANONYMOUS;
                    self.authenticator.strip(&mut cx.parts.headers);
                    cx.user = Some(user);
                    let http2 = cx.conn.http2;
                    let mut response = next.run(cx).await;
                    if anonymous && http2 {
                        close(&mut response);
                    }
                    response
                }
                Ok(None) => self.refuse(cx),
                Err(cause) => {
                    tracing::debug!(cause = %cause, audit_id = cx.audit_id, "unable to authenticate the request");
                    self.refuse(cx)
                }
            }
        })
    }
}

impl Authentication {
    fn refuse(&self, cx: &Exchange) -> crate::server::http::Response {
        self.metrics.authentication_failed();
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
