//! What the options mean once defaults are in: one struct per section, in the types their readers use.
//!
//! After [`complete`](super::complete) nothing here is "maybe": an `Option` means that the thing itself may be
//! absent, never that it was not decided. The values hold no handles and read no files; contents of referenced
//! files are already in them, so that equality covers what the files say.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use ipnet::IpNet;
use rustls_pki_types::CertificateDer;

use super::types::{SecretBytes, SecretString};

/// All sections. Made by `complete()` alone; readers get it through [`ValidatedOptions`](super::ValidatedOptions).
#[derive(Clone, Debug, PartialEq)]
pub struct Sections {
    pub state: State,
    pub serving: Serving,
    pub storage: Storage,
    pub authentication: Authentication,
    pub authorization: Authorization,
    pub admission: Admission,
    pub api: Api,
    pub network: Network,
    pub telemetry: Telemetry,
    pub reload: Reload,
    pub features: Features,
    pub controllers: Controllers,
}

/// Where kenter keeps what it makes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The state directory; absolute.
    pub dir: PathBuf,
    /// The administrator's kubeconfig, written when certificates are made.
    pub kubeconfig: PathBuf,
    /// The unix socket of `kenter reload`: in the runtime directory, or else the state directory.
    pub admin_socket: PathBuf,
}

/// Listeners, TLS, limits and time-outs of the HTTP server.
#[derive(Clone, Debug, PartialEq)]
pub struct Serving {
    /// Addresses served with TLS; at least one, no duplicates.
    pub secure: Vec<SocketAddr>,
    /// Plain HTTP; empty unless asked for.
    pub insecure: Vec<InsecureAddress>,
    /// SO_REUSEADDR on the listeners.
    pub permit_address_sharing: bool,
    /// SO_REUSEPORT on the listeners.
    pub permit_port_sharing: bool,
    pub tls: Tls,
    pub http2: Http2,
    pub connections: ConnectionLimits,
    /// Expressions an Origin header is matched against (unanchored, already compiled once to check them).
    pub cors_allowed_origins: Vec<String>,
    /// Directives of Strict-Transport-Security, in order; empty: no header.
    pub strict_transport_security_directives: Vec<String>,
    /// Chance in 0..=0.02 that a request's HTTP/2 connection is told to go away.
    pub goaway_chance: f64,
    /// Deadline of requests that are not long-running.
    pub request_timeout: Duration,
    /// A watch without a timeout of its own ends at a random time in [this, 2 x this).
    pub min_request_timeout: Duration,
    /// Non-mutating requests at once; 0: no limit.
    pub max_requests_inflight: u32,
    /// Mutating requests at once; 0: no limit.
    pub max_mutating_requests_inflight: u32,
    /// How long after start `/livez` hides checks of hooks that have not finished.
    pub livez_grace_period: Duration,
    /// Between "not ready" and refusing new requests at shutdown.
    pub shutdown_delay_duration: Duration,
    /// Whether late requests at shutdown are answered 429 with Retry-After instead of being served.
    pub shutdown_send_retry_after: bool,
    /// How long open watches are given at shutdown.
    pub shutdown_watch_termination_grace_period: Duration,
}

/// A plain HTTP listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InsecureAddress {
    /// A loopback address.
    Tcp(SocketAddr),
    /// Path of a unix socket, mode 0600.
    Unix(PathBuf),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// The certificate shown where no SNI entry matches; `None`: one is made in `cert_dir`.
    pub certificate: Option<CertPair>,
    /// Where self-made certificates are kept.
    pub cert_dir: PathBuf,
    pub sni: Vec<SniCertificate>,
    pub min_version: TlsVersion,
    /// Suites in order of preference; empty: the library's own. TLS 1.3 suites are not restricted by it.
    pub cipher_suites: Vec<rustls::CipherSuite>,
    /// Key exchange groups in order of preference; empty: the library's own.
    pub curve_preferences: Vec<rustls::NamedGroup>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// A certificate for chosen names.
#[derive(Clone, Debug, PartialEq)]
pub struct SniCertificate {
    pub pair: CertPair,
    /// Domain patterns ("*.example.com" allowed); empty: the names in the certificate.
    pub names: Vec<String>,
}

/// A certificate chain with its private key, checked to belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct CertPair {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// PEM as read.
    pub cert_pem: Arc<[u8]>,
    pub key_pem: SecretBytes,
    /// The chain, end entity first.
    pub chain: Vec<CertificateDer<'static>>,
}

/// Certificate authorities read from a file; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct CaBundle {
    pub file: PathBuf,
    pub pem: Arc<[u8]>,
    pub certificates: Vec<CertificateDer<'static>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2 {
    pub enabled: bool,
    pub max_streams_per_connection: u32,
    /// Bytes a peer may send on one stream before it waits.
    pub stream_window: u32,
    /// Bytes a peer may send on one connection before it waits.
    pub connection_window: u32,
    pub max_frame_size: u32,
    /// Between pings on an idle connection; zero: no pings.
    pub keep_alive_interval: Duration,
    /// A ping unanswered for this long closes the connection.
    pub keep_alive_timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once over all listeners; the next waits in the kernel's queue.
    pub max_connections: u32,
    /// From accept to the end of the TLS handshake.
    pub handshake_timeout: Duration,
    /// From the first byte of a request's headers to their end (HTTP/1.1), and before the first request.
    pub header_timeout: Duration,
    /// A connection without a request for this long is closed.
    pub idle_timeout: Duration,
    /// Request line and headers of one request, in bytes.
    pub max_header_bytes: u32,
    /// Body of one request, in bytes; more is 413.
    pub max_body_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    pub backend: StorageBackend,
    /// How much history is kept: every interval the store is compacted to what was current one interval ago.
    /// Zero: never.
    pub compaction_interval: Duration,
    /// How long start waits for the store and the first fill of the caches.
    pub initialization_timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageBackend {
    Embedded(EmbeddedStore),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedStore {
    /// The database file.
    pub path: PathBuf,
    /// Bytes kept in reserve beside it, given back when the disk is full so that compaction can go on.
    pub reserve: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Authentication {
    pub anonymous: Anonymous,
    /// Signs client certificates; `None`: the self-made CA of the state directory, if kenter made its certificates.
    pub client_ca: Option<CaBundle>,
    pub request_header: Option<RequestHeader>,
    /// Bearer tokens, from the token file and from the configuration itself.
    pub tokens: TokenTable,
    pub service_account: ServiceAccount,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anonymous {
    Off,
    /// Any path.
    Everywhere,
    /// Exactly these URL paths.
    Paths(BTreeSet<String>),
}

/// A proxy in front that says who the user is.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestHeader {
    pub client_ca: CaBundle,
    /// Common names allowed; empty: any the CA signed.
    pub allowed_names: Vec<String>,
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    pub extra_headers_prefix: Vec<String>,
}

/// Token to user. Tokens hide in debug output.
pub type TokenTable = BTreeMap<SecretString, TokenUser>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUser {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
}

/// What is known for tokens of service accounts. Issuing and accepting them is not built yet; the files are read
/// and checked so that a mistake shows at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// The first one signs; all are accepted.
    pub issuers: Vec<String>,
    /// PEM files with public or private keys that verify tokens.
    pub key_files: Vec<PemFile>,
    pub signing_key: Option<PemFile>,
    /// Audiences of the API; the issuers where none were given.
    pub api_audiences: Vec<String>,
}

/// A PEM file that may hold a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemFile {
    pub file: PathBuf,
    pub pem: SecretBytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// In the order they are asked; at least one, none twice.
    pub modes: Vec<AuthorizationMode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuthorizationMode {
    AlwaysAllow,
    AlwaysDeny,
    Rbac,
    /// Accepted; has no opinion yet.
    Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Names of the plugins that run, in the fixed order of the catalogue.
    pub plugins: Vec<String>,
    /// Seconds of the toleration for not-ready nodes that DefaultTolerationSeconds adds.
    pub default_not_ready_toleration_seconds: i64,
    /// The same for unreachable nodes.
    pub default_unreachable_toleration_seconds: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    pub runtime_config: RuntimeConfig,
    /// Whether pods may have privileged containers.
    pub allow_privileged: bool,
    /// How long an event is kept.
    pub event_ttl: Duration,
}

/// Which group versions and resources are served, as `--runtime-config` says it.
/// Keys: `group/version`, `group/version/resource` (the core group: `/v1`, `/v1/resource`), `api/all`, `api/ga`,
/// `api/beta`, `api/alpha`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    pub entries: BTreeMap<String, bool>,
}

impl RuntimeConfig {
    /// Whether a group version is served; `default` is what holds where nothing was said. The core group is "".
    pub fn version_enabled(&self, group: &str, version: &str, default: bool) -> bool {
        self.said(group, version).unwrap_or(default)
    }

    /// The same of one resource: what was said of itself, else of its version, else `default`.
    pub fn resource_enabled(&self, group: &str, version: &str, resource: &str, default: bool) -> bool {
        let own = self.entries.get(&format!("{group}/{version}/{resource}")).copied();
        own.or_else(|| self.said(group, version)).unwrap_or(default)
    }

    /// Mirrors apiserver pkg/server/resourceconfig/helpers.go: the version's own word, else the last that fits of
    /// all, ga, beta, alpha.
    fn said(&self, group: &str, version: &str) -> Option<bool> {
        let stage = match version {
            version if version.contains("alpha") => "api/alpha",
            version if version.contains("beta") => "api/beta",
            _ => "api/ga",
        };
        let keys = [&format!("{group}/{version}"), stage, "api/all"];
        keys.into_iter().find_map(|key| self.entries.get(key).copied())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// One or two, of different families; the first is the one of the `kubernetes` Service.
    pub service_cluster_ip_range: Vec<IpNet>,
    pub service_node_port_range: RangeInclusive<u16>,
    /// 0: the `kubernetes` Service is of type ClusterIP.
    pub kubernetes_service_node_port: u16,
    /// The address in the endpoints of the `kubernetes` Service; `None`: no usable one was found, none is published.
    pub advertise_address: Option<IpAddr>,
    /// Host name for URLs that point back here; the advertised address where none was given.
    pub external_hostname: String,
    pub endpoint_reconciler: EndpointReconciler,
    pub kubelet: Kubelet,
    /// Shown to aggregated servers and webhooks.
    pub proxy_client: Option<CertPair>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointReconciler {
    Lease,
    MasterCount,
    None,
}

/// How kubelets are reached (logs, exec, proxy).
#[derive(Clone, Debug, PartialEq)]
pub struct Kubelet {
    pub client: Option<CertPair>,
    /// Signs kubelets' serving certificates; `None`: they are not verified, as upstream.
    pub certificate_authority: Option<CaBundle>,
    /// Kinds of node address, most wanted first.
    pub preferred_address_types: Vec<String>,
    pub timeout: Duration,
    /// Where the node's status names no port.
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    pub format: LogFormat,
    /// klog verbosity, 0 to 10; what it means here: 0-3 info, 4-5 debug, 6 and more trace.
    pub verbosity: u8,
    /// A tracing-subscriber filter that replaces what `verbosity` says.
    pub filter: Option<String>,
    /// Whether each request is logged in one line.
    pub access_log: bool,
    /// Whether the process may be looked into under `/debug`.
    pub profiling: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// How changes of the configuration are noticed and brought in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// Whether files are watched; off leaves SIGHUP and `kenter reload`.
    pub watch: bool,
    /// Quiet time after the last change before files are read.
    pub debounce: Duration,
    /// The longest that changes may put off the reading.
    pub debounce_max: Duration,
    /// Between looks at all files, in case an event was lost; zero: never.
    pub poll_interval: Duration,
    /// How long the candidate may take to prove itself.
    pub probe_timeout: Duration,
    /// How long the new generation is watched, the old one kept whole.
    pub observe: Duration,
    /// How long a retired generation may finish short requests.
    pub grace: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Every gate of 1.37 with its effective value.
    pub gates: BTreeMap<String, bool>,
}

impl Features {
    /// Whether the gate is on; an unknown one is off.
    pub fn enabled(&self, gate: &str) -> bool {
        self.gates.get(gate).copied().unwrap_or(false)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// Names of the loops that run.
    pub enabled: BTreeSet<String>,
}

#[cfg(test)]
mod tests {
    use super::RuntimeConfig;

    #[test]
    fn what_is_said_closest_to_a_resource_counts() {
        let entries =
            [("api/all", false), ("api/beta", true), ("a/v1", true), ("a/v1beta1", false), ("/v1/pods", true)];
        let config = RuntimeConfig { entries: entries.map(|(key, value)| (key.to_owned(), value)).into() };
        assert!(config.version_enabled("a", "v1", false));
        assert!(!config.version_enabled("b", "v1", true));
        assert!(config.version_enabled("b", "v2beta1", false));
        assert!(!config.version_enabled("a", "v1beta1", true));
        assert!(!config.version_enabled("a", "v1alpha1", true));
        assert!(config.resource_enabled("", "v1", "pods", false));
        assert!(!config.resource_enabled("", "v1", "nodes", true));
        assert!(RuntimeConfig::default().version_enabled("", "v1", true));
    }
}
