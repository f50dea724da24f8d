//! Probes, lifecycle hooks and the policies of images and restarts.

use super::view::{given, items, text};
use crate::{
    api::{ErrorList, FieldError, Path, names::is_http_header_name},
    object::Value,
    registry::validation::{
        object_meta::push_messages, validate_nonnegative, validate_port_num, validate_port_num_or_name,
    },
};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RULE_ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const MAX_RESTART_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

/// When an image is pulled.
pub fn validate_pull_policy(policy: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match policy {
        "" => errors.push(FieldError::required(path, "")),
        known if PULL_POLICIES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(path, other, &PULL_POLICIES)),
    }
}

/// The three probes of a container. `grace` is the pod's terminationGracePeriodSeconds.
pub fn validate_probes(container: &Value, grace: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = given(container, kind) else { continue };
        let at = path.child(kind);
        validate_probe(probe, grace, &at, errors);
        if kind == "readinessProbe" {
            if let Some(seconds) = probe.i64_at(&["terminationGracePeriodSeconds"]) {
                let at = at.child("terminationGracePeriodSeconds");
                errors.push(FieldError::invalid(&at, seconds, "must not be set for readinessProbes"));
            }
        } else {
            let threshold = probe.i64_at(&["successThreshold"]).unwrap_or(0);
            if threshold != 1 {
                errors.push(FieldError::invalid(&at.child("successThreshold"), threshold, "must be 1"));
            }
        }
    }
}

fn validate_probe(probe: &Value, grace: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    validate_handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace, path, errors);
    for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        validate_nonnegative(probe.i64_at(&[key]).unwrap_or(0), &path.child(key), errors);
    }
    if let Some(seconds) = probe.i64_at(&["terminationGracePeriodSeconds"]).filter(|it| *it <= 0) {
        let at = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&at, seconds, "must be greater than 0"));
    }
}

/// `lifecycle` of a container.
pub fn validate_lifecycle(lifecycle: &Value, grace: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = given(lifecycle, hook) {
            validate_handler(handler, &["exec", "httpGet", "tcpSocket", "sleep"], grace, &path.child(hook), errors);
        }
    }
}

fn validate_handler(handler: &Value, kinds: &[&str], grace: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut found = false;
    for kind in kinds {
        let Some(action) = given(handler, kind) else { continue };
        let at = path.child(kind);
        if found {
            errors.push(FieldError::forbidden(&at, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match *kind {
            "exec" if items(action, "command").is_empty() => {
                errors.push(FieldError::required(&at.child("command"), ""))
            }
            "httpGet" => validate_http_get(action, &at, errors),
            "tcpSocket" => validate_port(action, &at, errors),
            "grpc" => validate_port_num(action.i64_at(&["port"]).unwrap_or(0), &at.child("port"), errors),
            "sleep" => validate_sleep(action, grace, &at, errors),
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn validate_port(action: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    validate_port_num_or_name(action.get("port").unwrap_or(&Value::Null), &path.child("port"), errors);
}

fn validate_http_get(action: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if text(action, "path").is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    validate_port(action, path, errors);
    let scheme = text(action, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.push(FieldError::not_supported(&path.child("scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in items(action, "httpHeaders") {
        let name = text(header, "name");
        push_messages(is_http_header_name(name), name, &path.child("httpHeaders"), errors);
    }
}

fn validate_sleep(action: &Value, grace: Option<i64>, path: &Path<'_>, errors: &mut ErrorList) {
    let seconds = action.i64_at(&["seconds"]).unwrap_or(0);
    if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(path, seconds, &why));
    }
}

/// `restartPolicy` and `restartPolicyRules` of a container.
pub fn validate_restart_policy(container: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let rules = items(container, "restartPolicyRules");
    let at = path.child("restartPolicy");
    match given(container, "restartPolicy") {
        None if rules.is_empty() => return,
        None => errors.push(FieldError::required(&at, "must specify restartPolicy when restart rules are used")),
        Some(policy) if RESTART_POLICIES.contains(&policy.as_str().unwrap_or("")) => {}
        Some(policy) => errors.push(FieldError::not_supported(&at, policy.clone(), &RESTART_POLICIES)),
    }
    let at = path.child("restartPolicyRules");
    if rules.len() > MAX_RESTART_RULES {
        errors.push(FieldError::too_many(&at, rules.len(), MAX_RESTART_RULES));
    }
    for (index, rule) in rules.iter().enumerate() {
        validate_restart_rule(rule, &at.index(index), errors);
    }
}

fn validate_restart_rule(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let action = text(rule, "action");
    if !RULE_ACTIONS.contains(&action) {
        errors.push(FieldError::not_supported(&path.child("action"), action, &RULE_ACTIONS));
    }
    let at = path.child("exitCodes");
    let Some(codes) = given(rule, "exitCodes") else {
        errors.push(FieldError::required(&at, "must be specified"));
        return;
    };
    let operator = text(codes, "operator");
    if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::not_supported(&at.child("operator"), operator, &["In", "NotIn"]));
    }
    let values = items(codes, "values").len();
    if values > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(&at.child("values"), values, MAX_EXIT_CODES));
    }
}
