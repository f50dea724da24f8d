//! What a CustomResourceDefinition says, read out of its tree.

use crate::object::{Map, Value};

pub const GROUP: &str = "apiextensions.k8s.io";
pub const RESOURCE: &str = "customresourcedefinitions";
/// Holds a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub const NAMES_ACCEPTED: &str = "NamesAccepted";
pub const ESTABLISHED: &str = "Established";
pub const TERMINATING: &str = "Terminating";

/// The condition of this type.
pub fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    crd.array_at(&["status", "conditions"]).iter().find(|it| it.str_at(&["type"]) == kind)
}

pub fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|it| it.str_at(&["status"]) == "True")
}

/// Whether requests are answered: names were accepted once, and the definition was established or is about to be.
pub fn is_served(crd: &Value) -> bool {
    is_true(crd, NAMES_ACCEPTED) || is_true(crd, ESTABLISHED)
}

pub fn is_terminating(crd: &Value) -> bool {
    !crd.str_at(&["metadata", "deletionTimestamp"]).is_empty() || is_true(crd, TERMINATING)
}

pub fn versions(crd: &Value) -> &[Value] {
    crd.array_at(&["spec", "versions"])
}

pub fn storage_version(crd: &Value) -> Option<&str> {
    versions(crd).iter().find(|it| it.bool_at(&["storage"])).map(|it| it.str_at(&["name"]))
}

/// The schema of a version, if it has one.
pub fn schema(version: &Value) -> Option<&Value> {
    version.at(&["schema", "openAPIV3Schema"]).filter(|it| !it.is_null())
}

/// Whether the webhook that converts objects cannot be trusted: its CA bundle is none.
pub fn has_invalid_ca_bundle(crd: &Value) -> bool {
    crd.str_at(&["spec", "conversion", "strategy"]) == "Webhook"
        && crate::registry::validation::webhook::ca_bundle_problem(crd.str_at(&[
            "spec",
            "conversion",
            "webhook",
            "clientConfig",
            "caBundle",
        ]))
        .is_some()
}

/// Sets a condition as upstream does (`SetCRDCondition`): the time of transition changes with the status alone. Returns
/// whether anything changed.
pub fn set_condition(
    crd: &mut Value,
    kind: &'static str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) -> bool {
    let conditions = crd.make(&["status", "conditions"]);
    if !matches!(conditions, Value::Array(_)) {
        *conditions = Value::Array(Vec::new());
    }
    let Some(conditions) = conditions.as_array_mut() else { return false };
    let mut new = Map::from([("type", kind), ("status", status), ("reason", reason), ("message", message)]);
    new.insert("lastTransitionTime", now);
    match conditions.iter_mut().find(|it| it.str_at(&["type"]) == kind) {
        None => conditions.push(new.into()),
        Some(old) => {
            if old.str_at(&["status"]) == status {
                if old.str_at(&["reason"]) == reason && old.str_at(&["message"]) == message {
                    return false;
                }
                new.insert("lastTransitionTime", old.str_at(&["lastTransitionTime"]));
            }
            if let Some(generation) = old.i64_at(&["observedGeneration"]) {
                new.insert("observedGeneration", generation);
            }
            *old = new.into();
        }
    }
    true
}

/// Removes a condition; whether there was one.
pub fn remove_condition(crd: &mut Value, kind: &str) -> bool {
    let Some(conditions) = crd.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut) else { return false };
    let before = conditions.len();
    conditions.retain(|it| it.str_at(&["type"]) != kind);
    conditions.len() != before
}

/// Whether objects of the definition would be stored where built-in kinds are.
pub fn overlaps_built_in(crd: &Value) -> bool {
    let named = (crd.str_at(&["spec", "group"]), crd.str_at(&["spec", "names", "plural"]));
    matches!(named, (GROUP, RESOURCE) | ("apiregistration.k8s.io", "apiservices"))
}
