//! EndpointSlices (kubernetes `pkg/registry/discovery/endpointslice`, `pkg/apis/discovery/validation`).

use std::collections::HashSet;

use crate::{
    api::{
        ErrorList, FieldError, Meta, Path,
        ip::parse_ip,
        names::{Messages, is_valid_label_value, name_is_dns_subdomain},
    },
    object::Value,
    registry::{
        strategy::{Strategy, StrategyContext},
        validation::{
            address::{ip_warnings, validate_endpoint_ip, validate_ip, validate_ip_for_legacy_field},
            declarative,
            object_meta::{push_messages, validate_labels},
            validate_bare_finalizers, validate_dns1123_label, validate_fully_qualified_domain_name,
            validate_object_meta, validate_one_of, validate_qualified_name,
        },
    },
};

pub struct EndpointSliceStrategy;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

const MAX_TOPOLOGY: usize = 16;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_ENDPOINTS: usize = 1000;
const MAX_HINTS: usize = 8;

impl Strategy for EndpointSliceStrategy {
    fn prepare_for_create(&self, _cx: &StrategyContext<'_>, new: &mut Value) {
        new.set(&["metadata", "generation"], 1);
        drop_topology(new, None);
    }

    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        let content = |object: &Value| {
            ["addressType", "endpoints", "ports"].map(|name| object.get(name).cloned().unwrap_or_default())
        };
        let labels = |object: &Value| object.object_at(&["metadata", "labels"]).filter(|it| !it.is_empty()).cloned();
        if content(new) != content(old) || labels(new) != labels(old) {
            let generation = old.i64_at(&["metadata", "generation"]).unwrap_or(0) + 1;
            new.set(&["metadata", "generation"], generation);
        }
        if new.get("endpoints") != old.get("endpoints") {
            drop_topology(new, Some(old));
        }
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validate(new, None, errors);
        let mut declared = ErrorList::new();
        validate_declared(new, None, &mut declared);
        declarative::merge(errors, declared);
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_object_meta(new, true, &name_is_dns_subdomain, errors);
        validate_bare_finalizers(new, errors);
        validate(new, Some(old), errors);
        if kind(new) != kind(old) {
            let error = FieldError::invalid(&Path::new("addressType"), kind(new), "field is immutable");
            errors.push(error.with_origin("immutable").covered_by_declarative());
        }
        let mut declared = ErrorList::new();
        validate_declared(new, Some(old), &mut declared);
        declarative::merge(errors, declared);
    }

    /// Empty lists come back as null, since upstream's stored form does not tell them apart.
    fn canonicalise(&self, new: &mut Value) {
        for list in ["endpoints", "ports"] {
            if new.array_at(&[list]).is_empty() {
                new.set(&[list], Value::Null);
            }
        }
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if old.is_none() && kind(new) == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        // The controllers write what they have read from pods and Endpoints, which has been judged there.
        let by = Meta::of(new).label(MANAGED_BY);
        if matches!(by, Some("endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io")) {
            return warnings;
        }
        let path = Path::new("endpoints");
        for (index, endpoint) in new.array_at(&["endpoints"]).iter().enumerate() {
            let path = path.index(index);
            let path = path.child("addresses");
            for (index, address) in endpoint.array_at(&["addresses"]).iter().enumerate() {
                warnings.extend(ip_warnings(address.as_str().unwrap_or(""), &path.index(index)));
            }
        }
        warnings
    }
}

fn kind(slice: &Value) -> &str {
    slice.str_at(&["addressType"])
}

/// v1 does not take the old topology; a node's name that an older version had put there stays known.
fn drop_topology(new: &mut Value, old: Option<&Value>) {
    let before: HashSet<String> =
        old.map_or(&[][..], |old| old.array_at(&["endpoints"])).iter().map(topology_host).collect();
    let endpoints = new.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        let host = topology_host(endpoint);
        let Some(map) = endpoint.as_object_mut() else { continue };
        let named = map.get("nodeName").is_some_and(|it| !it.is_null());
        if !named && !host.is_empty() && before.contains(&host) && name_is_dns_subdomain(&host, false).is_empty() {
            map.insert("nodeName", host);
        }
        map.remove("deprecatedTopology");
    }
}

fn topology_host(endpoint: &Value) -> String {
    endpoint.str_at(&["deprecatedTopology", HOST]).to_owned()
}

fn validate(slice: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let path = Path::new("addressType");
    match kind(slice) {
        "" => errors.push(FieldError::required(&path, "").covered_by_declarative()),
        known if ADDRESS_TYPES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(&path, other, &ADDRESS_TYPES).covered_by_declarative()),
    }
    validate_ports(slice.array_at(&["ports"]), errors);
    // What older servers took stays as long as nobody changes it.
    if old.is_none_or(|old| old.array_at(&["endpoints"]) != slice.array_at(&["endpoints"])) {
        validate_endpoints(slice, errors);
    }
}

fn validate_ports(ports: &[Value], errors: &mut ErrorList) {
    let path = Path::new("ports");
    if ports.len() > MAX_PORTS {
        errors.push(FieldError::too_many(&path, ports.len(), MAX_PORTS));
        return;
    }
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = port.str_at(&["name"]);
        if !name.is_empty() {
            validate_dns1123_label(name, &path.child("name"), errors);
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        match port.get("protocol").and_then(Value::as_str) {
            None => errors.push(FieldError::required(&path.child("protocol"), "")),
            Some(protocol) => validate_one_of(protocol, &["SCTP", "TCP", "UDP"], &path.child("protocol"), errors),
        }
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            validate_qualified_name(protocol, &path.child("appProtocol"), errors);
        }
    }
}

fn validate_endpoints(slice: &Value, errors: &mut ErrorList) {
    let (endpoints, path) = (slice.array_at(&["endpoints"]), Path::new("endpoints"));
    if endpoints.len() > MAX_ENDPOINTS {
        errors.push(FieldError::too_many(&path, endpoints.len(), MAX_ENDPOINTS));
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(index);
        validate_addresses(endpoint.array_at(&["addresses"]), kind(slice), &path.child("addresses"), errors);
        if let Some(node) = endpoint.get("nodeName").and_then(Value::as_str) {
            push_messages(name_is_dns_subdomain(node, false), node, &path.child("nodeName"), errors);
        }
        validate_topology(endpoint, &path.child("deprecatedTopology"), errors);
        if let Some(host) = endpoint.get("hostname").and_then(Value::as_str) {
            validate_dns1123_label(host, &path.child("hostname"), errors);
        }
        if let Some(hints) = endpoint.get("hints").filter(|it| !it.is_null()) {
            validate_hints(hints, &path.child("hints"), errors);
        }
    }
}

fn validate_addresses(addresses: &[Value], kind: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if addresses.is_empty() {
        errors.push(FieldError::required(path, "must contain at least 1 address").covered_by_declarative());
    } else if addresses.len() > MAX_ADDRESSES {
        let error = FieldError::too_many(path, addresses.len(), MAX_ADDRESSES).with_origin("maxItems");
        errors.push(error.covered_by_declarative());
    }
    for (index, address) in addresses.iter().enumerate() {
        let (address, at) = (address.as_str().unwrap_or(""), path.index(index));
        let before = errors.len();
        match kind {
            "IPv4" => validate_ip_for_legacy_field(address, true, &[], &at, errors),
            "IPv6" => validate_ip(address, &at, errors),
            "FQDN" => validate_fully_qualified_domain_name(address, &at, errors),
            _ => {}
        }
        if errors.len() > before || !matches!(kind, "IPv4" | "IPv6") {
            continue;
        }
        if parse_ip(address).is_some_and(|ip| ip.is_ipv4() != (kind == "IPv4")) {
            // Upstream's path lacks the index.
            errors.push(FieldError::invalid(path, address, &format!("must be an {kind} address")));
        }
        validate_endpoint_ip(address, &at, errors);
    }
}

fn validate_topology(endpoint: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(topology) = endpoint.object_at(&["deprecatedTopology"]) else { return };
    if topology.len() > MAX_TOPOLOGY {
        errors.push(FieldError::too_many(path, topology.len(), MAX_TOPOLOGY));
    }
    validate_labels(Some(topology), path, errors);
    if topology.contains_key(ZONE) {
        errors.push(FieldError::internal(&path.key(ZONE), "reserved key was not removed in conversion"));
    }
}

fn validate_hints(hints: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const LISTS: [(&str, fn(&str) -> Messages); 2] =
        [("forZones", is_valid_label_value), ("forNodes", |name| name_is_dns_subdomain(name, false))];
    for (list, judge) in LISTS {
        let (path, items) = (path.child(list), hints.array_at(&[list]));
        if items.len() > MAX_HINTS {
            errors.push(FieldError::too_many(&path, items.len(), MAX_HINTS));
            return;
        }
        let mut names = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let (name, path) = (item.str_at(&["name"]), path.index(index));
            let path = path.child("name");
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&path, name));
            }
            push_messages(judge(name), name, &path, errors);
        }
    }
}

/// The rules that upstream generates.
fn validate_declared(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let path = Path::new("addressType");
    let member = |object: Option<&Value>, name: &str| object.and_then(|it| it.get(name)).cloned();
    let (now, before) = (member(Some(new), "addressType"), member(old, "addressType"));
    if declarative::changed(now.as_ref(), old, before.as_ref()) {
        let mut stop = !declarative::required(now.as_ref(), &path, errors);
        if old.is_some() {
            declarative::immutable(now.as_ref(), before.as_ref(), &path, errors);
            stop = true;
        }
        if !stop {
            declarative::one_of(kind(new), &ADDRESS_TYPES, &path, errors);
        }
    }
    let before = old.map_or(&[][..], |old| old.array_at(&["endpoints"]));
    let endpoints = new.array_at(&["endpoints"]);
    if old.is_some() && before == endpoints {
        return;
    }
    let path = Path::new("endpoints");
    for (index, endpoint) in endpoints.iter().enumerate() {
        let (path, addresses) = (path.index(index), endpoint.get("addresses"));
        let path = path.child("addresses");
        if declarative::required(addresses, &path, errors) {
            declarative::max_items(endpoint.array_at(&["addresses"]), MAX_ADDRESSES, &path, errors);
        }
    }
}
