//! What other servers need to know to authenticate who this one does: the authorities of client certificates and the
//! headers of a proxy in front (kubernetes `pkg/controlplane/controller/clusterauthenticationtrust`).
//!
//! Several servers may share the ConfigMap: what is there stays, less what has expired.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::{CertificateDer, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Cluster, Settings};
use crate::{
    api::{ApiError, Reason},
    json,
    object::{Map, Value, parse, to_string},
};

pub const HOOK: &str = "start-cluster-authentication-info-controller";

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const PATH: &str = "/api/v1/namespaces/kube-system/configmaps";
const PERIOD: Duration = Duration::from_secs(60);
/// Clocks may differ this much.
const EXPIRED_FOR: Duration = Duration::from_secs(5 * 60);

/// How a proxy in front says who the user is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeaders {
    /// PEM of whoever signs the proxy's certificate.
    pub client_ca: String,
    pub allowed_names: Vec<String>,
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    pub extra_headers_prefix: Vec<String>,
}

pub async fn run(cluster: Cluster) {
    cluster.keep(("", "configmaps"), PERIOD, HOOK, || pass(&cluster)).await;
}

async fn pass(cluster: &Cluster) -> Result<(), ApiError> {
    let found = cluster.reader.get("", "configmaps", NAMESPACE, NAME);
    let empty = Map::new();
    let known = found.as_deref().and_then(|it| it.object_at(&["data"])).unwrap_or(&empty);
    let data = combined(known, &cluster.settings(), SystemTime::now());
    if data == *known {
        return Ok(());
    }
    let mut object = found.as_deref().cloned().unwrap_or_else(
        || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}}),
    );
    object.set(&["data"], data);
    if found.is_none() {
        return cluster.create(PATH, object).await;
    }
    match cluster.replace(format!("{PATH}/{NAME}"), object).await {
        // Grown too large over time: it is made anew out of what its servers say.
        Err(error) if error.code == 413 || error.reason == Reason::Invalid && error.message.contains("Too long") => {
            cluster.delete(format!("{PATH}/{NAME}")).await
        }
        other => other,
    }
}

/// The data that ought to be there, given what is.
fn combined(known: &Map, settings: &Settings, now: SystemTime) -> Map {
    let text = |key: &str| known.get(key).and_then(Value::as_str).unwrap_or("");
    let mut data = Map::new();
    let client_ca = certificates(&[text("client-ca-file"), settings.client_ca.as_deref().unwrap_or("")], now);
    if !client_ca.is_empty() {
        data.insert("client-ca-file", client_ca);
    }
    let own = settings.request_header.clone().unwrap_or_default();
    let ca = certificates(&[text("requestheader-client-ca-file"), &own.client_ca], now);
    if ca.is_empty() {
        return data;
    }
    data.insert("requestheader-client-ca-file", ca);
    for (key, own) in [
        ("requestheader-username-headers", &own.username_headers),
        ("requestheader-uid-headers", &own.uid_headers),
        ("requestheader-group-headers", &own.group_headers),
        ("requestheader-extra-headers-prefix", &own.extra_headers_prefix),
        ("requestheader-allowed-names", &own.allowed_names),
    ] {
        let list = union(text(key), own);
        if !list.is_empty() || key != "requestheader-uid-headers" {
            data.insert(key, to_string(&Value::from(list)));
        }
    }
    data
}

/// The texts of a JSON list, then our own; each once.
fn union(known: &str, own: &[String]) -> Vec<String> {
    let known = parse(known.as_bytes()).unwrap_or_default();
    let known = known.as_array().unwrap_or(&[]).iter().filter_map(|it| it.as_str().map(str::to_owned));
    let mut all: Vec<String> = Vec::new();
    for text in known.chain(own.iter().cloned()) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// The certificates of several bundles as one, each once, without those that have expired.
fn certificates(bundles: &[&str], now: SystemTime) -> String {
    let mut kept: Vec<CertificateDer<'static>> = Vec::new();
    for bundle in bundles {
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()).filter_map(Result::ok) {
            if !has_expired(&certificate, now) && !kept.contains(&certificate) {
                kept.push(certificate);
            }
        }
    }
    kept.iter().map(|certificate| pem(certificate)).collect()
}

fn has_expired(certificate: &CertificateDer<'_>, now: SystemTime) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return true };
    let end = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
    UNIX_EPOCH + Duration::from_secs(end) + EXPIRED_FOR < now
}

fn pem(der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        out.extend(line.iter().map(|byte| char::from(*byte)));
        out.push('\n');
    }
    out + "-----END CERTIFICATE-----\n"
}
