//! `metav1.Condition` (apimachinery `pkg/apis/meta/v1/validation`).

use std::collections::HashSet;

use super::object_meta::{push_messages, validate_label_name};
use crate::{
    api::{ErrorList, FieldError, Path, duration::canonical_time, names::is_valid_condition_reason},
    object::Value,
};

const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;

/// A list of conditions: types unique, each condition as [`validate_condition`] wants it.
pub fn validate_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let kind = condition.str_at(&["type"]);
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path, kind).covered_by_declarative());
        }
        validate_condition(condition, &path, errors);
    }
}

pub fn validate_condition(condition: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let required = |key: &str, why: &str| FieldError::required(&path.child(key), why).covered_by_declarative();
    match condition.str_at(&["type"]) {
        "" => errors.push(required("type", "is required")),
        kind => validate_label_name(kind, &path.child("type"), errors),
    }
    match condition.str_at(&["status"]) {
        "" => errors.push(required("status", "")),
        "True" | "False" | "Unknown" => {}
        other => errors.push(
            FieldError::not_supported(&path.child("status"), other, &["False", "True", "Unknown"])
                .covered_by_declarative(),
        ),
    }
    if let Some(observed) = condition.i64_at(&["observedGeneration"]).filter(|it| *it < 0) {
        let path = path.child("observedGeneration");
        let error = FieldError::invalid(&path, observed, "must be greater than or equal to zero");
        errors.push(error.with_origin("minimum").covered_by_declarative());
    }
    let time = condition.get("lastTransitionTime").unwrap_or(&Value::Null);
    if matches!(canonical_time(time), Ok(Value::Null)) {
        errors.push(required("lastTransitionTime", ""));
    }
    match condition.str_at(&["reason"]) {
        "" => errors.push(required("reason", "")),
        reason => {
            let path = path.child("reason");
            push_messages(is_valid_condition_reason(reason), reason, &path, errors);
            if reason.len() > MAX_REASON {
                let error = FieldError::too_long(&path, MAX_REASON);
                errors.push(error.with_origin("maxBytes").covered_by_declarative());
            }
        }
    }
    if condition.str_at(&["message"]).len() > MAX_MESSAGE {
        errors.push(FieldError::too_long(&path.child("message"), MAX_MESSAGE));
    }
}
