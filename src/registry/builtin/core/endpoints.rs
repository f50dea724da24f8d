//! Endpoints (kubernetes `pkg/registry/core/endpoint`, `pkg/apis/core/validation`).

use crate::{
    api::{
        ErrorList, FieldError, Meta, Path,
        names::{is_valid_port_num, name_is_dns_subdomain},
    },
    object::Value,
    registry::{
        strategy::{Strategy, StrategyContext},
        validation::{
            address::{ip_warnings, validate_endpoint_ip, validate_ip_for_legacy_field},
            validate_bare_finalizers, validate_dns1123_label, validate_object_meta, validate_one_of,
            validate_qualified_name, validate_required,
        },
    },
};

pub struct EndpointsStrategy;

impl Strategy for EndpointsStrategy {
    fn validate_create(&self, _cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validate_subsets(new, errors);
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validate_object_meta(new, true, &name_is_dns_subdomain, errors);
        validate_bare_finalizers(new, errors);
        // What older servers took stays as long as nobody changes it.
        if new.array_at(&["subsets"]) != old.array_at(&["subsets"]) {
            validate_subsets(new, errors);
        }
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        // The controller writes what it has read from pods, which has been judged there.
        if Meta::of(new).label("endpoints.kubernetes.io/managed-by") == Some("endpoint-controller") {
            return Vec::new();
        }
        let mut warnings = Vec::new();
        each_address(new, &mut |address, path| {
            warnings.extend(ip_warnings(address.str_at(&["ip"]), &path.child("ip")))
        });
        warnings
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }
}

const SUBSETS: Path<'static> = Path::new("subsets");
const LISTS: [&str; 2] = ["addresses", "notReadyAddresses"];

fn each_address(endpoints: &Value, visit: &mut dyn FnMut(&Value, &Path<'_>)) {
    for (index, subset) in endpoints.array_at(&["subsets"]).iter().enumerate() {
        visit_addresses(subset, &SUBSETS.index(index), visit);
    }
}

fn visit_addresses(subset: &Value, path: &Path<'_>, visit: &mut dyn FnMut(&Value, &Path<'_>)) {
    for list in LISTS {
        let path = path.child(list);
        for (index, address) in subset.array_at(&[list]).iter().enumerate() {
            visit(address, &path.index(index));
        }
    }
}

fn validate_subsets(endpoints: &Value, errors: &mut ErrorList) {
    for (index, subset) in endpoints.array_at(&["subsets"]).iter().enumerate() {
        let path = SUBSETS.index(index);
        if LISTS.iter().all(|list| subset.array_at(&[list]).is_empty()) {
            errors.push(FieldError::required(&path, "must specify `addresses` or `notReadyAddresses`"));
        }
        visit_addresses(subset, &path, &mut |address, path| validate_address(address, path, errors));
        let ports = subset.array_at(&["ports"]);
        let path = path.child("ports");
        for (index, port) in ports.iter().enumerate() {
            validate_port(port, ports.len() > 1, &path.index(index), errors);
        }
    }
}

fn validate_address(address: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let ip = address.str_at(&["ip"]);
    validate_ip_for_legacy_field(ip, true, &[], &path.child("ip"), errors);
    let host = address.str_at(&["hostname"]);
    if !host.is_empty() {
        validate_dns1123_label(host, &path.child("hostname"), errors);
    }
    if let Some(node) = address.get("nodeName").and_then(Value::as_str) {
        let path = path.child("nodeName");
        let messages = name_is_dns_subdomain(node, false);
        errors.extend(messages.iter().map(|it| FieldError::invalid(&path, node, it).with_origin("format=dns-label")));
    }
    validate_endpoint_ip(ip, &path.child("ip"), errors);
}

fn validate_port(port: &Value, name_required: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let name = port.str_at(&["name"]);
    if !name.is_empty() {
        validate_dns1123_label(name, &path.child("name"), errors);
    } else if name_required {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let number = port.i64_at(&["port"]).unwrap_or(0);
    let at = path.child("port");
    errors
        .extend(is_valid_port_num(number).iter().map(|it| FieldError::invalid(&at, number, it).with_origin("portNum")));
    let protocol = port.str_at(&["protocol"]);
    if validate_required(protocol, "", &path.child("protocol"), errors) {
        validate_one_of(protocol, &["SCTP", "TCP", "UDP"], &path.child("protocol"), errors);
    }
    if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
        validate_qualified_name(protocol, &path.child("appProtocol"), errors);
    }
}
