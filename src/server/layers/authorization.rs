//! Asks whether the user may do this (upstream WithAuthorization).

use std::{sync::Arc, time::Instant};

use prometheus_client::metrics::{counter::Counter, histogram::Histogram};

use crate::{
    api::{ApiError, field::quote},
    auth::authz::{Authorizer, Decision, Union, Verdict, forbidden_status, sanitize},
    server::{
        attributes::RequestAttributes,
        context::Exchange,
        http::Response,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::Metrics,
};

pub struct Authorization {
    authorizer: Arc<Union>,
    allowed: Tally,
    denied: Tally,
    no_opinion: Tally,
    error: Tally,
}

/// How often one result came and how long it took; looked up once.
struct Tally {
    attempts: Counter,
    seconds: Histogram,
}

impl Authorization {
    pub fn new(authorizer: Arc<Union>, metrics: &'static Metrics) -> Self {
        let tally = |result| Tally {
            attempts: metrics.authorization_attempts_total.with([result]),
            seconds: metrics.authorization_duration_seconds.with([result]),
        };
        Self {
            authorizer,
            allowed: tally("allowed"),
            denied: tally("denied"),
            no_opinion: tally("no-opinion"),
            error: tally("error"),
        }
    }

    fn count(&self, decision: &Decision, since: Instant) {
        let tally = match decision {
            Decision { verdict: Verdict::Allow, .. } => &self.allowed,
            Decision { error: Some(_), .. } => &self.error,
            Decision { verdict: Verdict::Deny, .. } => &self.denied,
            Decision { verdict: Verdict::NoOpinion, .. } => &self.no_opinion,
        };
        tally.attempts.inc();
        tally.seconds.observe(since.elapsed().as_secs_f64());
    }
}

impl Layer for Authorization {
    fn name(&self) -> &'static str {
        "authorization"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            let Some(user) = cx.user.clone() else {
                return respond::error(cx, &ApiError::internal("no user found for request"));
            };
            let request = RequestAttributes::new(&cx.info);
            let attributes = request.of(&user);
            let since = Instant::now();
            let decision = self.authorizer.authorize(&attributes).await;
            self.count(&decision, since);
            if decision.allowed() {
                return next.run(cx).await;
            }
            if let Some(cause) = &decision.error {
                tracing::warn!(cause, audit_id = cx.audit_id, "cannot authorize the request");
                return internal_error(cx, cause);
            }
            let mut response = respond::error(cx, &forbidden_status(&attributes, &decision.reason));
            response.headers_mut().insert("x-content-type-options", ::http::HeaderValue::from_static("nosniff"));
            response
        })
    }
}

/// An authorizer that could not judge: neither a refusal nor a Status (upstream responsewriters.InternalError).
fn internal_error(cx: &Exchange, cause: &str) -> Response {
    let uri = quote(&cx.parts.uri.to_string());
    respond::text_error(500, &sanitize(&format!("Internal Server Error: {uri}: {cause}")))
}
