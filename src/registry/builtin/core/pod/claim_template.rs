//! Claims that a pod's ephemeral volumes make: metadata of the template and the spec of a PersistentVolumeClaim
//! (kubernetes `pkg/apis/core/validation`, ValidatePersistentVolumeClaimTemplate).

use super::view::{given, items, map, text, texts};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        field::show,
        names::{name_is_dns_label, name_is_dns_subdomain},
    },
    object::Value,
    registry::validation::{
        LabelSelectorOptions,
        object_meta::{push_messages, validate_annotations, validate_labels},
        validate_label_selector, validate_positive_quantity,
    },
};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Members of metadata in the order they have in Go, labels and annotations excepted.
const METADATA: [&str; 14] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "clusterName",
];

/// The template of an ephemeral volume.
pub fn validate_claim_template(template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let empty = Value::object();
    let metadata = template.get("metadata").unwrap_or(&empty);
    let at = path.child("metadata");
    validate_annotations(map(metadata, "annotations"), &at.child("annotations"), errors);
    validate_labels(map(metadata, "labels"), &at.child("labels"), errors);
    for name in METADATA {
        if given(metadata, name).is_some_and(|it| !crate::registry::validation::declarative::is_zero(Some(it))) {
            errors.push(FieldError::forbidden(&at.child(name), "cannot be set"));
        }
    }
    validate_claim_spec(
        template.get("spec").unwrap_or(&empty),
        LabelSelectorOptions::default(),
        &path.child("spec"),
        errors,
    );
}

/// The spec of a claim, in a template or of its own.
pub fn validate_claim_spec(spec: &Value, selector: LabelSelectorOptions, path: &Path<'_>, errors: &mut ErrorList) {
    validate_access_modes(spec, selector, path, errors);
    let at = path.child("resources");
    let at = at.key("storage");
    match spec.at(&["resources", "requests", "storage"]) {
        None => errors.push(FieldError::required(&at, "")),
        Some(storage) => validate_positive_quantity(storage, &at, errors),
    }
    validate_class(spec, "storageClassName", path, errors);
    if let Some(mode) = given(spec, "volumeMode").filter(|it| !matches!(it.as_str(), Some("Block" | "Filesystem"))) {
        errors.push(FieldError::not_supported(&path.child("volumeMode"), mode.clone(), &["Block", "Filesystem"]));
    }
    validate_sources(spec, path, errors);
    validate_class(spec, "volumeAttributesClassName", path, errors);
}

fn validate_access_modes(spec: &Value, selector: LabelSelectorOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("accessModes");
    if items(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&at, "at least 1 access mode is required"));
    }
    validate_label_selector(given(spec, "selector"), selector, &path.child("selector"), errors);
    let (mut one_pod, mut others) = (false, false);
    for mode in texts(spec, "accessModes") {
        let known = ACCESS_MODES.contains(&mode);
        if !known {
            errors.push(FieldError::not_supported(&at, mode, &ACCESS_MODES));
        }
        one_pod |= mode == "ReadWriteOncePod";
        others |= known && mode != "ReadWriteOncePod";
    }
    if one_pod && others {
        errors.push(FieldError::forbidden(&at, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn validate_class(spec: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let class = text(spec, key);
    if !class.is_empty() {
        push_messages(name_is_dns_subdomain(class, false), class, &path.child(key), errors);
    }
}

fn validate_sources(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (source, reference) = (given(spec, "dataSource"), given(spec, "dataSourceRef"));
    if let Some(source) = source {
        validate_source(source, &path.child("dataSource"), errors);
    }
    if let Some(reference) = reference {
        let at = path.child("dataSourceRef");
        validate_source(reference, &at, errors);
        let namespace = text(reference, "namespace");
        if !namespace.is_empty() {
            push_messages(name_is_dns_label(namespace, false), namespace, &at.child("namespace"), errors);
        }
    }
    // Upstream hands over a path as the value, which shows as an empty object.
    let shown = |why: &str| FieldError::invalid_shown(path, show(&Value::object()), why);
    match (source, reference) {
        (Some(_), Some(reference)) if !text(reference, "namespace").is_empty() => {
            errors.push(shown("may not be specified when dataSourceRef.namespace is specified"));
        }
        (Some(source), Some(reference)) => {
            let same = ["apiGroup", "kind", "name"].iter().all(|key| given(source, key) == given(reference, key));
            if !same {
                errors.push(shown("must match dataSourceRef"));
            }
        }
        _ => {}
    }
}

fn validate_source(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["name", "kind"] {
        if text(source, key).is_empty() {
            errors.push(FieldError::required(&path.child(key), ""));
        }
    }
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(path, kind, why));
    }
    if !group.is_empty() {
        push_messages(name_is_dns_subdomain(group, false), group, &path.child("apiGroup"), errors);
    }
}
