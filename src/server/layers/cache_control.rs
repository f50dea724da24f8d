//! Keeps caches away unless a handler says otherwise (upstream WithCacheControl).

use ::http::{HeaderValue, header::CACHE_CONTROL};

use crate::server::{
    context::Exchange,
    stack::{Layer, LayerFuture, Next},
};

pub struct CacheControl;

impl Layer for CacheControl {
    fn name(&self) -> &'static str {
        "cache-control"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            let mut response = next.run(cx).await;
            response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
            response
        })
    }
}
