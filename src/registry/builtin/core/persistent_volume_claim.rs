//! PersistentVolumeClaim (kubernetes `pkg/registry/core/persistentvolumeclaim`, `pkg/api/persistentvolumeclaim`).

use std::cmp::Ordering;

use super::{
    pod::{claim_warnings, quantities, unified, validate_claim_spec},
    volume_spec::validate_amount,
};
use crate::{
    api::{
        ErrorList, FieldError, Meta, Path,
        names::{is_qualified_name, is_valid_condition_reason},
        quantity::Quantity,
    },
    object::Value,
    registry::{
        builtin::kind::Own,
        strategy::StrategyContext,
        validation::{
            LabelSelectorOptions, declarative::is_unset, object_meta::push_messages, validate_immutable,
            validate_label_selector,
        },
    },
};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const REQUEST: [&str; 4] = ["spec", "resources", "requests", "storage"];
const RESIZE_STATUSES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

pub struct PersistentVolumeClaim;

impl Own for PersistentVolumeClaim {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        let before = old.and_then(|old| old.get("spec"));
        if old.is_none() {
            // Upstream clears the status and finds the default in it when it reads what was stored.
            new.set(&["status", "phase"], "Pending");
        }
        if let Some(spec) = new.get_mut("spec") {
            drop_other_sources(spec, before);
            mirror_sources(spec);
        }
        if old.is_none() {
            new.set(&["status", "phase"], "Pending");
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        let loose =
            LabelSelectorOptions { allow_invalid_values: old.is_some_and(has_bad_selector), ..Default::default() };
        validate_claim_spec(spec, loose, &path, errors);
        if let Some(old) = old {
            validate_update(new, old, &path, errors);
        }
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if Meta::of(new).annotation(CLASS_ANNOTATION).is_some() {
            warnings.push(format!(
                "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
            ));
        }
        let about_spec = new.get("spec").map(|spec| claim_warnings(spec, &Path::new("spec")));
        warnings.extend(about_spec.unwrap_or_default());
        warnings
    }

    fn prepare_status(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        // Of a feature that is off.
        if is_unset(old.at(&["status", "healthStatus"])) {
            new.remove_at(&["status", "healthStatus"]);
        }
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        validate_status(new, errors);
    }
}

/// What was always taken as a source.
fn is_classic(source: &Value) -> bool {
    let (group, kind) = (source.str_at(&["apiGroup"]), source.str_at(&["kind"]));
    matches!((group, kind), ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot"))
}

/// Sources in other namespaces are of a feature that is off; other kinds of sources are only taken as references.
fn drop_other_sources(spec: &mut Value, old: Option<&Value>) {
    let had = |member: &str| old.is_some_and(|old| !is_unset(old.get(member)));
    let elsewhere = !spec.str_at(&["dataSourceRef", "namespace"]).is_empty();
    let alone = is_unset(spec.get("dataSourceRef"));
    let odd = spec.get("dataSource").is_some_and(|source| !is_classic(source));
    let Some(map) = spec.as_object_mut() else { return };
    if elsewhere && !had("dataSourceRef") {
        map.remove("dataSourceRef");
    }
    let alone = alone || map.get("dataSourceRef").is_none();
    if !had("dataSource") && !had("dataSourceRef") && alone && odd {
        map.remove("dataSource");
    }
}

/// Each of the two forms of a source says what the other does.
fn mirror_sources(spec: &mut Value) {
    let (from, to) = match (is_unset(spec.get("dataSource")), is_unset(spec.get("dataSourceRef"))) {
        (false, true) => ("dataSource", "dataSourceRef"),
        (true, false) if spec.str_at(&["dataSourceRef", "namespace"]).is_empty() => ("dataSourceRef", "dataSource"),
        _ => return,
    };
    let mut mirrored = Value::object();
    for member in ["apiGroup", "kind", "name"] {
        if let Some(value) = spec.at(&[from, member]).filter(|it| !it.is_null()) {
            mirrored.set(&[member], value.clone());
        }
    }
    spec.set(&[to], mirrored);
}

fn has_bad_selector(old: &Value) -> bool {
    let mut errors = ErrorList::new();
    validate_label_selector(old.at(&["spec", "selector"]), LabelSelectorOptions::default(), &Path::ROOT, &mut errors);
    !errors.is_empty()
}

fn validate_update(new: &Value, old: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let empty = Value::object();
    let (mut now, mut before) = (new.get("spec").unwrap_or(&empty).clone(), old.get("spec").unwrap_or(&empty).clone());
    mirror_sources(&mut before);
    // The binding is made once.
    if before.str_at(&["volumeName"]).is_empty() {
        take("volumeName", &now.clone(), &mut before);
    }
    validate_class(new, old, &mut now, &before, errors);
    let bound = new.str_at(&["status", "phase"]) == "Bound";
    if bound {
        if !is_unset(now.at(&["resources", "requests"])) {
            match old.at(&REQUEST) {
                Some(request) => now.set(&["resources", "requests", "storage"], request.clone()),
                None => now.set(&["resources", "requests", "storage"], "0"),
            }
        }
        take("volumeAttributesClassName", &before, &mut now);
    }
    if !quantities::same(&now, &before) {
        let why = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{}",
            unified(&before, &now, "PersistentVolumeClaimSpec")
        );
        errors.push(FieldError::forbidden(path, &why));
    }
    validate_request(new, old, errors);
    let mode = ["spec", "volumeMode"];
    validate_immutable(new.at(&mode), old.at(&mode), &Path::new("volumeMode"), errors);
    validate_attributes_class(new, old, path, errors);
}

fn take(member: &'static str, from: &Value, into: &mut Value) {
    let Some(map) = into.as_object_mut() else { return };
    match from.get(member).filter(|it| !it.is_null()) {
        Some(value) => map.insert(member, value.clone()),
        None => map.remove(member),
    };
}

/// A class may move from the annotation to its member, and come where there was none.
fn validate_class(new: &Value, old: &Value, now: &mut Value, before: &Value, errors: &mut ErrorList) {
    let annotation = |claim: &'_ Value| Meta::of(claim).annotation(CLASS_ANNOTATION).map(str::to_owned);
    let (annotated, was_annotated) = (annotation(new), annotation(old));
    let class = now.get("storageClassName").and_then(Value::as_str).map(str::to_owned);
    let had_class = !is_unset(before.get("storageClassName"));
    let moved = !had_class
        && was_annotated.is_some()
        && class == was_annotated
        && annotated.as_ref().is_none_or(|annotated| Some(annotated) == was_annotated.as_ref());
    if moved {
        take("storageClassName", &Value::object(), now);
        return;
    }
    let (annotated, was) = (annotated.unwrap_or_default(), was_annotated.clone().unwrap_or_default());
    if annotated != was {
        let metadata = Path::new("metadata");
        let annotations = metadata.child("annotations");
        errors.push(FieldError::invalid(&annotations.child(CLASS_ANNOTATION), annotated, "field is immutable"));
    }
    if class.is_some() && !had_class && (was_annotated.is_none() || was_annotated == class) {
        take("storageClassName", before, now);
    }
}

/// A request may shrink to what recovers from a failed expansion: to more than there is.
fn validate_request(new: &Value, old: &Value, errors: &mut ErrorList) {
    let amount = |value: Option<&Value>| value.map_or_else(Quantity::zero, quantities::quantity);
    let (now, before) = (amount(new.at(&REQUEST)), amount(old.at(&REQUEST)));
    let there = amount(old.at(&["status", "capacity", "storage"]));
    if now.cmp(&before) == Ordering::Less && now.cmp(&there) != Ordering::Greater {
        let spec = Path::new("spec");
        let resources = spec.child("resources");
        let requests = resources.child("requests");
        let why = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(&requests.child("storage"), why));
    }
}

fn validate_attributes_class(new: &Value, old: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let class =
        |claim: &'_ Value| claim.at(&["spec", "volumeAttributesClassName"]).and_then(Value::as_str).map(str::to_owned);
    let now = class(new);
    if now == class(old) || is_unset(old.at(&["status", "currentVolumeAttributesClassName"])) {
        return;
    }
    let to = match now.as_deref() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let why = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
    errors.push(FieldError::forbidden(&path.child("volumeAttributesClassName"), &why));
}

fn validate_status(claim: &Value, errors: &mut ErrorList) {
    if claim.str_at(&["metadata", "resourceVersion"]).is_empty() {
        errors.push(FieldError::required(&Path::new("resourceVersion"), ""));
    }
    if claim.array_at(&["spec", "accessModes"]).is_empty() {
        errors.push(FieldError::required(&Path::new("Spec").child("accessModes"), ""));
    }
    let status = Path::new("status");
    let members = |member: &str| claim.object_at(&["status", member]).into_iter().flat_map(crate::object::Map::iter);
    let at = status.child("capacity");
    for (name, amount) in members("capacity") {
        validate_amount(amount, &at.key(name), errors);
    }
    let health = status.child("healthStatus");
    let at = health.child("healthConditions");
    for (index, condition) in claim.array_at(&["status", "healthStatus", "healthConditions"]).iter().enumerate() {
        let reason = condition.str_at(&["reason"]);
        if !reason.is_empty() {
            push_messages(is_valid_condition_reason(reason), reason, &at.index(index).child("reason"), errors);
        }
    }
    let at = status.child("allocatedResourceStatuses");
    for (name, value) in members("allocatedResourceStatuses") {
        validate_resource_key(name, &at, errors);
        if !RESIZE_STATUSES.contains(&value.as_str().unwrap_or("")) {
            errors.push(FieldError::not_supported(&at, name.as_str(), &RESIZE_STATUSES));
        }
    }
    let at = status.child("allocatedResources");
    for (name, amount) in members("allocatedResources") {
        if validate_resource_key(name, &at, errors) {
            validate_amount(amount, &at.key(name), errors);
        }
    }
}

/// Of the resources whose names are Kubernetes' own, a claim has storage alone.
fn validate_resource_key(name: &str, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    let messages = is_qualified_name(name);
    if !messages.is_empty() {
        push_messages(messages, name, path, errors);
        return false;
    }
    let native = quantities::is_native(name) && name != "storage";
    if native {
        errors.push(FieldError::not_supported(path, name, &["storage"]));
    }
    !native
}
