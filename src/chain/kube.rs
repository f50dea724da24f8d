//! The kube API server: the built-in groups, health, metrics.

use std::sync::Arc;

use super::delegate::{Answer, AnswerFuture, Delegate};
use crate::{
    object::{Style, write_json},
    server::{
        context::Exchange,
        generic::GenericApiServer,
        health::{self, Check},
        http::{Body, Response},
        respond,
    },
    telemetry::Metrics,
};

pub struct KubeServer {
    pub server: GenericApiServer,
    pub checks: Arc<[Check]>,
    pub metrics: &'static Metrics,
    /// What is measured only when it is asked for: sizes of caches and store.
    pub observe: Arc<dyn Fn(&Metrics) + Send + Sync>,
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
    async fn document(&self, cx: &Exchange) -> Option<Response> {
        let path = cx.path().to_owned();
        match path.as_str() {
            "/metrics" => Some(self.metrics(cx)),
            CONFIG => Some(self.config()),
            _ => health::answer(&self.checks, cx, &path).await,
        }
    }

    fn config(&self) -> Response {
        let mut body = Vec::new();
        write_json(&mut body, &self.config_report.load(), Style::Indented);
        respond::response(200, "application/json", Body::Full(body.into()))
    }

    fn metrics(&self, cx: &Exchange) -> Response {
        (self.observe)(self.metrics);
        if cx.header("accept").contains("application/openmetrics-text") {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            return respond::response(200, content_type, Body::Full(self.metrics.open_metrics().into()));
        }
        respond::response(
            200,
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            Body::Full(self.metrics.text().into()),
        )
    }
}

/// The configuration that serves and what came of the last change. Needs the right that `/metrics` needs.
pub const CONFIG: &str = "/kenter/config";
