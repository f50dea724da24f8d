//! Secret (kubernetes `pkg/registry/core/secret`, `ValidateSecret`). `stringData` is gone by the time a strategy sees
//! the object: [`conversion`](crate::registry::builtin::conversion) has put it into `data`.

use crate::{
    api::{ErrorList, FieldError, Meta, Path},
    object::{Map, Value, parse},
    pki::{PkiError, read_pair},
    registry::{
        builtin::{
            core::config_map::{MAX_DATA, decoded_len, validate_immutable_data},
            kind::{NameRule, Own, validate_metadata_as_on_create},
        },
        strategy::StrategyContext,
        validation::{validate_config_map_key, validate_immutable_or},
    },
    schema::go_base64,
};

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

pub struct Secret;

impl Own for Secret {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        if let Some(old) = old
            && new.str_at(&["type"]).is_empty()
        {
            super::super::kind::keep(new, old, "type");
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        if let Some(old) = old {
            validate_immutable_or(new.get("type"), old.get("type"), "".into(), &Path::new("type"), errors);
            validate_immutable_data(new, old, &["data"], errors);
            validate_metadata_as_on_create(new, true, NameRule::Subdomain, errors);
        }
        validate_data(new, errors);
        validate_by_type(new, errors);
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        if new.str_at(&["type"]) != "kubernetes.io/tls" {
            return Vec::new();
        }
        key_pair_problem(&bytes(new, "tls.crt"), &bytes(new, "tls.key")).into_iter().collect()
    }
}

fn bytes(secret: &Value, key: &str) -> Vec<u8> {
    go_base64::decode(secret.str_at(&["data", key])).unwrap_or_default()
}

fn validate_data(new: &Value, errors: &mut ErrorList) {
    let path = Path::new("data");
    let mut size = 0usize;
    for (key, value) in new.object_at(&["data"]).into_iter().flat_map(Map::iter) {
        validate_config_map_key(key, &path.key(key), errors);
        size = size.saturating_add(decoded_len(value));
    }
    if size > MAX_DATA {
        errors.push(FieldError::too_long(&path, MAX_DATA));
    }
}

/// What the well-known types have to have.
fn validate_by_type(new: &Value, errors: &mut ErrorList) {
    let path = Path::new("data");
    let has = |key: &str| new.at(&["data", key]).is_some();
    let mut require = |key: &str| errors.push(FieldError::required(&path.key(key), ""));
    match new.str_at(&["type"]) {
        "kubernetes.io/service-account-token"
            if Meta::of(new).annotation(SERVICE_ACCOUNT_NAME).unwrap_or("").is_empty() =>
        {
            let (metadata, annotations) = (Path::new("metadata"), "annotations");
            let annotations = metadata.child(annotations);
            errors.push(FieldError::required(&annotations.key(SERVICE_ACCOUNT_NAME), ""));
        }
        "kubernetes.io/dockercfg" => validate_json(new, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => validate_json(new, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if new.str_at(&["data", "ssh-privatekey"]).is_empty() => require("ssh-privatekey"),
        "kubernetes.io/tls" => {
            ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)).for_each(require);
        }
        _ => {}
    }
}

/// A value that has to be a JSON object; what it is is never shown.
fn validate_json(new: &Value, key: &str, errors: &mut ErrorList) {
    let data = Path::new("data");
    let path = data.key(key);
    if new.at(&["data", key]).is_none() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    let why = match parse(&bytes(new, key)) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", other.json_type())
        }
        Err(error) => error.to_string(),
    };
    errors.push(FieldError::invalid(&path, "<secret contents redacted>", &why));
}

/// What Go's `tls.X509KeyPair` says of a certificate and its key; `None` where they are a pair.
fn key_pair_problem(certificate: &[u8], key: &[u8]) -> Option<String> {
    let is_key = |label: &str| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY");
    let there = find_blocks(certificate, "certificate", |label| label == "CERTIFICATE");
    if let Err(why) = there.and_then(|()| find_blocks(key, "key", is_key)) {
        return Some(why);
    }
    match read_pair(certificate, key) {
        Ok(_) => None,
        Err(PkiError::Mismatch) => Some("tls: private key does not match public key".to_owned()),
        Err(PkiError::UnsupportedKey(_) | PkiError::EncryptedKey) => {
            Some("tls: failed to parse private key".to_owned())
        }
        Err(_) => Some("x509: malformed certificate".to_owned()),
    }
}

/// Whether a PEM text has a block of the wanted type, and what Go says where it has not.
fn find_blocks(text: &[u8], what: &str, wanted: impl Fn(&str) -> bool) -> Result<(), String> {
    let labels: Vec<String> =
        x509_parser::pem::Pem::iter_from_buffer(text).map_while(Result::ok).map(|block| block.label).collect();
    if labels.iter().any(|label| wanted(label)) {
        return Ok(());
    }
    let skipped = labels;
    Err(match (skipped.as_slice(), what) {
        ([], _) => format!("tls: failed to find any PEM data in {what} input"),
        ([only], "certificate") if only.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
        }
        ([only], "key") if only == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        (labels, "certificate") => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        ),
        (labels, _) => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        ),
    })
}
