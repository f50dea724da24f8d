//! Counts and logs every request when its answer's head is there (upstream WithHTTPLogging and MonitorRequest).

use crate::{
    server::{
        context::Exchange,
        http::{Body, Response},
        request_info::RequestInfo,
        stack::{Layer, LayerFuture, Next},
    },
    telemetry::{
        AccessLine, Metrics,
        metrics::{Route, clean_verb},
    },
};

pub struct Access {
    pub metrics: &'static Metrics,
    pub log: bool,
}

impl Layer for Access {
    fn name(&self) -> &'static str {
        "access"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            // The request keeps its head: layers further in only take credentials from it.
            let response = next.run(&mut *cx).await;
            let took = cx.received.elapsed();
            let code = response.status().as_u16();
            let handles = self.metrics.request(route(cx));
            let long = cx.info.long_running().then(|| self.metrics.long_running(&handles));
            if long.is_none() {
                let dry_run = cx.query.first("dryRun").is_some();
                self.metrics.answered(&handles, code, took, size(&response), dry_run);
            }
            if self.log && AccessLine::wanted() {
                let source = cx.conn.peer.map(|peer| peer.to_string()).unwrap_or_default();
                AccessLine {
                    verb: clean_verb(&cx.info.verb, cx.parts.method.as_str()),
                    uri: &cx.parts.uri.to_string(),
                    latency: took,
                    user: cx.user.as_ref().map_or("", |user| &user.name),
                    user_agent: cx.header("user-agent"),
                    audit_id: &cx.audit_id,
                    source: &source,
                    response: code,
                }
                .log();
            }
            match long {
                Some(long) => held(response, long),
                None => response,
            }
        })
    }
}

/// Keeps `guard` as long as the answer streams.
fn held(mut response: Response, guard: impl Send + Sync + 'static) -> Response {
    use futures_util::StreamExt;
    *response.body_mut() = match std::mem::replace(response.body_mut(), Body::Empty) {
        Body::Stream(stream) => Body::Stream(Box::pin(stream.inspect(move |_| {
            let _ = &guard;
        }))),
        // A refusal, for example.
        whole => whole,
    };
    response
}

fn size(response: &Response) -> Option<u64> {
    match response.body() {
        Body::Empty => Some(0),
        Body::Full(bytes) => Some(bytes.len() as u64),
        Body::Chunks(chunks) => Some(chunks.iter().map(|chunk| chunk.len() as u64).sum()),
        Body::Stream(_) => None,
    }
}

/// Only what is served gets labels of its own: names out of requests for anything else could be without end.
fn route(cx: &Exchange) -> Route<'_> {
    let info = &cx.info;
    let verb = clean_verb(&info.verb, cx.parts.method.as_str());
    if !cx.routed {
        return Route { verb, group: "", version: "", resource: "", subresource: "", scope: "" };
    }
    Route {
        verb,
        group: &info.group,
        version: &info.version,
        resource: &info.resource,
        subresource: &info.subresource,
        scope: scope(info),
    }
}

/// The metrics' `scope` label.
fn scope(info: &RequestInfo) -> &'static str {
    match (info.resource_request, info.name.is_empty(), info.namespace.is_empty()) {
        (false, ..) => "",
        (true, false, _) => "resource",
        (true, true, false) => "namespace",
        (true, true, true) => "cluster",
    }
}
