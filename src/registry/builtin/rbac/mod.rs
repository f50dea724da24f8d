//! rbac.authorization.k8s.io: roles and bindings (kubernetes `pkg/registry/rbac`, `pkg/apis/rbac/validation`).
//!
//! What a write may grant is not judged here but by `auth::escalation`, which knows the caller.

use std::sync::Arc;

use super::super::strategy::{Strategy, StrategyContext, name_is_path_segment};
use crate::api::{ErrorList, names::Messages};
use crate::object::Value;

mod bindings;
pub mod bootstrap;
mod roles;

pub use bindings::{validate_binding, validate_binding_update};
pub use roles::{validate_cluster_role, validate_policy_rules, validate_role};

pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The strategy of one of the four kinds, by its plural.
pub fn strategy(plural: &str) -> Option<Arc<dyn Strategy>> {
    Some(match plural {
        "roles" => Arc::new(Role { namespaced: true }),
        "clusterroles" => Arc::new(Role { namespaced: false }),
        "rolebindings" => Arc::new(Binding { namespaced: true }),
        "clusterrolebindings" => Arc::new(Binding { namespaced: false }),
        _ => return None,
    })
}

struct Role {
    namespaced: bool,
}

struct Binding {
    namespaced: bool,
}

impl Role {
    fn validate(&self, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        if self.namespaced { validate_role(new, old, errors) } else { validate_cluster_role(new, old, errors) }
    }
}

impl Strategy for Role {
    fn validate_create(&self, _: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        self.validate(new, None, errors);
    }

    fn validate_update(&self, _: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        self.validate(new, Some(old), errors);
    }

    /// An empty list comes back from upstream's store as none.
    fn canonicalise(&self, new: &mut Value) {
        if new.array_at(&["rules"]).is_empty() {
            new.set(&["rules"], Value::Null);
        }
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        name_is_path_segment(name, prefix)
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }
}

impl Strategy for Binding {
    fn validate_create(&self, _: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        validate_binding(new, self.namespaced, errors);
    }

    fn validate_update(&self, _: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_binding_update(new, old, self.namespaced, errors);
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        name_is_path_segment(name, prefix)
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }
}
