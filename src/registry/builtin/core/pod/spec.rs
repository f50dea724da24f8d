//! The spec of a pod or of a template, in upstream's order (kubernetes `pkg/apis/core/validation`, ValidatePodSpec).

use super::{
    containers::{
        Surroundings, claim_names, validate_containers, validate_ephemeral_containers, validate_init_containers,
    },
    network,
    options::PodOptions,
    resources, scheduling, security,
    view::{given, items, map, text, visit_containers},
    volumes::validate_volumes,
    windows,
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        field::quote,
        names::{inclusive_range_error, name_is_dns_subdomain},
    },
    object::Value,
    registry::validation::object_meta::{push_messages, validate_labels},
};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];
/// Longest time a pod may run, in seconds.
pub const MAX_DEADLINE: i64 = i32::MAX as i64;

/// Judges `spec`. `pod_name` is `""` for templates; `mirror`: the pod carries the mirror annotation.
pub fn validate_pod_spec(
    spec: &Value,
    pod_name: &str,
    mirror: bool,
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if given(spec, "terminationGracePeriodSeconds").is_none() {
        errors.push(FieldError::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes = validate_volumes(spec, pod_name, options, &path.child("volumes"), errors);
    let around = Surroundings { spec, volumes, claims: claim_names(spec), options };
    resources::validate_resource_claims(spec, mirror, &path.child("resourceClaims"), errors);
    validate_containers(&around, &path.child("containers"), errors);
    validate_init_containers(&around, &path.child("initContainers"), errors);
    validate_ephemeral_containers(&around, &path.child("ephemeralContainers"), errors);
    resources::validate_pod_resources(spec, &around.claims, options, path, errors);
    network::validate_host_network(spec, options, path, errors);
    validate_restart_policy(spec, &path.child("restartPolicy"), errors);
    network::validate_dns_policy(spec, &path.child("dnsPolicy"), errors);
    validate_labels(map(spec, "nodeSelector"), &path.child("nodeSelector"), errors);
    security::validate_pod_security_context(spec, options, &path.child("securityContext"), errors);
    if spec.bool_at(&["hostPID"]) && spec.bool_at(&["shareProcessNamespace"]) {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, why));
    }
    scheduling::validate_affinity(spec, options, &path.child("affinity"), errors);
    network::validate_dns_config(spec, &path.child("dnsConfig"), errors);
    scheduling::validate_readiness_gates(spec, &path.child("readinessGates"), errors);
    scheduling::validate_gates(spec, &path.child("schedulingGates"), errors);
    scheduling::validate_spread(spec, options, &path.child("topologySpreadConstraints"), errors);
    windows::validate_host_process(spec, options, path, errors);
    security::validate_host_users(spec, options, path, errors);
    network::validate_hostname_override(spec, path, errors);
    validate_rest(spec, &around, path, errors);
}

fn validate_restart_policy(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match text(spec, "restartPolicy") {
        "" => errors.push(FieldError::required(path, "")),
        known if RESTART_POLICIES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(path, other, &RESTART_POLICIES)),
    }
}

fn validate_name(spec: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let name = text(spec, key);
    if !name.is_empty() {
        push_messages(name_is_dns_subdomain(name, false), name, &path.child(key), errors);
    }
}

fn validate_rest(spec: &Value, around: &Surroundings<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    validate_name(spec, "serviceAccountName", path, errors);
    let (account, older) = (text(spec, "serviceAccountName"), text(spec, "serviceAccount"));
    if account != older {
        let why = format!("must be the same as serviceAccountName: {}", quote(account));
        errors.push(FieldError::invalid(&path.child("deprecatedServiceAccount"), older, &why));
    }
    validate_name(spec, "nodeName", path, errors);
    if let Some(seconds) = spec.i64_at(&["activeDeadlineSeconds"]).filter(|it| !(1..=MAX_DEADLINE).contains(it)) {
        let why = inclusive_range_error(1, MAX_DEADLINE);
        errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, &why));
    }
    network::validate_host_labels(spec, path, errors);
    scheduling::validate_tolerations(items(spec, "tolerations"), around.options, &path.child("tolerations"), errors);
    network::validate_host_aliases(spec, &path.child("hostAliases"), errors);
    validate_name(spec, "priorityClassName", path, errors);
    if let Some(class) = given(spec, "runtimeClassName").and_then(Value::as_str) {
        push_messages(name_is_dns_subdomain(class, false), class, &path.child("runtimeClassName"), errors);
    }
    if let Some(policy) = given(spec, "preemptionPolicy").and_then(Value::as_str) {
        let at = path.child("preemptionPolicy");
        match policy {
            "" => errors.push(FieldError::required(&at, "")),
            known if PREEMPTION_POLICIES.contains(&known) => {}
            other => errors.push(FieldError::not_supported(&at, other, &PREEMPTION_POLICIES)),
        }
    }
    if let Some(overhead) = given(spec, "overhead") {
        validate_overhead(overhead, around.options, &path.child("overhead"), errors);
    }
    security::validate_os(spec, path, errors);
    validate_files_of_variables(spec, path, errors);
}

/// What a sandbox costs besides its containers; judged as limits (also of runtime classes).
pub fn validate_overhead(overhead: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let mut as_limits = Value::object();
    as_limits.set(&["limits"], overhead.clone());
    resources::validate_container_resources(&as_limits, &[], options, path, errors);
}

/// Variables that are read from files of a volume: that volume is an emptyDir.
fn validate_files_of_variables(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let volumes = items(spec, "volumes");
    visit_containers(spec, path, &mut |container, path| {
        let path = path.child("env");
        for (index, variable) in items(container, "env").iter().enumerate() {
            let Some(file) = variable.at(&["valueFrom", "fileKeyRef"]).filter(|it| !it.is_null()) else { continue };
            let at = path.index(index);
            let (at, name) = (at.child("valueFrom"), text(file, "volumeName"));
            let at = at.child("fileKeyRef");
            let at = at.child("volumeName");
            match volumes.iter().rev().find(|volume| text(volume, "name") == name) {
                None => errors.push(FieldError::not_found(&at, name)),
                Some(volume) if given(volume, "emptyDir").is_none() => {
                    errors.push(FieldError::invalid(&at, name, "referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    });
}
