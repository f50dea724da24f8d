//! Strict-Transport-Security (upstream WithHSTS).

use ::http::HeaderValue;

use crate::server::{
    context::Exchange,
    stack::{Layer, LayerFuture, Next},
};

pub struct Hsts(HeaderValue);

impl Hsts {
    /// `None` where there are no directives or they make no header.
    pub fn new(directives: &[String]) -> Option<Self> {
        if directives.is_empty() {
            return None;
        }
        HeaderValue::from_str(&directives.join("; ")).ok().map(Self)
    }
}

impl Layer for Hsts {
    fn name(&self) -> &'static str {
        "hsts"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            let mut response = next.run(cx).await;
            response.headers_mut().insert("strict-transport-security", self.0.clone());
            response
        })
    }
}
