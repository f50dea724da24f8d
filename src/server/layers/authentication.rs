//! Finds out who the request is from (upstream WithAuthentication).

use std::{sync::Arc, time::Instant};

use ::http::HeaderValue;
use prometheus_client::metrics::histogram::Histogram;

use crate::{
    api::ApiError,
    auth::authn::{Authenticators, Caller, Unauthenticated},
    server::{
        context::Exchange,
        http::Response,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::{BareCounter, Metrics},
};

pub struct Authentication {
    authenticators: Arc<Authenticators>,
    metrics: &'static Metrics,
    success: Tally,
    failure: Tally,
    error: Tally,
    others: BareCounter,
}

/// How often one result came and how long it took; looked up once.
struct Tally {
    attempts: BareCounter,
    seconds: Histogram,
}

impl Authentication {
    pub fn new(authenticators: Arc<Authenticators>, metrics: &'static Metrics) -> Self {
        let tally = |result| Tally {
            attempts: metrics.authentication_attempts.with([result]),
            seconds: metrics.authentication_duration_seconds.with([result]),
        };
        let (success, failure, error) = (tally("success"), tally("failure"), tally("error"));
        let others = metrics.authenticated_user_requests.with(["other"]);
        Self { authenticators, success, failure, error, others, metrics }
    }

    fn count(&self, outcome: &Result<Caller, Unauthenticated>, since: Instant) {
        let tally = match outcome {
            Ok(_) => &self.success,
            Err(refused) if refused.reason.is_empty() => &self.failure,
            Err(_) => &self.error,
        };
        tally.attempts.inc();
        tally.seconds.observe(since.elapsed().as_secs_f64());
        let Ok(caller) = outcome else { return };
        match known(&caller.user.name) {
            Some(name) => self.metrics.authenticated_user_requests.with([name]).inc(),
            None => self.others.inc(),
        };
    }
}

/// A user's name as a label: few values, and no names of people.
fn known(name: &str) -> Option<&str> {
    match name {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => Some(name),
        name if name.contains('@') => Some("email_id"),
        _ => None,
    }
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
            let (conn, since) = (cx.conn.clone(), Instant::now());
            let outcome = self.authenticators.authenticate(&mut cx.parts, &conn).await;
            self.count(&outcome, since);
            match outcome {
                Ok(caller) => {
                    let close_after = caller.is_anonymous() && conn.http2;
                    caller.warnings.iter().for_each(|text| cx.warnings.add(*text));
                    cx.user = Some(caller.user);
                    let mut response = next.run(cx).await;
                    if close_after {
                        close(&mut response);
                    }
                    response
                }
                Err(refused) => {
                    tracing::debug!(
                        cause = refused.reason,
                        audit_id = cx.audit_id,
                        "unable to authenticate the request"
                    );
                    refused.warnings.iter().for_each(|text| cx.warnings.add(*text));
                    refuse(cx)
                }
            }
        })
    }
}

fn refuse(cx: &Exchange) -> Response {
    let mut response = respond::error(cx, &ApiError::unauthorized());
    if cx.conn.http2 {
        close(&mut response);
    }
    response
}

/// Who nobody knows may not keep an HTTP/2 connection open (gate UnauthenticatedHTTP2DOSMitigation).
fn close(response: &mut Response) {
    response.headers_mut().insert("connection", HeaderValue::from_static("close"));
}
