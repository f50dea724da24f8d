//! Options of writes: `CreateOptions`, `UpdateOptions`, `PatchOptions`, `DeleteOptions` (apimachinery
//! `pkg/apis/meta/v1/validation`). Options are read as objects, whether they came in a query or a body.

use super::object_meta::validate_field_manager;
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
};

/// `CreateOptions` and `UpdateOptions`.
pub fn validate_write_options(options: &Value, errors: &mut ErrorList) {
    validate_field_manager(options.str_at(&["fieldManager"]), &Path::new("fieldManager"), errors);
    validate_dry_run(options.get("dryRun"), &Path::new("dryRun"), errors);
    validate_field_validation(options.str_at(&["fieldValidation"]), &Path::new("fieldValidation"), errors);
}

/// `PatchOptions`; `apply` for the two content types of server-side apply.
pub fn validate_patch_options(options: &Value, apply: bool, errors: &mut ErrorList) {
    if apply && options.str_at(&["fieldManager"]).is_empty() {
        errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
    }
    if !apply && options.get("force").is_some_and(|it| !it.is_null()) {
        errors.push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
    }
    validate_write_options(options, errors);
}

/// `DeleteOptions`.
pub fn validate_delete_options(options: &Value, errors: &mut ErrorList) {
    let given = |key: &str| options.get(key).filter(|it| !it.is_null());
    let path = Path::new("propagationPolicy");
    if let Some(policy) = given("propagationPolicy") {
        if given("orphanDependents").is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid_ref(&path, policy, why));
        }
        if !matches!(policy.as_str(), Some("Foreground" | "Background" | "Orphan")) {
            let allowed = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(&path, policy.clone(), &allowed));
        }
    }
    validate_dry_run(options.get("dryRun"), &Path::new("dryRun"), errors);
    const UNSAFE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if !options.bool_at(&[UNSAFE]) {
        return;
    }
    for key in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"] {
        if given(key).is_some() {
            let why = format!("cannot be set together with .{key}");
            errors.push(FieldError::invalid(&Path::new(UNSAFE), true, &why));
        }
    }
}

/// Nothing, or `All`.
fn validate_dry_run(values: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(values) = values.filter(|it| !it.is_null()) else { return };
    if !values.as_array().unwrap_or(&[]).iter().all(|it| it.as_str() == Some("All")) {
        errors.push(FieldError::not_supported(path, values.clone(), &["All"]));
    }
}

fn validate_field_validation(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if !matches!(value, "" | "Ignore" | "Warn" | "Strict") {
        errors.push(FieldError::not_supported(path, value, &["", "Ignore", "Strict", "Warn"]));
    }
}
