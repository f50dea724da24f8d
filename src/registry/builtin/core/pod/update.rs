//! What an update of a pod may change (kubernetes `pkg/apis/core/validation`, ValidatePodUpdate).

use super::{
    annotations::validate_annotation_changes,
    difference::unified,
    internal::shown,
    options::PodOptions,
    quantities::{same, same_member},
    scheduling::validate_tolerations,
    spec::MAX_DEADLINE,
    view::{annotations, given, items, map, text},
};
use crate::{
    api::{ErrorList, FieldError, Path, names::inclusive_range_error},
    object::{Map, Value},
};

const REQUIRED_AFFINITY: &str = "requiredDuringSchedulingIgnoredDuringExecution";

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const SPEC: Path<'static> = Path::new("spec");

/// Changes of annotations, and what the new ones say.
pub fn validate_annotation_update(new: &Value, old: &Value, options: PodOptions, errors: &mut ErrorList) {
    const METADATA: Path<'static> = Path::new("metadata");
    let path = METADATA.child("annotations");
    validate_annotation_changes(annotations(new), annotations(old), &path, errors);
    let empty = Value::object();
    let spec = new.get("spec").unwrap_or(&empty);
    super::annotations::validate_annotations_of_pod(annotations(new), spec, options, &path, errors);
}

/// What of `old` may become `new`: both specs.
pub fn validate_spec_update(new: &Value, old: &Value, options: PodOptions, errors: &mut ErrorList) {
    for list in ["containers", "initContainers"] {
        if !validate_images(new, old, list, errors) {
            return;
        }
    }
    if !validate_deadline(new, old, errors) {
        return;
    }
    validate_added_tolerations(new, old, options, errors);
    validate_removed_gates(new, old, errors);
    if same(new, old) {
        return;
    }
    let mut munged = new.clone();
    for list in ["containers", "initContainers"] {
        take_images(&mut munged, old, list);
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        take_member(&mut munged, old, key);
    }
    let grace = |spec: &Value| spec.i64_at(&["terminationGracePeriodSeconds"]);
    if grace(old).is_some_and(|grace| grace < 0) && grace(&munged) == Some(1) {
        take_member(&mut munged, old, "terminationGracePeriodSeconds");
    }
    if !items(old, "schedulingGates").is_empty() {
        validate_gated(&mut munged, old, errors);
    }
    if !same(&munged, old) {
        let why = format!("{UPDATABLE}\n{}", unified(old, &munged, "PodSpec"));
        errors.push(FieldError::forbidden(&SPEC, &why));
    }
}

/// Makes a member what it is in `old`.
pub fn take_member(new: &mut Value, old: &Value, key: &'static str) {
    match given(old, key) {
        Some(kept) => new.set(&[key], kept.clone()),
        None => {
            new.remove_at(&[key]);
        }
    }
}

fn take_images(new: &mut Value, old: &Value, list: &str) {
    let old = items(old, list);
    for (container, old) in new.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().zip(old) {
        take_member(container, old, "image");
    }
}

/// Whether to go on: as many containers as before.
fn validate_images(new: &Value, old: &Value, list: &str, errors: &mut ErrorList) -> bool {
    let path = SPEC.child(list);
    let containers = items(new, list);
    if containers.len() != items(old, list).len() {
        errors.push(FieldError::forbidden(&path, "pod updates may not add or remove containers"));
        return false;
    }
    for (index, container) in containers.iter().enumerate() {
        let at = path.index(index);
        if text(container, "image").is_empty() {
            errors.push(FieldError::required(&at.child("image"), ""));
        }
        super::containers::validate_image_whitespace(container, &at, errors);
    }
    true
}

/// Whether to go on.
fn validate_deadline(new: &Value, old: &Value, errors: &mut ErrorList) -> bool {
    let at = SPEC.child("activeDeadlineSeconds");
    let deadline = |spec: &Value| spec.i64_at(&["activeDeadlineSeconds"]);
    match (deadline(new), deadline(old)) {
        (Some(new), _) if !(0..=MAX_DEADLINE).contains(&new) => {
            errors.push(FieldError::invalid(&at, new, &inclusive_range_error(0, MAX_DEADLINE)));
            false
        }
        (Some(new), Some(old)) if old < new => {
            errors.push(FieldError::invalid(&at, new, "must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid_ref(&at, &Value::Null, why));
            true
        }
        _ => true,
    }
}

fn validate_added_tolerations(new: &Value, old: &Value, options: PodOptions, errors: &mut ErrorList) {
    let path = SPEC.child("tolerations");
    let but_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.remove_at(&["tolerationSeconds"]);
        toleration
    };
    let kept: Vec<Value> = items(new, "tolerations").iter().map(but_seconds).collect();
    if items(old, "tolerations").iter().any(|old| !kept.contains(&but_seconds(old))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path, why));
        return;
    }
    validate_tolerations(items(new, "tolerations"), options, &path, errors);
}

fn validate_removed_gates(new: &Value, old: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("schedulingGates");
    let had: Vec<&str> = items(old, "schedulingGates").iter().map(|it| text(it, "name")).collect();
    for (index, gate) in items(new, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !had.contains(&name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&path.index(index).child("name"), &why));
        }
    }
}

/// A pod that waits at its gates may be told more about where to run.
fn validate_gated(munged: &mut Value, old: &Value, errors: &mut ErrorList) {
    if given(munged, "nodeSelector") != given(old, "nodeSelector") {
        let new = map(munged, "nodeSelector");
        let lost = map(old, "nodeSelector")
            .into_iter()
            .flat_map(Map::iter)
            .any(|(key, value)| new.and_then(|new| new.get(key)) != Some(value));
        if lost {
            let shown = given(munged, "nodeSelector").unwrap_or(&Value::Null);
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid_ref(&SPEC.child("nodeSelector"), shown, why));
        }
        take_member(munged, old, "nodeSelector");
    }
    let node_affinity = |spec: &Value| spec.at(&["affinity", "nodeAffinity"]).filter(|it| !it.is_null()).cloned();
    let (new_affinity, old_affinity) = (node_affinity(munged), node_affinity(old));
    if new_affinity == old_affinity {
        return;
    }
    validate_node_affinity_change(new_affinity.as_ref(), old_affinity.as_ref(), errors);
    match old_affinity {
        Some(kept) => munged.set(&["affinity", "nodeAffinity"], kept),
        None => {
            munged.remove_at(&["affinity", "nodeAffinity"]);
            let others = ["podAffinity", "podAntiAffinity"].iter().any(|kind| munged.at(&["affinity", kind]).is_some());
            if given(old, "affinity").is_none() && !others {
                munged.remove_at(&["affinity"]);
            }
        }
    }
}

fn validate_node_affinity_change(new: Option<&Value>, old: Option<&Value>, errors: &mut ErrorList) {
    let terms = |affinity: Option<&Value>| -> Option<Value> {
        affinity?.at(&[REQUIRED_AFFINITY])?.get("nodeSelectorTerms").filter(|it| !it.is_null()).cloned()
    };
    let old = terms(old);
    let old = old.as_ref().and_then(Value::as_array).unwrap_or(&[]);
    if old.is_empty() {
        return;
    }
    let path = SPEC.child("affinity");
    let path = path.child("nodeAffinity");
    let path = path.child(REQUIRED_AFFINITY);
    let path = path.child("nodeSelectorTerms");
    let new = terms(new).unwrap_or(Value::Null);
    let new_terms = new.as_array().unwrap_or(&[]);
    if old.len() != new_terms.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid_shown(&path, shown(&new, "[NodeSelectorTerm"), why));
        return;
    }
    for (index, (new, old)) in new_terms.iter().zip(old).enumerate() {
        if !has_only_additions(new, old) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid_shown(&path.index(index), shown(new, "NodeSelectorTerm"), why));
        }
    }
}

fn has_only_additions(new: &Value, old: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    // A term that selects nothing may not begin to select.
    if lists.iter().all(|list| items(old, list).is_empty()) {
        return lists.iter().all(|list| items(new, list).is_empty());
    }
    lists.iter().all(|list| items(new, list).starts_with(items(old, list)))
}

/// Ephemeral containers may be added, and nothing else.
pub fn validate_ephemeral_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("ephemeralContainers");
    let containers = items(new, "ephemeralContainers");
    for old in items(old, "ephemeralContainers") {
        let name = text(old, "name");
        let quoted = crate::api::field::quote(name);
        match containers.iter().rev().find(|it| text(it, "name") == name) {
            None => {
                let why = format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.push(FieldError::forbidden(&path, &why));
            }
            Some(new) if !same(old, new) => {
                let why = format!(
                    "existing ephemeral containers {quoted} may not be changed\n{}",
                    unified(old, new, "EphemeralContainer")
                );
                errors.push(FieldError::forbidden(&path, &why));
            }
            Some(_) => {}
        }
    }
}

/// Whether two specs mean the same, missing ones too.
pub fn same_spec(new: &Value, old: &Value) -> bool {
    same_member(new.get("spec"), old.get("spec"))
}

/// Names of a list's members, in order.
pub fn names<'v>(spec: &'v Value, list: &str) -> Vec<&'v str> {
    items(spec, list).iter().map(|it| text(it, "name")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn spec() -> Value {
        json!({"containers": [{"name": "c", "image": "a"}], "nodeSelector": {"x": "y"}})
    }

    fn update(new: &Value, old: &Value) -> String {
        let mut errors = ErrorList::new();
        validate_spec_update(new, old, PodOptions::default(), &mut errors);
        errors.to_string()
    }

    #[test]
    fn images_change_and_commands_do_not() {
        let mut new = spec();
        new.set(&["containers"], json!([{"name": "c", "image": "b"}]));
        assert_eq!(update(&new, &spec()), "");
        new.set(&["containers"], json!([{"name": "c", "image": "b", "command": ["x"]}]));
        assert!(update(&new, &spec()).starts_with(&format!("spec: Forbidden: {UPDATABLE}\n@@ ")));
        let amounts =
            |memory: &str| json!({"containers": [{"resources": {"limits": {"memory": memory}}, "image": "i"}]});
        assert_eq!(update(&amounts("1Gi"), &amounts("1073741824")), "");
    }

    #[test]
    fn a_gated_pod_may_be_narrowed() {
        let mut old = spec();
        old.set(&["schedulingGates"], json!([{"name": "g"}]));
        let mut new = old.clone();
        new.set(&["nodeSelector", "z"], "w");
        assert_eq!(update(&new, &old), "");
        assert!(update(&new, &spec()).contains("only deletion is allowed, but found new scheduling gate 'g'"));
        new.set(&["nodeSelector"], json!({"x": "other"}));
        assert_eq!(
            update(&new, &old),
            "spec.nodeSelector: Invalid value: {\"x\":\"other\"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        );
    }

    #[test]
    fn tolerations_stay_but_for_their_seconds() {
        let with = |tolerations: Value| {
            let mut spec = spec();
            spec.set(&["tolerations"], tolerations);
            spec
        };
        let old = with(json!([{"key": "a", "operator": "Exists", "effect": "NoExecute"}]));
        let new = with(json!([{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]));
        assert_eq!(update(&new, &old), "");
        assert_eq!(
            update(&spec(), &old),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
        );
    }

    #[test]
    fn a_deadline_only_comes_closer() {
        let with = |seconds: i64| {
            let mut spec = spec();
            spec.set(&["activeDeadlineSeconds"], seconds);
            spec
        };
        assert_eq!(update(&with(40), &with(50)), "");
        assert_eq!(
            update(&with(60), &with(50)),
            "spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value"
        );
        assert!(update(&spec(), &with(50)).starts_with(
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"
        ));
    }
}
