//! `[authentication]`, `[authorization]`, `[admission]` and `[api]`.

use std::collections::{BTreeMap, BTreeSet};

use rustls_pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer, pem::PemObject};

use super::{Completer, accepted, known_names, secs};
use crate::options::{
    completed::{
        Admission, Anonymous, Api, Authentication, Authorization, AuthorizationMode, Features, PemFile, RequestHeader,
        RuntimeConfig, ServiceAccount, TokenTable, TokenUser,
    },
    raw::{self, ApiProfile},
    token_file,
    types::{FilePath, SecretBytes},
};

/// Paths that say no more than that the server is there, and its version.
const OPEN_PATHS: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

impl Completer<'_> {
    pub(super) fn authentication(
        &mut self,
        raw: &mut raw::Authentication,
        authorization: &Authorization,
        features: &Features,
    ) -> Authentication {
        let client_ca = self.ca_bundle("authentication.client_ca_file", &raw.client_ca_file);
        let request_header = self.request_header(raw, features);
        if let (Some(client), Some(proxy)) = (&client_ca, &request_header)
            && proxy.allowed_names.is_empty()
            && proxy.client_ca.certificates.iter().any(|ca| client.certificates.contains(ca))
        {
            let reason = "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; \
                          --requestheader-allowed-names must be specified to ensure regular client certificates cannot \
                          set authenticating proxy headers for arbitrary users";
            self.problem("authentication.requestheader_client_ca_file", reason);
        }
        Authentication {
            anonymous: self.anonymous(raw, authorization),
            client_ca,
            request_header,
            tokens: self.tokens(raw),
            service_account: self.service_account(raw),
        }
    }

    fn anonymous(&mut self, raw: &mut raw::Authentication, authorization: &Authorization) -> Anonymous {
        let given = raw.anonymous_auth;
        let enabled = *raw.anonymous_auth.get_or_insert(true);
        let default = || match given {
            None => OPEN_PATHS.map(str::to_owned).to_vec(),
            Some(true) => vec!["*".to_owned()],
            Some(false) => Vec::new(),
        };
        let paths = raw.anonymous_paths.get_or_insert_with(default).clone();
        let everywhere = paths == ["*"];
        if !everywhere {
            for (i, path) in paths.iter().enumerate().filter(|(_, path)| !path.starts_with('/')) {
                self.entry_problem("authentication.anonymous_paths", (i, path), "does not begin with a slash");
            }
        }
        if !enabled {
            return Anonymous::Off;
        }
        if authorization.modes.contains(&AuthorizationMode::AlwaysAllow) {
            let text = "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. \
                        You should use a different authorizer";
            self.warn("authentication.anonymous_auth", text);
            return Anonymous::Off;
        }
        match everywhere {
            true => Anonymous::Everywhere,
            false => Anonymous::Paths(paths.into_iter().collect()),
        }
    }

    /// apiserver pkg/server/options/authentication.go RequestHeaderAuthenticationOptions.Validate.
    fn request_header(&mut self, raw: &mut raw::Authentication, features: &Features) -> Option<RequestHeader> {
        let allowed_names = raw.requestheader_allowed_names.get_or_insert_default().clone();
        let username_headers = raw.requestheader_username_headers.get_or_insert_default().clone();
        let uid_headers = raw.requestheader_uid_headers.get_or_insert_default().clone();
        let group_headers = raw.requestheader_group_headers.get_or_insert_default().clone();
        let extra_headers_prefix = raw.requestheader_extra_headers_prefix.get_or_insert_default().clone();
        for (flag, list, standard, what) in [
            ("username-headers", &username_headers, "X-Remote-User", "header"),
            ("group-headers", &group_headers, "X-Remote-Group", "header"),
            ("extra-headers-prefix", &extra_headers_prefix, "X-Remote-Extra-", "header prefix"),
            ("uid-headers", &uid_headers, "X-Remote-Uid", "header"),
            ("allowed-names", &allowed_names, "", ""),
        ] {
            let key = format!("authentication.requestheader_{}", flag.replace('-', "_"));
            if list.iter().any(|entry| entry.trim().is_empty()) {
                self.problem(&key, format!("empty value in \"requestheader-{flag}\""));
            }
            let has_standard = list.iter().any(|entry| entry.eq_ignore_ascii_case(standard));
            if !standard.is_empty() && !list.is_empty() && !has_standard {
                let text = format!(
                    "--requestheader-{flag} is set without specifying the standard {standard} {what} - API aggregation \
                     will not work"
                );
                if flag == "uid-headers" { self.problem(&key, text) } else { self.warn(&key, text) }
            }
        }
        if !uid_headers.is_empty() && !features.enabled("RemoteRequestHeaderUID") {
            let reason = "--requestheader-uid-headers requires the \"RemoteRequestHeaderUID\" feature to be enabled";
            self.problem("authentication.requestheader_uid_headers", reason);
        }
        let client_ca =
            self.ca_bundle("authentication.requestheader_client_ca_file", &raw.requestheader_client_ca_file)?;
        Some(RequestHeader {
            client_ca,
            allowed_names,
            username_headers,
            uid_headers,
            group_headers,
            extra_headers_prefix,
        })
    }

    fn tokens(&mut self, raw: &mut raw::Authentication) -> TokenTable {
        let file = raw.token_auth_file.as_ref().and_then(|file| Some((file, self.contents(file)?)));
        let mut table = file.map(|(file, bytes)| self.token_file(file, &bytes)).unwrap_or_default();
        for entry in raw.tokens.get_or_insert_default() {
            if entry.token.reveal().is_empty() || entry.user.is_empty() {
                let problem = self.problem_about("authentication.tokens", "a token and its user cannot be empty");
                self.problems.push(problem);
                continue;
            }
            let user = TokenUser { name: entry.user.clone(), uid: entry.uid.clone(), groups: entry.groups.clone() };
            if table.insert(entry.token.clone(), user).is_some() {
                let text = format!("the token of user {:?} is given twice; the last one counts", entry.user);
                self.warn("authentication.tokens", text);
            }
        }
        table
    }

    fn token_file(&mut self, file: &FilePath, bytes: &[u8]) -> TokenTable {
        const KEY: &str = "authentication.token_auth_file";
        match token_file::parse(&file.0.display().to_string(), bytes) {
            Ok((table, warnings)) => {
                for text in warnings {
                    self.warn(KEY, text);
                }
                table
            }
            Err(reason) => {
                self.problem(KEY, reason);
                TokenTable::new()
            }
        }
    }

    fn service_account(&mut self, raw: &mut raw::Authentication) -> ServiceAccount {
        let issuers = raw.service_account_issuer.get_or_insert_default().clone();
        let mut seen = BTreeSet::new();
        for (i, issuer) in issuers.iter().enumerate() {
            // kubernetes pkg/kubeapiserver/options/authentication.go Validate, in its order.
            let reason = if issuer.contains(':') && !is_url(issuer) {
                format!(
                    "service-account-issuer {issuer:?} contained a ':' but was not a valid URL: parse {issuer:?}: invalid URL"
                )
            } else if issuer.is_empty() {
                "service-account-issuer should not be an empty string".to_owned()
            } else if !seen.insert(issuer) {
                format!("service-account-issuer {issuer:?} is already specified")
            } else {
                continue;
            };
            self.entry_problem("authentication.service_account_issuer", (i, issuer), reason);
        }
        let mut key_files = Vec::new();
        for file in raw.service_account_key_file.get_or_insert_default().clone() {
            let Some(pem) = self.contents(&file) else { continue };
            if holds_key(&pem) {
                key_files.push(PemFile { file: file.0, pem: SecretBytes::new(pem) });
            } else {
                let reason = format!(
                    "error reading public key file {}: data does not contain any valid RSA or ECDSA public keys",
                    file.0.display()
                );
                self.problem("authentication.service_account_key_file", reason);
            }
        }
        let api_audiences = raw.api_audiences.get_or_insert_with(|| issuers.clone()).clone();
        ServiceAccount { issuers, key_files, signing_key: self.signing_key(raw), api_audiences }
    }

    fn signing_key(&mut self, raw: &raw::Authentication) -> Option<PemFile> {
        let file = raw.service_account_signing_key_file.as_ref()?;
        let pem = self.contents(file)?;
        match crate::pki::pair::read_key(&pem) {
            Ok(_) => Some(PemFile { file: file.0.clone(), pem: SecretBytes::new(pem) }),
            Err(error) => {
                let reason = format!("failed to parse service-account-issuer-key-file: {error}");
                self.problem("authentication.service_account_signing_key_file", reason);
                None
            }
        }
    }

    /// kubernetes pkg/kubeapiserver/options/authorization.go Validate.
    pub(super) fn authorization(&mut self, raw: &mut raw::Authorization) -> Authorization {
        const KEY: &str = "authorization.authorization_mode";
        let words = raw.authorization_mode.get_or_insert_with(|| vec!["RBAC".to_owned()]).clone();
        let mut modes = Vec::new();
        for (i, word) in words.iter().enumerate() {
            let mode = match word.as_str() {
                "AlwaysAllow" => AuthorizationMode::AlwaysAllow,
                "AlwaysDeny" => AuthorizationMode::AlwaysDeny,
                "RBAC" => AuthorizationMode::Rbac,
                "Node" => {
                    let text = "the Node authorizer has no opinion yet: what only it allows is refused to nodes";
                    self.warn(KEY, text);
                    AuthorizationMode::Node
                }
                "ABAC" | "Webhook" => {
                    let reason = format!("authorization-mode {word} would not be asked: it is not built yet");
                    self.entry_problem(KEY, (i, word), reason);
                    continue;
                }
                _ => {
                    let reason = format!("authorization-mode {word:?} is not a valid mode");
                    self.entry_misfit(KEY, (i, word), reason, accepted(KEY));
                    continue;
                }
            };
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        if words.is_empty() {
            self.misfit(KEY, "at least one authorization-mode must be passed");
        }
        if words.iter().collect::<BTreeSet<_>>().len() != words.len() {
            let list = words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" ");
            self.problem(KEY, format!("authorization-mode [{list}] has mode specified more than once"));
        }
        Authorization { modes }
    }

    /// kubernetes pkg/kubeapiserver/options/admission.go and apiserver pkg/server/options/admission.go Validate.
    pub(super) fn admission(&mut self, raw: &mut raw::Admission) -> Admission {
        let exact = raw.admission_control.clone();
        let (enable, disable) = (raw.enable_admission_plugins.clone(), raw.disable_admission_plugins.clone());
        if exact.is_some() && (enable.is_some() || disable.is_some()) {
            let reason =
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive";
            self.problem("admission.admission_control", reason);
        }
        let (enable, disable) = (enable.unwrap_or_default(), disable.unwrap_or_default());
        self.plugin_names("admission-control", exact.as_deref().unwrap_or_default(), true);
        self.plugin_names("enable-admission-plugins", &enable, true);
        self.plugin_names("disable-admission-plugins", &disable, false);
        let both: BTreeSet<_> = enable.iter().filter(|name| disable.contains(name)).map(String::as_str).collect();
        if !both.is_empty() {
            let both = both.into_iter().collect::<Vec<_>>().join(" ");
            let reason = format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped");
            self.problem("admission.enable_admission_plugins", reason);
        }
        let wanted = |name: &String, default: bool| match &exact {
            Some(exact) => exact.contains(name),
            None => (default || enable.contains(name)) && !disable.contains(name),
        };
        let known = self.catalogue.admission_plugins.iter();
        let plugins = known.filter(|plugin| plugin.built && wanted(&plugin.name, plugin.on_by_default));
        Admission {
            plugins: plugins.map(|plugin| plugin.name.clone()).collect(),
            default_not_ready_toleration_seconds: *raw.default_not_ready_toleration_seconds.get_or_insert(300),
            default_unreachable_toleration_seconds: *raw.default_unreachable_toleration_seconds.get_or_insert(300),
        }
    }

    fn plugin_names(&mut self, flag: &str, names: &[String], wanted: bool) {
        let key = format!("admission.{}", flag.replace('-', "_"));
        for (i, name) in names.iter().enumerate() {
            let known = self.catalogue.admission_plugins.iter().find(|plugin| plugin.name == *name).cloned();
            match known {
                None => {
                    let plugins = self.catalogue.admission_plugins.iter().map(|plugin| plugin.name.as_str());
                    let hint = known_names(name, plugins);
                    self.entry_misfit(&key, (i, name), format!("{flag} plugin {name:?} is unknown"), hint);
                }
                Some(plugin) if !wanted || plugin.built => {}
                Some(plugin) if plugin.name == "NodeRestriction" => {
                    self.warn(&key, "admission plugin NodeRestriction is not built yet: nodes are not restricted");
                }
                Some(plugin) => {
                    let reason = format!("admission plugin {} would not be asked: it is not built yet", plugin.name);
                    self.entry_problem(&key, (i, name), reason);
                }
            }
        }
    }

    /// apiserver pkg/server/options/api_enablement.go Validate.
    pub(super) fn api(&mut self, raw: &mut raw::Api) -> Api {
        let profile = *raw.profile.get_or_insert(ApiProfile::Default);
        let written = raw.runtime_config.get_or_insert_default().clone();
        let mut entries: BTreeMap<String, bool> = match profile {
            ApiProfile::Default => BTreeMap::new(),
            ApiProfile::Beta => [("api/beta".to_owned(), true)].into(),
            ApiProfile::All => [("api/all".to_owned(), true)].into(),
        };
        entries.extend(written.iter().map(|(key, value)| (if key == "v1" { "/v1" } else { key }.to_owned(), *value)));
        if entries.len() == 1 && entries.get("api/all") == Some(&false) {
            self.problem("api.runtime_config", "invalid runtime-config with only api/all=false");
        }
        self.runtime_config_names(&written);
        let event_ttl = &mut raw.event_ttl;
        Api {
            runtime_config: RuntimeConfig { entries },
            allow_privileged: *raw.allow_privileged.get_or_insert(false),
            event_ttl: self.duration("api.event_ttl", event_ttl, secs(3600), "--event-ttl can not be negative value"),
        }
    }

    fn runtime_config_names(&mut self, entries: &BTreeMap<String, bool>) {
        let mut unknown = Vec::new();
        for key in entries.keys().filter(|key| !key.starts_with("api/") && *key != "v1") {
            let parts: Vec<_> = key.split('/').collect();
            let [group, version, resource @ ..] = parts.as_slice() else {
                self.misfit("api.runtime_config", format!("runtime-config invalid key {key}"));
                continue;
            };
            let group_version = format!("{group}/{version}");
            let in_group = |known: &String| known.split_once('/').is_some_and(|(known, _)| known == *group);
            let lower = |resource: &&str| resource.to_lowercase() == **resource;
            if resource.len() > 1 {
                self.misfit("api.runtime_config", format!("runtime-config invalid key {key}"));
            } else if !self.catalogue.api_versions.iter().any(in_group) {
                unknown.push(group_version);
            } else if !self.catalogue.api_versions.contains(&group_version) {
                self.problem(
                    "api.runtime_config",
                    format!("group version {group_version} that has not been registered"),
                );
            } else if let Some(resource) = resource.first().filter(|resource| !lower(resource)) {
                let reason = format!(
                    "invalid key {key}: group/version/resource and resource is always lowercase plural, not {resource:?}"
                );
                self.problem("api.runtime_config", reason);
            }
        }
        let words = ["api/all", "api/ga", "api/beta", "api/alpha"];
        unknown.extend(entries.keys().filter(|key| key.starts_with("api/") && !words.contains(&key.as_str())).cloned());
        if !unknown.is_empty() {
            unknown.sort();
            unknown.dedup();
            self.misfit("api.runtime_config", format!("unknown api groups {}", unknown.join(",")));
        }
    }
}

/// Whether text with a colon could be a URL: a scheme, then no white space or control characters.
fn is_url(text: &str) -> bool {
    let scheme = text.split(':').next().unwrap_or_default();
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    starts
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !text.chars().any(|c| c.is_control() || c == ' ')
}

/// Whether a PEM text has a key that can verify: a public key, a certificate, or the private key itself.
fn holds_key(pem: &[u8]) -> bool {
    let rsa = b"BEGIN RSA PUBLIC KEY";
    SubjectPublicKeyInfoDer::pem_slice_iter(pem).next().is_some_and(|key| key.is_ok())
        || PrivateKeyDer::pem_slice_iter(pem).next().is_some_and(|key| key.is_ok())
        || CertificateDer::pem_slice_iter(pem).next().is_some_and(|certificate| certificate.is_ok())
        || pem.windows(rsa.len()).any(|window| window == rsa)
}
