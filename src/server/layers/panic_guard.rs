//! Turns a panic further in into one 500 (upstream WithPanicRecovery).

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::{
    server::{
        context::Exchange,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::Metrics,
};

pub struct PanicGuard {
    pub metrics: &'static Metrics,
}

impl Layer for PanicGuard {
    fn name(&self) -> &'static str {
        "panic-guard"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        let (method, path) = (cx.parts.method.clone(), cx.parts.uri.path().to_owned());
        let audit_id = cx.audit_id.clone();
        Box::pin(async move {
            // The exchange is dropped after a panic, so nobody sees what it was left in.
            match AssertUnwindSafe(async move { next.run(cx).await }).catch_unwind().await {
                Ok(response) => response,
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                    tracing::error!(%method, path, audit_id, panic = text, "a request made the server panic");
                    self.metrics.handler_panics.inc();
                    respond::text_error(500, "This request caused apiserver to panic. Look in the logs for details.")
                }
            }
        })
    }
}
