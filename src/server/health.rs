//! `/healthz`, `/livez`, `/readyz`: named checks in a fixed order (apiserver `pkg/server/healthz`).

use std::{future::Future, pin::Pin, sync::Arc, time::SystemTime};

use super::{context::Exchange, http::Response, respond};

pub type CheckFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// One named check. Registered once, asked with each probe.
#[derive(Clone)]
pub struct Check {
    pub name: Arc<str>,
    pub run: Arc<dyn Fn() -> CheckFuture + Send + Sync>,
    pub healthz: bool,
    pub livez: bool,
    pub readyz: bool,
    /// Until then `/livez` takes it for passed (`--livez-grace-period`).
    pub grace_ends: Option<SystemTime>,
}

impl Check {
    /// A check that answers at once and is part of all three endpoints.
    pub fn immediate(name: impl Into<Arc<str>>, run: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self::new(name, move || {
            let result = run();
            Box::pin(async { result })
        })
    }

    pub fn new(name: impl Into<Arc<str>>, run: impl Fn() -> CheckFuture + Send + Sync + 'static) -> Self {
        Self { name: name.into(), run: Arc::new(run), healthz: true, livez: true, readyz: true, grace_ends: None }
    }

    /// Part of `/readyz` alone.
    pub fn ready_only(mut self) -> Self {
        (self.healthz, self.livez) = (false, false);
        self
    }

    /// Gives a process that has just begun the time until then before `/livez` asks.
    pub fn with_grace(mut self, ends: SystemTime) -> Self {
        self.grace_ends = Some(ends);
        self
    }

    async fn ask(&self, endpoint: &str) -> Result<(), String> {
        let in_grace = endpoint == "livez" && self.grace_ends.is_some_and(|ends| SystemTime::now() < ends);
        let result = if in_grace { Ok(()) } else { (self.run)().await };
        crate::telemetry::checks().record(&self.name, endpoint, result.is_ok());
        result
    }

    /// Not part of `/readyz`.
    pub fn not_ready(mut self) -> Self {
        self.readyz = false;
        self
    }
}

/// The three endpoints.
const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Answers a health path; `None` where `path` is none.
pub async fn answer(checks: &[Check], cx: &Exchange, path: &str) -> Option<Response> {
    let rest = path.strip_prefix('/')?;
    let endpoint = ENDPOINTS
        .into_iter()
        .find(|name| rest == *name || rest.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))?;
    let part_of = |check: &&Check| match endpoint {
        "healthz" => check.healthz,
        "livez" => check.livez,
        _ => check.readyz,
    };
    let checks: Vec<&Check> = checks.iter().filter(part_of).collect();
    match rest.strip_prefix(endpoint)?.strip_prefix('/') {
        None => Some(all(&checks, cx, endpoint).await),
        Some(name) => match checks.iter().find(|check| &*check.name == name) {
            Some(check) => Some(match check.ask(endpoint).await {
                Ok(()) => respond::text(200, "ok"),
                Err(cause) => respond::text_error(500, &format!("internal server error: {cause}")),
            }),
            None => Some(respond::text_error(404, "404 page not found")),
        },
    }
}

async fn all(checks: &[&Check], cx: &Exchange, endpoint: &str) -> Response {
    let mut excluded: Vec<&str> = cx.query.all("exclude").collect();
    let verbose = cx.query.first("verbose").is_some();
    let mut lines = String::new();
    let mut failed = Vec::new();
    for check in checks {
        if let Some(at) = excluded.iter().position(|name| *name == &*check.name) {
            excluded.swap_remove(at);
            lines.push_str(&format!("[+]{} excluded: ok\n", check.name));
            continue;
        }
        match check.ask(endpoint).await {
            Ok(()) => lines.push_str(&format!("[+]{} ok\n", check.name)),
            Err(cause) => {
                failed.push(format!("{}: {cause}", check.name));
                lines.push_str(&format!("[-]{} failed: reason withheld\n", check.name));
            }
        }
    }
    if !excluded.is_empty() {
        let mut names: Vec<String> = excluded.iter().map(|name| crate::api::field::quote(name)).collect();
        names.sort();
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {}\n", names.join(",")));
    }
    if !failed.is_empty() {
        tracing::info!(endpoint, failed = failed.join("; "), "health check failed");
        return respond::text_error(500, &format!("{lines}{endpoint} check failed"));
    }
    let body = if verbose { format!("{lines}{endpoint} check passed\n") } else { "ok".to_owned() };
    let mut response = respond::text(200, body);
    response.headers_mut().insert("x-content-type-options", ::http::HeaderValue::from_static("nosniff"));
    response
}
