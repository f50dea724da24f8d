//! Cross-origin requests (upstream WithCORS).

use ::http::{HeaderMap, HeaderValue, Method};
use regex::RegexSet;

use crate::server::{
    context::Exchange,
    http::Body,
    stack::{Layer, LayerFuture, Next},
};

pub struct Cors {
    origins: RegexSet,
}

const HEADERS: [(&str, &str); 4] = [
    ("access-control-allow-methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        "access-control-allow-headers",
        "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
    ),
    ("access-control-expose-headers", "Date"),
    ("access-control-allow-credentials", "true"),
];

impl Cors {
    /// `None` where no origin is allowed. The expressions were checked with the options.
    pub fn new(origins: &[String]) -> Option<Self> {
        if origins.is_empty() {
            return None;
        }
        RegexSet::new(origins).ok().map(|origins| Self { origins })
    }

    fn mark(&self, headers: &mut HeaderMap, origin: HeaderValue) {
        headers.insert("access-control-allow-origin", origin);
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

impl Layer for Cors {
    fn name(&self) -> &'static str {
        "cors"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        let origin = cx.parts.headers.get("origin").cloned();
        let allowed = origin.filter(|origin| origin.to_str().is_ok_and(|text| self.origins.is_match(text)));
        let Some(origin) = allowed else { return next.run(cx) };
        Box::pin(async move {
            let mut response = if cx.parts.method == Method::OPTIONS {
                let mut response = ::http::Response::new(Body::Empty);
                *response.status_mut() = ::http::StatusCode::NO_CONTENT;
                response
            } else {
                next.run(cx).await
            };
            self.mark(response.headers_mut(), origin);
            response
        })
    }
}
