//! `[serving]` and `[insecure_serving]`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use super::{Completer, HOUR, Span, known_names, millis, own, same_path, secs};
use crate::options::{
    completed::{ConnectionLimits, Http2, InsecureAddress, Serving, SniCertificate, State, Tls, TlsVersion},
    raw,
};

/// Upstream's text on `--cors-allowed-origins`, which its errors repeat.
const CORS_HELP: &str = "List of allowed origins for CORS, comma separated. An allowed origin can be a regular \
    expression to support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each \
    expression matches the entire hostname by anchoring to the start with '^' or including the '//' prefix, and by \
    anchoring to the end with '$' or including the ':' port separator suffix. Examples of valid expressions are \
    '//example\\.com(:|$)' and '^https://example\\.com(:|$)'";

impl Completer<'_> {
    pub(super) fn serving(
        &mut self,
        raw: &mut raw::Serving,
        insecure: &mut raw::InsecureServing,
        state: &State,
    ) -> Serving {
        let secure = self.secure_addresses(raw);
        let insecure = self.insecure_addresses(insecure, &secure, state);
        let negative = |flag: &str| format!("--{flag} can not be negative value");
        Serving {
            secure,
            insecure,
            permit_address_sharing: *raw.permit_address_sharing.get_or_insert(false),
            permit_port_sharing: *raw.permit_port_sharing.get_or_insert(false),
            tls: self.tls(raw, state),
            http2: self.http2(raw),
            connections: self.connections(raw),
            cors_allowed_origins: self.cors(raw),
            strict_transport_security_directives: self.strict_transport_security(raw),
            goaway_chance: self.goaway_chance(raw),
            max_requests_inflight: self.inflight("max-requests-inflight", &mut raw.max_requests_inflight, 400),
            max_mutating_requests_inflight: self.inflight(
                "max-mutating-requests-inflight",
                &mut raw.max_mutating_requests_inflight,
                200,
            ),
            request_timeout: self.duration(
                "serving.request_timeout",
                &mut raw.request_timeout,
                secs(60),
                &negative("request-timeout"),
            ),
            min_request_timeout: self.min_request_timeout(raw),
            livez_grace_period: self.duration(
                "serving.livez_grace_period",
                &mut raw.livez_grace_period,
                Duration::ZERO,
                "--livez-grace-period can not be a negative value",
            ),
            shutdown_delay_duration: self.duration(
                "serving.shutdown_delay_duration",
                &mut raw.shutdown_delay_duration,
                Duration::ZERO,
                &negative("shutdown-delay-duration"),
            ),
            shutdown_send_retry_after: *raw.shutdown_send_retry_after.get_or_insert(false),
            shutdown_watch_termination_grace_period: self.duration(
                "serving.shutdown_watch_termination_grace_period",
                &mut raw.shutdown_watch_termination_grace_period,
                Duration::ZERO,
                "shutdown-watch-termination-grace-period, if provided, can not be a negative value",
            ),
        }
    }

    fn secure_addresses(&mut self, raw: &mut raw::Serving) -> Vec<SocketAddr> {
        let Some(bind) = raw.bind.clone() else {
            let address = *raw.bind_address.get_or_insert(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            let port = *raw.secure_port.get_or_insert(6443);
            let port = u16::try_from(port).ok().filter(|port| *port > 0).unwrap_or_else(|| {
                let reason = format!(
                    "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
                );
                self.problem("serving.secure_port", reason);
                6443
            });
            return vec![SocketAddr::new(address, port)];
        };
        for (key, given) in
            [("serving.bind_address", raw.bind_address.is_some()), ("serving.secure_port", raw.secure_port.is_some())]
        {
            if given {
                self.problem(key, "cannot be given together with serving.bind");
            }
        }
        if bind.is_empty() {
            self.problem("serving.bind", "at least one address is needed");
        }
        self.unique("serving.bind", &bind);
        bind
    }

    fn insecure_addresses(
        &mut self,
        raw: &mut raw::InsecureServing,
        secure: &[SocketAddr],
        state: &State,
    ) -> Vec<InsecureAddress> {
        let bind = raw.bind.get_or_insert_default().clone();
        self.unique("insecure_serving.bind", &bind);
        for address in &bind {
            if !address.ip().is_loopback() {
                let reason = format!("{address} is not a loopback address; plain HTTP is served on those alone");
                self.problem("insecure_serving.bind", reason);
            }
            if secure.contains(address) && address.port() != 0 {
                self.problem("insecure_serving.bind", format!("{address} is served with TLS already"));
            }
        }
        let sockets = raw.socket.get_or_insert_default().clone();
        self.unique("insecure_serving.socket", &sockets.iter().map(|socket| socket.0.display()).collect::<Vec<_>>());
        for socket in &sockets {
            if same_path(&socket.0, &state.admin_socket) {
                self.problem("insecure_serving.socket", "this is the socket of `kenter reload` (state.admin_socket)");
            }
            if socket.0.as_os_str().len() > 107 {
                self.problem("insecure_serving.socket", format!("{}: longer than 107 bytes", socket.0.display()));
            }
        }
        let sockets = sockets.into_iter().map(|socket| InsecureAddress::Unix(socket.0));
        bind.into_iter().map(InsecureAddress::Tcp).chain(sockets).collect()
    }

    fn unique(&mut self, key: &str, entries: &[impl ToString]) {
        let mut seen = std::collections::BTreeSet::new();
        for entry in entries.iter().map(ToString::to_string) {
            if seen.contains(&entry) && !entry.ends_with(":0") {
                self.problem(key, format!("{entry} is given twice"));
            }
            seen.insert(entry);
        }
    }

    fn tls(&mut self, raw: &mut raw::Serving, state: &State) -> Tls {
        let cert_dir = own(&mut raw.cert_dir, || state.dir.join("pki"));
        let certificate = self.cert_pair(
            ("serving.tls_cert_file", &raw.tls_cert_file),
            ("serving.tls_private_key_file", &raw.tls_private_key_file),
            "serving",
        );
        let entries = raw.tls_sni_cert_key.get_or_insert_default().clone();
        let mut sni = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some(pair) = self.read_pair("serving.tls_sni_cert_key", &entry.cert_file, &entry.key_file) {
                sni.push(SniCertificate { pair, names: entry.names });
            }
        }
        let min_version = self.tls_version(raw);
        Tls {
            certificate,
            cert_dir,
            sni,
            min_version,
            cipher_suites: self.cipher_suites(raw, min_version),
            curve_preferences: self.curves(raw),
        }
    }

    fn tls_version(&mut self, raw: &mut raw::Serving) -> TlsVersion {
        match raw.tls_min_version.get_or_insert_with(|| "VersionTLS12".to_owned()).as_str() {
            "VersionTLS12" => TlsVersion::Tls12,
            "VersionTLS13" => TlsVersion::Tls13,
            old @ ("VersionTLS10" | "VersionTLS11") => {
                let text = format!("{old} is not spoken here: TLS 1.2 is the lowest version");
                self.warn("serving.tls_min_version", text);
                TlsVersion::Tls12
            }
            other => {
                let reason = format!("unknown tls version {other:?}");
                self.misfit("serving.tls_min_version", reason);
                TlsVersion::Tls12
            }
        }
    }

    /// Go's names; what rustls does not speak is left out with a warning.
    fn cipher_suites(&mut self, raw: &mut raw::Serving, min: TlsVersion) -> Vec<rustls::CipherSuite> {
        let names = raw.tls_cipher_suites.get_or_insert_default().clone();
        let mut spoken = Vec::new();
        let mut has_tls12 = false;
        for (i, name) in names.iter().enumerate() {
            match CIPHER_SUITES.iter().find(|(known, _)| known == name) {
                Some((_, Some(suite))) => {
                    has_tls12 |= !name.starts_with("TLS_AES") && !name.starts_with("TLS_CHACHA");
                    spoken.push(*suite);
                }
                Some((_, None)) => {
                    self.warn("serving.tls_cipher_suites", format!("cipher suite {name} is not spoken here"));
                }
                None => {
                    let reason = format!("Cipher suite {name} not supported or doesn't exist");
                    let spoken = CIPHER_SUITES.iter().filter(|(_, suite)| suite.is_some()).map(|(name, _)| *name);
                    self.entry_misfit("serving.tls_cipher_suites", (i, name), reason, known_names(name, spoken));
                }
            }
        }
        if !names.is_empty() && !has_tls12 && min == TlsVersion::Tls12 {
            let text = "no suite of TLS 1.2 is left: only TLS 1.3 will be spoken";
            self.warn("serving.tls_cipher_suites", text);
        }
        spoken
    }

    fn curves(&mut self, raw: &mut raw::Serving) -> Vec<rustls::NamedGroup> {
        let numbers = raw.tls_curve_preferences.get_or_insert_default().clone();
        let supported = crate::pki::provider().kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>();
        let mut groups = Vec::new();
        for number in numbers {
            let group = u16::try_from(number).ok().map(rustls::NamedGroup::from);
            match group.filter(|group| supported.contains(group)) {
                Some(group) => groups.push(group),
                None => self.warn("serving.tls_curve_preferences", format!("group {number} is not spoken here")),
            }
        }
        if groups.is_empty() && raw.tls_curve_preferences.as_ref().is_some_and(|numbers| !numbers.is_empty()) {
            self.misfit("serving.tls_curve_preferences", "none of the groups is spoken here");
        }
        groups
    }

    fn http2(&mut self, raw: &mut raw::Serving) -> Http2 {
        let streams = *raw.http2_max_streams_per_connection.get_or_insert(0);
        let streams = u32::try_from(streams).ok().filter(|n| *n <= i32::MAX as u32).unwrap_or_else(|| {
            self.problem("serving.http2_max_streams_per_connection", "must be between 0 and 2147483647");
            0
        });
        let mut window = |key: &str, slot: &mut Option<_>, default, low, high| {
            u32::try_from(self.size(key, slot, default, low, high)).unwrap_or(u32::MAX)
        };
        Http2 {
            enabled: !*raw.disable_http2_serving.get_or_insert(false),
            // Upstream's meaning of 0, the number that Go's clients start with.
            max_streams_per_connection: if streams == 0 { 100 } else { streams },
            stream_window: window(
                "serving.http2_stream_window",
                &mut raw.http2_stream_window,
                256 << 10,
                16 << 10,
                16 << 20,
            ),
            connection_window: window(
                "serving.http2_connection_window",
                &mut raw.http2_connection_window,
                2 << 20,
                64 << 10,
                1 << 30,
            ),
            // The protocol's own bounds; the upper one is a byte less than 16 MiB.
            max_frame_size: window(
                "serving.http2_max_frame_size",
                &mut raw.http2_max_frame_size,
                64 << 10,
                16 << 10,
                16 << 20,
            )
            .min((1 << 24) - 1),
            keep_alive_interval: self.span(
                "serving.http2_keep_alive_interval",
                &mut raw.http2_keep_alive_interval,
                secs(30),
                Span(Duration::ZERO, HOUR),
            ),
            keep_alive_timeout: self.span(
                "serving.http2_keep_alive_timeout",
                &mut raw.http2_keep_alive_timeout,
                secs(20),
                Span(secs(1), HOUR),
            ),
        }
    }

    fn connections(&mut self, raw: &mut raw::Serving) -> ConnectionLimits {
        let max_connections = *raw.max_connections.get_or_insert(16384);
        if !(1..=1_000_000).contains(&max_connections) {
            self.problem("serving.max_connections", "must be between 1 and 1000000");
        }
        let short = || Span(millis(100), secs(300));
        let handshake = &mut raw.handshake_timeout;
        let max_header = self.size("serving.max_header_bytes", &mut raw.max_header_bytes, 1 << 20, 8 << 10, 16 << 20);
        ConnectionLimits {
            max_connections,
            handshake_timeout: self.span("serving.handshake_timeout", handshake, secs(10), short()),
            header_timeout: self.span("serving.header_timeout", &mut raw.header_timeout, secs(32), short()),
            idle_timeout: self.span("serving.idle_timeout", &mut raw.idle_timeout, secs(90), Span(secs(1), 24 * HOUR)),
            max_header_bytes: u32::try_from(max_header).unwrap_or(u32::MAX),
            max_body_bytes: self.size(
                "serving.max_request_bytes",
                &mut raw.max_request_bytes,
                3 << 20,
                1 << 10,
                256 << 20,
            ),
        }
    }

    /// apiserver pkg/server/options/server_run_options.go validateCorsAllowedOriginList.
    fn cors(&mut self, raw: &mut raw::Serving) -> Vec<String> {
        let origins = raw.cors_allowed_origins.get_or_insert_default().clone();
        for (i, origin) in origins.iter().enumerate() {
            let reason = if origin.is_empty() {
                format!("empty value in --cors-allowed-origins, help: {CORS_HELP}")
            } else if let Err(error) = regex::Regex::new(origin) {
                format!("--cors-allowed-origins has an invalid regular expression: {error}, help: {CORS_HELP}")
            } else if !(origin.contains('^') || origin.contains("//"))
                || !(origin.contains('$') || origin.contains(':'))
            {
                let error = "regular expression does not pin to start/end of host in the origin header";
                format!("--cors-allowed-origins has an invalid regular expression: {error}, help: {CORS_HELP}")
            } else {
                continue;
            };
            self.entry_problem("serving.cors_allowed_origins", (i, origin), reason);
        }
        origins
    }

    /// apiserver pkg/server/options/server_run_options.go validateHSTSDirectives.
    fn strict_transport_security(&mut self, raw: &mut raw::Serving) -> Vec<String> {
        let directives = raw.strict_transport_security_directives.get_or_insert_default().clone();
        for (i, directive) in directives.iter().enumerate() {
            let age = || matches!(directive.split('=').collect::<Vec<_>>()[..], ["max-age", _]);
            let reason = if directive.trim().is_empty() {
                "empty value in strict-transport-security-directives"
            } else if directive != "includeSubDomains" && directive != "preload" && !age() {
                "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, \
                 includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
            } else {
                continue;
            };
            self.entry_problem("serving.strict_transport_security_directives", (i, directive), reason);
        }
        directives
    }

    fn goaway_chance(&mut self, raw: &mut raw::Serving) -> f64 {
        let chance = *raw.goaway_chance.get_or_insert(0.0);
        if (0.0..=0.02).contains(&chance) {
            return chance;
        }
        self.problem("serving.goaway_chance", "--goaway-chance can not be less than 0 or greater than 0.02");
        0.0
    }

    fn inflight(&mut self, flag: &str, slot: &mut Option<i64>, default: u32) -> u32 {
        let value = *slot.get_or_insert(default.into());
        let key = format!("serving.{}", flag.replace('-', "_"));
        if value < 0 {
            self.problem(&key, format!("--{flag} can not be negative value"));
            return default;
        }
        u32::try_from(value).unwrap_or_else(|_| {
            self.problem(&key, "must not be greater than 4294967295");
            default
        })
    }

    fn min_request_timeout(&mut self, raw: &mut raw::Serving) -> Duration {
        let seconds = *raw.min_request_timeout.get_or_insert(1800);
        u64::try_from(seconds).map(secs).unwrap_or_else(|_| {
            self.problem("serving.min_request_timeout", "--min-request-timeout can not be negative value");
            secs(1800)
        })
    }
}

use rustls::CipherSuite as Suite;

/// Every name that Go's crypto/tls knows; with a suite where rustls speaks it.
const CIPHER_SUITES: &[(&str, Option<Suite>)] = &[
    ("TLS_AES_128_GCM_SHA256", Some(Suite::TLS13_AES_128_GCM_SHA256)),
    ("TLS_AES_256_GCM_SHA384", Some(Suite::TLS13_AES_256_GCM_SHA384)),
    ("TLS_CHACHA20_POLY1305_SHA256", Some(Suite::TLS13_CHACHA20_POLY1305_SHA256)),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Some(Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", Some(Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", Some(Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256)),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", Some(Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256)),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Some(Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", Some(Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384)),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", Some(Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256)),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Some(Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256)),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", None),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", None),
    ("TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", None),
    ("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", None),
    ("TLS_ECDHE_RSA_WITH_RC4_128_SHA", None),
    ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", None),
    ("TLS_RSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_RSA_WITH_AES_128_CBC_SHA256", None),
    ("TLS_RSA_WITH_AES_128_GCM_SHA256", None),
    ("TLS_RSA_WITH_AES_256_CBC_SHA", None),
    ("TLS_RSA_WITH_AES_256_GCM_SHA384", None),
    ("TLS_RSA_WITH_RC4_128_SHA", None),
];
