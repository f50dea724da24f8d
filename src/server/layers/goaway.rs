//! Tells a small share of HTTP/2 connections to go away, so that clients spread over replicas
//! (upstream WithProbabilisticGoaway).

use ::http::HeaderValue;

use crate::server::{
    context::Exchange,
    stack::{Layer, LayerFuture, Next},
};

/// Chance in 0..=0.02 per request.
pub struct Goaway(pub f64);

impl Layer for Goaway {
    fn name(&self) -> &'static str {
        "goaway"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        let draw = crate::api::unique::fraction();
        let close = cx.conn.http2 && draw < self.0;
        Box::pin(async move {
            let mut response = next.run(cx).await;
            if close {
                // The listener makes a GOAWAY of it.
                response.headers_mut().insert("connection", HeaderValue::from_static("close"));
            }
            response
        })
    }
}
