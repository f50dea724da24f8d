//! Bounds how many short requests run at once (upstream WithMaxInFlightLimit).

use std::sync::Arc;

use ::http::HeaderValue;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;

use crate::{
    auth::user::MASTERS,
    server::{
        context::Exchange,
        http::hold,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::Metrics,
};

pub struct InFlight {
    reading: Option<Arc<Semaphore>>,
    mutating: Option<Arc<Semaphore>>,
    metrics: &'static Metrics,
}

impl InFlight {
    /// 0 is no limit.
    pub fn new(reading: u32, mutating: u32, metrics: &'static Metrics) -> Self {
        let limit = |limit: u32| (limit > 0).then(|| Arc::new(Semaphore::new(limit as usize)));
        Self { reading: limit(reading), mutating: limit(mutating), metrics }
    }
}

impl Layer for InFlight {
    fn name(&self) -> &'static str {
        "in-flight"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        if cx.info.long_running() {
            return next.run(cx);
        }
        let mutating = !matches!(cx.info.verb.as_str(), "get" | "list" | "watch" | "head");
        let limit = if mutating { &self.mutating } else { &self.reading };
        // Administrators always get through, so that an overload can be ended.
        let master = cx.user.as_ref().is_some_and(|user| user.in_group(MASTERS));
        let permit = match limit {
            Some(limit) => match limit.clone().try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) if master => None,
                Err(_) => {
                    return Box::pin(async {
                        let mut response = respond::text_error(429, "Too many requests, please try again later.");
                        response.headers_mut().insert("retry-after", HeaderValue::from_static("1"));
                        response
                    });
                }
            },
            None => None,
        };
        let gauge = self.metrics.current_inflight_requests.with([if mutating { "mutating" } else { "readOnly" }]);
        gauge.inc();
        let running = Running(gauge);
        Box::pin(async move {
            let mut response = next.run(cx).await;
            // Upstream's handlers write the answer before they return: a client that takes nothing of it is in flight.
            hold(&mut response, (permit, running));
            response
        })
    }
}

/// Counts down also where the request is abandoned.
struct Running(Gauge);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}
