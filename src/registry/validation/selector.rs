//! `metav1.LabelSelector` and the field selectors of access reviews (apimachinery `pkg/apis/meta/v1/validation`).

use super::object_meta::{push_messages, validate_label_name, validate_labels};
use crate::{
    api::{ErrorList, FieldError, Path, names::is_valid_label_value},
    object::Value,
};

/// What old objects and access reviews may have that new objects may not.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabelSelectorOptions {
    /// For updates of objects whose selector was bad before, see [`has_invalid_label_value`].
    pub allow_invalid_values: bool,
    /// For reviews, which a wider answer suits.
    pub allow_unknown_operators: bool,
}

/// Whether an expression asks for a value that no label can have.
pub fn has_invalid_label_value(selector: Option<&Value>) -> bool {
    let expressions = selector.map_or(&[][..], |it| it.array_at(&["matchExpressions"]));
    let mut values = expressions.iter().flat_map(|it| it.array_at(&["values"]));
    values.any(|value| !is_valid_label_value(value.as_str().unwrap_or("")).is_empty())
}

/// A selector; a missing one is fine here.
pub fn validate_label_selector(
    selector: Option<&Value>,
    options: LabelSelectorOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let Some(selector) = selector.filter(|it| !it.is_null()) else { return };
    validate_labels(selector.object_at(&["matchLabels"]), &path.child("matchLabels"), errors);
    let path = path.child("matchExpressions");
    for (index, requirement) in selector.array_at(&["matchExpressions"]).iter().enumerate() {
        validate_label_selector_requirement(requirement, options, &path.index(index), errors);
    }
}

/// One of `matchExpressions`.
pub fn validate_label_selector_requirement(
    requirement: &Value,
    options: LabelSelectorOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    validate_operator(requirement, options.allow_unknown_operators, path, errors);
    validate_label_name(requirement.str_at(&["key"]), &path.child("key"), errors);
    if options.allow_invalid_values {
        return;
    }
    let path = path.child("values");
    for (index, value) in requirement.array_at(&["values"]).iter().enumerate() {
        let value = value.as_str().unwrap_or("");
        push_messages(is_valid_label_value(value), value, &path.index(index), errors);
    }
}

/// A requirement of a `metav1.FieldSelectorRequirement`.
pub fn validate_field_selector_requirement(
    requirement: &Value,
    allow_unknown_operators: bool,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if requirement.str_at(&["key"]).is_empty() {
        errors.push(FieldError::required(&path.child("key"), "must be specified"));
    }
    validate_operator(requirement, allow_unknown_operators, path, errors);
}

/// The operator and whether there are as many values as it wants.
fn validate_operator(requirement: &Value, allow_unknown: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let empty = requirement.array_at(&["values"]).is_empty();
    match requirement.str_at(&["operator"]) {
        "In" | "NotIn" if empty => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&path.child("values"), why));
        }
        "Exists" | "DoesNotExist" if !empty => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path.child("values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other if !allow_unknown => {
            errors.push(FieldError::invalid(&path.child("operator"), other, "not a valid selector operator"));
        }
        _ => {}
    }
}
