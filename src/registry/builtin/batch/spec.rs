//! The spec of a job, alone or in a cron job's template (kubernetes `validateJobSpec`).

use super::policies;
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::{
        builtin::{
            apps::workload,
            core::pod::{PodPolicy, prepare_template, template_warnings, validate_pod_template_spec},
            internal,
        },
        validation::{declarative::is_unset, validate_domain_prefixed_path},
    },
};

const MAX_PARALLELISM: i64 = 100_000;
const MAX_FAILED: i64 = 100_000;
/// Completions past which the other numbers are bounded more tightly.
const MANY: i64 = 100_000;
const MAX_PARALLELISM_OF_MANY: i64 = 10_000;
const MAX_FAILED_OF_MANY: i64 = 10_000;
/// Longest name of who manages a job, in bytes.
const MAX_MANAGER: usize = 63;

pub fn is_indexed(spec: &Value) -> bool {
    spec.str_at(&["completionMode"]) == "Indexed"
}

/// Everything but the selector. `old` is the spec that is replaced.
pub fn validate(spec: &Value, old: Option<&Value>, pods: PodPolicy, path: &Path<'_>, errors: &mut ErrorList) {
    validate_numbers(spec, path, errors);
    validate_manager(spec, path, errors);
    validate_mode(spec, path, errors);
    if !is_unset(spec.get("podFailurePolicy")) {
        policies::validate_failure(spec, &path.child("podFailurePolicy"), errors);
    }
    if let Some(policy) = spec.get("successPolicy").filter(|it| !it.is_null()) {
        let at = path.child("successPolicy");
        if is_indexed(spec) {
            policies::validate_success(spec, &at, errors);
        } else {
            let shown = internal::shown(policy, "SuccessPolicy");
            errors.push(FieldError::invalid_shown(&at, shown, "requires indexed completion mode"));
        }
    }
    validate_replacement(spec, &path.child("podReplacementPolicy"), errors);
    let empty = Value::object();
    let template = spec.get("template").unwrap_or(&empty);
    let before = old.and_then(|old| old.get("template"));
    validate_pod_template_spec(template, before, pods, &path.child("template"), errors);
    validate_restart(spec, template, path, errors);
}

fn validate_numbers(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const COUNTS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    workload::validate_nonnegative_members(spec, &COUNTS, path, errors);
    if !is_unset(spec.get("maxFailedIndexes")) && is_unset(spec.get("backoffLimitPerIndex")) {
        let at = path.child("backoffLimitPerIndex");
        errors.push(FieldError::required(&at, "when maxFailedIndexes is specified"));
    }
}

fn validate_manager(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(manager) = spec.get("managedBy").and_then(Value::as_str) else { return };
    let at = path.child("managedBy");
    validate_domain_prefixed_path(manager, &at, errors);
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::too_long(&at, MAX_MANAGER));
    }
}

fn validate_mode(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mode = spec.get("completionMode").and_then(Value::as_str);
    if let Some(mode) = mode.filter(|mode| !matches!(*mode, "NonIndexed" | "Indexed")) {
        errors.push(FieldError::not_supported(&path.child("completionMode"), mode, &["NonIndexed", "Indexed"]));
    }
    if is_indexed(spec) {
        validate_indexed(spec, path, errors);
    }
    if matches!(mode, None | Some("NonIndexed")) {
        for member in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = spec.i64_at(&[member]) {
                errors.push(FieldError::invalid(&path.child(member), number, "requires indexed completion mode"));
            }
        }
    }
}

fn validate_indexed(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let number = |member: &str| spec.i64_at(&[member]);
    let (completions, parallelism, failed) = (number("completions"), number("parallelism"), number("maxFailedIndexes"));
    let at_most = |member: &'static str, value: Option<i64>, most: i64, when: &str, errors: &mut ErrorList| {
        if let Some(value) = value.filter(|value| *value > most) {
            let why = format!("must be less than or equal to {most}{when}");
            errors.push(FieldError::invalid(&path.child(member), value, &why));
        }
    };
    if completions.is_none() {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    at_most("parallelism", parallelism, MAX_PARALLELISM, " when completion mode is Indexed", errors);
    if let (Some(completions), Some(failed)) = (completions, failed)
        && failed > completions
    {
        let why = "must be less than or equal to completions";
        errors.push(FieldError::invalid(&path.child("maxFailedIndexes"), failed, why));
    }
    at_most("maxFailedIndexes", failed, MAX_FAILED, "", errors);
    if completions.is_some_and(|it| it > MANY) && number("backoffLimitPerIndex").is_some() {
        if failed.is_none() {
            let why = format!("must be specified when completions is above {MANY}");
            errors.push(FieldError::required(&path.child("maxFailedIndexes"), &why));
        }
        let when = format!(" when completions are above {MANY} and used with backoff limit per index");
        at_most("parallelism", parallelism, MAX_PARALLELISM_OF_MANY, &when, errors);
        at_most("maxFailedIndexes", failed, MAX_FAILED_OF_MANY, &when, errors);
    }
}

fn validate_replacement(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(policy) = spec.get("podReplacementPolicy").and_then(Value::as_str) else { return };
    let allowed: &[&str] =
        if is_unset(spec.get("podFailurePolicy")) { &["Failed", "TerminatingOrFailed"] } else { &["Failed"] };
    if !allowed.contains(&policy) {
        errors.push(FieldError::not_supported(path, policy, allowed));
    }
}

/// Pods of a job end.
fn validate_restart(spec: &Value, template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (template_at, policy) = (path.child("template"), template.str_at(&["spec", "restartPolicy"]));
    let spec_at = template_at.child("spec");
    let at = spec_at.child("restartPolicy");
    match policy {
        "" | "Always" => errors.push(FieldError::required(&at, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if !is_unset(spec.get("podFailurePolicy")) => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(&at, policy, why));
        }
        "OnFailure" | "Never" => {}
        _ => errors.push(FieldError::not_supported(&at, policy, &["OnFailure", "Never"])),
    }
}

/// Drops what belongs to features that are off, unless the old spec has it.
pub fn drop_disabled(spec: &mut Value, old: Option<&Value>) {
    if old.is_none_or(|old| is_unset(old.get("scheduling")))
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("scheduling");
    }
    if let Some(template) = spec.get_mut("template") {
        prepare_template(template, old.and_then(|old| old.get("template")));
    }
}

/// Warnings about a spec at `path`.
pub fn warnings(spec: &Value, path: &Path<'_>) -> Vec<String> {
    let number = |member: &str| spec.i64_at(&[member]).unwrap_or(0);
    let mut warnings = Vec::new();
    if is_indexed(spec) && number("completions") > MANY && number("parallelism") > MAX_PARALLELISM_OF_MANY {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    if let Some(template) = spec.get("template") {
        warnings.extend(template_warnings(template, &path.child("template")));
    }
    warnings
}

/// A part that may not become another one, shown as its internal type `form`.
pub fn validate_kept(
    new: &Value,
    old: &Value,
    member: &'static str,
    form: &str,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    internal::validate_immutable(new.get(member), old.get(member), form, &path.child(member), errors);
}
