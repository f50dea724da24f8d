//! Every flag of kube-apiserver 1.37, one row each, and kenter's own: its syntax, the key it sets, and what becomes
//! of it here. The parser, the loader (which meets the same names as keys in files), the reference and the tests
//! read this table alone.

use std::sync::LazyLock;

use Kind::*;
use Status::*;

/// How a flag's value is written, as pflag and component-base read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Uint,
    Float,
    Text,
    /// One address.
    Ip,
    Duration,
    /// Comma separated with CSV quotes; may repeat.
    StringSlice,
    /// One entry each time.
    StringArray,
    IntSlice,
    /// Entries separated by commas, no quotes.
    CommaString,
    /// `key=value` pairs, comma separated.
    Map,
    /// `key=bool` or `key` alone.
    RuntimeConfig,
    /// `Gate=bool`, optionally after `component:`.
    FeatureGates,
    /// `cert,key` or `cert,key:names`.
    NamedCertKey,
    PortRange,
    Version,
}

/// What becomes of a flag, or of the key of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It sets its key.
    Works,
    /// It sets its key, and a warning says what is still missing.
    Partly(&'static str),
    /// A warning says what kenter does instead.
    Ignored(&'static str),
    /// Start is refused, since going on without it would weaken security or lose records.
    Refused(&'static str),
    /// Upstream does nothing with it any more, nor does kenter.
    NoOp,
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Without dashes.
    pub name: &'static str,
    pub kind: Kind,
    /// The section its key is in.
    pub section: &'static str,
    pub status: Status,
    /// Values that say what kenter does anyway, so that nothing needs to be said about them.
    pub quiet: &'static [&'static str],
    /// What upstream prints about it besides its name.
    pub deprecated: Option<&'static str>,
    /// The key where it is not the name in snake case.
    key: Option<&'static str>,
}

impl Flag {
    /// "section.key".
    pub fn key(&self) -> String {
        match self.key {
            Some(key) => format!("{}.{key}", self.section),
            None => format!("{}.{}", self.section, self.name.replace('-', "_")),
        }
    }
    /// Whether it has a key in the raw options.
    pub fn sets_key(&self) -> bool {
        matches!(self.status, Works | Partly(_))
    }
    const fn quiet(mut self, values: &'static [&'static str]) -> Self {
        self.quiet = values;
        self
    }
    const fn deprecated(mut self, message: &'static str) -> Self {
        self.deprecated = Some(message);
        self
    }
    const fn sets(mut self, key: &'static str) -> Self {
        self.key = Some(key);
        self
    }
}

const fn row(name: &'static str, kind: Kind, section: &'static str, status: Status) -> Flag {
    Flag { name, kind, section, status, quiet: &[], deprecated: None, key: None }
}

/// The flag of that name.
pub fn find(name: &str) -> Option<&'static Flag> {
    static SORTED: LazyLock<Vec<&'static Flag>> = LazyLock::new(|| {
        let mut all: Vec<_> = all().collect();
        all.sort_by_key(|flag| flag.name);
        all
    });
    SORTED.binary_search_by(|flag| flag.name.cmp(name)).ok().and_then(|i| SORTED.get(i).copied())
}

/// The flag that sets, or would set, that key.
pub fn find_by_key(section: &str, key: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.section == section && flag.key().split_once('.').is_some_and(|(_, last)| last == key))
}

/// kube-apiserver's flags in its own order, then kenter's. `--help`, `--version` and `--config` are the parser's.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    UPSTREAM.iter().chain(OWN)
}

/// kenter's own.
pub const OWN: &[Flag] =
    &[row("state-dir", Text, "state", Works).sets("dir"), row("controllers", StringSlice, "controllers", Works)];

// Reasons that several rows share.
const NO_AUDIT_LOG: Status = Ignored("there is no audit log to apply it to yet");
const NO_OPENID_CONNECT: Status = Refused("tokens of an OpenID Connect issuer are not accepted yet");
const ABOUT_ETCD: Status = Ignored("it is about etcd, and objects are kept in the embedded store");
const ONE_VERSION: Status = Ignored("kenter serves Kubernetes 1.37 and emulates no other version");
const LOGS_TO_STDERR: Status = Ignored("log lines are written as they come, to standard error");
const NO_AUDITING: Status = Refused("no request would be recorded: auditing is not built yet");
const NO_AUTHORIZATION_WEBHOOK: Status = Ignored("there is no authorization webhook yet");
const NO_COORDINATED_ELECTION: Status = Ignored("coordinated leader election is not built yet");

/// kube-apiserver's, in groups as its help shows them.
#[rustfmt::skip]
pub const UPSTREAM: &[Flag] = &[
    // generic
    row("advertise-address", Ip, "network", Works),
    row("cors-allowed-origins", StringSlice, "serving", Works),
    row("emulated-version", StringSlice, "features", ONE_VERSION).quiet(&["1.37", "kube=1.37"]),
    row("emulation-forward-compatible", Bool, "features", ONE_VERSION).quiet(&["false"]),
    row("external-hostname", Text, "network", Works),
    row("feature-gates", FeatureGates, "features", Works),
    row("goaway-chance", Float, "serving", Works),
    row("livez-grace-period", Duration, "serving", Works),
    row("max-mutating-requests-inflight", Int, "serving", Works),
    row("max-requests-inflight", Int, "serving", Works),
    row("min-compatibility-version", StringSlice, "features", ONE_VERSION).quiet(&["1.36", "kube=1.36"]),
    row("min-request-timeout", Int, "serving", Works),
    row("request-timeout", Duration, "serving", Works),
    row("runtime-config-emulation-forward-compatible", Bool, "features", ONE_VERSION).quiet(&["false"]),
    row("shutdown-delay-duration", Duration, "serving", Works),
    row("shutdown-send-retry-after", Bool, "serving", Works),
    row("shutdown-watch-termination-grace-period", Duration, "serving", Works),
    row("storage-initialization-timeout", Duration, "storage", Works),
    row("strict-transport-security-directives", StringSlice, "serving", Works),
    // etcd
    row("default-watch-cache-size", Int, "storage", NoOp).deprecated("Watch caches are sized automatically. This flag is no-op and it will be removed in a future version."),
    row("delete-collection-workers", Int, "storage", Ignored("a collection is deleted in one sweep, without workers")).quiet(&["1"]),
    row("enable-garbage-collector", Bool, "storage", Ignored("deletion always honours foreground and orphan propagation")).quiet(&["true"]),
    row("encryption-provider-config", Text, "storage", Refused("objects would be stored unencrypted: encryption at rest is not built yet")),
    row("encryption-provider-config-automatic-reload", Bool, "storage", Refused("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")).quiet(&["false"]),
    row("etcd-cafile", Text, "storage", ABOUT_ETCD),
    row("etcd-certfile", Text, "storage", ABOUT_ETCD),
    row("etcd-compaction-interval", Duration, "storage", Works),
    row("etcd-count-metric-poll-period", Duration, "storage", Ignored("objects are counted as they change, without polling")),
    row("etcd-db-metric-poll-interval", Duration, "storage", Ignored("the size of the store is read when metrics are asked for")),
    row("etcd-healthcheck-timeout", Duration, "storage", ABOUT_ETCD),
    row("etcd-keyfile", Text, "storage", ABOUT_ETCD),
    row("etcd-prefix", Text, "storage", Ignored("keys begin with /registry")).quiet(&["/registry"]),
    row("etcd-readycheck-timeout", Duration, "storage", ABOUT_ETCD),
    row("etcd-servers", StringSlice, "storage", Refused("the etcd back end is not built yet, and an empty store in its place would look like lost objects")),
    row("etcd-servers-overrides", StringSlice, "storage", Refused("the etcd back end is not built yet, and an empty store in its place would look like lost objects")),
    row("lease-reuse-duration-seconds", Int, "storage", ABOUT_ETCD),
    row("storage-backend", Text, "storage", Ignored("objects are kept in the embedded store")),
    row("storage-media-type", Text, "storage", Ignored("objects are stored as JSON")).quiet(&["application/json"]),
    row("watch-cache", Bool, "storage", Ignored("the watch cache is always on: every read and watch is served from it")).quiet(&["true"]),
    row("watch-cache-sizes", StringSlice, "storage", Ignored("watch caches are sized automatically")),
    // secure serving
    row("bind-address", Ip, "serving", Works),
    row("cert-dir", Text, "serving", Works),
    row("disable-http2-serving", Bool, "serving", Works),
    row("http2-max-streams-per-connection", Int, "serving", Works),
    row("permit-address-sharing", Bool, "serving", Works),
    row("permit-port-sharing", Bool, "serving", Works),
    row("secure-port", Int, "serving", Works),
    row("tls-cert-file", Text, "serving", Works),
    row("tls-cipher-suites", StringSlice, "serving", Works),
    row("tls-curve-preferences", IntSlice, "serving", Works),
    row("tls-min-version", Text, "serving", Works),
    row("tls-private-key-file", Text, "serving", Works),
    row("tls-sni-cert-key", NamedCertKey, "serving", Works),
    // auditing
    row("audit-log-batch-buffer-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-batch-max-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-batch-max-wait", Duration, "audit", NO_AUDIT_LOG),
    row("audit-log-batch-throttle-burst", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-batch-throttle-enable", Bool, "audit", NO_AUDIT_LOG),
    row("audit-log-batch-throttle-qps", Float, "audit", NO_AUDIT_LOG),
    row("audit-log-compress", Bool, "audit", NO_AUDIT_LOG),
    row("audit-log-format", Text, "audit", NO_AUDIT_LOG),
    row("audit-log-maxage", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-maxbackup", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-maxsize", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-mode", Text, "audit", NO_AUDIT_LOG),
    row("audit-log-path", Text, "audit", NO_AUDITING),
    row("audit-log-truncate-enabled", Bool, "audit", NO_AUDIT_LOG),
    row("audit-log-truncate-max-batch-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-truncate-max-event-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-log-version", Text, "audit", NO_AUDIT_LOG),
    row("audit-policy-file", Text, "audit", NO_AUDITING),
    row("audit-webhook-batch-buffer-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-webhook-batch-initial-backoff", Duration, "audit", NO_AUDIT_LOG).deprecated("Deprecated, use --audit-webhook-initial-backoff instead."),
    row("audit-webhook-batch-max-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-webhook-batch-max-wait", Duration, "audit", NO_AUDIT_LOG),
    row("audit-webhook-batch-throttle-burst", Int, "audit", NO_AUDIT_LOG),
    row("audit-webhook-batch-throttle-enable", Bool, "audit", NO_AUDIT_LOG),
    row("audit-webhook-batch-throttle-qps", Float, "audit", NO_AUDIT_LOG),
    row("audit-webhook-config-file", Text, "audit", NO_AUDITING),
    row("audit-webhook-initial-backoff", Duration, "audit", NO_AUDIT_LOG),
    row("audit-webhook-mode", Text, "audit", NO_AUDIT_LOG),
    row("audit-webhook-truncate-enabled", Bool, "audit", NO_AUDIT_LOG),
    row("audit-webhook-truncate-max-batch-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-webhook-truncate-max-event-size", Int, "audit", NO_AUDIT_LOG),
    row("audit-webhook-version", Text, "audit", NO_AUDIT_LOG),
    // features
    row("contention-profiling", Bool, "telemetry", Ignored("there is no contention to profile in this runtime")).quiet(&["false"]),
    row("debug-socket-path", Text, "telemetry", Ignored("/debug/pprof is served with everything else")),
    row("enable-priority-and-fairness", Bool, "features", Ignored("requests are limited by --max-requests-inflight and --max-mutating-requests-inflight alone; priority levels are not built yet")).quiet(&["false"]),
    row("profiling", Bool, "telemetry", Works),
    // authentication
    row("anonymous-auth", Bool, "authentication", Works),
    row("api-audiences", StringSlice, "authentication", Partly("service account tokens are issued but not accepted yet")),
    row("authentication-config", Text, "authentication", Refused("its authenticators are not built yet, and its rules for anonymous requests would be lost")),
    row("authentication-token-webhook-cache-ttl", Duration, "authentication", Ignored("there is no token webhook yet")),
    row("authentication-token-webhook-config-file", Text, "authentication", Refused("tokens would not be reviewed: the token webhook is not built yet")),
    row("authentication-token-webhook-version", Text, "authentication", Ignored("there is no token webhook yet")),
    row("client-ca-file", Text, "authentication", Works),
    row("enable-bootstrap-token-auth", Bool, "authentication", Ignored("bootstrap tokens are not accepted yet; such a request is answered 401")).quiet(&["false"]),
    row("oidc-ca-file", Text, "authentication", NO_OPENID_CONNECT),
    row("oidc-client-id", Text, "authentication", NO_OPENID_CONNECT),
    row("oidc-groups-claim", Text, "authentication", NO_OPENID_CONNECT),
    row("oidc-groups-prefix", Text, "authentication", NO_OPENID_CONNECT),
    row("oidc-issuer-url", Text, "authentication", NO_OPENID_CONNECT),
    row("oidc-required-claim", Map, "authentication", NO_OPENID_CONNECT),
    row("oidc-signing-algs", StringSlice, "authentication", NO_OPENID_CONNECT),
    row("oidc-username-claim", Text, "authentication", NO_OPENID_CONNECT),
    row("oidc-username-prefix", Text, "authentication", NO_OPENID_CONNECT),
    row("requestheader-allowed-names", StringSlice, "authentication", Works),
    row("requestheader-client-ca-file", Text, "authentication", Works),
    row("requestheader-extra-headers-prefix", StringSlice, "authentication", Works),
    row("requestheader-group-headers", StringSlice, "authentication", Works),
    row("requestheader-uid-headers", StringSlice, "authentication", Works),
    row("requestheader-username-headers", StringSlice, "authentication", Works),
    row("service-account-extend-token-expiration", Bool, "authentication", Ignored("tokens of pods that ask for 3607 seconds are extended")).quiet(&["true"]),
    row("service-account-issuer", StringArray, "authentication", Partly("service account tokens are issued but not accepted yet")),
    row("service-account-jwks-uri", Text, "authentication", Ignored("the discovery documents name this server's own address")),
    row("service-account-key-file", StringArray, "authentication", Partly("service account tokens are not accepted yet; the keys are published")),
    row("service-account-lookup", Bool, "authentication", Ignored("service account tokens are not accepted yet")).quiet(&["true"]),
    row("service-account-max-token-expiration", Duration, "authentication", Ignored("there is no limit on what a token request may ask for yet")).quiet(&["0s"]),
    row("token-auth-file", Text, "authentication", Works),
    // authorization
    row("authorization-config", Text, "authorization", Refused("its authorizers are not built yet, and other rules would decide in their place")),
    row("authorization-mode", StringSlice, "authorization", Works),
    row("authorization-policy-file", Text, "authorization", Refused("its rules would not be asked: ABAC is not built yet")),
    row("authorization-webhook-cache-authorized-ttl", Duration, "authorization", NO_AUTHORIZATION_WEBHOOK),
    row("authorization-webhook-cache-unauthorized-ttl", Duration, "authorization", NO_AUTHORIZATION_WEBHOOK),
    row("authorization-webhook-config-file", Text, "authorization", Refused("it would not be asked: the authorization webhook is not built yet")),
    row("authorization-webhook-version", Text, "authorization", NO_AUTHORIZATION_WEBHOOK),
    // API enablement
    row("runtime-config", RuntimeConfig, "api", Works),
    // egress selector
    row("egress-selector-config-file", Text, "network", Refused("connections would go out directly: egress selection is not built yet")),
    // admission
    row("admission-control", StringSlice, "admission", Works).deprecated("Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version."),
    row("admission-control-config-file", Text, "admission", Refused("plugins would run without the configuration they are given there: it is not read yet")),
    row("default-not-ready-toleration-seconds", Int, "admission", Works),
    row("default-unreachable-toleration-seconds", Int, "admission", Works),
    row("disable-admission-plugins", StringSlice, "admission", Works),
    row("enable-admission-plugins", StringSlice, "admission", Works),
    // metrics
    row("allow-metric-labels", Map, "telemetry", Ignored("all label values are shown in metrics")),
    row("allow-metric-labels-manifest", Text, "telemetry", Ignored("all label values are shown in metrics")),
    row("disabled-metrics", StringSlice, "telemetry", Ignored("metrics cannot be switched off one by one")),
    row("show-hidden-metrics-for-version", Text, "telemetry", Ignored("there are no hidden metrics")),
    // logs
    row("log-flush-frequency", Duration, "telemetry", Ignored("log lines are written as they come")),
    row("log-json-info-buffer-size", Text, "telemetry", LOGS_TO_STDERR),
    row("log-json-split-stream", Bool, "telemetry", LOGS_TO_STDERR),
    row("log-text-info-buffer-size", Text, "telemetry", LOGS_TO_STDERR),
    row("log-text-split-stream", Bool, "telemetry", LOGS_TO_STDERR),
    row("logging-format", Text, "telemetry", Works),
    row("v", Uint, "telemetry", Works),
    row("vmodule", Text, "telemetry", Ignored("[telemetry] log_filter chooses levels by module")),
    // traces
    row("tracing-config-file", Text, "telemetry", Ignored("no traces are sent yet")),
    // misc
    row("aggregator-reject-forwarding-redirect", Bool, "network", Ignored("requests to aggregated servers are not forwarded yet")).quiet(&["true"]),
    row("allow-privileged", Bool, "api", Works),
    row("apiserver-count", Int, "network", Ignored("it counts for the endpoint reconciler master-count alone")).quiet(&["1"]).deprecated("apiserver-count is deprecated and will be removed in a future version."),
    row("coordinated-leadership-lease-duration", Duration, "features", NO_COORDINATED_ELECTION),
    row("coordinated-leadership-renew-deadline", Duration, "features", NO_COORDINATED_ELECTION),
    row("coordinated-leadership-retry-period", Duration, "features", NO_COORDINATED_ELECTION),
    row("enable-aggregator-routing", Bool, "network", Ignored("requests to aggregated servers are not forwarded yet")).quiet(&["false"]),
    row("enable-logs-handler", Bool, "telemetry", Ignored("log files are not served")).quiet(&["false"]),
    row("endpoint-reconciler-type", Text, "network", Works),
    row("event-ttl", Duration, "api", Works),
    row("kubelet-certificate-authority", Text, "network", Works),
    row("kubelet-client-certificate", Text, "network", Works),
    row("kubelet-client-key", Text, "network", Works),
    row("kubelet-port", Uint, "network", Works).deprecated("kubelet-port is deprecated and will be removed."),
    row("kubelet-preferred-address-types", StringSlice, "network", Works),
    row("kubelet-read-only-port", Uint, "network", NoOp).deprecated("kubelet-read-only-port is deprecated and will be removed."),
    row("kubelet-timeout", Duration, "network", Works),
    row("kubernetes-service-node-port", Int, "network", Works),
    row("max-connection-bytes-per-sec", Int, "serving", Ignored("connections are not throttled")).quiet(&["0"]),
    row("peer-advertise-ip", Text, "network", Refused("--peer-advertise-ip requires UnknownVersionInteroperabilityProxy feature to be turned on")),
    row("peer-advertise-port", Text, "network", Refused("--peer-advertise-port requires UnknownVersionInteroperabilityProxy feature to be turned on")),
    row("peer-ca-file", Text, "network", Refused("--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on")),
    row("proxy-client-cert-file", Text, "network", Works),
    row("proxy-client-key-file", Text, "network", Works),
    row("service-account-signing-endpoint", Text, "authentication", Ignored("tokens are signed with --service-account-signing-key-file alone")),
    row("service-account-signing-key-file", Text, "authentication", Works),
    row("service-cluster-ip-range", CommaString, "network", Works),
    row("service-node-port-range", PortRange, "network", Works),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_flags_of_the_real_server_are_here_once() {
        // 177 in its help, two of which (--help, --version) every parser has.
        assert_eq!(UPSTREAM.len(), 175);
        let names: BTreeSet<_> = all().map(|flag| flag.name).collect();
        assert_eq!(names.len(), all().count());
        let keys: BTreeSet<_> = all().map(Flag::key).collect();
        assert_eq!(keys.len(), all().count());
    }

    #[test]
    fn what_is_said_about_a_flag_is_one_clause() {
        for flag in all() {
            if let Partly(text) | Ignored(text) | Refused(text) = flag.status {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text}", flag.name);
            }
        }
    }
}
