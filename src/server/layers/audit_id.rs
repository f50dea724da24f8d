//! Gives every request an id that its answer, its audit events and its log lines share (upstream WithAuditInit).

use ::http::HeaderValue;

use crate::server::{
    context::Exchange,
    stack::{Layer, LayerFuture, Next},
};

const HEADER: &str = "audit-id";

pub struct AuditId;

impl Layer for AuditId {
    fn name(&self) -> &'static str {
        "audit-id"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        let given = cx.header(HEADER);
        cx.audit_id = if given.is_empty() { crate::api::unique::uuid() } else { given.to_owned() };
        let header = HeaderValue::from_str(&cx.audit_id);
        Box::pin(async move {
            let mut response = next.run(cx).await;
            if let Ok(header) = header {
                response.headers_mut().insert(HEADER, header);
            }
            response
        })
    }
}
