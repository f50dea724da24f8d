//! Annotations that mean something for pods, most of them older spellings of fields.

use super::{
    options::PodOptions,
    scheduling::validate_tolerations,
    view::{annotation, containers, given, text, visit_containers},
};
use crate::{
    api::{ErrorList, FieldError, Path, field::quote},
    object::{Map, Value, parse},
    registry::validation::validate_local_descending_path,
};

pub const MIRROR: &str = "kubernetes.io/config.mirror";
pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const LOCAL: &str = "localhost/";

/// Annotations that are dropped whenever a pod or template is written.
const INIT_CONTAINERS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Drops annotations that once were init containers.
pub fn drop_init_containers(object: &mut Value) {
    let Some(annotations) = object.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) else { return };
    for key in INIT_CONTAINERS {
        annotations.remove(key);
    }
    if annotations.is_empty() {
        object.remove_at(&["metadata", "annotations"]);
    }
}

/// Whether the cost of deleting the pod is a number, or not given.
pub fn is_deletion_cost(annotations: Option<&Map>) -> bool {
    let Some(cost) = annotation(annotations, DELETION_COST) else { return true };
    let first_is_fine = match cost.as_bytes().first() {
        Some(b'0') => cost == "0",
        Some(b'-' | b'1'..=b'9') => true,
        _ => false,
    };
    first_is_fine && cost.parse::<i32>().is_ok()
}

/// What annotations of a pod or template say about `spec`.
pub fn validate_annotations_of_pod(
    annotations: Option<&Map>,
    spec: &Value,
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if let Some(value) = annotation(annotations, MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, why));
    }
    if let Some(tolerations) = annotation(annotations, TOLERATIONS).filter(|it| !it.is_empty()) {
        match parse(tolerations.as_bytes()) {
            Ok(list) => validate_tolerations(list.as_array().unwrap_or(&[]), options, &path.child(TOLERATIONS), errors),
            Err(why) => errors.push(FieldError::invalid(path, TOLERATIONS, &why.to_string())),
        }
    }
    if !options.invalid_deletion_cost && !is_deletion_cost(annotations) {
        let cost = annotation(annotations, DELETION_COST).unwrap_or("");
        errors.push(FieldError::invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer"));
    }
    if let Some(profile) = annotation(annotations, SECCOMP_POD) {
        validate_seccomp(profile, &path.child(SECCOMP_POD), errors);
    }
    let with_prefix = |prefix: &'static str| {
        let all = annotations.into_iter().flat_map(Map::iter);
        all.filter_map(move |(key, value)| {
            Some((key.as_str(), key.strip_prefix(prefix)?, value.as_str().unwrap_or("")))
        })
    };
    for (key, _, profile) in with_prefix(SECCOMP_CONTAINER) {
        validate_seccomp(profile, &path.child(key), errors);
    }
    for (key, name, profile) in with_prefix(APP_ARMOR) {
        if !containers(spec).any(|container| text(container, "name") == name) {
            errors.push(FieldError::invalid(&path.key(key), name, "container not found"));
        }
        if !matches!(profile, "" | "runtime/default" | "unconfined") && !profile.starts_with(LOCAL) {
            let why = format!("invalid AppArmor profile name: {}", quote(profile));
            errors.push(FieldError::invalid(&path.key(key), profile, &why));
        }
    }
}

fn validate_seccomp(profile: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        other => match other.strip_prefix(LOCAL) {
            Some(file) => validate_local_descending_path(file, path, errors),
            None => errors.push(FieldError::invalid(path, other, "must be a valid seccomp profile")),
        },
    }
}

/// What an update may not do to annotations.
pub fn validate_annotation_changes(new: Option<&Map>, old: Option<&Map>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut forbid = |key: &str, verb: &str| {
        if key.starts_with(APP_ARMOR) {
            errors.push(FieldError::forbidden(&path.key(key), &format!("may not {verb} AppArmor annotations")));
        }
        if key == MIRROR {
            errors.push(FieldError::forbidden(&path.key(key), &format!("may not {verb} mirror pod annotation")));
        }
    };
    for (key, value) in old.into_iter().flat_map(Map::iter) {
        if new.and_then(|new| new.get(key)) != Some(value) {
            forbid(key, "remove or update");
        }
    }
    for key in new.into_iter().flat_map(Map::keys) {
        if !old.is_some_and(|old| old.contains_key(key)) {
            forbid(key, "add");
        }
    }
}

/// Whether an annotation says the same as the field that took its place. `names` are those of the runtime's default.
fn compare_profile(
    said: &str,
    profile: &Value,
    defaults: &[&str],
    kind: &str,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let mut differs = |member: &str, what: &str| {
        let why = format!("{kind} {what} in annotation and field must match");
        errors.push(FieldError::forbidden(&path.child(member), &why));
    };
    match text(profile, "type") {
        "Unconfined" if said != "unconfined" => differs("type", "type"),
        "RuntimeDefault" if !defaults.contains(&said) => differs("type", "type"),
        "Localhost" => match said.strip_prefix(LOCAL) {
            None => differs("type", "type"),
            Some(file) if given(profile, "localhostProfile").and_then(Value::as_str) != Some(file) => {
                differs("localhostProfile", "profile");
            }
            Some(_) => {}
        },
        _ => {}
    }
}

/// Seccomp by annotation and by field.
pub fn validate_seccomp_matches(annotations: Option<&Map>, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut compare = |key: &str, owner: &Value, path: &Path<'_>| {
        let profile = owner.get("securityContext").and_then(|context| given(context, "seccompProfile"));
        if let (Some(profile), Some(said)) = (profile, annotation(annotations, key)) {
            let at = path.child("securityContext");
            let at = at.child("seccompProfile");
            compare_profile(said, profile, &["runtime/default", "docker/default"], "seccomp", &at, errors);
        }
    };
    compare(SECCOMP_POD, spec, path);
    visit_containers(spec, path, &mut |container, path| {
        compare(&format!("{SECCOMP_CONTAINER}{}", text(container, "name")), container, path);
    });
}

/// AppArmor by annotation and by field; containers take the pod's profile where they have none.
pub fn validate_app_armor_matches(annotations: Option<&Map>, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if super::view::os(spec) == Some("windows") {
        return;
    }
    let of = |owner: &'_ Value| -> Option<Value> {
        owner.get("securityContext").and_then(|context| given(context, "appArmorProfile")).cloned()
    };
    let pod = of(spec);
    visit_containers(spec, path, &mut |container, path| {
        let said = annotation(annotations, &format!("{APP_ARMOR}{}", text(container, "name")));
        if let (Some(profile), Some(said)) = (of(container).or_else(|| pod.clone()), said) {
            let at = path.child("securityContext");
            let at = at.child("appArmorProfile");
            compare_profile(said, &profile, &["runtime/default"], "apparmor", &at, errors);
        }
    });
}

/// The profile an AppArmor annotation stands for.
pub fn app_armor_of(said: &str) -> Option<Value> {
    match said {
        "unconfined" => Some(crate::json!({"type": "Unconfined"})),
        "runtime/default" => Some(crate::json!({"type": "RuntimeDefault"})),
        other => {
            let file = other.strip_prefix(LOCAL).filter(|file| !file.is_empty())?;
            Some(crate::json!({"type": "Localhost", "localhostProfile": file}))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn deletion_costs_are_plain_numbers() {
        for (cost, fine) in
            [("0", true), ("-5", true), ("008", false), ("+1", false), ("x", false), ("2147483648", false)]
        {
            let annotations = json!({"controller.kubernetes.io/pod-deletion-cost": cost});
            assert_eq!(is_deletion_cost(annotations.as_object()), fine, "{cost}");
        }
    }
}
