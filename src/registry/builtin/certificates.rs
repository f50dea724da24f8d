//! The group `certificates.k8s.io`: the approval of signing requests (kubernetes
//! `pkg/registry/certificates/certificates/strategy.go`, `pkg/apis/certificates/validation`).

use std::sync::{Arc, OnceLock};

use crate::{
    api::{ErrorList, FieldError, Path, duration::format_time},
    object::Value,
    registry::{
        resource::SubresourceBehaviour,
        strategy::{ResetFields, Strategy, StrategyContext},
    },
    schema::ownership::FieldSet,
};

pub const GROUP: &str = "certificates.k8s.io";

/// How a subresource of this group behaves; the status is like everybody's.
pub fn subresource(plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    match (plural, name) {
        ("certificatesigningrequests", "approval") => Some(SubresourceBehaviour::Part(Arc::new(Approval))),
        _ => None,
    }
}

/// `certificatesigningrequests/approval`: nothing but conditions is taken.
struct Approval;

/// Conditions that are true or not there.
const DECISIONS: [&str; 3] = ["Approved", "Denied", "Failed"];

impl Strategy for Approval {
    fn prepare_for_update(&self, cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        set_times(cx, new, old);
        let conditions = new.remove_at(&["status", "conditions"]);
        for part in ["spec", "status"] {
            match old.get(part) {
                Some(value) => new.set(&[part], value.clone()),
                None => drop(new.remove_at(&[part])),
            }
        }
        match conditions {
            Some(conditions) => new.set(&["status", "conditions"], conditions),
            None => drop(new.remove_at(&["status", "conditions"])),
        }
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_conditions(new, old, errors);
        for kind in DECISIONS {
            if count(new, kind) < count(old, kind) {
                let why = format!("updates may not remove a condition of type {kind:?}");
                errors.push(FieldError::forbidden(&Path::new("status").child("conditions"), &why));
            }
        }
    }

    fn allow_unconditional_update(&self) -> bool {
        true
    }

    fn reset_fields(&self) -> ResetFields {
        static FIELDS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(FIELDS.get_or_init(|| FieldSet::of(&[&["spec"], &["status", "certificate"]])))
    }
}

fn conditions(request: &Value) -> &[Value] {
    request.array_at(&["status", "conditions"])
}

fn count(request: &Value, kind: &str) -> usize {
    conditions(request).iter().filter(|it| it.str_at(&["type"]) == kind).count()
}

/// Fills times that are missing: of the last transition that of a condition that was there with this status.
fn set_times(cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
    let now = format_time(cx.now);
    let missing = |condition: &Value, name: &str| condition.str_at(&[name]).is_empty();
    for condition in new.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut).into_iter().flatten() {
        if missing(condition, "lastUpdateTime") {
            condition.set(&["lastUpdateTime"], now.as_str());
        }
        if missing(condition, "lastTransitionTime") {
            let same =
                |it: &&Value| ["type", "status"].iter().all(|name| it.str_at(&[name]) == condition.str_at(&[name]));
            let before = conditions(old).iter().find(|it| same(it) && !missing(it, "lastTransitionTime"));
            let since = before.map_or(now.as_str(), |it| it.str_at(&["lastTransitionTime"])).to_owned();
            condition.set(&["lastTransitionTime"], since);
        }
    }
}

/// What was wrong before may stay so.
fn validate_conditions(new: &Value, old: &Value, errors: &mut ErrorList) {
    let status = Path::new("status");
    let path = status.child("conditions");
    let mut seen: Vec<&str> = Vec::new();
    let kinds = |request| -> Vec<&str> { conditions(request).iter().map(|it: &Value| it.str_at(&["type"])).collect() };
    let before = kinds(old);
    let empty_before = before.contains(&"");
    let both_before = before.contains(&"Approved") && before.contains(&"Denied");
    let twice_before = before.iter().enumerate().any(|(at, kind)| before[..at].contains(kind));
    for (at, condition) in conditions(new).iter().enumerate() {
        let (kind, truth) = (condition.str_at(&["type"]), condition.str_at(&["status"]));
        let own = path.index(at);
        if kind.is_empty() && !empty_before {
            errors.push(FieldError::required(&own.child("type"), ""));
        }
        let allowed: &[&str] = if DECISIONS.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        if truth.is_empty() {
            errors.push(FieldError::required(&own.child("status"), ""));
        } else if !allowed.contains(&truth) {
            errors.push(FieldError::not_supported(&own.child("status"), truth, allowed));
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(&other) && !both_before {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&path, kind, why));
        }
        if seen.contains(&kind) && !twice_before {
            errors.push(FieldError::duplicate(&own.child("type"), kind));
        }
        seen.push(kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, registry::builtin::kind::testing::context};

    fn said(new: &Value, old: &Value) -> String {
        let mut errors = ErrorList::new();
        Approval.validate_update(&context(), new, old, &mut errors);
        errors.to_string()
    }

    #[test]
    fn an_approval_takes_conditions_alone_and_tells_their_times() {
        let old = json!({"spec": {"a": 1}, "status": {"certificate": "Yw==", "conditions": [
            {"type": "Approved", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z", "lastUpdateTime": "2020-01-01T00:00:00Z"}
        ]}});
        let mut new = json!({"spec": {"a": 2}, "status": {"conditions": [
            {"type": "Approved", "status": "True", "reason": "Again"}, {"type": "Other", "status": "False"}
        ]}});
        Approval.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.i64_at(&["spec", "a"]), Some(1));
        assert_eq!(new.str_at(&["status", "certificate"]), "Yw==");
        let shown: Vec<_> = conditions(&new)
            .iter()
            .map(|it| (it.str_at(&["lastTransitionTime"]), it.str_at(&["lastUpdateTime"])))
            .collect();
        let epoch = "1970-01-01T00:00:00Z";
        assert_eq!(shown, [("2020-01-01T00:00:00Z", epoch), (epoch, epoch)]);
    }

    #[test]
    fn a_decision_is_made_once_and_never_taken_back() {
        let with = |kinds: &[(&str, &str)]| {
            let condition = |(kind, status): &(&str, &str)| Value::from([("type", *kind), ("status", *status)]);
            let conditions: Vec<Value> = kinds.iter().map(condition).collect();
            json!({"status": {"conditions": conditions}})
        };
        let (none, approved) = (with(&[]), with(&[("Approved", "True")]));
        assert_eq!(said(&approved, &none), "");
        assert!(said(&none, &approved).contains("updates may not remove a condition of type \"Approved\""));
        let both = with(&[("Approved", "True"), ("Denied", "True")]);
        assert!(said(&both, &approved).contains("mutually exclusive"));
        assert_eq!(said(&both, &both), "");
        assert!(said(&with(&[("Approved", "False")]), &none).contains("supported values: \"True\""));
        assert!(said(&with(&[("", "True")]), &none).contains("status.conditions[0].type: Required value"));
        assert!(said(&with(&[("X", "True"), ("X", "True")]), &none).contains("Duplicate value: \"X\""));
    }
}
