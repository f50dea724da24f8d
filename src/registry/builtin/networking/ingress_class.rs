//! IngressClass (kubernetes `pkg/registry/networking/ingressclass`, `pkg/apis/networking/validation`).

use super::reference::{self, Reference};
use crate::{
    api::{ErrorList, FieldError, Path, names::is_dns1123_label},
    object::Value,
    registry::{
        builtin::kind::Own,
        strategy::StrategyContext,
        validation::{declarative, object_meta::push_messages, validate_domain_prefixed_path, validate_immutable},
    },
};

/// Longest name of a controller, in bytes.
const MAX_CONTROLLER: usize = 250;
const SCOPES: [&str; 2] = ["Cluster", "Namespace"];

pub struct IngressClass;

impl Own for IngressClass {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let path = Path::new("spec");
        let (at, member) = (path.child("controller"), ["spec", "controller"]);
        if let Some(old) = old {
            validate_immutable(new.at(&member), old.at(&member), &at, errors);
        }
        let controller = new.str_at(&member);
        if controller.len() > MAX_CONTROLLER {
            errors.push(FieldError::too_long(&at, MAX_CONTROLLER));
        }
        validate_domain_prefixed_path(controller, &at, errors);
        let member = ["spec", "parameters"];
        let Some(parameters) = new.at(&member).filter(|it| !it.is_null()) else { return };
        let at = path.child("parameters");
        validate_parameters(parameters, &at, errors);
        let before = old.and_then(|old| old.at(&member));
        let mut declared = ErrorList::new();
        for name in ["kind", "name"] {
            let value = parameters.get(name);
            if declarative::changed(value, old, before.and_then(|before| before.get(name))) {
                declarative::required(value, &at.child(name), &mut declared);
            }
        }
        declarative::merge(errors, declared);
    }
}

fn validate_parameters(parameters: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    reference::validate(parameters, Reference { declared: true }, path, errors);
    let at = path.child("namespace");
    let namespace = parameters.get("namespace").and_then(Value::as_str);
    match (parameters.get("scope").and_then(Value::as_str), namespace) {
        (None, _) => errors.push(FieldError::required(&path.child("scope"), "")),
        (Some("Namespace"), None) => {
            errors.push(FieldError::required(&at, "`parameters.scope` is set to 'Namespace'"));
        }
        (Some("Namespace"), Some(namespace)) => push_messages(is_dns1123_label(namespace), namespace, &at, errors),
        (Some("Cluster"), None) => {}
        (Some("Cluster"), Some(_)) => {
            errors.push(FieldError::forbidden(&at, "`parameters.scope` is set to 'Cluster'"));
        }
        (Some(other), _) => errors.push(FieldError::not_supported(&path.child("scope"), other, &SCOPES)),
    }
}
