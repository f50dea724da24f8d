//! Works out what the request means (upstream WithRequestInfo).

use crate::server::{
    context::Exchange,
    request_info::{RequestInfo, escapes_are_whole},
    respond,
    stack::{Layer, LayerFuture, Next},
};

pub struct Info;

impl Layer for Info {
    fn name(&self) -> &'static str {
        "request-info"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        if !escapes_are_whole(cx.path()) {
            // What Go's HTTP server answers before any handler.
            return Box::pin(async { respond::text(400, "400 Bad Request") });
        }
        match RequestInfo::new(&cx.parts.method, cx.path(), &cx.query) {
            Ok(info) => {
                cx.info = info;
                next.run(cx)
            }
            Err(cause) => Box::pin(async move {
                let text =
                    format!("Internal Server Error: \"{}\": failed to create RequestInfo: {cause}", cx.parts.uri);
                respond::text_error(500, &text)
            }),
        }
    }
}
