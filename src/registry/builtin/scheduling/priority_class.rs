//! PriorityClass (kubernetes `pkg/registry/scheduling/priorityclass`, `pkg/apis/scheduling/validation`).

use super::GROUP;
use crate::{
    api::{ApiError, ErrorList, FieldError, Meta, Path, status::GroupResource},
    object::Value,
    registry::{builtin::kind::Own, strategy::StrategyContext, validation::validate_immutable},
};

const HIGHEST_OF_USERS: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
/// The classes that may have that prefix, and their values.
const SYSTEM: [(&str, i64); 2] = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

pub struct PriorityClass;

impl Own for PriorityClass {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let value = |class: &Value| class.i64_at(&["value"]).unwrap_or(0);
        let policy = Path::new("preemptionPolicy");
        if let Some(old) = old {
            if value(new) != value(old) {
                errors.push(FieldError::forbidden(&Path::new("value"), "may not be changed in an update."));
            }
            validate_immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), &policy, errors);
            return;
        }
        let name = Meta::of(new).name();
        if name.starts_with(SYSTEM_PREFIX) {
            if let Some(why) = system_problem(name, value(new), new.bool_at(&["globalDefault"])) {
                let metadata = Path::new("metadata");
                let why = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
                );
                errors.push(FieldError::forbidden(&metadata.child("name"), &why));
            }
        } else if value(new) > HIGHEST_OF_USERS {
            let why = format!("maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}");
            errors.push(FieldError::forbidden(&Path::new("value"), &why));
        }
        match new.get("preemptionPolicy").and_then(Value::as_str) {
            None => {}
            Some("") => errors.push(FieldError::required(&policy, "")),
            Some(given) if POLICIES.contains(&given) => {}
            Some(given) => errors.push(FieldError::not_supported(&policy, given, &POLICIES)),
        }
    }

    fn check_delete(&self, class: &Value) -> Result<(), ApiError> {
        let name = Meta::of(class).name();
        if SYSTEM.iter().any(|(known, _)| *known == name) {
            let why = "this is a system priority class and cannot be deleted";
            return Err(ApiError::forbidden(GroupResource::new(GROUP, "priorityclasses"), name, why));
        }
        Ok(())
    }
}

/// What keeps a class from being one of the system's.
fn system_problem(name: &str, value: i64, global_default: bool) -> Option<String> {
    let Some((_, wanted)) = SYSTEM.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if value != *wanted {
        return Some(format!("value of {name} PriorityClass must be {wanted}"));
    }
    global_default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
