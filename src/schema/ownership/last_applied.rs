//! Moving from client-side to server-side apply (apimachinery `internal/lastappliedmanager.go`, `lastappliedupdater.go`).
//!
//! `kubectl apply` keeps what it applied in an annotation. When the manager `kubectl` applies server-side, fields that
//! it had applied and that are still as it left them are its own, so conflicts on them are forced; and the annotation,
//! where there is one, is kept up to date.

use super::{
    compare::compare,
    conflict::Conflict,
    field_set::field_set,
    set::FieldSet,
    shape::{Ref, Types},
    validate::validate,
};
use crate::object::{Key, Value, parse, to_string};

/// The only manager that this is for.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What all annotations of an object may take together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.at(&["metadata", "annotations", ANNOTATION]).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The conflicts that remain when those on fields of the annotation are forced. Empty: force the apply.
pub(super) fn remaining(types: &Types<'_>, ty: Ref, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
    let Some(allowed) = allowed(types, ty, live) else { return conflicts };
    let rest = |mut conflict: Conflict| {
        conflict.fields.subtract(&allowed);
        (!conflict.fields.is_empty()).then_some(conflict)
    };
    conflicts.into_iter().filter_map(rest).collect()
}

/// The fields that were applied on the client's side and have not changed since.
fn allowed(types: &Types<'_>, ty: Ref, live: &Value) -> Option<FieldSet> {
    let applied = parse(annotation(live)?.as_bytes()).ok()?;
    let same = |name| applied.str_at(&[name]) == live.str_at(&[name]) && !applied.str_at(&[name]).is_empty();
    if !same("apiVersion") || !same("kind") {
        return None;
    }
    validate(types, ty, live, false).ok()?;
    validate(types, ty, &applied, false).ok()?;
    let comparison = compare(types, ty, &applied, live).ok()?;
    let mut fields = field_set(types, ty, &applied);
    fields.subtract(&comparison.modified);
    fields.subtract(&comparison.added);
    fields.subtract(&comparison.removed);
    Some(fields)
}

/// Writes what was just applied into the annotation of `object`, if it has one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let text = to_string(&config) + "\n";
    let Some(annotations) = object.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) else { return };
    annotations.insert(Key::from_static(ANNOTATION), text);
    let size: usize = annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
