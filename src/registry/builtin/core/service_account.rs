//! ServiceAccount (kubernetes `pkg/registry/core/serviceaccount`).

use crate::{
    api::{ErrorList, Meta},
    object::Value,
    registry::{
        builtin::kind::{NameRule, Own, validate_metadata_as_on_create},
        strategy::StrategyContext,
    },
};

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

pub struct ServiceAccount;

impl Own for ServiceAccount {
    /// References to secrets keep nothing but their names.
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, _old: Option<&Value>) {
        let secrets = new.get_mut("secrets").and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten() {
            let name = secret.str_at(&["name"]).to_owned();
            *secret = if name.is_empty() { Value::object() } else { [("name", name)].into() };
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        if old.is_some() {
            validate_metadata_as_on_create(new, true, NameRule::Subdomain, errors);
        }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let has = |object: &Value| Meta::of(object).annotation(MOUNTABLE).is_some();
        if has(new) && !old.is_some_and(has) {
            return vec![format!(
                "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
            )];
        }
        Vec::new()
    }
}
