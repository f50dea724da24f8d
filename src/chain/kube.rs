//! The kube API server: the built-in groups, health, metrics.

use std::sync::Arc;

use super::delegate::{Answer, AnswerFuture, Delegate};
use crate::{
    object::{Style, write_json},
    server::{
        context::Exchange,
        debug,
        generic::GenericApiServer,
        health::{self, Check},
        http::{Body, Response},
        respond,
    },
    telemetry::{Metrics, checks},
};

pub struct KubeServer {
    pub server: GenericApiServer,
    pub checks: Arc<[Check]>,
    pub metrics: &'static Metrics,
    /// What is measured only when it is asked for: sizes of caches and store.
    pub observe: Arc<dyn Fn(&Metrics) + Send + Sync>,
    /// `/debug/pprof` and `/debug/flags` are served.
    pub profiling: bool,
    pub config_report: Arc<arc_swap::ArcSwap<crate::object::Value>>,
    pub delegate: Box<dyn Delegate>,
}

impl Delegate for KubeServer {
    fn name(&self) -> &'static str {
        "kube"
    }

    fn handle<'a>(&'a self, cx: &'a mut Exchange) -> AnswerFuture<'a> {
        Box::pin(async move {
            if let Some(response) = self.server.resource(cx).await {
                return Answer::Handled(response);
            }
            match self.document(cx).await {
                Some(response) => Answer::Handled(response),
                None => self.delegate.handle(cx).await,
            }
        })
    }
}

impl KubeServer {
    async fn document(&self, cx: &mut Exchange) -> Option<Response> {
        let path = cx.path().to_owned();
        match path.as_str() {
            "/metrics" => Some(self.metrics()),
            "/metrics/slis" => Some(metrics_text(checks().text())),
            _ if self.profiling && path.starts_with("/debug/") => debug::answer(cx).await,
            CONFIG => Some(self.config()),
            _ => health::answer(&self.checks, cx, &path).await,
        }
    }

    fn config(&self) -> Response {
        let mut body = Vec::new();
        write_json(&mut body, &self.config_report.load(), Style::Indented);
        respond::response(200, "application/json", Body::Full(body.into()))
    }

    fn metrics(&self) -> Response {
        (self.observe)(self.metrics);
        metrics_text(self.metrics.text())
    }
}

/// The text format, whatever was asked for, as upstream.
fn metrics_text(text: String) -> Response {
    respond::response(200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", Body::Full(text.into()))
}

/// The configuration that serves and what came of the last change. Needs the right that `/metrics` needs.
pub const CONFIG: &str = "/kenter/config";
