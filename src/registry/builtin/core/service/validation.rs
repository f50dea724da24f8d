//! What a Service must be (kubernetes `pkg/apis/core/validation`: validateService and its update and status).

use std::collections::HashSet;

use super::{
    families::{SPEC, validate_change_of_addresses, validate_change_of_families, validate_related},
    view::{self, externally_accessible, is_headless, is_load_balancer, kind, needs_health_port, set, text, texts},
    warnings::{TOPOLOGY_HINTS, TOPOLOGY_MODE},
};
use crate::{
    api::{ErrorList, FieldError, Meta, Path, ip::parse_ip, names::is_dns1123_subdomain},
    object::Value,
    registry::validation::{
        address::{validate_cidr_for_legacy_field, validate_endpoint_ip, validate_ip_for_legacy_field},
        object_meta::{push_messages, validate_labels},
        validate_dns1123_label, validate_dns1123_subdomain, validate_one_of, validate_port_num,
        validate_port_num_or_name, validate_qualified_name, validate_required,
    },
};

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
/// A day, in seconds.
const MAX_AFFINITY_TIMEOUT: i64 = 86400;
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// A changed Service. `old` has every field that newer servers fill in.
pub fn validate_service_update(service: &Value, old: &Value, errors: &mut ErrorList) {
    validate_change_of_addresses(old, service, errors);
    validate_change_of_families(old, service, errors);
    if is_load_balancer(old) && is_load_balancer(service) && set(old, CLASS) != set(service, CLASS) {
        errors.push(FieldError::invalid(&SPEC.child(CLASS), view::shown(service, CLASS), "may not change once set"));
    }
    validate_class(service, errors);
    let both_need = needs_health_port(old) && needs_health_port(service);
    if both_need && view::health_port(old) != view::health_port(service) {
        errors.push(FieldError::forbidden(&SPEC.child("healthCheckNodePort"), "field is immutable"));
    }
    validate_service(service, Some(old), errors);
}

/// A Service by itself; what `old` had is taken where today's rules would refuse it.
pub fn validate_service(service: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    validate_topology(service, errors);
    if view::ports(service).is_empty() && !is_headless(service) && !view::is_external_name(service) {
        errors.push(FieldError::required(&SPEC.child("ports"), ""));
    }
    validate_fields_of_type(service, errors);
    validate_ports(service, errors);
    validate_labels(service.object_at(&["spec", "selector"]), &SPEC.child("selector"), errors);
    validate_affinity(service, errors);
    validate_related(service, old, errors);
    validate_external_ips(service, old, errors);
    if validate_required(kind(service), "", &SPEC.child("type"), errors) {
        let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        validate_one_of(kind(service), &types, &SPEC.child("type"), errors);
    }
    validate_port_numbers(service, errors);
    validate_source_ranges(service, old, errors);
    match set(service, "allocateLoadBalancerNodePorts") {
        Some(_) if !is_load_balancer(service) => {
            errors.push(FieldError::forbidden(&SPEC.child("allocateLoadBalancerNodePorts"), ONLY_LOAD_BALANCER));
        }
        None if is_load_balancer(service) => {
            // Upstream's path lacks the spec.
            errors.push(FieldError::required(&Path::new("allocateLoadBalancerNodePorts"), ""));
        }
        _ => {}
    }
    validate_class(service, errors);
    validate_traffic(service, errors);
}

fn validate_topology(service: &Value, errors: &mut ErrorList) {
    let annotations = Meta::of(service);
    if let (Some(mode), Some(hints)) = (annotations.annotation(TOPOLOGY_MODE), annotations.annotation(TOPOLOGY_HINTS))
        && mode != hints
    {
        let metadata = Path::new("metadata");
        let path = metadata.child("annotations");
        let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(FieldError::invalid(&path.key(TOPOLOGY_MODE), mode, &why));
    }
}

fn validate_fields_of_type(service: &Value, errors: &mut ErrorList) {
    match kind(service) {
        name @ ("LoadBalancer" | "NodePort") if is_headless(service) => {
            let path = SPEC.child("clusterIPs");
            let why = format!("may not be set to 'None' for {name} services");
            errors.push(FieldError::invalid(&path.index(0), view::NONE, &why));
        }
        "ExternalName" => {
            let why = "may not be set for ExternalName services";
            for list in ["clusterIPs", "ipFamilies"] {
                if !service.array_at(&["spec", list]).is_empty() {
                    errors.push(FieldError::forbidden(&SPEC.child(list), why));
                }
            }
            if set(service, "ipFamilyPolicy").is_some() {
                errors.push(FieldError::forbidden(&SPEC.child("ipFamilyPolicy"), why));
            }
            // A dot at the end says that the name is complete.
            let name = text(service, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            let path = SPEC.child("externalName");
            if validate_required(name, "", &path, errors) {
                validate_dns1123_subdomain(name, &path, errors);
            }
        }
        _ => {}
    }
}

fn validate_ports(service: &Value, errors: &mut ErrorList) {
    let ports = view::ports(service);
    let path = SPEC.child("ports");
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = port.str_at(&["name"]);
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
        } else {
            validate_dns1123_label(name, &path.child("name"), errors);
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        validate_port_num(view::number(port, "port"), &path.child("port"), errors);
        validate_protocol(port, &path, errors);
        let target = port.get("targetPort").filter(|it| !it.is_null()).cloned().unwrap_or(Value::Int(0));
        validate_port_num_or_name(&target, &path.child("targetPort"), errors);
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            validate_qualified_name(protocol, &path.child("appProtocol"), errors);
        }
    }
}

fn validate_protocol(port: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let protocol = port.str_at(&["protocol"]);
    if validate_required(protocol, "", &path.child("protocol"), errors) {
        validate_one_of(protocol, &PROTOCOLS, &path.child("protocol"), errors);
    }
}

fn validate_affinity(service: &Value, errors: &mut ErrorList) {
    let affinity = text(service, "sessionAffinity");
    let path = SPEC.child("sessionAffinity");
    if validate_required(affinity, "", &path, errors) {
        validate_one_of(affinity, &["ClientIP", "None"], &path, errors);
    }
    let config = set(service, "sessionAffinityConfig");
    let path = SPEC.child("sessionAffinityConfig");
    match affinity {
        "ClientIP" => validate_affinity_config(config, &path, errors),
        "None" if config.is_some() => {
            errors.push(FieldError::forbidden(&path, "must not be set when session affinity is None"));
        }
        _ => {}
    }
}

fn validate_affinity_config(config: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let why = "when session affinity type is ClientIP";
    let client = path.child("clientIP");
    let timeout = client.child("timeoutSeconds");
    let member = |of: Option<&Value>, name: &str| of.and_then(|it| it.get(name)).filter(|it| !it.is_null()).cloned();
    let Some(config) = config else { return errors.push(FieldError::required(path, why)) };
    let Some(found) = member(Some(config), "clientIP") else { return errors.push(FieldError::required(&client, why)) };
    let Some(seconds) = member(Some(&found), "timeoutSeconds").and_then(|it| it.as_i64()) else {
        return errors.push(FieldError::required(&timeout, why));
    };
    if !(1..=MAX_AFFINITY_TIMEOUT).contains(&seconds) {
        let why = format!("must be greater than 0 and less than {MAX_AFFINITY_TIMEOUT}");
        errors.push(FieldError::invalid(&timeout, seconds, &why));
    }
}

fn validate_external_ips(service: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let known = old.map(|old| texts(old, "externalIPs")).unwrap_or_default();
    let path = SPEC.child("externalIPs");
    for (index, ip) in texts(service, "externalIPs").into_iter().enumerate() {
        let before = errors.len();
        validate_ip_for_legacy_field(ip, true, &known, &path.index(index), errors);
        if errors.len() == before {
            validate_endpoint_ip(ip, &path.index(index), errors);
        }
    }
}

/// No number twice in one protocol.
fn validate_port_numbers(service: &Value, errors: &mut ErrorList) {
    let ports = view::ports(service);
    let path = SPEC.child("ports");
    let node_port = |port: &Value| view::number(port, "nodePort");
    if kind(service) == "ClusterIP" {
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
            let path = path.index(index);
            errors.push(FieldError::forbidden(&path.child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
        if !seen.insert((port.str_at(&["protocol"]), node_port(port))) {
            let path = path.index(index);
            errors.push(FieldError::duplicate(&path.child("nodePort"), node_port(port)));
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (port.str_at(&["protocol"]), view::number(port, "port"));
        if !seen.insert((protocol, number)) {
            // Upstream shows its internal struct.
            let shown = format!(
                r#"{{"Name":"","Protocol":{},"AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#,
                crate::object::to_string(&protocol.into())
            );
            errors.push(FieldError::duplicate_shown(&path.index(index), shown));
        }
    }
}

fn validate_source_ranges(service: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let ranges = texts(service, "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let path = SPEC.child("LoadBalancerSourceRanges");
        if !is_load_balancer(service) {
            errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
        }
        let known = old.map(|old| texts(old, "loadBalancerSourceRanges")).unwrap_or_default();
        let known: Vec<&str> = known.into_iter().map(str::trim).collect();
        for (index, range) in ranges.into_iter().enumerate() {
            validate_cidr_for_legacy_field(range.trim(), true, &known, &path.index(index), errors);
        }
        return;
    }
    let Some(annotation) = Meta::of(service).annotation(SOURCE_RANGES) else { return };
    let metadata = Path::new("metadata");
    let annotations = metadata.child("annotations");
    let path = annotations.key(SOURCE_RANGES);
    if !is_load_balancer(service) {
        errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
    }
    let unchanged = old.is_some_and(|old| Meta::of(old).annotation(SOURCE_RANGES) == Some(annotation));
    if !unchanged && !annotation.trim().is_empty() {
        for range in annotation.trim().split(',') {
            validate_cidr_for_legacy_field(range.trim(), true, &[], &path, errors);
        }
    }
}

const CLASS: &str = "loadBalancerClass";

fn validate_class(service: &Value, errors: &mut ErrorList) {
    let Some(class) = set(service, CLASS) else { return };
    if is_load_balancer(service) {
        validate_qualified_name(class.as_str().unwrap_or(""), &SPEC.child(CLASS), errors);
    } else {
        errors.push(FieldError::forbidden(&SPEC.child(CLASS), ONLY_LOAD_BALANCER));
    }
}

fn validate_traffic(service: &Value, errors: &mut ErrorList) {
    const POLICIES: [&str; 2] = ["Cluster", "Local"];
    let external = text(service, "externalTrafficPolicy");
    let path = SPEC.child("externalTrafficPolicy");
    if externally_accessible(service) {
        if validate_required(external, "", &path, errors) {
            validate_one_of(external, &POLICIES, &path, errors);
        }
    } else if !external.is_empty() {
        errors.push(FieldError::invalid(&path, external, "may only be set for externally-accessible services"));
    }
    let (port, path) = (view::health_port(service), SPEC.child("healthCheckNodePort"));
    match (needs_health_port(service), port) {
        (false, 0) => {}
        (false, port) => {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&path, port, why));
        }
        (true, 0) => errors.push(FieldError::required(&path, "")),
        (true, port) => validate_port_num(port, &path, errors),
    }
    let path = SPEC.child("internalTrafficPolicy");
    match set(service, "internalTrafficPolicy").map(|it| it.as_str().unwrap_or("")) {
        Some(policy) => validate_one_of(policy, &POLICIES, &path, errors),
        None if matches!(kind(service), "NodePort" | "LoadBalancer" | "ClusterIP") => {
            errors.push(FieldError::required(&path, ""));
        }
        None => {}
    }
    if let Some(distribution) = set(service, "trafficDistribution") {
        let allowed = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        validate_one_of(distribution.as_str().unwrap_or(""), &allowed, &SPEC.child("trafficDistribution"), errors);
    }
}

/// The status that a load balancer's controller writes.
pub fn validate_status(service: &Value, old: &Value, errors: &mut ErrorList) {
    const INGRESS: [&str; 3] = ["status", "loadBalancer", "ingress"];
    let status = Path::new("status");
    let balancer = status.child("loadBalancer");
    let path = balancer.child("ingress");
    let ingress = service.array_at(&INGRESS);
    if !is_load_balancer(service) && !ingress.is_empty() {
        errors.push(FieldError::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    let known: Vec<&str> =
        old.array_at(&INGRESS).iter().map(|it| it.str_at(&["ip"])).filter(|ip| !ip.is_empty()).collect();
    for (index, ingress) in ingress.iter().enumerate() {
        validate_ingress(ingress, &known, &path.index(index), errors);
    }
}

fn validate_ingress(ingress: &Value, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    let ip = ingress.str_at(&["ip"]);
    if !ip.is_empty() {
        validate_ip_for_legacy_field(ip, true, known, &path.child("ip"), errors);
    }
    let mode = path.child("ipMode");
    match (ingress.get("ipMode").filter(|it| !it.is_null()), ip.is_empty()) {
        (None, false) => errors.push(FieldError::required(&mode, "must be specified when `ip` is set")),
        (Some(_), true) => errors.push(FieldError::forbidden(&mode, "may not be specified when `ip` is not set")),
        (Some(value), false) => validate_one_of(value.as_str().unwrap_or(""), &["Proxy", "VIP"], &mode, errors),
        (None, true) => {}
    }
    let (host, path) = (ingress.str_at(&["hostname"]), path.child("hostname"));
    if !host.is_empty() {
        push_messages(is_dns1123_subdomain(host), host, &path, errors);
        if parse_ip(host).is_some() {
            errors.push(FieldError::invalid(&path, host, "must be a DNS name, not an IP address"));
        }
    }
}
