//! The whole way from words to a validated value: every flag, the command lines of others, fixtures of files with the
//! problems they are to give, the examples.
//!
//! Expected texts lie beside the fixtures; `KENTER_UPDATE=1 cargo test` writes them anew for a reader to judge.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use super::catalogue::{Catalogue, ControllerEntry, PluginEntry};
use super::{
    Invocation, Origin, Problems, ServerRunOptions, ValidatedOptions,
    completed::{Anonymous, AuthorizationMode, EndpointReconciler, StorageBackend},
    flags::{self, Kind, Status},
    problem::KeyPath,
    read, schema, show_json, show_toml, written,
};
use crate::pki::{NewcomerOptions, newcomer};

/// Some of the names there are: options themselves know none.
fn catalogue() -> Catalogue {
    let plugin =
        |(name, on_by_default, built): (&str, bool, bool)| PluginEntry { name: name.to_owned(), on_by_default, built };
    let controller = |name: &str| ControllerEntry { name: name.to_owned(), on_by_default: true };
    Catalogue {
        admission_plugins: [
            ("NamespaceLifecycle", true, true),
            ("ServiceAccount", true, true),
            ("NodeRestriction", false, false),
            ("PodSecurity", true, false),
            ("Priority", true, true),
        ]
        .map(plugin)
        .into(),
        controllers: ["namespace-controller", "serviceaccount-controller"].map(controller).into(),
        api_versions: ["/v1", "apps/v1", "batch/v1"].map(str::to_owned).into(),
    }
}

fn invocation(words: &[&str], directory: &Path) -> Invocation {
    Invocation {
        command: "kenter run".into(),
        arguments: words.iter().map(|word| word.to_string()).collect(),
        environment: BTreeMap::new(),
        directory: directory.into(),
        root: true,
        host_address: Some([192, 0, 2, 7].into()),
        default_config: directory.join("kenter.toml"),
    }
}

fn from_words(words: &[&str]) -> Result<ValidatedOptions, Problems> {
    let mut invocation = invocation(words, Path::new("/nonexistent"));
    invocation.default_config = PathBuf::new();
    read(&invocation, &catalogue())
}

fn problems_of(words: &[&str]) -> Vec<String> {
    let problems = from_words(words).err().map(|problems| problems.list).unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

/// A folder with a CA, a certificate with its key, a token file and service account keys.
fn pki() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = newcomer::ensure(&NewcomerOptions {
        directory: folder.path().join("made"),
        kubeconfig: folder.path().join("made/admin.conf"),
        server_url: "https://127.0.0.1:6443".into(),
        host_name: "localhost".into(),
        addresses: Vec::new(),
        cluster_domain: "cluster.local".into(),
    })
    .unwrap();
    let pki = folder.path().join("pki");
    std::fs::create_dir(&pki).unwrap();
    for name in ["ca.crt", "front-proxy-ca.crt"] {
        std::fs::write(pki.join(name), &made.authority_pem).unwrap();
    }
    for name in ["serving", "client", "apiserver", "apiserver-kubelet-client", "front-proxy-client"] {
        std::fs::write(pki.join(name).with_extension("crt"), &made.serving_pem).unwrap();
        std::fs::write(pki.join(name).with_extension("key"), &made.serving_key_pem).unwrap();
    }
    for name in ["sa.pub", "sa.key"] {
        std::fs::write(pki.join(name), &made.serving_key_pem).unwrap();
    }
    std::fs::write(folder.path().join("tokens.csv"), "secret-token,alice,1,\"dev,ops\"\n").unwrap();
    folder
}

/// A value in the syntax of a flag that is not its default.
fn sample(flag: &flags::Flag) -> &'static str {
    match (flag.name, flag.kind) {
        ("advertise-address", _) => "192.0.2.1",
        ("admission-control" | "enable-admission-plugins" | "disable-admission-plugins", _) => "Priority",
        ("authorization-mode", _) => "AlwaysDeny",
        ("controllers", _) => "*",
        ("cors-allowed-origins", _) => "^https://example.com$",
        ("endpoint-reconciler-type", _) => "none",
        ("goaway-chance", _) => "0.01",
        ("kubernetes-service-node-port", _) => "30001",
        ("logging-format", _) => "json",
        ("requestheader-username-headers", _) => "X-Remote-User",
        ("requestheader-uid-headers", _) => "X-Remote-Uid",
        ("requestheader-group-headers", _) => "X-Remote-Group",
        ("requestheader-extra-headers-prefix", _) => "X-Remote-Extra-",
        ("kubelet-preferred-address-types", _) => "InternalIP",
        ("service-cluster-ip-range", _) => "10.96.0.0/16",
        ("strict-transport-security-directives", _) => "preload",
        ("tls-cipher-suites", _) => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        ("tls-min-version", _) => "VersionTLS13",
        ("encryption-provider-config-automatic-reload", _) => "true",
        (_, Kind::Bool) if flag.quiet.contains(&"true") => "false",
        (_, Kind::Bool) => "true",
        (_, Kind::Int | Kind::Uint) => "7",
        (_, Kind::Float) => "0.5",
        (_, Kind::Ip) => "192.0.2.1",
        (_, Kind::Duration) => "17s",
        (_, Kind::IntSlice) => "29",
        (_, Kind::Map) => "a=b",
        (_, Kind::RuntimeConfig) => "api/all=true",
        (_, Kind::FeatureGates) => "AllAlpha=false",
        (_, Kind::NamedCertKey) => "pki/serving.crt,pki/serving.key:a.example.com",
        (_, Kind::PortRange) => "20000-20100",
        _ => "text",
    }
}

#[test]
fn every_flag_works_or_says_what_becomes_of_it() {
    let folder = pki();
    for flag in flags::all() {
        let key = flag.key();
        let (section, name) = key.split_once('.').unwrap();
        let node = schema::child(schema::root(), section).and_then(|node| schema::child(node, name));
        let format = node.and_then(|node| schema::format(schema::items(node).unwrap_or(node)));
        let value = match (flag.name, format) {
            ("token-auth-file", _) => "tokens.csv",
            (name, Some("file")) if name.ends_with("key") || name.ends_with("key-file") => "pki/client.key",
            (name, Some("file")) if name.contains("ca-file") || name.contains("authority") => "pki/ca.crt",
            (_, Some("file")) => "pki/client.crt",
            _ => sample(flag),
        };
        let mut words = vec![format!("--{}={value}", flag.name)];
        for (one, other, file) in [
            ("tls-cert-file", "tls-private-key-file", "pki/client"),
            ("kubelet-client-certificate", "kubelet-client-key", "pki/client"),
            ("proxy-client-cert-file", "proxy-client-key-file", "pki/client"),
        ] {
            if flag.name == one {
                words.push(format!("--{other}={file}.key"));
            } else if flag.name == other {
                words.push(format!("--{one}={file}.crt"));
            }
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let result = read(&invocation(&words, folder.path()), &catalogue());
        let origin = Origin::Flag(format!("--{}", flag.name));
        match flag.status {
            Status::Works | Status::Partly(_) => {
                let options = result.unwrap_or_else(|problems| panic!("--{}: {problems}", flag.name));
                assert_eq!(options.origin(&KeyPath::dotted(&key)), origin, "--{}", flag.name);
                assert!(written(&options).iter().any(|(written, ..)| *written == key), "--{}", flag.name);
                let said = options.warnings().iter().any(|warning| warning.origin == origin);
                if let Status::Partly(text) = flag.status {
                    assert!(options.warnings().iter().any(|warning| warning.text == text), "--{}", flag.name);
                } else {
                    assert!(!said, "--{}: {:?}", flag.name, options.warnings());
                }
            }
            Status::Ignored(text) => {
                let options = result.unwrap_or_else(|problems| panic!("--{}: {problems}", flag.name));
                let said: Vec<_> = options.warnings().iter().filter(|warning| warning.origin == origin).collect();
                assert_eq!(said.len(), 1, "--{}", flag.name);
                assert!(said[0].text.ends_with(text), "--{}: {}", flag.name, said[0]);
            }
            Status::Refused(text) => {
                let problems = result.err().map(|problems| problems.list).unwrap_or_default();
                assert_eq!(problems.len(), 1, "--{}: {problems:?}", flag.name);
                assert_eq!((problems[0].reason.as_str(), &problems[0].origin), (text, &origin), "--{}", flag.name);
            }
            Status::NoOp => {
                let options = result.unwrap_or_else(|problems| panic!("--{}: {problems}", flag.name));
                let deprecated = format!("Flag --{} has been deprecated, ", flag.name);
                assert!(options.warnings()[0].text.starts_with(&deprecated), "--{}", flag.name);
                assert!(written(&options).is_empty());
            }
        }
    }
}

#[test]
fn saying_what_kenter_does_anyway_is_answered_with_silence() {
    let mut looked_at = 0;
    for flag in flags::all() {
        for value in flag.quiet {
            let options = from_words(&[&format!("--{}={value}", flag.name)]).unwrap();
            assert_eq!(options.warnings().len(), usize::from(flag.deprecated.is_some()), "--{}={value}", flag.name);
            looked_at += 1;
        }
    }
    assert!(looked_at > 10);
}

/// What kubeadm 1.37 writes into the manifest of kube-apiserver, its etcd flags left out.
const KUBEADM: [&str; 24] = [
    "--advertise-address=192.0.2.10",
    "--allow-privileged=true",
    "--authorization-mode=Node,RBAC",
    "--client-ca-file=pki/ca.crt",
    "--enable-admission-plugins=NodeRestriction",
    "--enable-bootstrap-token-auth=true",
    "--kubelet-client-certificate=pki/apiserver-kubelet-client.crt",
    "--kubelet-client-key=pki/apiserver-kubelet-client.key",
    "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
    "--proxy-client-cert-file=pki/front-proxy-client.crt",
    "--proxy-client-key-file=pki/front-proxy-client.key",
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-client-ca-file=pki/front-proxy-ca.crt",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-username-headers=X-Remote-User",
    "--secure-port=6443",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    "--service-account-key-file=pki/sa.pub",
    "--service-account-signing-key-file=pki/sa.key",
    "--service-cluster-ip-range=10.96.0.0/12",
    "--tls-cert-file=pki/apiserver.crt",
    "--tls-private-key-file=pki/apiserver.key",
    "--feature-gates=",
];

#[test]
fn a_kubeadm_command_line_is_understood() {
    let folder = pki();
    let options = read(&invocation(&KUBEADM, folder.path()), &catalogue()).unwrap();
    assert_eq!(options.serving.secure, ["0.0.0.0:6443".parse().unwrap()]);
    assert_eq!(options.authorization.modes, [AuthorizationMode::Node, AuthorizationMode::Rbac]);
    assert_eq!(options.network.service_cluster_ip_range, ["10.96.0.0/12".parse().unwrap()]);
    assert_eq!(options.authentication.request_header.as_ref().unwrap().allowed_names, ["front-proxy-client"]);
    assert_eq!(
        options.authentication.anonymous,
        Anonymous::Paths(["/healthz", "/livez", "/readyz", "/version"].map(String::from).into())
    );
    assert_eq!(options.authentication.service_account.key_files.len(), 1);
    assert!(options.network.kubelet.client.is_some() && options.network.proxy_client.is_some());
    assert!(options.api.allow_privileged);
    let told: BTreeSet<_> = options.warnings().iter().map(|warning| warning.key.to_string()).collect();
    let expected = [
        "admission.enable_admission_plugins",
        "authentication.enable_bootstrap_token_auth",
        "authentication.service_account_issuer",
        "authentication.service_account_key_file",
        "authorization.authorization_mode",
    ];
    assert_eq!(told, expected.map(String::from).into());
}

#[test]
fn etcd_servers_are_refused_with_the_reason_and_nothing_else_is() {
    let folder = pki();
    let mut words = KUBEADM.to_vec();
    words.extend([
        "--etcd-cafile=pki/ca.crt",
        "--etcd-certfile=c",
        "--etcd-keyfile=k",
        "--etcd-servers=https://127.0.0.1:2379",
    ]);
    let problems = read(&invocation(&words, folder.path()), &catalogue()).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "--etcd-servers: storage.etcd_servers = \"https://127.0.0.1:2379\": the etcd back end is not built yet, and an \
         empty store in its place would look like lost objects (leave it out to start without it)"
    );
}

#[test]
fn every_mistake_of_a_command_line_is_told_at_once() {
    assert_eq!(
        problems_of(&["--insecure-port=0", "--secure-prot=1", "--secure-port=0", "--runtime-config=foo/v1=true", "x"]),
        [
            "unknown flag: --insecure-port",
            "unknown flag: --secure-prot (did you mean --secure-port?)",
            "\"kenter run\" does not take any arguments, got [\"x\"]",
            "--secure-port: serving.secure_port = 0: --secure-port 0 must be between 1 and 65535, inclusive. It cannot be \
             turned off with 0",
            "--runtime-config: api.runtime_config = { \"foo/v1\" = true }: unknown api groups foo/v1 (accepted: keys \
             group/version, group/version/resource, v1, api/all, api/ga, api/beta, api/alpha)",
        ]
    );
}

#[test]
fn nothing_at_all_is_a_good_and_closed_configuration() {
    let options = from_words(&[]).unwrap();
    assert_eq!(options.warnings(), []);
    assert_eq!(options.state.dir, Path::new("/var/lib/kenter"));
    assert_eq!(options.state.kubeconfig, Path::new("/var/lib/kenter/admin.conf"));
    assert_eq!(options.serving.secure, ["0.0.0.0:6443".parse().unwrap()]);
    assert!(options.serving.insecure.is_empty());
    assert_eq!(options.serving.request_timeout, Duration::from_secs(60));
    assert_eq!((options.serving.max_requests_inflight, options.serving.max_mutating_requests_inflight), (400, 200));
    assert_eq!(options.authorization.modes, [AuthorizationMode::Rbac]);
    assert_eq!(options.network.advertise_address, Some([192, 0, 2, 7].into()));
    assert_eq!(options.network.endpoint_reconciler, EndpointReconciler::Lease);
    assert_eq!(options.network.service_node_port_range, 30000..=32767);
    assert_eq!(options.controllers.enabled.len(), 2);
    let StorageBackend::Embedded(store) = &options.storage.backend;
    assert_eq!(store.path, Path::new("/var/lib/kenter"));
    assert_eq!(options.admission.plugins, ["NamespaceLifecycle", "ServiceAccount", "Priority"]);
    assert!(written(&options).is_empty());
}

#[test]
fn the_state_directory_follows_systemd_then_root_then_home() {
    let state = |root: bool, variables: &[(&str, &str)]| {
        let mut invocation = invocation(&[], Path::new("/nonexistent"));
        invocation.root = root;
        invocation.environment = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let options = read(&invocation, &catalogue()).unwrap();
        (options.state.dir.display().to_string(), options.state.admin_socket.display().to_string())
    };
    let both = |dir: &str, socket: &str| (dir.to_owned(), socket.to_owned());
    let systemd = [("STATE_DIRECTORY", "/s/a:/s/b"), ("RUNTIME_DIRECTORY", "/run/kenter"), ("HOME", "/home/u")];
    assert_eq!(state(true, &systemd), both("/s/a", "/run/kenter/admin.sock"));
    assert_eq!(state(true, &[("HOME", "/root")]), both("/var/lib/kenter", "/var/lib/kenter/admin.sock"));
    let xdg = [("HOME", "/home/u"), ("XDG_STATE_HOME", "/home/u/state")];
    assert_eq!(state(false, &xdg).0, "/home/u/state/kenter");
    assert_eq!(state(false, &[("HOME", "/home/u")]).0, "/home/u/.local/state/kenter");
}

#[test]
fn a_stronger_layer_wins_and_each_value_knows_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("kenter.d")).unwrap();
    write(
        "kenter.toml",
        "[serving]\nsecure_port = 1\nmax_requests_inflight = 1\nrequest_timeout = '1s'\nmin_request_timeout = 1\n",
    );
    write(
        "kenter.d/20-b.toml",
        "[serving]\n\nrequest_timeout = '3s'\n[features]\nfeature_gates = { AllBeta = false }\n",
    );
    write("kenter.d/10-a.toml", "[serving]\nmax_requests_inflight = 2\nrequest_timeout = '2s'\n");
    write("kenter.d/.hidden.toml", "nonsense");
    write("kenter.d/readme", "nonsense");
    let mut invocation = invocation(&["--secure-port=5", "--feature-gates=AllAlpha=false"], folder.path());
    let variables = [
        ("KENTER_SERVING__SECURE_PORT", "4"),
        ("KENTER_SERVING__MIN_REQUEST_TIMEOUT", "4"),
        ("KENTER_PORT", "tcp://1"),
    ];
    invocation.environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = read(&invocation, &catalogue()).unwrap();
    let origin = |key: &str| options.origin(&KeyPath::dotted(key)).to_string();
    let file = |name: &str, place: &str| format!("{}:{place}", folder.path().join(name).display());
    assert_eq!(options.serving.secure[0].port(), 5);
    assert_eq!(origin("serving.secure_port"), "--secure-port");
    assert_eq!(options.serving.min_request_timeout, Duration::from_secs(4));
    assert_eq!(origin("serving.min_request_timeout"), "$KENTER_SERVING__MIN_REQUEST_TIMEOUT");
    assert_eq!(options.serving.request_timeout, Duration::from_secs(3));
    assert_eq!(origin("serving.request_timeout"), file("kenter.d/20-b.toml", "3:1"));
    assert_eq!(options.serving.max_requests_inflight, 2);
    assert_eq!(origin("serving.max_requests_inflight"), file("kenter.d/10-a.toml", "2:1"));
    assert_eq!(origin("serving.bind_address"), "default");
    assert_eq!(origin("features.feature_gates.AllBeta"), file("kenter.d/20-b.toml", "5:19"));
    assert_eq!(origin("features.feature_gates.AllAlpha"), "--feature-gates");
    let shown = show_toml(&options, true);
    assert!(shown.contains("secure_port = 5  # --secure-port\n"), "{shown}");
    assert!(shown.contains("bind_address = \"0.0.0.0\"  # default\n"), "{shown}");
    let watch = options.watch();
    assert!(watch.folders.contains(&folder.path().join("kenter.d")));
    assert_eq!(watch.files.len(), 3);
}

#[test]
fn a_named_file_must_be_there_and_the_default_one_need_not() {
    let folder = tempfile::tempdir().unwrap();
    assert!(read(&invocation(&[], folder.path()), &catalogue()).is_ok());
    let missing = folder.path().join("x.toml");
    let expected = format!("open {}: no such file or directory", missing.display());
    let problems = read(&invocation(&["--config", "x.toml"], folder.path()), &catalogue()).unwrap_err();
    assert_eq!(problems.to_string(), expected);
    assert!(problems.watch.files.contains(&missing));
    let mut by_variable = invocation(&[], folder.path());
    by_variable.environment = [("KENTER_CONFIG".to_owned(), "x.toml".to_owned())].into();
    assert_eq!(read(&by_variable, &catalogue()).unwrap_err().to_string(), expected);
}

#[test]
fn the_printed_configuration_fed_back_is_the_same() {
    let folder = pki();
    let mut words = KUBEADM.to_vec();
    words.extend([
        "--token-auth-file=tokens.csv",
        "--anonymous-auth=true",
        "--tls-sni-cert-key=pki/client.crt,pki/client.key:a,b",
    ]);
    words.extend(["--runtime-config=api/all=true,v1=true", "--state-dir=s\"t\\ate"]);
    let options = read(&invocation(&words, folder.path()), &catalogue()).unwrap();
    assert_eq!(options.authentication.anonymous, Anonymous::Everywhere);
    for (name, text) in [("plain.toml", show_toml(&options, false)), ("with-origins.toml", show_toml(&options, true))] {
        std::fs::write(folder.path().join(name), text).unwrap();
        let again = read(&invocation(&["--config", name], folder.path()), &catalogue()).unwrap();
        assert_eq!(again.hash(), options.hash());
        assert_eq!(again, options);
    }
    let json: serde_json::Value = serde_json::from_str(&show_json(&options, true)).unwrap();
    assert_eq!(json["serving"]["secure_port"], serde_json::json!({ "value": 6443, "origin": "--secure-port" }));
    assert!(!show_toml(&options, true).contains("secret-token"));
    assert!(!format!("{options:?}").contains("secret-token"));
}

#[test]
fn no_problem_shows_what_was_written_where_a_secret_belongs() {
    const SECRET: &str = "SECRETTOKENX";
    let quiet = invocation(&[], Path::new("/nonexistent"));
    for tokens in [
        "\"SECRETTOKENX\"",
        "[\"SECRETTOKENX\"]",
        "[[\"SECRETTOKENX\"]]",
        "{ SECRETTOKENX = \"SECRETTOKENX\" }",
        "{ token = \"SECRETTOKENX\" }",
        "[{ token = [\"SECRETTOKENX\"], user = \"a\" }]",
        "[{ token = { a = \"SECRETTOKENX\" }, user = \"a\" }]",
        "[{ tokn = \"SECRETTOKENX\", user = \"a\" }]",
        "[{ token = \"SECRETTOKENX\" }]",
        "[{ token = \"SECRETTOKENX\", user = \"\" }]",
        "[{ token = \"x\", user = [\"SECRETTOKENX\"] }]",
        "[{ token = \"x\", user = \"a\", groups = \"SECRETTOKENX\" }]",
    ] {
        let text = format!("[authentication]\ntokens = {tokens}\n");
        let read = ServerRunOptions::from_toml(&quiet, Path::new("k.toml"), &text).complete(&catalogue()).validate();
        let problems = read.err().unwrap_or_else(|| panic!("{tokens} is taken")).to_string();
        let values = without_keys(&problems);
        assert!(!values.contains(SECRET), "{tokens}: {problems}");
        let mut by_variable = quiet.clone();
        by_variable.environment = [("KENTER_AUTHENTICATION__TOKENS".to_owned(), tokens.to_owned())].into();
        by_variable.default_config = PathBuf::new();
        let problems = without_keys(&read_problems(&by_variable));
        assert!(!problems.contains(SECRET), "{tokens}: {problems}");
    }
    for section in ["authentication = \"SECRETTOKENX\"\n", "[authentication]\ntoken = \"SECRETTOKENX\"\n"] {
        let read = ServerRunOptions::from_toml(&quiet, Path::new("k.toml"), section).complete(&catalogue()).validate();
        assert!(!read.unwrap_err().to_string().contains(SECRET), "{section}");
    }
}

/// A name that is no key is told by its name; only what stands for a value is secret.
fn without_keys(problems: &str) -> String {
    problems.replace(".SECRETTOKENX", "")
}

fn read_problems(invocation: &Invocation) -> String {
    read(invocation, &catalogue()).err().map(|problems| problems.to_string()).unwrap_or_default()
}

#[test]
fn a_word_that_is_not_taken_is_answered_with_those_that_are() {
    for (flag, hint) in [
        ("--tls-min-version=TLS1.3", "(accepted: VersionTLS12, VersionTLS13; "),
        ("--logging-format=xml", "(accepted: text, for people; json, one object a line)"),
        ("--endpoint-reconciler-type=x", "(accepted: lease, master-count, none)"),
        ("--authorization-mode=rbac", "(accepted: RBAC, AlwaysAllow, AlwaysDeny, "),
        ("--service-cluster-ip-range=10.0.0.0", "(an address and the length of its prefix, such as 10.0.0.0/24)"),
        ("--tls-cipher-suites=TLS_AES_128_GCM_SHA255", "(did you mean TLS_AES_128_GCM_SHA256?)"),
        ("--enable-admission-plugins=ServiceAccounts", "(did you mean ServiceAccount?)"),
        ("--runtime-config=batch=true", "(accepted: keys group/version, group/version/resource, "),
        ("--controllers=nothing", "(known: "),
        ("--feature-gates=AllBetas=true", "(did you mean AllBeta?)"),
    ] {
        let problems = problems_of(&[flag]);
        assert!(problems.iter().any(|problem| problem.contains(hint)), "{flag}: {problems:?}");
    }
}

#[test]
fn tokens_come_from_the_file_and_from_the_configuration() {
    let folder = pki();
    let text = "[authentication]\ntoken_auth_file = 'tokens.csv'\ntokens = [{ token = 'inline', user = 'bob', groups = ['ops'] }]\n";
    std::fs::write(folder.path().join("kenter.toml"), text).unwrap();
    let options = read(&invocation(&[], folder.path()), &catalogue()).unwrap();
    let users: Vec<_> =
        options.authentication.tokens.values().map(|user| (user.name.as_str(), user.groups.len())).collect();
    assert_eq!(users, [("bob", 1), ("alice", 2)]);
    let shown = show_toml(&options, false);
    assert!(shown.contains("tokens = [{ groups = [\"ops\"], token = \"<redacted>\", user = \"bob\" }]"), "{shown}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "toml")).collect();
    files.sort();
    files
}

/// Compares with the text beside a fixture, or writes it.
fn expect(fixture: &Path, found: &str) {
    let expected = fixture.with_extension("expected");
    if std::env::var_os("KENTER_UPDATE").is_some() {
        std::fs::write(&expected, found).unwrap();
    }
    let wanted = std::fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(found, wanted, "{} (KENTER_UPDATE=1 writes it anew)", expected.display());
}

fn fixture(path: &Path) -> Result<ValidatedOptions, Problems> {
    let text = std::fs::read_to_string(path).unwrap();
    let raw = ServerRunOptions::from_toml(&invocation(&[], path.parent().unwrap()), path, &text);
    raw.complete(&catalogue()).validate()
}

/// One a line, without the folder that the fixtures are in.
fn lines<T: ToString>(list: &[T], fixture: &Path) -> String {
    let folder = format!("{}/", fixture.parent().unwrap().display());
    list.iter().map(|entry| entry.to_string().replace(&folder, "") + "\n").collect()
}

#[test]
fn good_files_give_the_warnings_beside_them() {
    let files = toml_files(&root().join("tests/config/valid"));
    assert!(!files.is_empty());
    for file in files {
        let options = fixture(&file).unwrap_or_else(|problems| panic!("{}: {problems}", file.display()));
        expect(&file, &lines(options.warnings(), &file));
    }
}

#[test]
fn bad_files_give_exactly_the_problems_beside_them() {
    let files = toml_files(&root().join("tests/config/invalid"));
    assert!(files.len() >= 8);
    for file in files {
        let problems = fixture(&file).err().unwrap_or_else(|| panic!("{} is taken", file.display()));
        expect(&file, &lines(&problems.list, &file));
    }
}

#[test]
fn the_examples_are_good_and_the_one_with_etcd_waits_for_its_back_end() {
    let folder = pki();
    let examples = toml_files(&root().join("examples/config"));
    let names: Vec<_> = examples.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["aggregated", "etcd", "hardened", "minimal", "single-node"]);
    for example in &examples {
        let name = example.file_name().unwrap().to_str().unwrap();
        std::fs::copy(example, folder.path().join(name)).unwrap();
        let result = read(&invocation(&["--config", name], folder.path()), &catalogue());
        match (name, result) {
            ("etcd.toml", Err(problems)) => {
                assert_eq!(problems.list.len(), 1);
                assert_eq!(problems.list[0].key, KeyPath::dotted("storage.etcd_servers"));
            }
            (_, Ok(options)) => assert_eq!(options.warnings(), [], "{name}"),
            (_, Err(problems)) => panic!("{name}: {problems}"),
        }
    }
}

#[test]
fn the_reference_and_the_schema_have_every_option_and_flag() {
    let text = super::reference();
    for flag in flags::all() {
        assert!(text.contains(&format!("`--{}`", flag.name)), "--{}", flag.name);
    }
    let parsed: serde_json::Value = serde_json::from_str(&super::json_schema()).unwrap();
    assert_eq!(parsed["properties"]["serving"]["additionalProperties"], false);
}
