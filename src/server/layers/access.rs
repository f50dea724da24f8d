//! Counts and logs every request when its answer's head is there (upstream WithHTTPLogging and MonitorRequest).

use std::{sync::Arc, time::Instant};

use crate::{
    server::{
        context::Exchange,
        http::Body,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::{Metrics, RequestLabels},
};

pub struct Access {
    pub metrics: Arc<Metrics>,
    pub log: bool,
}

impl Layer for Access {
    fn name(&self) -> &'static str {
        "access"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            let started: Instant = cx.received;
            let (method, uri) = (cx.parts.method.clone(), cx.parts.uri.clone());
            let (info, audit_id) = (cx.info.clone(), cx.audit_id.clone());
            let response = next.run(cx).await;
            let elapsed = started.elapsed();
            let status = response.status().as_u16();
            let bytes = match response.body() {
                Body::Empty => Some(0),
                Body::Full(bytes) => Some(bytes.len()),
                Body::Chunks(chunks) => Some(chunks.iter().map(bytes::Bytes::len).sum()),
                Body::Stream(_) => None,
            };
            self.metrics.request(
                &RequestLabels {
                    verb: &info.verb,
                    group: &info.group,
                    version: &info.version,
                    resource: &info.resource,
                    subresource: &info.subresource,
                    scope: scope(&info),
                    code: status,
                },
                elapsed,
                bytes,
            );
            if self.log {
                tracing::info!(target: "kenter::access", %method, path = uri.path(), status, micros = elapsed.as_micros() as u64, audit_id, "request");
            }
            response
        })
    }
}

/// The metrics' `scope` label.
fn scope(info: &crate::server::request_info::RequestInfo) -> &'static str {
    match (info.resource_request, info.name.is_empty(), info.namespace.is_empty()) {
        (false, ..) => "",
        (true, false, _) => "resource",
        (true, true, false) => "namespace",
        (true, true, true) => "cluster",
    }
}
