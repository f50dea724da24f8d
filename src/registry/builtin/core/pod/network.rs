//! Names and addresses of a pod: DNS, host names, ports of the host.

use super::{
    options::PodOptions,
    view::{given, items, text, texts},
};
use crate::{
    api::{ErrorList, FieldError, Path, names::is_dns1123_subdomain_with_underscore},
    object::Value,
    registry::validation::{address::validate_ip_for_legacy_field, validate_dns1123_label, validate_dns1123_subdomain},
};

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
/// Longest list of search paths in bytes, with a blank between each two.
const MAX_SEARCH_LIST: usize = 2048;
/// Longest host name a kernel takes, in bytes.
const MAX_HOST_NAME: usize = 64;
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// On the host's network a port is the same inside and outside.
pub fn validate_host_network(spec: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    if !spec.bool_at(&["hostNetwork"]) {
        return;
    }
    let path = path.child("containers");
    for (index, container) in items(spec, "containers").iter().enumerate() {
        let path = path.index(index);
        let path = path.child("ports");
        for (index, port) in items(container, "ports").iter().enumerate() {
            let number = |key: &str| port.i64_at(&[key]).unwrap_or(0);
            let (host, own) = (number("hostPort"), number("containerPort"));
            if (options.is_pod || host != 0) && host != own {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path.index(index).child("hostPort"), host, why));
            }
        }
    }
}

/// `spec.dnsPolicy`.
pub fn validate_dns_policy(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match text(spec, "dnsPolicy") {
        "" => errors.push(FieldError::required(path, "")),
        known if DNS_POLICIES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(path, other, &DNS_POLICIES)),
    }
}

/// `spec.dnsConfig`.
pub fn validate_dns_config(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let config = given(spec, "dnsConfig");
    let at = path.child("nameservers");
    if text(spec, "dnsPolicy") == "None" {
        let Some(config) = config else {
            errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        };
        if items(config, "nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(&at, why));
            return;
        }
    }
    let Some(config) = config else { return };
    let servers = items(config, "nameservers");
    if servers.len() > MAX_NAMESERVERS {
        let why = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(FieldError::invalid(&at, servers.to_vec(), &why));
    }
    for (index, server) in texts(config, "nameservers").enumerate() {
        validate_ip_for_legacy_field(server, true, &[], &at.index(index), errors);
    }
    validate_searches(config, &path.child("searches"), errors);
    let at = path.child("options");
    for (index, option) in items(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(FieldError::required(&at.index(index), "must not be empty"));
        }
    }
}

fn validate_searches(config: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let searches = items(config, "searches");
    if searches.len() > MAX_SEARCHES {
        let why = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(FieldError::invalid(path, searches.to_vec(), &why));
    }
    let length = texts(config, "searches").map(|it| it.len() + 1).sum::<usize>().saturating_sub(1);
    if length > MAX_SEARCH_LIST {
        let why = format!("must not have more than {MAX_SEARCH_LIST} characters (including spaces) in the search list");
        errors.push(FieldError::invalid(path, searches.to_vec(), &why));
    }
    for (index, search) in texts(config, "searches").enumerate().filter(|(_, it)| *it != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        for message in is_dns1123_subdomain_with_underscore(search) {
            errors.push(FieldError::invalid(&path.index(index), search, &message));
        }
    }
}

/// `spec.hostnameOverride`.
pub fn validate_hostname_override(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(name) = given(spec, "hostnameOverride").and_then(Value::as_str) else { return };
    let path = path.child("hostnameOverride");
    if spec.bool_at(&["setHostnameAsFQDN"]) {
        errors.push(FieldError::forbidden(&path, "may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.bool_at(&["hostNetwork"]) {
        errors.push(FieldError::forbidden(&path, "may not be specified when hostNetwork is true"));
    }
    if name.len() > MAX_HOST_NAME {
        errors.push(FieldError::too_long(&path, MAX_HOST_NAME));
    }
    validate_dns1123_subdomain(name, &path, errors);
}

/// `spec.hostname` and `spec.subdomain`.
pub fn validate_host_labels(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["hostname", "subdomain"] {
        let label = text(spec, key);
        if !label.is_empty() {
            validate_dns1123_label(label, &path.child(key), errors);
        }
    }
}

/// `spec.hostAliases`.
pub fn validate_host_aliases(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        let at = path.index(index);
        validate_ip_for_legacy_field(text(alias, "ip"), true, &[], &at.child("ip"), errors);
        let at = at.child("hostnames");
        for (index, name) in texts(alias, "hostnames").enumerate() {
            validate_dns1123_subdomain(name, &at.index(index), errors);
        }
    }
}
