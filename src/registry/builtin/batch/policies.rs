//! What ends a job early: its pod failure policy and its success policy.

use std::collections::HashSet;

use super::indexes;
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::validation::{declarative::is_unset, validate_nonnegative, validate_qualified_name},
};

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_CONDITIONS: usize = 20;
/// Longest text of indexes, in bytes.
const MAX_INDEXES: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// One of a few texts, which has to be there.
fn validate_choice(value: &str, allowed: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if value.is_empty() {
        let quoted: Vec<String> = allowed.iter().map(|it| format!("{it:?}")).collect();
        errors.push(FieldError::required(path, &format!("valid values: [{}]", quoted.join(" "))));
    } else if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(path, value, allowed));
    }
}

/// `spec.podFailurePolicy`.
pub fn validate_failure(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let rules = spec.array_at(&["podFailurePolicy", "rules"]);
    let path = path.child("rules");
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&path, rules.len(), MAX_RULES));
    }
    let containers: HashSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| spec.array_at(&["template", "spec", list]))
        .map(|container| container.str_at(&["name"]))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        validate_failure_rule(spec, rule, &containers, &path.index(index), errors);
    }
}

fn validate_failure_rule(
    spec: &Value,
    rule: &Value,
    containers: &HashSet<&str>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let action = rule.str_at(&["action"]);
    if action != "FailIndex" {
        validate_choice(action, &ACTIONS, &path.child("action"), errors);
    } else if is_unset(spec.get("backoffLimitPerIndex")) {
        let why = "requires the backoffLimitPerIndex to be set";
        errors.push(FieldError::invalid(&path.child("action"), action, why));
    }
    let codes = rule.get("onExitCodes").filter(|it| !it.is_null());
    if let Some(codes) = codes {
        validate_exit_codes(codes, containers, &path.child("onExitCodes"), errors);
    }
    let conditions = rule.array_at(&["onPodConditions"]);
    validate_conditions(conditions, &path.child("onPodConditions"), errors);
    let why = match (codes.is_some(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(FieldError::invalid_omitted(path, why));
}

fn validate_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_CONDITIONS));
    }
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        validate_qualified_name(condition.str_at(&["type"]), &path.child("type"), errors);
        validate_choice(condition.str_at(&["status"]), &STATUSES, &path.child("status"), errors);
    }
}

fn validate_exit_codes(codes: &Value, containers: &HashSet<&str>, path: &Path<'_>, errors: &mut ErrorList) {
    let operator = codes.str_at(&["operator"]);
    validate_choice(operator, &OPERATORS, &path.child("operator"), errors);
    if let Some(name) = codes.get("containerName").and_then(Value::as_str).filter(|name| !containers.contains(name)) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(&path.child("containerName"), name, why));
    }
    let path = path.child("values");
    let values = codes.array_at(&["values"]);
    let shown = codes.get("values").unwrap_or(&Value::Null);
    if values.is_empty() {
        errors.push(FieldError::invalid_ref(&path, shown, "at least one value is required"));
    } else if values.len() > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(&path, values.len(), MAX_EXIT_CODES));
    }
    let (mut seen, mut before, mut ordered) = (HashSet::new(), i64::MIN, true);
    for (index, value) in values.iter().enumerate() {
        let code = value.as_i64().unwrap_or(0);
        if operator == "In" && code == 0 {
            errors.push(FieldError::invalid(&path.index(index), code, "must not be 0 for the In operator"));
        }
        if !seen.insert(code) {
            errors.push(FieldError::duplicate(&path.index(index), code));
        }
        ordered &= before <= code;
        before = code;
    }
    if !ordered {
        errors.push(FieldError::invalid_ref(&path, shown, "must be ordered"));
    }
}

/// `spec.successPolicy` of an indexed job.
pub fn validate_success(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let rules = spec.array_at(&["successPolicy", "rules"]);
    let path = path.child("rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, why));
    }
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&path, rules.len(), MAX_RULES));
    }
    let completions = spec.i64_at(&["completions"]).unwrap_or(0);
    for (index, rule) in rules.iter().enumerate() {
        validate_success_rule(rule, completions, &path.index(index), errors);
    }
}

fn validate_success_rule(rule: &Value, completions: i64, path: &Path<'_>, errors: &mut ErrorList) {
    let indexes = rule.get("succeededIndexes").and_then(Value::as_str);
    let count = rule.i64_at(&["succeededCount"]);
    if indexes.is_none() && count.is_none() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, why));
    }
    let mut named = 0;
    if let Some(indexes) = indexes {
        let at = path.child("succeededIndexes");
        if indexes.len() > MAX_INDEXES {
            errors.push(FieldError::too_long(&at, MAX_INDEXES));
        }
        match indexes::count(indexes, completions) {
            Ok(count) => named = count,
            Err(why) => {
                errors.push(FieldError::invalid(&at, indexes, &format!("error parsing succeededIndexes: {why}")));
            }
        }
    }
    let Some(count) = count else { return };
    let at = path.child("succeededCount");
    validate_nonnegative(count, &at, errors);
    if count > completions {
        let why = format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.push(FieldError::invalid(&at, count, &why));
    }
    if indexes.is_some() && count > named {
        let why = format!(
            "must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(FieldError::invalid(&at, count, &why));
    }
}
