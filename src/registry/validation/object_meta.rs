//! `metadata` on create and update (apimachinery `pkg/api/validation/objectmeta.go` and
//! `pkg/apis/meta/v1/validation`).

use std::collections::BTreeSet;

use super::rules::{FIELD_IMMUTABLE, validate_nonnegative};
use crate::{
    api::{
        ErrorList, FieldError, Meta, Path,
        field::{is_printable, quote},
        meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, OwnerReference},
        names::{Messages, is_qualified_name, is_valid_label_value, name_is_dns_label},
    },
    object::{Map, Value, escape_into},
};

/// Most bytes all keys and values of annotations may have together: 256 KiB.
pub const MAX_ANNOTATIONS: usize = 256 * 1024;
/// Longest name of a field manager, in bytes.
pub const MAX_FIELD_MANAGER: usize = 128;
/// Longest subresource in managedFields, in bytes.
const MAX_SUBRESOURCE: usize = 256;

const LABEL_KEY: &str = "format=k8s-label-key";
const LABEL_VALUE: &str = "format=k8s-label-value";

const METADATA: Path<'static> = Path::new("metadata");

/// The `metadata` of a new object, see [`validate_meta`].
pub fn validate_object_meta(
    object: &Value,
    namespaced: bool,
    name_rule: &dyn Fn(&str, bool) -> Messages,
    errors: &mut ErrorList,
) {
    validate_meta(Meta::of(object), namespaced, name_rule, &METADATA, errors);
}

/// The `metadata` of an object that replaces another, see [`validate_meta_update`].
pub fn validate_object_meta_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    validate_meta_update(Meta::of(new), Meta::of(old), &METADATA, errors);
}

/// The rule most of Kubernetes' own kinds add to both (kubernetes `pkg/apis/core/validation`): a finalizer without a
/// domain must be a known one. Without it are custom resources, CRDs, APIServices, admissionregistration, leases,
/// runtime classes, disruption budgets and core/v1 events.
pub fn validate_bare_finalizers(object: &Value, errors: &mut ErrorList) {
    let path = METADATA.child("finalizers");
    for (index, name) in Meta::of(object).finalizers().enumerate() {
        validate_bare_finalizer(name, &path.index(index), errors);
    }
}

/// Metadata of a new object whose name has been generated already. `name_rule` gets a name and whether it is the
/// beginning of one (`generateName`).
pub fn validate_meta(
    meta: Meta<'_>,
    namespaced: bool,
    name_rule: &dyn Fn(&str, bool) -> Messages,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if !meta.generate_name().is_empty() {
        push_messages(name_rule(meta.generate_name(), true), meta.generate_name(), &path.child("generateName"), errors);
    }
    if meta.name().is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        push_messages(name_rule(meta.name(), false), meta.name(), &path.child("name"), errors);
    }
    validate_namespace(meta, namespaced, &path.child("namespace"), errors);
    let mut generation = ErrorList::new();
    validate_nonnegative(meta.generation(), &path.child("generation"), &mut generation);
    errors.extend(generation.into_iter().map(FieldError::covered_by_declarative));
    validate_labels(meta.labels(), &path.child("labels"), errors);
    validate_annotations(meta.annotations(), &path.child("annotations"), errors);
    validate_owner_references(meta, &path.child("ownerReferences"), errors);
    validate_finalizers(meta, &path.child("finalizers"), errors);
    validate_managed_fields(meta.managed_fields(), &path.child("managedFields"), errors);
}

fn validate_namespace(meta: Meta<'_>, namespaced: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let namespace = meta.namespace();
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(path, "")),
        (true, false) => push_messages(name_is_dns_label(namespace, false), namespace, path, errors),
        (false, true) => {}
        (false, false) => errors.push(FieldError::forbidden(path, "not allowed on this type")),
    }
}

/// Metadata of an object that replaces another.
pub fn validate_meta_update(new: Meta<'_>, old: Meta<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    if old.is_being_deleted() {
        validate_no_new_finalizers(new, old, &path.child("finalizers"), errors);
    }
    if new.resource_version().is_empty() {
        let path = path.child("resourceVersion");
        errors.push(FieldError::invalid(&path, "", "must be specified for an update"));
    }
    validate_generation_update(new, old, &path.child("generation"), errors);
    for (key, covered) in [
        ("name", false),
        ("namespace", false),
        ("uid", true),
        ("creationTimestamp", true),
        ("deletionTimestamp", true),
        ("deletionGracePeriodSeconds", true),
    ] {
        validate_same_member(new, old, key, covered, &path.child(key), errors);
    }
    validate_labels(new.labels(), &path.child("labels"), errors);
    validate_annotations(new.annotations(), &path.child("annotations"), errors);
    validate_owner_references(new, &path.child("ownerReferences"), errors);
    validate_managed_fields(new.managed_fields(), &path.child("managedFields"), errors);
}

fn validate_generation_update(new: Meta<'_>, old: Meta<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut negative = ErrorList::new();
    validate_nonnegative(new.generation(), path, &mut negative);
    errors.extend(negative.into_iter().map(FieldError::covered_by_declarative));
    if new.generation() < old.generation() {
        errors.push(FieldError::invalid(path, new.generation(), "must not be decremented"));
    }
}

/// A member that may not change; absent, null and `""` are the same.
fn validate_same_member(
    new: Meta<'_>,
    old: Meta<'_>,
    key: &str,
    covered: bool,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    fn member<'a>(meta: Meta<'a>, key: &str) -> Option<&'a Value> {
        meta.as_map()?.get(key).filter(|it| !it.is_null() && it.as_str() != Some(""))
    }
    let (new, old) = (member(new, key), member(old, key));
    if new == old {
        return;
    }
    // The zero value of what is text in Go is shown as text, of the rest as null.
    let zero = if matches!(key, "name" | "namespace" | "uid") { "".into() } else { Value::Null };
    let error = FieldError::invalid_ref(path, new.unwrap_or(&zero), FIELD_IMMUTABLE);
    errors.push(if covered { error.with_origin("immutable").covered_by_declarative() } else { error });
}

/// One error for each message about `value`.
pub fn push_messages(messages: Messages, value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(messages.iter().map(|message| FieldError::invalid(path, value, message)));
}

fn push_with_origin(messages: Messages, value: &str, origin: &'static str, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(messages.iter().map(|message| FieldError::invalid(path, value, message).with_origin(origin)));
}

/// A label's key.
pub fn validate_label_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    push_with_origin(is_qualified_name(name), name, LABEL_KEY, path, errors);
}

/// Keys and values, both told at the path of the map.
pub fn validate_labels(labels: Option<&Map>, path: &Path<'_>, errors: &mut ErrorList) {
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        validate_label_name(key, path, errors);
        let value = value.as_str().unwrap_or("");
        push_with_origin(is_valid_label_value(value), value, LABEL_VALUE, path, errors);
    }
}

/// Keys, in any case, and the size of all.
pub fn validate_annotations(annotations: Option<&Map>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut size = 0usize;
    for (key, value) in annotations.into_iter().flat_map(Map::iter) {
        push_with_origin(is_qualified_name(&key.to_lowercase()), key, LABEL_KEY, path, errors);
        size = size.saturating_add(key.len()).saturating_add(value.as_str().map_or(0, str::len));
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(path, MAX_ANNOTATIONS));
    }
}

fn validate_owner_references(meta: Meta<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut first_controller: Option<String> = None;
    for (index, owner) in meta.owner_references().enumerate() {
        validate_owner_reference(owner, &path.index(index), errors);
        if owner.controller() != Some(true) {
            continue;
        }
        let name = format!("{}/{}", owner.kind(), owner.name());
        match &first_controller {
            Some(first) => {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                let shown: Vec<String> = meta.owner_references().map(show_owner).collect();
                errors.push(FieldError::invalid_shown(path, format!("[{}]", shown.join(",")), &why));
            }
            None => first_controller = Some(name),
        }
    }
}

fn validate_owner_reference(owner: OwnerReference<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let required = |key: &str| FieldError::required(&path.child(key), "must not be empty").covered_by_declarative();
    let version = group_version(owner.api_version());
    if owner.api_version().is_empty() {
        errors.push(required("apiVersion"));
    } else if version.is_none_or(|(_, version)| version.is_empty()) {
        let why = "must be <group>/<version> or <version>";
        errors.push(FieldError::invalid(&path.child("apiVersion"), owner.api_version(), why));
    }
    for (key, value) in [("kind", owner.kind()), ("name", owner.name()), ("uid", owner.uid())] {
        if value.is_empty() {
            errors.push(required(key));
        }
    }
    if version == Some(("", "v1")) && owner.kind() == "Event" {
        let why = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid_shown(path, show_owner(owner), why));
    }
}

/// Group and version; `None` where there is more than one slash.
fn group_version(text: &str) -> Option<(&str, &str)> {
    match text.split_once('/') {
        None => Some(("", text)),
        Some((_, version)) if version.contains('/') => None,
        pair => pair,
    }
}

/// A reference as Go prints it: members in the order of its struct, four of them always.
fn show_owner(owner: OwnerReference<'_>) -> String {
    let mut out = Vec::new();
    let texts =
        [("apiVersion", owner.api_version()), ("kind", owner.kind()), ("name", owner.name()), ("uid", owner.uid())];
    for (at, (key, value)) in texts.into_iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"{\"" } else { b",\"" });
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        escape_into(&mut out, value);
    }
    for (key, value) in [("controller", owner.controller()), ("blockOwnerDeletion", owner.block_owner_deletion())] {
        if let Some(value) = value {
            out.extend_from_slice(format!(",\"{key}\":{value}").as_bytes());
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// A finalizer is a qualified name.
pub fn validate_finalizer_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    push_messages(is_qualified_name(name), name, path, errors);
}

fn validate_finalizers(meta: Meta<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    for name in meta.finalizers() {
        validate_finalizer_name(name, path, errors);
    }
    if meta.has_finalizer(FINALIZER_ORPHAN) && meta.has_finalizer(FINALIZER_FOREGROUND) {
        let why = format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        let shown: Value = meta.finalizers().map(Value::from).collect::<Vec<_>>().into();
        errors.push(FieldError::invalid(path, shown, &why));
    }
}

/// A name without a domain must be one of Kubernetes' own.
pub fn validate_bare_finalizer(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let known = matches!(name, "kubernetes" | FINALIZER_ORPHAN | FINALIZER_FOREGROUND);
    if !name.contains('/') && !known {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, why));
    }
}

fn validate_no_new_finalizers(new: Meta<'_>, old: Meta<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let old: BTreeSet<&str> = old.finalizers().collect();
    let extra: BTreeSet<&str> = new.finalizers().filter(|name| !old.contains(name)).collect();
    if !extra.is_empty() {
        let quoted: Vec<String> = extra.into_iter().map(quote).collect();
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            quoted.join(", ")
        );
        errors.push(FieldError::forbidden(path, &why));
    }
}

/// Entries of managedFields; what they say about fields is checked where it is read.
pub fn validate_managed_fields(entries: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index);
        match entry.str_at(&["operation"]) {
            "Apply" | "Update" => {}
            "" => errors
                .push(FieldError::required(&path.child("operation"), "must not be empty").covered_by_declarative()),
            other => errors.push(
                FieldError::not_supported(&path.child("operation"), other, &["Apply", "Update"])
                    .covered_by_declarative(),
            ),
        }
        let fields_type = entry.str_at(&["fieldsType"]);
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        validate_field_manager(entry.str_at(&["manager"]), &path.child("manager"), errors);
        if entry.str_at(&["subresource"]).len() > MAX_SUBRESOURCE {
            errors.push(FieldError::too_long(&path.child("subresource"), MAX_SUBRESOURCE));
        }
    }
}

/// At most 128 bytes, all printable.
pub fn validate_field_manager(manager: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if manager.len() > MAX_FIELD_MANAGER {
        errors.push(FieldError::too_long(path, MAX_FIELD_MANAGER));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(FieldError::invalid(path, manager, &why));
    }
}
