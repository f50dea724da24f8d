//! Volumes made of several sources, and the files of the downward API.

use std::collections::HashSet;

use super::{
    env::{validate_field_ref, validate_resource_field_ref},
    internal::shown,
    options::PodOptions,
    view::{given, items, map, text},
    volumes::{require, validate_key_to_path, validate_mode},
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        field::quote,
        names::{
            DNS_LABEL_MAX, DNS_SUBDOMAIN_MAX, Messages, is_dns1123_label, is_dns1123_subdomain, name_is_dns_subdomain,
        },
    },
    object::{Map, Value},
    registry::validation::{
        LabelSelectorOptions, object_meta::MAX_ANNOTATIONS, validate_domain_prefixed_key, validate_label_selector,
        validate_local_non_reserved_path,
    },
};

const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const CONFLICT: &str = "conflicting duplicate paths";

/// Seconds: the shortest life of a pod's certificate, and the longest of one by anybody's and by Kubernetes' signers.
const MIN_CERTIFICATE: i64 = 3600;
const MAX_CERTIFICATE: i64 = 91 * 24 * 60 * 60;
const MAX_KUBERNETES_CERTIFICATE: i64 = 24 * 60 * 60;

/// One file of the downward API; `path` is the volume, without the index of the item, as upstream has it.
pub fn validate_downward_file(file: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    require(file, "path", path, errors);
    validate_local_non_reserved_path(text(file, "path"), &path.child("path"), errors);
    match (given(file, "fieldRef"), given(file, "resourceFieldRef")) {
        (Some(field), resource) => {
            validate_field_ref(field, &VOLUME_FIELDS, &path.child("fieldRef"), errors);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", why));
            }
        }
        (None, Some(resource)) => validate_resource_field_ref(resource, true, &path.child("resourceFieldRef"), errors),
        (None, None) => errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required")),
    }
    validate_mode(file, "mode", path, errors);
}

/// Paths taken by the sources so far.
struct Taken<'p, 'v> {
    volume: &'p Path<'p>,
    paths: HashSet<&'v str>,
}

impl<'v> Taken<'_, 'v> {
    /// Takes `path`; where somebody has it, tells `told` at the volume.
    fn take(&mut self, path: &'v str, told: &str, errors: &mut ErrorList) {
        if !self.paths.insert(path) {
            errors.push(FieldError::invalid(self.volume, told, CONFLICT));
        }
    }
}

/// A projected volume.
pub fn validate_projected(volume: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    validate_mode(volume, "defaultMode", path, errors);
    let mut taken = Taken { volume: path, paths: HashSet::new() };
    let sources = path.child("sources");
    for (index, source) in items(volume, "sources").iter().enumerate() {
        let at = sources.index(index);
        let mut count = 0;
        for member in ["secret", "configMap"] {
            if let Some(it) = given(source, member) {
                count += 1;
                validate_keys(it, &at.child(member), &mut taken, errors);
            }
        }
        if let Some(it) = given(source, "downwardAPI") {
            count += 1;
            for file in items(it, "items") {
                validate_downward_file(file, &at.child("downwardAPI"), errors);
                if !text(file, "path").is_empty() {
                    taken.take(text(file, "path"), text(file, "path"), errors);
                }
            }
        }
        if let Some(it) = given(source, "serviceAccountToken") {
            count += 1;
            validate_token(it, options, path, &at.child("serviceAccountToken"), errors);
        }
        if let Some(it) = given(source, "clusterTrustBundle") {
            count += 1;
            validate_trust_bundle(it, &at.child("clusterTrustBundle"), &mut taken, errors);
        }
        if let Some(it) = given(source, "podCertificate") {
            count += 1;
            validate_certificate(it, &at.child("podCertificate"), &mut taken, errors);
        }
        if count > 1 {
            errors.push(FieldError::forbidden(&at, "may not specify more than 1 volume type per source"));
        }
    }
}

fn validate_keys<'v>(source: &'v Value, path: &Path<'_>, taken: &mut Taken<'_, 'v>, errors: &mut ErrorList) {
    require(source, "name", path, errors);
    let at = path.child("items");
    for (index, item) in items(source, "items").iter().enumerate() {
        validate_key_to_path(item, &at.index(index), errors);
        if !text(item, "path").is_empty() {
            taken.take(text(item, "path"), text(source, "name"), errors);
        }
    }
}

fn validate_token(token: &Value, options: PodOptions, volume: &Path<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("expirationSeconds");
    match token.i64_at(&["expirationSeconds"]) {
        None => errors.push(FieldError::required(&at, "")),
        Some(seconds) if seconds < 600 => {
            errors.push(FieldError::invalid(&at, seconds, "may not specify a duration less than 10 minutes"));
        }
        Some(seconds) if seconds > 1 << 32 => {
            errors.push(FieldError::invalid(&at, seconds, "may not specify a duration larger than 2^32 seconds"));
        }
        Some(_) => {}
    }
    match text(token, "path") {
        "" => errors.push(FieldError::required(&volume.child("path"), "")),
        local if !options.non_local_token_path => {
            validate_local_non_reserved_path(local, &volume.child("path"), errors);
        }
        _ => {}
    }
}

fn validate_trust_bundle<'v>(bundle: &'v Value, path: &Path<'_>, taken: &mut Taken<'_, 'v>, errors: &mut ErrorList) {
    let name = given(bundle, "name").and_then(Value::as_str);
    let signer = given(bundle, "signerName").and_then(Value::as_str);
    let selector = given(bundle, "labelSelector");
    match (name, signer) {
        (Some(_), Some(_)) => {
            let why = "only one of name and signerName may be used";
            errors.push(FieldError::invalid_shown(path, shown(bundle, "ClusterTrustBundleProjection"), why));
        }
        (Some(name), None) => {
            let at = path.child("name");
            if name.is_empty() {
                errors.push(FieldError::required(&at, "must be a valid object name"));
            }
            for message in trust_bundle_name_errors(name) {
                errors.push(FieldError::invalid(&at, name, &format!("not a valid clustertrustbundlename: {message}")));
            }
            if let Some(selector) = selector {
                let why = "labelSelector must be unset if name is specified";
                errors.push(FieldError::invalid_ref(&path.child("labelSelector"), selector, why));
            }
        }
        (None, Some(signer)) => {
            let at = path.child("signerName");
            if signer.is_empty() {
                errors.push(FieldError::required(&at, "must be a valid signer name"));
            }
            validate_signer_name(signer, &at, errors);
            validate_label_selector(selector, LabelSelectorOptions::default(), &path.child("labelSelector"), errors);
        }
        (None, None) => errors.push(FieldError::required(path, "either name or signerName must be specified")),
    }
    require(bundle, "path", path, errors);
    let file = text(bundle, "path");
    validate_local_non_reserved_path(file, &path.child("path"), errors);
    taken.take(file, file, errors);
}

/// A bundle's name is the signer's with colons, a colon, and a name of its own, or such a name alone.
fn trust_bundle_name_errors(name: &str) -> Messages {
    match name.rsplit_once(':') {
        Some((_, own)) => name_is_dns_subdomain(own, false),
        None => name_is_dns_subdomain(name, false),
    }
}

/// `example.com/signer` (certificates): a domain and a path of DNS subdomains.
pub fn validate_signer_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid(path, name, why));
        return;
    };
    if domain.len() > DNS_SUBDOMAIN_MAX {
        errors.push(FieldError::too_long(path, DNS_SUBDOMAIN_MAX));
    }
    validate_labels_of(domain, is_dns1123_label, path, errors);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, why));
    }
    validate_labels_of(rest, is_dns1123_subdomain, path, errors);
    let max = DNS_SUBDOMAIN_MAX + 1 + DNS_SUBDOMAIN_MAX + DNS_LABEL_MAX + 1;
    if name.len() > max {
        errors.push(FieldError::too_long(path, max));
    }
}

/// The first label that is wrong is told, the others are not.
fn validate_labels_of(part: &str, rule: fn(&str) -> Messages, path: &Path<'_>, errors: &mut ErrorList) {
    let bad = part.split('.').map(|label| (label, rule(label))).find(|(_, messages)| !messages.is_empty());
    if let Some((label, messages)) = bad {
        for message in messages {
            let why = format!("validating label {}: {message}", quote(label));
            errors.push(FieldError::invalid(path, part, &why));
        }
    }
}

fn validate_certificate<'v>(source: &'v Value, path: &Path<'_>, taken: &mut Taken<'_, 'v>, errors: &mut ErrorList) {
    let signer = text(source, "signerName");
    validate_signer_name(signer, &path.child("signerName"), errors);
    validate_user_annotations(map(source, "userAnnotations"), &path.child("userAnnotations"), errors);
    let key_type = text(source, "keyType");
    if !KEY_TYPES.contains(&key_type) {
        errors.push(FieldError::not_supported(&path.child("keyType"), key_type, &KEY_TYPES));
    }
    if let Some(seconds) = source.i64_at(&["maxExpirationSeconds"]) {
        let host = signer.split('/').next().unwrap_or("");
        let own = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
        let max = if own { MAX_KUBERNETES_CERTIFICATE } else { MAX_CERTIFICATE };
        let at = path.child("maxExpirationSeconds");
        if seconds < MIN_CERTIFICATE {
            errors.push(FieldError::invalid(&at, seconds, "if provided, maxExpirationSeconds must be >= 3600"));
        }
        if seconds > max {
            let why = format!("if provided, maxExpirationSeconds must be <= {max}");
            errors.push(FieldError::invalid(&at, seconds, &why));
        }
    }
    let mut any = false;
    for key in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let file = text(source, key);
        if !file.is_empty() {
            any = true;
            validate_local_non_reserved_path(file, &path.child(key), errors);
            taken.take(file, file, errors);
        }
    }
    if !any {
        let why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(FieldError::required(path, why));
    }
}

fn validate_user_annotations(annotations: Option<&Map>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(annotations) = annotations else { return };
    let mut size = 0usize;
    for (key, value) in annotations.iter() {
        validate_domain_prefixed_key(&key.to_lowercase(), path, errors);
        size = size.saturating_add(key.len() + value.as_str().map_or(0, str::len));
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(path, MAX_ANNOTATIONS));
    }
}
