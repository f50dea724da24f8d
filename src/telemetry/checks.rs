//! How health checks went, which `/metrics/slis` tells apart from everything else so that it can be asked often
//! (component-base `metrics/prometheus/slis`).

use std::sync::LazyLock;

use prometheus_client::{encoding::prometheus_text, registry::Registry};

use super::vector::{CounterVector, GaugeVector, Vector};

/// Results of checks, by name and endpoint.
pub struct Checks {
    registry: Registry,
    last: GaugeVector<2>,
    total: CounterVector<3>,
}

/// The results of this process.
pub fn checks() -> &'static Checks {
    static CHECKS: LazyLock<Checks> = LazyLock::new(Checks::new);
    &CHECKS
}

impl Checks {
    fn new() -> Self {
        let mut registry = Registry::default();
        let last = Vector::new(
            &mut registry,
            "kubernetes_healthcheck",
            "[STABLE] Result of a single health check",
            ["name", "type"],
            Default::default,
        );
        let total = Vector::new(
            &mut registry,
            "kubernetes_healthchecks",
            "[STABLE] Results of all health checks",
            ["name", "status", "type"],
            Default::default,
        );
        Self { registry, last, total }
    }

    /// Counts one result. `endpoint` is `healthz`, `livez` or `readyz`.
    pub fn record(&self, name: &str, endpoint: &str, passed: bool) {
        self.last.with([name, endpoint]).set(i64::from(passed));
        self.total.with([name, if passed { "success" } else { "error" }, endpoint]).inc();
    }

    /// In the Prometheus text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_result_is_shown_and_every_result_is_counted() {
        let checks = Checks::new();
        checks.record("etcd", "livez", true);
        checks.record("etcd", "livez", false);
        let text = checks.text();
        assert!(text.contains(r#"kubernetes_healthcheck{name="etcd",type="livez"} 0"#), "{text}");
        assert!(
            text.contains(r#"kubernetes_healthchecks_total{name="etcd",status="success",type="livez"} 1"#),
            "{text}"
        );
        assert!(text.contains(r#"kubernetes_healthchecks_total{name="etcd",status="error",type="livez"} 1"#), "{text}");
    }
}
