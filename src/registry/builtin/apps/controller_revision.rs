//! ControllerRevision (kubernetes `pkg/registry/apps/controllerrevision`).

use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::{
        builtin::kind::Own,
        strategy::StrategyContext,
        validation::{validate_immutable, validate_nonnegative},
    },
};

pub struct ControllerRevision;

impl Own for ControllerRevision {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let path = Path::new("data");
        validate_nonnegative(new.i64_at(&["revision"]).unwrap_or(0), &Path::new("revision"), errors);
        match (old, new.get("data")) {
            (Some(old), data) => validate_immutable(data, old.get("data"), &path, errors),
            (None, None | Some(Value::Null)) => errors.push(FieldError::required(&path, "data is mandatory")),
            (None, Some(Value::Object(_))) => {}
            (None, Some(_)) => errors.push(FieldError::required(&path, "data must be a valid JSON object")),
        }
    }
}
