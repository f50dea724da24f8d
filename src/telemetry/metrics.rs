//! The metrics: one table of names, help texts and labels, which are a contract with every dashboard for kube-apiserver.
//!
//! Names and labels of what upstream has are upstream's (STABLE and BETA ones, and the ALPHA ones operators chart);
//! what is ours alone begins with `kenter_`. Handles are cheap to use and to clone; looking one up by labels allocates, so
//! what is used per request or per event is kept: [`Metrics::request`] and [`Metrics::watch`] look up without allocating
//! and hand out everything of one route at once.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::RwLock;
use prometheus_client::{
    encoding::prometheus_text,
    metrics::{counter::Counter, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::{
    process::Process,
    vector::{BareCounter, CounterVector, GaugeVector, HistogramVector, Vector},
};

/// A gauge of seconds or other fractions.
pub type FloatGauge = Gauge<f64, AtomicU64>;

/// The metrics of this process.
pub fn metrics() -> &'static Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);
    &METRICS
}

/// Routes whose handles are kept; requests beyond count under `other`. Far above what a server with thousands of custom
/// resources has, and small enough to print.
const MAX_ROUTES: usize = 50_000;

macro_rules! buckets {
    ($($value:expr),+ $(,)?) => { || Histogram::new([$($value),+]) };
}

const REQUEST_SECONDS: fn() -> Histogram = buckets![
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0
];
const RESPONSE_BYTES: fn() -> Histogram = buckets![1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const REQUEST_BYTES: fn() -> Histogram = buckets![
    50_000.0,
    150_000.0,
    250_000.0,
    350_000.0,
    450_000.0,
    550_000.0,
    650_000.0,
    750_000.0,
    850_000.0,
    950_000.0,
    1_050_000.0,
    1_150_000.0,
    1_250_000.0,
    1_350_000.0,
    1_450_000.0,
    1_550_000.0,
    1_650_000.0,
    1_750_000.0,
    1_850_000.0,
    1_950_000.0,
    2_050_000.0,
    2_150_000.0,
    2_250_000.0,
    2_350_000.0,
    2_450_000.0,
    2_550_000.0,
    2_650_000.0,
    2_750_000.0,
    2_850_000.0,
    2_950_000.0,
    3_050_000.0
];
const FILTER_SECONDS: fn() -> Histogram =
    buckets![0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0];
const EVENT_BYTES: fn() -> Histogram = buckets![1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0];
const WATCH_LIST_SECONDS: fn() -> Histogram = buckets![
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
    90.0, 120.0, 180.0, 300.0
];
const ADMISSION_SECONDS: fn() -> Histogram = buckets![0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
const CEL_SECONDS: fn() -> Histogram = buckets![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const STORAGE_SECONDS: fn() -> Histogram = buckets![
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0
];
const AUTH_SECONDS: fn() -> Histogram =
    buckets![0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
const QUEUE_SECONDS: fn() -> Histogram = buckets![1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
const RELOAD_SECONDS: fn() -> Histogram =
    buckets![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const COMMIT_SIZE: fn() -> Histogram = buckets![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
const CERTIFICATE_SECONDS: fn() -> Histogram = buckets![
    0.0,
    1800.0,
    3600.0,
    7200.0,
    21600.0,
    43200.0,
    86400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0
];

/// Declares the struct and its registration from one table, so that neither can forget a row of the other. Names of
/// counters are given without `_total`, which the format adds.
macro_rules! table {
    ($( $(#[$doc:meta])* $field:ident : $type:ty = $name:literal, $help:literal $(, [$($label:literal),+])? $(, with $make:ident)? ; )+) => {
        /// Every metric there is. See the module.
        pub struct Metrics {
            registry: Registry,
            routes: RwLock<HashMap<Box<str>, Arc<RequestHandles>>>,
            watches: RwLock<HashMap<Box<str>, Arc<WatchHandles>>>,
            $( $(#[$doc])* pub $field: $type, )+
        }

        impl Metrics {
            /// All at zero, apart from the process' own: for tests.
            pub fn new() -> Self {
                let mut registry = Registry::default();
                $( let $field = table!(@new registry, $type, $name, $help $(, [$($label),+])? $(, with $make)?); )+
                registry.register_collector(Box::new(Process));
                Self { registry, routes: RwLock::default(), watches: RwLock::default(), $( $field, )+ }
            }
        }

        /// Names as registered, with their labels: for the test that holds them against upstream's.
        #[cfg(test)]
        pub(super) const NAMES: &[(&str, &[&str])] = &[ $( ($name, &[$($($label),+)?]), )+ ];
    };
    (@new $registry:ident, $type:ty, $name:literal, $help:literal, [$($label:literal),+], with $make:ident) => {
        Vector::new(&mut $registry, $name, $help, [$($label),+], $make)
    };
    (@new $registry:ident, $type:ty, $name:literal, $help:literal, [$($label:literal),+]) => {
        Vector::new(&mut $registry, $name, $help, [$($label),+], Default::default)
    };
    (@new $registry:ident, $type:ty, $name:literal, $help:literal, with $make:ident) => {{
        let metric: $type = $make();
        $registry.register($name, $help, metric.clone());
        metric
    }};
    (@new $registry:ident, $type:ty, $name:literal, $help:literal) => {{
        let metric = <$type>::default();
        $registry.register($name, $help, metric.clone());
        metric
    }};
}

table! {
    // Requests. `verb` is upper case as upstream prints it (`clean_verb`), `scope` is resource, namespace or cluster.
    request_total: CounterVector<9> = "apiserver_request",
        "[STABLE] Requests by verb, dry run, group, version, resource, subresource, scope, component and HTTP code",
        ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"];
    request_duration_seconds: HistogramVector<8> = "apiserver_request_duration_seconds",
        "[STABLE] Time to answer in seconds, by verb, dry run, group, version, resource, subresource, scope and component",
        ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"], with REQUEST_SECONDS;
    request_sli_duration_seconds: HistogramVector<7> = "apiserver_request_sli_duration_seconds",
        "[ALPHA] Time to answer in seconds without what the server was made to wait for by others",
        ["verb", "group", "version", "resource", "subresource", "scope", "component"], with REQUEST_SECONDS;
    response_sizes: HistogramVector<7> = "apiserver_response_sizes",
        "[STABLE] Size of answers to reads in bytes",
        ["verb", "group", "version", "resource", "subresource", "scope", "component"], with RESPONSE_BYTES;
    request_body_size_bytes: HistogramVector<3> = "apiserver_request_body_size_bytes",
        "[ALPHA] Size of request bodies in bytes", ["group", "resource", "verb"], with REQUEST_BYTES;
    longrunning_requests: GaugeVector<7> = "apiserver_longrunning_requests",
        "[STABLE] Open long-running requests: watches, logs, proxied streams",
        ["verb", "group", "version", "resource", "subresource", "scope", "component"];
    current_inflight_requests: GaugeVector<1> = "apiserver_current_inflight_requests",
        "[STABLE] Most requests in flight within the last second, by kind", ["request_kind"];
    requested_deprecated_apis: GaugeVector<5> = "apiserver_requested_deprecated_apis",
        "[STABLE] Deprecated APIs that have been asked for", ["group", "version", "resource", "subresource", "removed_release"];
    request_filter_duration_seconds: HistogramVector<1> = "apiserver_request_filter_duration_seconds",
        "[ALPHA] Time spent in one layer in seconds", ["filter"], with FILTER_SECONDS;
    request_terminations_total: CounterVector<8> = "apiserver_request_terminations",
        "[ALPHA] Requests the server gave up on to protect itself",
        ["verb", "group", "version", "resource", "subresource", "scope", "component", "code"];
    request_aborts_total: CounterVector<6> = "apiserver_request_aborts",
        "[ALPHA] Requests broken off after their answer had begun",
        ["verb", "group", "version", "resource", "subresource", "scope"];
    field_validation_request_duration_seconds: HistogramVector<1> = "field_validation_request_duration_seconds",
        "[ALPHA] Time to answer in seconds by field validation", ["field_validation"], with REQUEST_SECONDS;
    tls_handshake_errors: Counter = "apiserver_tls_handshake_errors",
        "[ALPHA] TLS handshakes that failed";
    handler_panics: Counter = "kenter_handler_panics", "Handlers that panicked; each was answered with a 500";
    connections_total: CounterVector<1> = "kenter_connections",
        "Connections accepted, by transport: tls, plain, unix", ["transport"];

    // Watches and caches.
    watch_events_total: CounterVector<3> = "apiserver_watch_events",
        "[BETA] Events sent to watchers", ["group", "version", "resource"];
    watch_events_sizes: HistogramVector<3> = "apiserver_watch_events_sizes",
        "[BETA] Size of events sent to watchers in bytes", ["group", "version", "resource"], with EVENT_BYTES;
    watch_list_duration_seconds: HistogramVector<4> = "apiserver_watch_list_duration_seconds",
        "[BETA] Time until a watch that begins with a list has sent it, in seconds",
        ["group", "version", "resource", "scope"], with WATCH_LIST_SECONDS;
    terminated_watchers_total: CounterVector<2> = "apiserver_terminated_watchers",
        "[ALPHA] Watchers ended because they did not keep up", ["group", "resource"];
    watch_cache_events_dispatched_total: CounterVector<2> = "apiserver_watch_cache_events_dispatched",
        "[ALPHA] Events dispatched by watch caches", ["group", "resource"];
    watch_cache_events_received_total: CounterVector<2> = "apiserver_watch_cache_events_received",
        "[ALPHA] Events received by watch caches", ["group", "resource"];
    watch_cache_initializations_total: CounterVector<2> = "apiserver_watch_cache_initializations",
        "[ALPHA] Fillings of watch caches", ["group", "resource"];
    watch_cache_capacity: GaugeVector<2> = "apiserver_watch_cache_capacity",
        "[ALPHA] Events a watch cache may keep", ["group", "resource"];
    watch_cache_resource_version: GaugeVector<2> = "apiserver_watch_cache_resource_version",
        "[ALPHA] Revision a watch cache has reached", ["group", "resource"];
    registered_watchers: GaugeVector<3> = "apiserver_registered_watchers",
        "[ALPHA] Open watches", ["group", "version", "kind"];

    // Storage.
    resource_objects: GaugeVector<2> = "apiserver_resource_objects",
        "[ALPHA] Stored objects", ["group", "resource"];
    resource_size_estimate_bytes: GaugeVector<2> = "apiserver_resource_size_estimate_bytes",
        "[ALPHA] Estimated size of stored objects in bytes", ["group", "resource"];
    storage_size_bytes: GaugeVector<1> = "apiserver_storage_size_bytes",
        "[STABLE] Size of the storage in bytes", ["storage_cluster_id"];
    storage_events_received_total: CounterVector<2> = "apiserver_storage_events_received",
        "[BETA] Events received from the storage", ["group", "resource"];
    storage_list_total: CounterVector<4> = "apiserver_storage_list",
        "[ALPHA] Lists served", ["group", "resource", "storage", "index"];
    storage_list_returned_objects_total: CounterVector<4> = "apiserver_storage_list_returned_objects",
        "[ALPHA] Objects returned by lists", ["group", "resource", "storage", "index"];
    storage_list_evaluated_objects_total: CounterVector<4> = "apiserver_storage_list_evaluated_objects",
        "[ALPHA] Objects lists had to look at", ["group", "resource", "storage", "index"];
    etcd_request_duration_seconds: HistogramVector<3> = "etcd_request_duration_seconds",
        "[ALPHA] Time of storage requests in seconds, whatever the back end",
        ["operation", "group", "resource"], with STORAGE_SECONDS;
    etcd_requests_total: CounterVector<3> = "etcd_requests", "[ALPHA] Storage requests", ["operation", "group", "resource"];
    etcd_request_errors_total: CounterVector<3> = "etcd_request_errors",
        "[ALPHA] Storage requests that failed", ["operation", "group", "resource"];
    storage_commits_total: Counter = "kenter_storage_commits", "Durable commits of the embedded store";
    storage_commit_seconds: Histogram = "kenter_storage_commit_seconds",
        "Time of one durable commit of the embedded store in seconds", with FILTER_SECONDS;
    storage_commit_writes: Histogram = "kenter_storage_commit_writes", "Writes in one commit of the embedded store", with COMMIT_SIZE;
    storage_revision: Gauge = "kenter_storage_revision", "Newest revision of the store";
    storage_compacted_revision: Gauge = "kenter_storage_compacted_revision", "Oldest revision that reads may ask for";
    storage_healthy: Gauge = "kenter_storage_healthy", "Whether the store takes writes";
    storage_failed_commits_total: Counter = "kenter_storage_failed_commits", "Commits of the embedded store that failed";
    storage_reopened_total: Counter = "kenter_storage_reopened",
        "Times that the embedded store was closed after an I/O error, checked and opened again";
    storage_checkpoints_total: Counter = "kenter_storage_checkpoints", "Checkpoints of the embedded store while idle";
    storage_keys: Gauge = "kenter_storage_keys", "Keys that exist in the embedded store";
    storage_wal_bytes: Gauge = "kenter_storage_wal_bytes", "Size of the embedded store's write-ahead log in bytes";
    storage_pages: GaugeVector<1> = "kenter_storage_pages",
        "Pages of the embedded store by state: used, free", ["state"];
    storage_free_disk_bytes: Gauge = "kenter_storage_free_disk_bytes",
        "Bytes that may still be written to the disk of the embedded store";
    storage_last_backup_timestamp_seconds: Gauge = "kenter_storage_last_backup_timestamp_seconds",
        "When this process last made a good backup; 0 for never";

    // Who and whether.
    authenticated_user_requests: Vector<1, BareCounter> = "authenticated_user_requests",
        "[ALPHA] Authenticated requests by user name; those that are no system user count as other", ["username"];
    authentication_attempts: Vector<1, BareCounter> = "authentication_attempts",
        "[ALPHA] Attempts to authenticate", ["result"];
    authentication_duration_seconds: HistogramVector<1> = "authentication_duration_seconds",
        "[ALPHA] Time to authenticate in seconds", ["result"], with AUTH_SECONDS;
    authorization_attempts_total: CounterVector<1> = "authorization_attempts", "[ALPHA] Attempts to authorize", ["result"];
    authorization_duration_seconds: HistogramVector<1> = "authorization_duration_seconds",
        "[ALPHA] Time to authorize in seconds", ["result"], with AUTH_SECONDS;
    authorization_decisions_total: CounterVector<3> = "apiserver_authorization_decisions",
        "[ALPHA] Terminal decisions of authorizers", ["type", "name", "decision"];
    client_certificate_expiration_seconds: Histogram = "apiserver_client_certificate_expiration_seconds",
        "[ALPHA] Time left to client certificates when used, in seconds", with CERTIFICATE_SECONDS;
    audit_event_total: Counter = "apiserver_audit_event", "[ALPHA] Audit events written";
    audit_error_total: CounterVector<1> = "apiserver_audit_error", "[ALPHA] Audit events lost", ["plugin"];
    audit_level_total: CounterVector<1> = "apiserver_audit_level", "[ALPHA] Policy levels decided on", ["level"];
    audit_requests_rejected_total: Counter = "apiserver_audit_requests_rejected",
        "[ALPHA] Requests refused because they could not be audited";

    // Admission.
    admission_step_seconds: HistogramVector<3> = "apiserver_admission_step_admission_duration_seconds",
        "[STABLE] Time of one admission step in seconds", ["type", "operation", "rejected"], with ADMISSION_SECONDS;
    admission_controller_seconds: HistogramVector<4> = "apiserver_admission_controller_admission_duration_seconds",
        "[STABLE] Time of one admission plugin in seconds", ["name", "type", "operation", "rejected"], with ADMISSION_SECONDS;
    admission_webhook_seconds: HistogramVector<4> = "apiserver_admission_webhook_admission_duration_seconds",
        "[STABLE] Time of one admission webhook in seconds", ["name", "type", "operation", "rejected"], with ADMISSION_SECONDS;
    cel_compilation_seconds: Histogram = "apiserver_cel_compilation_duration_seconds",
        "[BETA] Time to compile a CEL expression in seconds", with CEL_SECONDS;
    cel_evaluation_seconds: Histogram = "apiserver_cel_evaluation_duration_seconds",
        "[BETA] Time to evaluate a CEL expression in seconds", with CEL_SECONDS;

    // Built-in loops.
    workqueue_adds_total: CounterVector<1> = "workqueue_adds", "[BETA] Items put into a queue", ["name"];
    workqueue_depth: GaugeVector<1> = "workqueue_depth", "[BETA] Items waiting in a queue", ["name"];
    workqueue_retries_total: CounterVector<1> = "workqueue_retries", "[BETA] Items tried again", ["name"];
    workqueue_queue_duration_seconds: HistogramVector<1> = "workqueue_queue_duration_seconds",
        "[BETA] Time an item waits in seconds", ["name"], with QUEUE_SECONDS;
    workqueue_work_duration_seconds: HistogramVector<1> = "workqueue_work_duration_seconds",
        "[BETA] Time an item takes in seconds", ["name"], with QUEUE_SECONDS;

    // The server itself.
    healthcheck: GaugeVector<2> = "kubernetes_healthcheck", "[STABLE] Last result of a health check", ["name", "type"];
    healthchecks_total: CounterVector<3> = "kubernetes_healthchecks",
        "[STABLE] Results of health checks", ["name", "type", "status"];
    feature_enabled: GaugeVector<2> = "kubernetes_feature_enabled", "[BETA] Whether a feature gate is on", ["name", "stage"];
    build_info: GaugeVector<9> = "kubernetes_build_info",
        "[BETA] The version of Kubernetes that is served",
        ["major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform"];
    kenter_build_info: GaugeVector<2> = "kenter_build_info", "The version of kenter", ["version", "revision"];
    config_last_reload_successful: Gauge = "kenter_config_last_reload_successful",
        "Whether the last attempt to bring in the configuration worked";
    config_last_reload_timestamp_seconds: FloatGauge = "kenter_config_last_reload_timestamp_seconds",
        "When the last attempt to bring in the configuration ended";
    config_generation: Gauge = "kenter_config_generation", "Number of the configuration that serves";
    config_hash: GaugeVector<1> = "kenter_config_hash", "Hash of the configuration that serves", ["hash"];
    config_reloads_total: CounterVector<1> = "kenter_config_reloads",
        "Attempts to bring in the configuration by result: applied, unchanged, failed, reverted", ["result"];
    config_reload_seconds: Histogram = "kenter_config_reload_seconds",
        "Time from reading the files to the commit in seconds", with RELOAD_SECONDS;
    config_generations_alive: Gauge = "kenter_config_generations_alive", "Generations in memory";
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// A route of the API as metrics know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// Upper case, as [`clean_verb`] gives it.
    pub verb: &'a str,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    /// `resource`, `namespace`, `cluster`, or empty for paths that are no resource.
    pub scope: &'a str,
}

/// Which of the servers answers; all routes count under this one.
const COMPONENT: &str = "apiserver";

/// The metrics of one route.
pub struct RequestHandles {
    route: [Box<str>; 6],
    seconds: Histogram,
    sli_seconds: Histogram,
    /// Of reads alone.
    bytes: Option<Histogram>,
    codes: RwLock<Vec<(u16, Counter)>>,
    long_running: RwLock<Option<Gauge>>,
}

/// The metrics of watches of one resource.
pub struct WatchHandles {
    pub events: Counter,
    pub sizes: Histogram,
}

impl Metrics {
    /// The handles of a route; the same ones each time.
    pub fn request(&self, route: Route<'_>) -> Arc<RequestHandles> {
        let parts = [route.verb, route.group, route.version, route.resource, route.subresource, route.scope];
        keyed(&self.routes, &parts, || {
            let [verb, group, version, resource, subresource, scope] = parts;
            let labels = [verb, group, version, resource, subresource, scope, COMPONENT];
            RequestHandles {
                route: parts.map(Box::from),
                seconds: self.request_duration_seconds.with([
                    verb,
                    "",
                    group,
                    version,
                    resource,
                    subresource,
                    scope,
                    COMPONENT,
                ]),
                sli_seconds: self.request_sli_duration_seconds.with(labels),
                bytes: matches!(verb, "GET" | "LIST").then(|| self.response_sizes.with(labels)),
                codes: RwLock::default(),
                long_running: RwLock::default(),
            }
        })
    }

    /// Counts an answered request: its HTTP code, how long it took, and the size of its body where it is known.
    pub fn answered(&self, handles: &RequestHandles, code: u16, took: Duration, bytes: Option<u64>, dry_run: bool) {
        let [verb, group, version, resource, subresource, scope] = handles.route.each_ref().map(|part| &**part);
        if dry_run {
            let code = code.to_string();
            self.request_total
                .with([verb, "All", group, version, resource, subresource, scope, COMPONENT, &code])
                .inc();
            self.request_duration_seconds
                .with([verb, "All", group, version, resource, subresource, scope, COMPONENT])
                .observe(took.as_secs_f64());
        } else {
            handles.code(code, || {
                let code = code.to_string();
                self.request_total.with([verb, "", group, version, resource, subresource, scope, COMPONENT, &code])
            });
            handles.seconds.observe(took.as_secs_f64());
        }
        handles.sli_seconds.observe(took.as_secs_f64());
        if let (Some(sizes), Some(bytes)) = (&handles.bytes, bytes) {
            // Sizes above 2^53 do not come up.
            #[allow(clippy::cast_precision_loss)]
            sizes.observe(bytes as f64);
        }
    }

    /// A long-running request has begun; it ends when what is returned is dropped.
    pub fn long_running(&self, handles: &RequestHandles) -> LongRunning {
        let known = handles.long_running.read().clone();
        let gauge = known.unwrap_or_else(|| {
            let [verb, group, version, resource, subresource, scope] = handles.route.each_ref().map(|part| &**part);
            let gauge = self.longrunning_requests.with([verb, group, version, resource, subresource, scope, COMPONENT]);
            *handles.long_running.write() = Some(gauge.clone());
            gauge
        });
        gauge.inc();
        LongRunning(gauge)
    }

    /// The handles of watches of one resource; the same ones each time.
    pub fn watch(&self, group: &str, version: &str, resource: &str) -> Arc<WatchHandles> {
        keyed(&self.watches, &[group, version, resource], || WatchHandles {
            events: self.watch_events_total.with([group, version, resource]),
            sizes: self.watch_events_sizes.with([group, version, resource]),
        })
    }

    /// Everything in the Prometheus text format (`text/plain; version=0.0.4`).
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(64 * 1024);
        // Writing to a String does not fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

impl RequestHandles {
    fn code(&self, code: u16, make: impl FnOnce() -> Counter) {
        if let Some((_, counter)) = self.codes.read().iter().find(|(known, _)| *known == code) {
            counter.inc();
            return;
        }
        let counter = make();
        counter.inc();
        let mut codes = self.codes.write();
        if codes.iter().all(|(known, _)| *known != code) {
            codes.push((code, counter));
        }
    }
}

/// Counts as one long-running request until dropped.
#[must_use]
pub struct LongRunning(Gauge);

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Looks up by joined parts without allocating; makes and keeps what is missing.
fn keyed<T>(map: &RwLock<HashMap<Box<str>, Arc<T>>>, parts: &[&str], make: impl FnOnce() -> T) -> Arc<T> {
    thread_local! {
        static KEY: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
    }
    KEY.with_borrow_mut(|key| {
        key.clear();
        for part in parts {
            key.push_str(part);
            key.push('\0');
        }
        if let Some(known) = map.read().get(key.as_str()) {
            return known.clone();
        }
        let mut map = map.write();
        if map.len() >= MAX_ROUTES {
            // Not kept, but counted under its own labels all the same while it is in use.
            return Arc::new(make());
        }
        map.entry(key.as_str().into()).or_insert_with(|| Arc::new(make())).clone()
    })
}

/// The `verb` label: upstream's upper-case word for what a request does (apiserver `pkg/endpoints/metrics`, `CleanVerb`).
/// `verb` is the request info's; `method` decides where that is a plain method; anything unknown is `other`.
pub fn clean_verb(verb: &str, method: &str) -> &'static str {
    match verb {
        "get" => "GET",
        "list" => "LIST",
        "watch" | "watchlist" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "apply" => "APPLY",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        "connect" | "proxy" => "CONNECT",
        _ => match method {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            "OPTIONS" => "OPTIONS",
            "CONNECT" => "CONNECT",
            "TRACE" => "TRACE",
            _ => "other",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_shows_under_upstreams_names_and_labels() {
        let metrics = Metrics::new();
        let route =
            Route { verb: "GET", group: "", version: "v1", resource: "pods", subresource: "", scope: "resource" };
        let handles = metrics.request(route);
        assert!(Arc::ptr_eq(&handles, &metrics.request(route)));
        metrics.answered(&handles, 200, Duration::from_millis(30), Some(5000), false);
        metrics.answered(&handles, 404, Duration::from_millis(3), None, false);
        let held = metrics.long_running(&handles);

        let text = metrics.text();
        let labels =
            "group=\"\",version=\"v1\",resource=\"pods\",subresource=\"\",scope=\"resource\",component=\"apiserver\"";
        for line in [
            format!("apiserver_request_total{{verb=\"GET\",dry_run=\"\",{labels},code=\"200\"}} 1\n"),
            format!("apiserver_request_total{{verb=\"GET\",dry_run=\"\",{labels},code=\"404\"}} 1\n"),
            format!("apiserver_request_duration_seconds_bucket{{verb=\"GET\",dry_run=\"\",{labels},le=\"0.005\"}} 1\n"),
            format!("apiserver_request_duration_seconds_bucket{{verb=\"GET\",dry_run=\"\",{labels},le=\"0.05\"}} 2\n"),
            format!("apiserver_response_sizes_bucket{{verb=\"GET\",{labels},le=\"10000\"}} 1\n"),
            format!("apiserver_longrunning_requests{{verb=\"GET\",{labels}}} 1\n"),
            "# TYPE apiserver_request_total counter\n".to_owned(),
            "# TYPE process_cpu_seconds_total counter\n".to_owned(),
            "# TYPE process_resident_memory_bytes gauge\n".to_owned(),
        ] {
            assert!(text.contains(&line), "{line} missing in\n{text}");
        }
        drop(held);
        assert!(metrics.text().contains(&format!("apiserver_longrunning_requests{{verb=\"GET\",{labels}}} 0\n")));
    }

    #[test]
    fn names_and_labels_of_stable_metrics_are_upstreams() {
        // facts/metrics.json, the STABLE ones this server has, in the order of that file.
        let upstream: &[(&str, &[&str])] = &[
            ("apiserver_admission_controller_admission_duration_seconds", &["name", "type", "operation", "rejected"]),
            ("apiserver_admission_step_admission_duration_seconds", &["type", "operation", "rejected"]),
            ("apiserver_admission_webhook_admission_duration_seconds", &["name", "type", "operation", "rejected"]),
            ("apiserver_current_inflight_requests", &["request_kind"]),
            (
                "apiserver_longrunning_requests",
                &["verb", "group", "version", "resource", "subresource", "scope", "component"],
            ),
            (
                "apiserver_request_duration_seconds",
                &["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"],
            ),
            (
                "apiserver_request",
                &["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"],
            ),
            (
                "apiserver_requested_deprecated_apis",
                &["group", "version", "resource", "subresource", "removed_release"],
            ),
            (
                "apiserver_response_sizes",
                &["verb", "group", "version", "resource", "subresource", "scope", "component"],
            ),
            ("apiserver_storage_size_bytes", &["storage_cluster_id"]),
            ("kubernetes_healthcheck", &["name", "type"]),
            ("kubernetes_healthchecks", &["name", "type", "status"]),
        ];
        for row in upstream {
            assert!(NAMES.contains(row), "{} is missing or has other labels", row.0);
        }
        let mut names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is there twice");
        assert!(names.iter().all(|name| !name.ends_with("_total")), "the format adds _total itself");
    }

    #[test]
    fn a_counter_without_total_keeps_its_name() {
        let metrics = Metrics::new();
        metrics.authentication_attempts.with(["success"]).inc();
        assert!(metrics.text().contains("\nauthentication_attempts{result=\"success\"} 1\n"));
    }

    #[test]
    fn unknown_verbs_and_methods_share_one_label() {
        assert_eq!(clean_verb("list", "GET"), "LIST");
        assert_eq!(clean_verb("whatever", "POST"), "POST");
        assert_eq!(clean_verb("whatever", "BREW"), "other");
    }
}
