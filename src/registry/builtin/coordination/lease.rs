//! Lease (kubernetes `pkg/registry/coordination/lease`).

use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::{builtin::kind::Own, strategy::StrategyContext, validation::validate_nonnegative},
};

/// Fields of coordinated leader election, which is off.
const COORDINATED: [&str; 2] = ["strategy", "preferredHolder"];

pub struct Lease;

impl Own for Lease {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        for member in COORDINATED {
            if old.is_none_or(|old| old.at(&["spec", member]).is_none()) {
                new.remove_at(&["spec", member]);
            }
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, _old: Option<&Value>, errors: &mut ErrorList) {
        let spec = Path::new("spec");
        if let Some(seconds) = new.i64_at(&["spec", "leaseDurationSeconds"]).filter(|it| *it <= 0) {
            errors.push(FieldError::invalid(&spec.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
        }
        if let Some(count) = new.i64_at(&["spec", "leaseTransitions"]) {
            validate_nonnegative(count, &spec.child("leaseTransitions"), errors);
        }
    }
}
