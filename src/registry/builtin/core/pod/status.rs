//! The status of a pod, as kubelets and schedulers write it.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{
    internal::shown,
    options::PodOptions,
    quantities::amount,
    update::{take_member, validate_annotation_update},
    view::{given, items, map, os, text},
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        ip::parse_ip,
        names::{is_valid_group_id, name_is_dns_subdomain},
    },
    object::Value,
    registry::validation::{
        address::{ip_warnings, validate_ip_for_legacy_field},
        object_meta::push_messages,
        validate_dns1123_label, validate_immutable_or, validate_qualified_name,
    },
};

const STATUS: Path<'static> = Path::new("status");
const NOT_NEGATIVE: &str = "must be a non-negative integer";
const MAX_HEALTH_MESSAGE: usize = 1024;

/// Takes the status and the metadata of `new`, keeps what a status may not change, and what it leaves out.
pub fn prepare_status(new: &mut Value, old: &Value) {
    take_member(new, old, "spec");
    new.remove_at(&["metadata", "deletionTimestamp"]);
    match old.at(&["metadata", "ownerReferences"]) {
        Some(owners) => new.set(&["metadata", "ownerReferences"], owners.clone()),
        None => {
            new.remove_at(&["metadata", "ownerReferences"]);
        }
    }
    let Some(kept) = old.get("status") else { return };
    let status = new.make(&["status"]);
    status.make_object();
    for key in [
        "qosClass",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
        "observedGeneration",
    ] {
        let missing = match status.get(key) {
            None | Some(Value::Null | Value::Int(0)) => true,
            Some(Value::Str(text)) => text.is_empty(),
            Some(_) => false,
        };
        if missing {
            take_member(status, kept, key);
        }
    }
    keep_condition_generations(status, kept);
}

/// A condition that does not say which generation it saw keeps what the nth of its type had before.
fn keep_condition_generations(status: &mut Value, old: &Value) {
    let mut before: HashMap<String, VecDeque<i64>> = HashMap::new();
    for condition in items(old, "conditions") {
        let generation = condition.i64_at(&["observedGeneration"]).unwrap_or(0);
        before.entry(text(condition, "type").to_owned()).or_default().push_back(generation);
    }
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let old = before.get_mut(text(condition, "type")).and_then(VecDeque::pop_front).unwrap_or(0);
        if old != 0 && condition.i64_at(&["observedGeneration"]).unwrap_or(0) == 0 {
            condition.set(&["observedGeneration"], old);
        }
    }
}

/// Judges a new status; the spec is the old one's.
pub fn validate_status_update(new: &Value, old: &Value, options: PodOptions, errors: &mut ErrorList) {
    validate_annotation_update(new, old, options, errors);
    let empty = Value::object();
    let [status, was] = [new, old].map(|pod| pod.get("status").unwrap_or(&empty));
    let spec = old.get("spec").unwrap_or(&empty);
    validate_conditions(status, errors);
    validate_nomination(status, was, spec, errors);
    if let Some(generation) = status.i64_at(&["observedGeneration"]).filter(|it| *it < 0) {
        errors.push(FieldError::invalid(&STATUS.child("observedGeneration"), generation, NOT_NEGATIVE));
    }
    validate_immutable_or(status.get("qosClass"), was.get("qosClass"), "".into(), &STATUS.child("qosClass"), errors);
    validate_transitions(status, was, spec, errors);
    validate_claim_statuses(status, spec, errors);
    if let Some(claim) = given(status, "extendedResourceClaimStatus") {
        validate_extended_claim(claim, spec, &STATUS.child("extendedResourceClaimStatus"), errors);
    }
    validate_pod_ips(status, was, errors);
    validate_host_ips(status, was, errors);
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        validate_users(items(status, list), os(spec), &STATUS.child(list), errors);
    }
    for (list, containers) in [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")] {
        validate_allocated(items(status, list), items(spec, containers), status, &STATUS.child(list), errors);
    }
    let path = STATUS.child("ephemeralContainerStatuses");
    for (index, container) in items(status, "ephemeralContainerStatuses").iter().enumerate() {
        if !items(container, "allocatedResourcesStatus").is_empty() {
            let at = path.index(index);
            let why = "must not be specified in container status";
            errors.push(FieldError::forbidden(&at.child("allocatedResourcesStatus"), why));
        }
    }
}

/// Addresses that will not always be taken.
pub fn status_warnings(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for list in ["podIPs", "hostIPs"] {
        let path = STATUS.child(list);
        for (index, address) in pod.array_at(&["status", list]).iter().enumerate() {
            warnings.extend(ip_warnings(text(address, "ip"), &path.index(index).child("ip")));
        }
    }
    warnings
}

fn validate_conditions(status: &Value, errors: &mut ErrorList) {
    let path = STATUS.child("conditions");
    for (index, condition) in items(status, "conditions").iter().enumerate() {
        let at = path.index(index);
        if let Some(generation) = condition.i64_at(&["observedGeneration"]).filter(|it| *it < 0) {
            errors.push(FieldError::invalid(&at.child("observedGeneration"), generation, NOT_NEGATIVE));
        }
        let kind = text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            validate_qualified_name(kind, &at.child("Type"), errors);
        }
    }
}

fn validate_nomination(status: &Value, was: &Value, spec: &Value, errors: &mut ErrorList) {
    let (node, at) = (text(status, "nominatedNodeName"), STATUS.child("nominatedNodeName"));
    if node.is_empty() || node == text(was, "nominatedNodeName") {
        return;
    }
    push_messages(name_is_dns_subdomain(node, false), node, &at, errors);
    if !text(spec, "nodeName").is_empty() {
        errors.push(FieldError::forbidden(&at, "may not be set on pods that are already bound to a node"));
    }
}

fn terminated(status: &Value) -> Option<&Value> {
    status.at(&["state", "terminated"]).filter(|it| !it.is_null())
}

/// A container that has ended stays so, unless its policy or a rule lets it run again.
fn validate_transitions(status: &Value, was: &Value, spec: &Value, errors: &mut ErrorList) {
    let any_restarts_all =
        ["initContainers", "containers"].iter().flat_map(|list| items(spec, list)).any(|container| {
            items(container, "restartPolicyRules").iter().any(|rule| text(rule, "action") == "RestartAllContainers")
        });
    for (list, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        if any_restarts_all && !containers.is_empty() {
            continue;
        }
        let path = STATUS.child(list);
        for (index, old) in items(was, list).iter().enumerate() {
            let Some(end) = terminated(old) else { continue };
            let name = text(old, "name");
            let runs_again =
                items(status, list).iter().any(|new| text(new, "name") == name && terminated(new).is_none());
            let code = end.i64_at(&["exitCode"]).unwrap_or(0);
            let container = items(spec, containers).iter().find(|it| text(it, "name") == name);
            if runs_again && !container.is_some_and(|container| should_restart(container, spec, code)) {
                let why = "may not be transitioned to non-terminated state";
                errors.push(FieldError::forbidden(&path.index(index).child("state"), why));
            }
        }
    }
}

/// Whether a container that ended with `code` runs again: by the first rule that fits, its own policy, the pod's.
fn should_restart(container: &Value, spec: &Value, code: i64) -> bool {
    if let Some(own) = given(container, "restartPolicy").and_then(Value::as_str) {
        let rule = items(container, "restartPolicyRules").iter().find(|rule| {
            let listed = rule.array_at(&["exitCodes", "values"]).iter().any(|it| it.as_i64() == Some(code));
            match rule.str_at(&["exitCodes", "operator"]) {
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            }
        });
        if rule.is_some_and(|rule| matches!(text(rule, "action"), "Restart" | "RestartAllContainers")) {
            return true;
        }
        match own {
            "Always" => return true,
            "OnFailure" => return code != 0,
            "Never" => return false,
            _ => {}
        }
    }
    match text(spec, "restartPolicy") {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    }
}

fn validate_claim_statuses(status: &Value, spec: &Value, errors: &mut ErrorList) {
    let path = STATUS.child("resourceClaimStatuses");
    let mut seen = HashSet::new();
    for (index, claim) in items(status, "resourceClaimStatuses").iter().enumerate() {
        let at = path.index(index);
        let name = text(claim, "name");
        if !items(spec, "resourceClaims").iter().any(|it| text(it, "name") == name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&at.child("name"), name, why));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&at.child("name"), name));
        }
        if let Some(name) = given(claim, "resourceClaimName").and_then(Value::as_str) {
            push_messages(name_is_dns_subdomain(name, false), name, &at.child("resourceClaimName"), errors);
        }
    }
}

fn validate_extended_claim(claim: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mappings = items(claim, "requestMappings");
    let list = path.child("requestMappings");
    if mappings.is_empty() {
        errors.push(FieldError::required(&list, "at least one request mapping is required"));
    }
    let mut seen = HashSet::new();
    for (index, mapping) in mappings.iter().enumerate() {
        let at = list.index(index);
        let [container, resource, request] =
            ["containerName", "resourceName", "requestName"].map(|key| text(mapping, key));
        let found = ["containers", "initContainers"]
            .iter()
            .find_map(|list| items(spec, list).iter().find(|it| text(it, "name") == container));
        match found {
            None => {
                let why = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(FieldError::invalid(&at.child("containerName"), container, why));
            }
            Some(found) if found.at(&["resources", "requests", resource]).is_none() => {
                let why = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(FieldError::invalid(&at.child("resourceName"), resource, why));
            }
            Some(_) => {}
        }
        validate_dns1123_label(request, &path.child("requestName"), errors);
        if !seen.insert((container, resource, request)) {
            for (key, value) in [("containerName", container), ("resourceName", resource), ("requestName", request)] {
                errors.push(FieldError::duplicate(&at.child(key), value));
            }
        }
    }
    let at = path.child("resourceClaimName");
    match text(claim, "resourceClaimName") {
        "" => errors.push(FieldError::required(&at, "")),
        name => push_messages(name_is_dns_subdomain(name, false), name, &at, errors),
    }
}

fn validate_addresses(status: &Value, was: &Value, list: &str, errors: &mut ErrorList) {
    let path = STATUS.child(list);
    let before: Vec<&str> = items(was, list).iter().map(|it| text(it, "ip")).collect();
    let addresses = items(status, list);
    for (index, address) in addresses.iter().enumerate() {
        validate_ip_for_legacy_field(text(address, "ip"), true, &before, &path.index(index), errors);
    }
    if addresses.len() < 2 {
        return;
    }
    let parsed: Vec<_> = addresses.iter().map(|it| parse_ip(text(it, "ip"))).collect();
    if let Some(at) = parsed.iter().position(Option::is_none) {
        let bad = addresses.get(at).map_or("", |it| text(it, "ip"));
        let why = format!("failed to check for dual stack with error:ip {bad} is invalid");
        errors.push(FieldError::internal(&path, &why));
    }
    let six = parsed.iter().flatten().any(|ip| ip.is_ipv6());
    let four = parsed.iter().flatten().any(|ip| ip.is_ipv4());
    if !(six && four) || addresses.len() > 2 {
        let shown = shown(status.get(list).unwrap_or(&Value::Null), "[PodIP");
        errors.push(FieldError::invalid_shown(&path, shown, "may specify no more than one IP for each IP family"));
    }
}

fn validate_pod_ips(status: &Value, was: &Value, errors: &mut ErrorList) {
    validate_addresses(status, was, "podIPs", errors);
    let path = STATUS.child("podIPs");
    let (one, first) = (text(status, "podIP"), items(status, "podIPs").first());
    match first.map(|first| text(first, "ip")) {
        Some(first) if !one.is_empty() => {
            if first != one {
                errors.push(FieldError::invalid(&path.index(0).child("ip"), first, "must be equal to `podIP`"));
            }
        }
        None if one.is_empty() => {}
        _ => {
            let shown = shown(status.get("podIPs").unwrap_or(&Value::Null), "[PodIP");
            let why = "podIP and podIPs must either both be set or both be unset";
            errors.push(FieldError::invalid_shown(&path, shown, why));
        }
    }
}

fn validate_host_ips(status: &Value, was: &Value, errors: &mut ErrorList) {
    let Some(first) = items(status, "hostIPs").first().map(|first| text(first, "ip")) else { return };
    if first != text(status, "hostIP") {
        let path = STATUS.child("hostIPs");
        errors.push(FieldError::invalid(&path.index(0).child("ip"), first, "must be equal to `hostIP`"));
    }
    validate_addresses(status, was, "hostIPs", errors);
}

fn validate_users(statuses: &[Value], os: Option<&str>, path: &Path<'_>, errors: &mut ErrorList) {
    for (index, status) in statuses.iter().enumerate() {
        let Some(user) = status.at(&["user", "linux"]).filter(|it| !it.is_null()) else { continue };
        let at = path.index(index);
        let at = at.child("user");
        let at = at.child("linux");
        match os {
            Some("windows") => errors.push(FieldError::forbidden(&at, "cannot be set for a windows pod")),
            None | Some("linux") => validate_linux_user(user, &at, errors),
            Some(_) => {}
        }
    }
}

fn validate_linux_user(user: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const MAX_UID: i64 = u32::MAX as i64;
    let id = |key: &str| user.i64_at(&[key]).unwrap_or(0);
    if !(0..=MAX_UID).contains(&id("uid")) {
        let why = format!("must be between 0 and {MAX_UID}, inclusive");
        errors.push(FieldError::invalid(&path.child("uid"), id("uid"), &why));
    }
    let mut group = |id: i64, path: &Path<'_>| {
        errors.extend(is_valid_group_id(id).iter().map(|message| FieldError::invalid(path, id, message)));
    };
    group(id("gid"), &path.child("gid"));
    let at = path.child("supplementalGroups");
    for (index, id) in items(user, "supplementalGroups").iter().enumerate() {
        group(id.as_i64().unwrap_or(0), &at.index(index));
    }
}

fn validate_allocated(
    statuses: &[Value],
    containers: &[Value],
    status: &Value,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    for (index, own) in statuses.iter().enumerate() {
        let container = containers.iter().find(|it| text(it, "name") == text(own, "name"));
        let at = path.index(index);
        let at = at.child("allocatedResourcesStatus");
        for (index, resource) in items(own, "allocatedResourcesStatus").iter().enumerate() {
            let at = at.index(index);
            let name = text(resource, "name");
            if let Some(why) = container.and_then(|container| unknown_resource(container, name, status)) {
                errors.push(FieldError::invalid(&at.child("name"), name, why));
            }
            validate_health(resource, &at.child("resources"), errors);
        }
    }
}

/// Why a container cannot have been given the resource.
fn unknown_resource(container: &Value, name: &str, status: &Value) -> Option<&'static str> {
    let requests = container.at(&["resources"]).and_then(|it| map(it, "requests"));
    let Some(claim) = name.strip_prefix("claim:") else {
        let known = requests.is_some_and(|it| it.contains_key(name));
        return (!known).then_some("must match one of the container's resource requests");
    };
    let uses = |used: &Value| match text(used, "request") {
        "" => claim == text(used, "name"),
        request => claim.split_once('/') == Some((text(used, "name"), request)),
    };
    let own = container.array_at(&["resources", "claims"]).iter().any(uses);
    let extended = || {
        let given = given(status, "extendedResourceClaimStatus")?;
        let (name, request) =
            claim.split_once('/').filter(|(name, request)| !name.is_empty() && !request.is_empty())?;
        let mapped = items(given, "requestMappings").iter().any(|mapping| {
            text(mapping, "containerName") == text(container, "name")
                && text(mapping, "requestName") == request
                && amount(requests, text(mapping, "resourceName")).is_some_and(|it| !it.is_zero())
        });
        (text(given, "resourceClaimName") == name && mapped).then_some(())
    };
    (!own && extended().is_none()).then_some(
        "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
    )
}

fn validate_health(resource: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const HEALTHS: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
    let mut seen = HashSet::new();
    for (index, device) in items(resource, "resources").iter().enumerate() {
        let at = path.index(index);
        let (health, id) = (text(device, "health"), text(device, "resourceID"));
        if !HEALTHS.contains(&health) {
            errors.push(FieldError::not_supported(&at.child("health"), health, &HEALTHS));
        }
        match given(device, "message").and_then(Value::as_str) {
            Some("") => errors.push(FieldError::required(&at.child("message"), "must be non-empty if specified")),
            Some(message) if message.len() > MAX_HEALTH_MESSAGE => {
                errors.push(FieldError::too_long(&at.child("message"), MAX_HEALTH_MESSAGE));
            }
            _ => {}
        }
        if !seen.insert(id) {
            errors.push(FieldError::duplicate(&at.child("resourceID"), id));
        }
    }
}

/// Sets a condition, with the time of its change; others of its type are replaced. Says whether it changed.
pub fn set_condition(status: &mut Value, condition: Value, now: &str) {
    let mut condition = condition;
    condition.set(&["lastProbeTime"], Value::Null);
    condition.set(&["lastTransitionTime"], now);
    let status = status.make(&["conditions"]);
    if !matches!(status, Value::Array(_)) {
        *status = Value::Array(Vec::new());
    }
    let Some(conditions) = status.as_array_mut() else { return };
    let kind = text(&condition, "type").to_owned();
    match conditions.iter_mut().find(|it| text(it, "type") == kind) {
        Some(old) => {
            if text(old, "status") == text(&condition, "status") {
                let since = old.get("lastTransitionTime").cloned().unwrap_or(Value::Null);
                condition.set(&["lastTransitionTime"], since);
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_container_runs_again_by_rule_then_by_policy() {
        let spec = |policy: &str| json!({"restartPolicy": policy});
        let plain = json!({"name": "c"});
        assert!(should_restart(&plain, &spec("OnFailure"), 1) && !should_restart(&plain, &spec("OnFailure"), 0));
        let ruled = json!({
            "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
        });
        assert!(should_restart(&ruled, &spec("Never"), 42) && !should_restart(&ruled, &spec("Always"), 1));
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut status = Value::object();
        let ready = |why: &str| json!({"type": "Ready", "status": "True", "reason": why});
        set_condition(&mut status, ready("a"), "T1");
        set_condition(&mut status, ready("b"), "T2");
        assert_eq!(status.array_at(&["conditions"])[0].str_at(&["lastTransitionTime"]), "T1");
        assert_eq!(status.array_at(&["conditions"])[0].str_at(&["reason"]), "b");
        set_condition(&mut status, json!({"type": "Ready", "status": "False"}), "T3");
        assert_eq!(status.array_at(&["conditions"])[0].str_at(&["lastTransitionTime"]), "T3");
    }
}
