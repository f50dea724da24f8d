//! Ingress (kubernetes `pkg/registry/networking/ingress`, `pkg/apis/networking/validation`).

use super::reference::{self, Reference};
use crate::{
    api::{
        ErrorList, FieldError, Meta, Path,
        ip::parse_ip,
        names::{
            is_dns1123_label, is_dns1123_subdomain, is_valid_port_name, is_valid_port_num,
            is_wildcard_dns1123_subdomain,
        },
    },
    object::Value,
    registry::{
        builtin::kind::Own,
        strategy::StrategyContext,
        validation::{
            address::{ip_warnings, validate_ip_for_legacy_field},
            object_meta::push_messages,
        },
    },
};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

pub struct Ingress;

/// What an object that is older than a rule may keep.
#[derive(Clone, Copy, Default)]
struct Looseness {
    secret_names: bool,
    wildcard_rules: bool,
}

impl Own for Ingress {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        let loose = old.and_then(|old| old.get("spec")).map(looseness).unwrap_or_default();
        validate_spec(spec, loose, &path, errors);
        let class = spec.get("ingressClassName").and_then(Value::as_str);
        if old.is_none()
            && let (Some(class), Some(annotated)) = (class, Meta::of(new).annotation(CLASS_ANNOTATION))
            && class != annotated
        {
            let annotations = Path::new("annotations");
            let why = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(&annotations.child(CLASS_ANNOTATION), annotated, why));
        }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let annotated = Meta::of(new).annotation(CLASS_ANNOTATION).is_some();
        let class = new.at(&["spec", "ingressClassName"]).filter(|it| !it.is_null());
        if old.is_some() || !annotated || class.is_some() {
            return Vec::new();
        }
        vec![format!("annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead")]
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let before = old.array_at(&["status", "loadBalancer", "ingress"]);
        let before: Vec<&str> = before.iter().map(|it| it.str_at(&["ip"])).filter(|ip| !ip.is_empty()).collect();
        each_ingress(new, &mut |ingress, path| {
            let (ip, host) = (ingress.str_at(&["ip"]), ingress.str_at(&["hostname"]));
            if !ip.is_empty() {
                validate_ip_for_legacy_field(ip, true, &before, &path.child("ip"), errors);
            }
            if !host.is_empty() {
                let at = path.child("hostname");
                push_messages(is_dns1123_subdomain(host), host, &at, errors);
                refuse_address(host, &at, errors);
            }
        });
    }

    fn status_warnings(&self, new: &Value, _old: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        each_ingress(new, &mut |ingress, path| {
            let ip = ingress.str_at(&["ip"]);
            if !ip.is_empty() {
                warnings.extend(ip_warnings(ip, path));
            }
        });
        warnings
    }
}

fn each_ingress(object: &Value, visit: &mut dyn FnMut(&Value, &Path<'_>)) {
    let status = Path::new("status");
    let balancer = status.child("loadBalancer");
    let path = balancer.child("ingress");
    for (index, ingress) in object.array_at(&["status", "loadBalancer", "ingress"]).iter().enumerate() {
        visit(ingress, &path.index(index));
    }
}

fn refuse_address(host: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if parse_ip(host).is_some() {
        errors.push(FieldError::invalid(path, host, "must be a DNS name, not an IP address"));
    }
}

fn looseness(old: &Value) -> Looseness {
    let bad_secret = |tls: &Value| {
        let name = tls.str_at(&["secretName"]);
        !name.is_empty() && !is_dns1123_subdomain(name).is_empty()
    };
    let bad_rule = |rule: &Value| {
        let mut errors = ErrorList::new();
        if rule.str_at(&["host"]).contains('*') {
            validate_http(rule, &Path::ROOT, &mut errors);
        }
        !errors.is_empty()
    };
    Looseness {
        secret_names: old.array_at(&["tls"]).iter().any(bad_secret),
        wildcard_rules: old.array_at(&["rules"]).iter().any(bad_rule),
    }
}

fn validate_spec(spec: &Value, loose: Looseness, path: &Path<'_>, errors: &mut ErrorList) {
    let rules = spec.array_at(&["rules"]);
    let backend = spec.get("defaultBackend").filter(|it| !it.is_null());
    if rules.is_empty() && backend.is_none() {
        let shown = spec.get("rules").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid_ref(path, shown, "either `defaultBackend` or `rules` must be specified"));
    }
    if let Some(backend) = backend {
        validate_backend(backend, &path.child("defaultBackend"), errors);
    }
    let at = path.child("rules");
    for (index, rule) in rules.iter().enumerate() {
        validate_rule(rule, loose, &at.index(index), errors);
    }
    let at = path.child("tls");
    for (index, tls) in spec.array_at(&["tls"]).iter().enumerate() {
        validate_tls(tls, loose, &at.index(index), errors);
    }
    if let Some(class) = spec.get("ingressClassName").and_then(Value::as_str) {
        push_messages(is_dns1123_subdomain(class), class, &path.child("ingressClassName"), errors);
    }
}

fn validate_host(host: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let messages = if host.contains('*') { is_wildcard_dns1123_subdomain(host) } else { is_dns1123_subdomain(host) };
    push_messages(messages, host, path, errors);
}

fn validate_tls(tls: &Value, loose: Looseness, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("hosts");
    for (index, host) in tls.array_at(&["hosts"]).iter().enumerate() {
        validate_host(host.as_str().unwrap_or(""), &at.index(index), errors);
    }
    let secret = tls.str_at(&["secretName"]);
    if !loose.secret_names && !secret.is_empty() {
        push_messages(is_dns1123_subdomain(secret), secret, &path.child("secretName"), errors);
    }
}

fn validate_rule(rule: &Value, loose: Looseness, path: &Path<'_>, errors: &mut ErrorList) {
    let host = rule.str_at(&["host"]);
    if !host.is_empty() {
        let at = path.child("host");
        refuse_address(host, &at, errors);
        validate_host(host, &at, errors);
    }
    if !(loose.wildcard_rules && host.contains('*')) {
        validate_http(rule, path, errors);
    }
}

fn validate_http(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(http) = rule.get("http").filter(|it| !it.is_null()) else { return };
    let http_at = path.child("http");
    let at = http_at.child("paths");
    let paths = http.array_at(&["paths"]);
    if paths.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }
    for (index, path) in paths.iter().enumerate() {
        validate_path(path, &at.index(index), errors);
    }
}

fn validate_path(it: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(kind) = it.get("pathType").and_then(Value::as_str) else {
        errors.push(FieldError::required(&path.child("pathType"), "pathType must be specified"));
        return;
    };
    let (text, at) = (it.str_at(&["path"]), path.child("path"));
    let mut refuse = |why: &str| errors.push(FieldError::invalid(&at, text, why));
    match kind {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                refuse("must be an absolute path");
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|it| text.contains(it)) {
                refuse(&format!("must not contain '{sequence}'"));
            }
            for suffix in ["/..", "/."].into_iter().filter(|it| text.ends_with(it)) {
                refuse(&format!("cannot end with '{suffix}'"));
            }
        }
        "ImplementationSpecific" if !text.is_empty() && !text.starts_with('/') => refuse("must be an absolute path"),
        "ImplementationSpecific" => {}
        _ => errors.push(FieldError::not_supported(&path.child("pathType"), kind, &PATH_TYPES)),
    }
    let empty = Value::object();
    validate_backend(it.get("backend").unwrap_or(&empty), &path.child("backend"), errors);
}

fn validate_backend(backend: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let given = |member: &str| backend.get(member).filter(|it| !it.is_null());
    match (given("resource"), given("service")) {
        (Some(_), Some(_)) => {
            errors.push(FieldError::invalid(path, "", "cannot set both resource and service backends"));
        }
        (Some(resource), None) => {
            reference::validate(resource, Reference { declared: false }, &path.child("resource"), errors);
        }
        (None, Some(service)) => validate_service(service, path, errors),
        (None, None) => errors.push(FieldError::invalid(path, "", "resource or service backend is required")),
    }
}

fn validate_service(service: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let service_at = path.child("service");
    let (at, port_at) = (service_at.child("name"), service_at.child("port"));
    match service.str_at(&["name"]) {
        "" => errors.push(FieldError::required(&at, "")),
        name => push_messages(is_dns1123_label(name), name, &at, errors),
    }
    let (name, number) = (service.str_at(&["port", "name"]), service.i64_at(&["port", "number"]).unwrap_or(0));
    match (name, number) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", number) => {
            for why in is_valid_port_num(number) {
                errors.push(FieldError::invalid(&port_at.child("number"), number, &why));
            }
        }
        (name, 0) => push_messages(is_valid_port_name(name), name, &port_at.child("name"), errors),
        _ => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
    }
}
