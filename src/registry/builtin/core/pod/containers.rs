//! Containers of all three lists: what they have in common, and what each list wants besides.

use std::collections::HashSet;

use super::{
    env::validate_environment,
    mounts::{validate_devices, validate_mounts},
    options::PodOptions,
    probes::{validate_lifecycle, validate_probes, validate_pull_policy, validate_restart_policy},
    resources::validate_container_resources,
    security::validate_security_context,
    view::{given, is_sidecar, items, text},
    volumes::Volumes,
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        names::{is_valid_port_name, is_valid_port_num},
    },
    object::Value,
    registry::validation::{object_meta::push_messages, validate_dns1123_label},
};

const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
const WHITESPACE: &str = "must not have leading or trailing whitespace";

/// What containers are judged by besides themselves.
pub struct Surroundings<'v> {
    pub spec: &'v Value,
    pub volumes: Volumes<'v>,
    /// Names of `spec.resourceClaims`, sorted.
    pub claims: Vec<&'v str>,
    pub options: PodOptions,
}

impl Surroundings<'_> {
    fn grace(&self) -> Option<i64> {
        self.spec.i64_at(&["terminationGracePeriodSeconds"])
    }

    /// Whether users of containers are users of the host.
    fn host_users(&self) -> bool {
        self.spec.get("hostUsers").and_then(Value::as_bool) != Some(false)
    }
}

/// `containers`.
pub fn validate_containers(around: &Surroundings<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let containers = items(around.spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut names = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        validate_common(container, around, &path, errors);
        if !names.insert(text(container, "name")) {
            errors.push(FieldError::duplicate(&path.child("name"), text(container, "name")));
        }
        validate_hooks_and_probes(container, around, &path, errors);
        validate_restart_policy(container, &path, errors);
    }
    validate_host_ports(containers.iter().enumerate(), path, errors);
}

fn validate_hooks_and_probes(container: &Value, around: &Surroundings<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(lifecycle) = given(container, "lifecycle") {
        validate_lifecycle(lifecycle, around.grace(), &path.child("lifecycle"), errors);
    }
    validate_probes(container, around.grace(), path, errors);
}

/// `initContainers`.
pub fn validate_init_containers(around: &Surroundings<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut names: HashSet<&str> = items(around.spec, "containers").iter().map(|it| text(it, "name")).collect();
    for (index, container) in items(around.spec, "initContainers").iter().enumerate() {
        let at = path.index(index);
        validate_common(container, around, &at, errors);
        validate_restart_policy(container, &at, errors);
        let name = text(container, "name");
        if names.contains(name) {
            errors.push(FieldError::duplicate(&at.child("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        // Each alone, and told at the first place, as upstream does.
        validate_host_ports([(0, container)].into_iter(), path, errors);
        if is_sidecar(container) {
            validate_hooks_and_probes(container, around, &at, errors);
            continue;
        }
        for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if given(container, key).is_some() {
                errors.push(FieldError::forbidden(&at.child(key), ONLY_SIDECARS));
            }
        }
        if !around.options.restart_container_of_init {
            validate_init_resize_policy(container, &at, errors);
        }
    }
}

fn validate_init_resize_policy(container: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("resizePolicy");
    for (index, policy) in items(container, "resizePolicy").iter().enumerate() {
        if text(policy, "restartPolicy") == "RestartContainer" {
            let at = path.index(index);
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(FieldError::invalid(&at.child("restartPolicy"), "RestartContainer", why));
        }
    }
}

/// `ephemeralContainers`.
pub fn validate_ephemeral_containers(around: &Surroundings<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let others: HashSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| items(around.spec, list))
        .map(|it| text(it, "name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in items(around.spec, "ephemeralContainers").iter().enumerate() {
        let path = path.index(index);
        validate_common(container, around, &path, errors);
        validate_image_whitespace(container, &path, errors);
        let (name, target) = (text(container, "name"), text(container, "targetContainerName"));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if !target.is_empty() && !others.contains(target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        validate_ephemeral_members(container, &path, errors);
    }
}

fn validate_ephemeral_members(container: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    // In the order of the members in Go.
    const FORBIDDEN: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    for key in FORBIDDEN {
        let set = match container.get(key) {
            Some(Value::Array(items)) => !items.is_empty(),
            // `resources` is a struct: `{}` is what it is when nobody sets it.
            Some(Value::Object(members)) => key != "resources" || !members.is_empty(),
            Some(Value::Null) | None => false,
            Some(_) => true,
        };
        if set {
            errors.push(FieldError::forbidden(&path.child(key), NOT_EPHEMERAL));
        }
    }
    let path = path.child("volumeMounts");
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        for key in ["subPath", "subPathExpr"] {
            if !text(mount, key).is_empty() {
                errors.push(FieldError::forbidden(&path.index(index).child(key), NOT_EPHEMERAL));
            }
        }
    }
}

/// The image of a pod's container has no blanks around it; templates may have what they like.
pub fn validate_image_whitespace(container: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let image = text(container, "image");
    if image.trim() != image {
        errors.push(FieldError::invalid(&path.child("image"), image, WHITESPACE));
    }
}

fn validate_common(container: &Value, around: &Surroundings<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("name");
    match text(container, "name") {
        "" => errors.push(FieldError::required(&at, "")),
        name => validate_dns1123_label(name, &at, errors),
    }
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    let at = path.child("terminationMessagePolicy");
    match text(container, "terminationMessagePolicy") {
        "" => errors.push(FieldError::required(&at, "")),
        known if MESSAGE_POLICIES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(&at, other, &MESSAGE_POLICIES)),
    }
    validate_ports(items(container, "ports"), &path.child("ports"), errors);
    validate_environment(container, path, errors);
    validate_mounts(container, &around.volumes, &path.child("volumeMounts"), errors);
    validate_devices(container, &around.volumes, &path.child("volumeDevices"), errors);
    validate_pull_policy(text(container, "imagePullPolicy"), &path.child("imagePullPolicy"), errors);
    let empty = Value::object();
    let resources = given(container, "resources").unwrap_or(&empty);
    validate_container_resources(resources, &around.claims, around.options, &path.child("resources"), errors);
    validate_resize_policy(container, text(around.spec, "restartPolicy"), &path.child("resizePolicy"), errors);
    if let Some(context) = given(container, "securityContext") {
        let at = path.child("securityContext");
        validate_security_context(context, around.host_users(), around.options, &at, errors);
    }
}

fn validate_ports(ports: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let messages = is_valid_port_name(name);
            if !messages.is_empty() {
                push_messages(messages, name, &path.child("name"), errors);
            } else if !names.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        match port.i64_at(&["containerPort"]).unwrap_or(0) {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => push_port(number, &path.child("containerPort"), errors),
        }
        match port.i64_at(&["hostPort"]).unwrap_or(0) {
            0 => {}
            number => push_port(number, &path.child("hostPort"), errors),
        }
        let at = path.child("protocol");
        match text(port, "protocol") {
            "" => errors.push(FieldError::required(&at, "")),
            "SCTP" | "TCP" | "UDP" => {}
            other => errors.push(FieldError::not_supported(&at, other, &["SCTP", "TCP", "UDP"])),
        }
    }
}

fn push_port(number: i64, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(is_valid_port_num(number).iter().map(|message| FieldError::invalid(path, number, message)));
}

/// Two ports of one protocol and address that want the same port of the host.
fn validate_host_ports<'v>(
    containers: impl Iterator<Item = (usize, &'v Value)>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let mut taken = HashSet::new();
    for (index, container) in containers {
        let at = path.index(index);
        let at = at.child("ports");
        for (index, port) in items(container, "ports").iter().enumerate() {
            let number = port.i64_at(&["hostPort"]).unwrap_or(0);
            if number == 0 {
                continue;
            }
            let shown = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if !taken.insert(shown.clone()) {
                errors.push(FieldError::duplicate(&at.index(index).child("hostPort"), shown));
            }
        }
    }
}

fn validate_resize_policy(container: &Value, pod_restart: &str, path: &Path<'_>, errors: &mut ErrorList) {
    const RESOURCES: [&str; 2] = ["cpu", "memory"];
    const POLICIES: [&str; 2] = ["NotRequired", "RestartContainer"];
    let mut seen = HashSet::new();
    for (index, policy) in items(container, "resizePolicy").iter().enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(&path.index(index), resource));
        }
        for (value, supported) in [(resource, RESOURCES), (restart, POLICIES)] {
            match value {
                "" => errors.push(FieldError::required(path, "")),
                known if supported.contains(&known) => {}
                other => errors.push(FieldError::not_supported(path, other, &supported)),
            }
        }
        if pod_restart == "Never" && restart != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, why));
        }
    }
}

/// Names of `spec.resourceClaims`, sorted, each once.
pub fn claim_names(spec: &Value) -> Vec<&str> {
    let mut names: Vec<&str> =
        items(spec, "resourceClaims").iter().map(|it| text(it, "name")).filter(|it| !it.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
