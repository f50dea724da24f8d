//! Answers 504 where the deadline passes first (upstream WithTimeoutForNonLongRunningRequests). What runs further in
//! is dropped; a write that reached the storage is finished there all the same.

use crate::server::{
    context::Exchange,
    respond,
    stack::{Layer, LayerFuture, Next},
};

pub struct Timeout;

/// Upstream writes this one without kind and apiVersion and lets the type be sniffed.
const BODY: &str = concat!(
    r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","#,
    r#""reason":"Timeout","details":{},"code":504}"#,
    "\n"
);

impl Layer for Timeout {
    fn name(&self) -> &'static str {
        "timeout"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        let Some(deadline) = cx.deadline else { return next.run(cx) };
        Box::pin(async move {
            match tokio::time::timeout_at(deadline, next.run(cx)).await {
                Ok(response) => response,
                Err(_) => respond::text(504, BODY),
            }
        })
    }
}
