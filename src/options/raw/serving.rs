//! `[serving]`

use std::net::{IpAddr, SocketAddr};

use crate::options::types::{ByteSize, FilePath, GoDuration, OwnPath};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The TLS listeners, their limits and time-outs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Serving {
    /// Addresses with ports served with TLS, instead of `bind_address` and `secure_port`.
    ///
    /// Default: unset; cannot be given together with those two. Class: rebind. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<Vec<SocketAddr>>,
    /// The address to listen on; 0.0.0.0 or :: for all interfaces.
    ///
    /// Default: 0.0.0.0. Class: rebind. Mirrors --bind-address (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<IpAddr>,
    /// The port served with TLS.
    ///
    /// Range: 1 to 65535. Default: 6443. Class: rebind. Mirrors --secure-port (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_port: Option<i64>,
    /// Whether listeners set SO_REUSEADDR.
    ///
    /// Default: false. Class: rebind. Mirrors --permit-address-sharing (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit_address_sharing: Option<bool>,
    /// Whether listeners set SO_REUSEPORT, so that several processes may serve one port.
    ///
    /// Default: false. Class: rebind. Mirrors --permit-port-sharing (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit_port_sharing: Option<bool>,
    /// Where self-made certificates are kept; used only while `tls_cert_file` is unset.
    ///
    /// Default: pki in the state directory. Class: live. Mirrors --cert-dir (apiserver pkg/server/options/serving.go), whose default is
    /// /var/run/kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<OwnPath>,
    /// PEM file with the serving certificate, followed by its intermediates.
    ///
    /// Default: unset; a CA and a certificate are made. Class: live. Mirrors --tls-cert-file (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert_file: Option<FilePath>,
    /// PEM file with the private key of `tls_cert_file`.
    ///
    /// Default: unset. Class: live. Mirrors --tls-private-key-file (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_private_key_file: Option<FilePath>,
    /// Certificates for chosen host names; the first whose names match is shown.
    ///
    /// Default: none. Class: live. Mirrors --tls-sni-cert-key (apiserver pkg/server/options/serving.go): `cert,key` or `cert,key:names`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_sni_cert_key: Option<Vec<SniEntry>>,
    /// The lowest TLS version accepted.
    ///
    /// Range: VersionTLS12, VersionTLS13; VersionTLS10 and VersionTLS11 are accepted words that mean VersionTLS12, since
    /// older versions are not spoken here. Default: VersionTLS12. Class: live. Mirrors --tls-min-version (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_min_version: Option<String>,
    /// Cipher suites of TLS 1.2 that are offered, by their IANA names, most wanted first.
    ///
    /// Range: kube-apiserver's names; those that are not spoken here (CBC, RC4, 3DES, RSA key exchange) are left out
    /// with a warning. Default: empty, all that are spoken. Class: live. Mirrors --tls-cipher-suites (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cipher_suites: Option<Vec<String>>,
    /// Key exchange groups by their IANA numbers, most wanted first.
    ///
    /// Range: 23 (P-256), 24 (P-384), 25 (P-521), 29 (X25519), 4588 (X25519MLKEM768) and their kin. Default: empty, the
    /// library's own order. Class: live. Mirrors --tls-curve-preferences (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_curve_preferences: Option<Vec<i32>>,
    /// Whether only HTTP/1.1 is spoken.
    ///
    /// Default: false. Class: live, for new connections. Mirrors --disable-http2-serving (apiserver pkg/server/options/serving.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_http2_serving: Option<bool>,
    /// Requests at once on one HTTP/2 connection.
    ///
    /// Range: 0 to 2^31-1; 0 means the default. Default: 100. Class: live, for new connections. Mirrors
    /// --http2-max-streams-per-connection (apiserver pkg/server/options/serving.go), whose default is 100 as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_max_streams_per_connection: Option<i64>,
    /// Bytes a client may send on one HTTP/2 stream before it must wait for the server.
    ///
    /// Unit: size. Range: 16KiB to 16MiB. Default: 256KiB, upstream's. Class: live, for new connections. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_stream_window: Option<ByteSize>,
    /// Bytes a client may send on one HTTP/2 connection before it must wait for the server.
    ///
    /// Unit: size. Range: 64KiB to 1GiB. Default: 2MiB. Class: live, for new connections. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_connection_window: Option<ByteSize>,
    /// The largest HTTP/2 frame sent or accepted.
    ///
    /// Unit: size. Range: 16KiB to 16MiB. Default: 64KiB. Class: live, for new connections. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_max_frame_size: Option<ByteSize>,
    /// Time between pings on a quiet HTTP/2 connection.
    ///
    /// Unit: duration text. Range: 0s (no pings) to 1h. Default: 30s. Class: live, for new connections. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_keep_alive_interval: Option<GoDuration>,
    /// A ping without an answer for this long closes the connection.
    ///
    /// Unit: duration text. Range: 1s to 1h. Default: 20s. Class: live, for new connections. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_keep_alive_timeout: Option<GoDuration>,
    /// Connections at once over all listeners; the next wait in the kernel's queue.
    ///
    /// Range: 1 to 1000000. Default: 16384. Class: live. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Longest time from accepting a connection to the end of its TLS handshake.
    ///
    /// Unit: duration text. Range: 100ms to 5m. Default: 10s. Class: live, for new connections. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_timeout: Option<GoDuration>,
    /// Longest time for the headers of one request to arrive.
    ///
    /// Unit: duration text. Range: 100ms to 5m. Default: 32s, as kube-apiserver's. Class: live, for new connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_timeout: Option<GoDuration>,
    /// A connection without any request for this long is closed.
    ///
    /// Unit: duration text. Range: 1s to 24h. Default: 1m30s, as kube-apiserver's. Class: live, for new connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<GoDuration>,
    /// Longest request line and headers of one request.
    ///
    /// Unit: size. Range: 8KiB to 16MiB. Default: 1MiB, as Go's server. Class: live, for new connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_header_bytes: Option<ByteSize>,
    /// Longest body of one request; a longer one is answered 413.
    ///
    /// Unit: size. Range: 1KiB to 256MiB. Default: 3MiB, which is fixed in kube-apiserver. Class: live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_request_bytes: Option<ByteSize>,
    /// Requests at once that do not change anything; long-running ones do not count. More are answered 429.
    ///
    /// Range: 0 (no limit) to 2^31-1. Default: 400. Class: live. Mirrors --max-requests-inflight (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_requests_inflight: Option<i64>,
    /// Requests at once that change something. More are answered 429.
    ///
    /// Range: 0 (no limit) to 2^31-1. Default: 200. Class: live. Mirrors --max-mutating-requests-inflight (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mutating_requests_inflight: Option<i64>,
    /// How long a request may take that is not long-running.
    ///
    /// Unit: duration text. Default: 1m0s. Class: live. Mirrors --request-timeout (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<GoDuration>,
    /// Shortest time after which a watch is ended by the server: each gets a random time between this and its double.
    ///
    /// Unit: seconds. Default: 1800. Class: live, for new watches. Mirrors --min-request-timeout (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_request_timeout: Option<i64>,
    /// Regular expressions of origins that browsers may call from.
    ///
    /// Range: each must pin the start (^ or //) and the end ($ or :) of the host. Default: none. Class: live. Mirrors
    /// --cors-allowed-origins (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_allowed_origins: Option<Vec<String>>,
    /// Directives of the Strict-Transport-Security header.
    ///
    /// Range: max-age=seconds, includeSubDomains, preload. Default: none, no header. Class: live. Mirrors
    /// --strict-transport-security-directives (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_transport_security_directives: Option<Vec<String>>,
    /// Chance that an HTTP/2 client is told to connect anew, to spread clients over replicas.
    ///
    /// Range: 0 to 0.02. Default: 0. Class: live. Mirrors --goaway-chance (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goaway_chance: Option<f64>,
    /// How long after start /livez does not yet fail for hooks that have not finished.
    ///
    /// Unit: duration text. Default: 0s. Class: live. Mirrors --livez-grace-period (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub livez_grace_period: Option<GoDuration>,
    /// How long requests are still served at shutdown while /readyz already fails.
    ///
    /// Unit: duration text. Default: 0s. Class: live. Mirrors --shutdown-delay-duration (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_delay_duration: Option<GoDuration>,
    /// Whether requests that come in late at shutdown are answered 429 with Retry-After.
    ///
    /// Default: false. Class: live. Mirrors --shutdown-send-retry-after (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_send_retry_after: Option<bool>,
    /// How long open watches are given at shutdown.
    ///
    /// Unit: duration text. Default: 0s. Class: live. Mirrors --shutdown-watch-termination-grace-period (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_watch_termination_grace_period: Option<GoDuration>,
}

/// A certificate for chosen host names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SniEntry {
    /// PEM file with the certificate, followed by its intermediates.
    pub cert_file: FilePath,
    /// PEM file with its private key.
    pub key_file: FilePath,
    /// Host names it is shown for, "*.example.com" allowed. Default: the names in the certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}
