//! What differs between two configurations, key by key in the words of the file, and how each difference comes in.
//!
//! Every option has a class, chosen in one match that names every field: a new option does not compile until
//! someone has chosen. There is no class that needs a restart. A plain function of values: it opens, binds and
//! reads nothing.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::options::{
    KeyPath, Origin, ValidatedOptions,
    raw::{self, RawOptions},
};

/// How a change comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Read through the generation: in force with the next request, handshake or connection.
    Live,
    /// The set of listeners: new ones are bound before the commit, old ones closed after it.
    Rebind,
    /// A handle that is closed and opened.
    Reopen,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Live => "live",
            Self::Rebind => "rebind",
            Self::Reopen => "reopen",
        })
    }
}

/// One option that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// "section.key".
    pub key: String,
    pub class: Class,
    pub kind: ChangeKind,
    /// Where the new value was written.
    pub origin: Origin,
}

/// What differs. Secrets are masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Another value; `None` where it is unset.
    Value { old: Option<String>, new: Option<String> },
    /// The same value, which names a file whose contents are others.
    Contents { file: std::path::PathBuf },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.key)?;
        match &self.kind {
            ChangeKind::Value { old, new } => {
                let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".to_owned());
                write!(f, "{} → {}", text(old), text(new))?;
            }
            ChangeKind::Contents { file } => write!(f, "contents of {} changed", file.display())?,
        }
        write!(f, " ({}, {})", self.class, self.origin)
    }
}

/// All that differs, sections and keys in the order of the reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub changes: Vec<Change>,
}

impl Plan {
    /// Whether anything of that class is to be done.
    pub fn has(&self, class: Class) -> bool {
        self.changes.iter().any(|change| change.class == class)
    }
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
    /// Whether the option "section.key" differs, or a file it names.
    pub fn touches(&self, key: &str) -> bool {
        self.changes.iter().any(|change| change.key == key)
    }
}

/// One change a line.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, change) in self.changes.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{change}")?;
        }
        Ok(())
    }
}

/// The way from one configuration to another. Empty exactly if they are equal.
pub fn diff(old: &ValidatedOptions, new: &ValidatedOptions) -> Plan {
    let mut plan = Plan::default();
    let mut classes = BTreeMap::new();
    visit(old.raw(), new.raw(), &mut |field| {
        classes.insert(field.key.clone(), field.class);
        if field.differs {
            let origin = new.origin(&KeyPath::dotted(&field.key));
            let kind = ChangeKind::Value { old: field.old, new: field.new };
            plan.changes.push(Change { key: field.key, class: field.class, kind, origin });
        }
    });
    for (path, file) in new.referenced_files() {
        let key = path.0.iter().take(2).cloned().collect::<Vec<_>>().join(".");
        let differs = old.file_hash(&file).is_some_and(|hash| Some(hash) != new.file_hash(&file));
        if let Some(class) = classes.get(&key).filter(|_| differs) {
            let origin = new.origin(&path);
            plan.changes.push(Change { key, class: *class, kind: ChangeKind::Contents { file }, origin });
        }
    }
    plan
}

/// One option of both sides.
struct Field {
    key: String,
    class: Class,
    old: Option<String>,
    new: Option<String>,
    differs: bool,
}

/// Names every field of a section with its class. The pattern has no `..`, so a field left out is an error.
macro_rules! section {
    ($visit:expr, $old:expr, $new:expr, $type:ident $section:ident { $($class:ident: $($field:ident),+;)+ }) => {{
        let raw::$type { $($($field: _,)+)+ } = &$old.$section;
        $($(
            field($visit, concat!(stringify!($section), ".", stringify!($field)), Class::$class,
                &$old.$section.$field, &$new.$section.$field);
        )+)+
    }};
}

/// The class of every option.
#[rustfmt::skip]
fn visit(old: &RawOptions, new: &RawOptions, see: &mut dyn FnMut(Field)) {
    let RawOptions {
        state: _, serving: _, insecure_serving: _, storage: _, authentication: _, authorization: _, admission: _,
        api: _, network: _, controllers: _, features: _, telemetry: _, reload: _,
    } = old;
    section!(see, old, new, State state {
        Reopen: dir;
        Live: kubeconfig;
        Rebind: admin_socket;
    });
    section!(see, old, new, Serving serving {
        Rebind: bind, bind_address, secure_port, permit_address_sharing, permit_port_sharing;
        Live: cert_dir, tls_cert_file, tls_private_key_file, tls_sni_cert_key, tls_min_version, tls_cipher_suites,
            tls_curve_preferences, disable_http2_serving, http2_max_streams_per_connection, http2_stream_window,
            http2_connection_window, http2_max_frame_size, http2_keep_alive_interval, http2_keep_alive_timeout,
            max_connections, handshake_timeout, header_timeout, idle_timeout, max_header_bytes, max_request_bytes,
            max_requests_inflight, max_mutating_requests_inflight, request_timeout, min_request_timeout,
            cors_allowed_origins, strict_transport_security_directives, goaway_chance, livez_grace_period,
            shutdown_delay_duration, shutdown_send_retry_after, shutdown_watch_termination_grace_period;
    });
    section!(see, old, new, InsecureServing insecure_serving {
        Rebind: bind, socket;
    });
    section!(see, old, new, Storage storage {
        Reopen: path, reserve;
        Live: etcd_compaction_interval, storage_initialization_timeout;
    });
    section!(see, old, new, Authentication authentication {
        Live: anonymous_auth, anonymous_paths, client_ca_file, token_auth_file, tokens, requestheader_client_ca_file,
            requestheader_allowed_names, requestheader_username_headers, requestheader_uid_headers,
            requestheader_group_headers, requestheader_extra_headers_prefix, service_account_issuer,
            service_account_key_file, service_account_signing_key_file, api_audiences;
    });
    section!(see, old, new, Authorization authorization {
        Live: authorization_mode;
    });
    section!(see, old, new, Admission admission {
        Live: enable_admission_plugins, disable_admission_plugins, admission_control,
            default_not_ready_toleration_seconds, default_unreachable_toleration_seconds;
    });
    section!(see, old, new, Api api {
        Live: profile, runtime_config, allow_privileged, event_ttl;
    });
    section!(see, old, new, Network network {
        Live: service_cluster_ip_range, service_node_port_range, kubernetes_service_node_port, advertise_address,
            external_hostname, endpoint_reconciler_type, kubelet_client_certificate, kubelet_client_key,
            kubelet_certificate_authority, kubelet_preferred_address_types, kubelet_timeout, kubelet_port,
            proxy_client_cert_file, proxy_client_key_file;
    });
    section!(see, old, new, Controllers controllers {
        Live: controllers;
    });
    section!(see, old, new, Features features {
        Live: feature_gates;
    });
    section!(see, old, new, Telemetry telemetry {
        Live: logging_format, v, log_filter, access_log, profiling;
    });
    section!(see, old, new, Reload reload {
        Live: watch, debounce, debounce_max, poll_interval, probe_timeout, observe, grace;
    });
}

fn field<T: Serialize + PartialEq>(
    see: &mut dyn FnMut(Field),
    key: &str,
    class: Class,
    old: &Option<T>,
    new: &Option<T>,
) {
    let differs = old != new;
    let text = |value: &Option<T>| value.as_ref().filter(|_| differs).map(crate::options::show_value);
    see(Field { key: key.to_owned(), class, old: text(old), new: text(new), differs });
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::options::{Invocation, ServerRunOptions, schema};

    fn options(text: &str) -> ValidatedOptions {
        let invocation = Invocation {
            command: "kenter run".into(),
            arguments: Vec::new(),
            environment: Default::default(),
            directory: "/".into(),
            root: true,
            host_address: Some([192, 0, 2, 7].into()),
            default_config: Default::default(),
        };
        let catalogue = crate::reload::catalogue::catalogue();
        let raw = ServerRunOptions::from_toml(&invocation, Path::new("/etc/k.toml"), text);
        raw.complete(&catalogue).validate().unwrap()
    }

    #[test]
    fn equal_configurations_differ_in_nothing() {
        let text = "[serving]\nsecure_port = 7443\n[api]\nruntime_config = { 'api/all' = true }\n";
        let (a, b) = (options(text), options(&format!("# the same\n{text}")));
        assert_eq!(a, b);
        assert!(diff(&a, &b).is_empty());
        assert_eq!(a.hash(), b.hash());
    }

    #[test]
    fn each_change_is_told_with_both_values_its_class_and_place() {
        let old = options("[serving]\nmax_requests_inflight = 400\n");
        let new = options("[serving]\nmax_requests_inflight = 401\nsecure_port = 7443\n[storage]\npath = '/s'\n");
        let plan = diff(&old, &new);
        assert_eq!(
            plan.to_string(),
            "serving.secure_port: 6443 → 7443 (rebind, /etc/k.toml:3:1)\n\
             serving.max_requests_inflight: 400 → 401 (live, /etc/k.toml:2:1)\n\
             storage.path: \"/var/lib/kenter\" → \"/s\" (reopen, /etc/k.toml:5:1)"
        );
        assert!(plan.has(Class::Rebind) && plan.has(Class::Reopen) && plan.touches("storage.path"));
        assert_ne!(old, new);
        assert_ne!(old.hash(), new.hash());
    }

    #[test]
    fn secrets_are_compared_and_never_shown() {
        let text = |token: &str| format!("[[authentication.tokens]]\ntoken = '{token}'\nuser = 'a'\n");
        let (old, new) = (options(&text("one-secret")), options(&text("two-secret")));
        let plan = diff(&old, &new).to_string();
        assert!(plan.starts_with("authentication.tokens: "), "{plan}");
        assert!(!plan.contains("one-secret") && !plan.contains("two-secret"), "{plan}");
        assert_ne!(old.hash(), new.hash());
        let debug = format!("{old:?}");
        assert!(debug.contains("<redacted>") && !debug.contains("one-secret"), "{debug}");
    }

    #[test]
    fn the_contents_of_a_file_are_part_of_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.csv");
        let text = format!("[authentication]\ntoken_auth_file = '{}'\n", file.display());
        std::fs::write(&file, "t,a,1\n").unwrap();
        let old = options(&text);
        std::fs::write(&file, "t,b,1\n").unwrap();
        let new = options(&text);
        assert_ne!(old, new);
        let expected =
            format!("authentication.token_auth_file: contents of {} changed (live, /etc/k.toml:2:1)", file.display());
        assert_eq!(diff(&old, &new).to_string(), expected);
    }

    #[test]
    fn the_class_is_the_one_that_the_documentation_says() {
        let raw = RawOptions::default();
        let mut seen = 0;
        visit(&raw, &raw, &mut |field| {
            let (section, key) = field.key.split_once('.').unwrap();
            let node = schema::child(schema::child(schema::root(), section).unwrap(), key).unwrap();
            let text = schema::description(node).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&format!("Class: {}", field.class)), "{}: {text}", field.key);
            seen += 1;
        });
        let all: usize = schema::properties(schema::root())
            .unwrap()
            .values()
            .map(|section| schema::properties(section).unwrap().len())
            .sum();
        assert_eq!(seen, all);
    }
}
