//! IPAddresses (kubernetes `pkg/registry/networking/ipaddress`, `pkg/apis/networking/validation`).

use std::net::IpAddr;

use crate::{
    api::{
        ErrorList, FieldError, Path,
        names::{Messages, is_dns1123_subdomain, is_path_segment_name},
    },
    object::Value,
    registry::{
        strategy::{Strategy, StrategyContext},
        validation::{
            address::validate_ip, declarative, object_meta::push_messages, validate_bare_finalizers,
            validate_object_meta,
        },
    },
};

pub const LABEL_FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
pub const LABEL_MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
/// Who makes the addresses of Services.
pub const ALLOCATOR: &str = "ipallocator.k8s.io";

/// The object that says which Service an address belongs to.
pub fn of_service(ip: IpAddr, namespace: &str, name: &str) -> Value {
    let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
    let mut object = crate::json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {"name": (ip.to_string())},
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}}
    });
    object.set(&["metadata", "labels", LABEL_FAMILY], family);
    object.set(&["metadata", "labels", LABEL_MANAGED_BY], ALLOCATOR);
    object
}

pub struct IpAddressStrategy;

impl Strategy for IpAddressStrategy {
    fn validate_create(&self, _cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validate_parent(new, errors);
        let mut declared = ErrorList::new();
        validate_declared(new, None, &mut declared);
        declarative::merge(errors, declared);
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_object_meta(new, false, &|name, prefix| self.validate_name(name, prefix), errors);
        validate_bare_finalizers(new, errors);
        validate_parent(new, errors);
        if parent(new) != parent(old) {
            let spec = Path::new("spec");
            let shown = parent(new).cloned().unwrap_or_default();
            let error = FieldError::invalid(&spec.child("parentRef"), shown, "field is immutable");
            errors.push(error.with_origin("immutable").covered_by_declarative());
        }
        let mut declared = ErrorList::new();
        validate_declared(new, Some(old), &mut declared);
        declarative::merge(errors, declared);
    }

    fn validate_name(&self, name: &str, _prefix: bool) -> Messages {
        let mut errors = ErrorList::new();
        validate_ip(name, &Path::ROOT, &mut errors);
        // What is left of the error without the value, which is the name itself.
        let value = format!("Invalid value: {}: ", crate::api::field::quote(name));
        errors.iter().map(|error| error.body.strip_prefix(&value).unwrap_or(&error.body).to_owned().into()).collect()
    }
}

fn parent(object: &Value) -> Option<&Value> {
    object.at(&["spec", "parentRef"]).filter(|it| !it.is_null())
}

fn validate_parent(object: &Value, errors: &mut ErrorList) {
    let spec = Path::new("spec");
    let path = spec.child("parentRef");
    let Some(parent) = parent(object) else {
        return errors.push(FieldError::required(&path, "").covered_by_declarative());
    };
    let group = parent.str_at(&["group"]);
    if !group.is_empty() {
        push_messages(is_dns1123_subdomain(group), group, &path.child("group"), errors);
    }
    for (member, required) in [("resource", true), ("name", true), ("namespace", false)] {
        let (value, path) = (parent.str_at(&[member]), path.child(member));
        if !value.is_empty() {
            push_messages(is_path_segment_name(value), value, &path, errors);
        } else if required {
            errors.push(FieldError::required(&path, "").covered_by_declarative());
        }
    }
}

fn validate_declared(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let spec = Path::new("spec");
    let path = spec.child("parentRef");
    let before = old.and_then(parent);
    if old.is_some() && parent(new) == before {
        return;
    }
    if !declarative::required_pointer(parent(new), &path, errors) {
        return;
    }
    if old.is_some() {
        return declarative::immutable(parent(new), before, &path, errors);
    }
    for member in ["resource", "name"] {
        declarative::required(parent(new).and_then(|it| it.get(member)), &path.child(member), errors);
    }
}
