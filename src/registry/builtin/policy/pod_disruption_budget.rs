//! PodDisruptionBudget (kubernetes `pkg/registry/policy/poddisruptionbudget`, `pkg/apis/policy/validation`).

use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Value, to_string},
    registry::{
        builtin::{apps::workload::validate_nonnegative_members, kind::Own},
        strategy::StrategyContext,
        validation::{
            LabelSelectorOptions, condition::validate_conditions, selector::has_invalid_label_value,
            validate_label_selector, validate_not_more_than_100_percent, validate_positive_int_or_percent,
        },
    },
};

const POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];

pub struct PodDisruptionBudget;

impl Own for PodDisruptionBudget {
    fn judges_metadata(&self) -> bool {
        true
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        let given = |member: &str| spec.get(member).filter(|it| !it.is_null());
        if given("minAvailable").is_some() && given("maxUnavailable").is_some() {
            errors.push(FieldError::invalid_shown(
                &path,
                show(spec),
                "minAvailable and maxUnavailable cannot be both set",
            ));
        }
        for member in ["minAvailable", "maxUnavailable"] {
            if let Some(value) = given(member) {
                validate_positive_int_or_percent(value, &path.child(member), errors);
                validate_not_more_than_100_percent(value, &path.child(member), errors);
            }
        }
        let bad_before = old.is_some_and(|old| has_invalid_label_value(old.at(&["spec", "selector"])));
        let options = LabelSelectorOptions { allow_invalid_values: bad_before, ..LabelSelectorOptions::default() };
        validate_label_selector(given("selector"), options, &path.child("selector"), errors);
        if let Some(policy) =
            given("unhealthyPodEvictionPolicy").filter(|it| !POLICIES.contains(&it.as_str().unwrap_or("")))
        {
            errors.push(FieldError::not_supported(
                &path.child("unhealthyPodEvictionPolicy"),
                policy.clone(),
                &POLICIES,
            ));
        }
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("status"), Value::object());
        validate_conditions(new.array_at(&["status", "conditions"]), &path.child("conditions"), errors);
        let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
        validate_nonnegative_members(new.get("status").unwrap_or(&empty), &counts, &path, errors);
    }
}

/// The spec by Go's names.
fn show(spec: &Value) -> String {
    let member = |name: &str| spec.get(name).map_or("null".to_owned(), to_string);
    format!(
        "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
        member("minAvailable"),
        member("selector"),
        member("maxUnavailable"),
        member("unhealthyPodEvictionPolicy")
    )
}
