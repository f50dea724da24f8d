//! ReplicationController (kubernetes `pkg/registry/core/replicationcontroller`).

use crate::{
    api::{ErrorList, FieldError, Path, labels::Selector, names::Messages},
    object::{Map, Value},
    registry::{
        builtin::{
            apps::{
                replica_set::validate_status,
                workload::{self, TemplateOf},
            },
            core::pod::{PodPolicy, workload_name_warning},
            kind::Own,
        },
        strategy::{StrategyContext, name_is_path_segment},
        validation::declarative::{self, Format},
    },
};

pub struct ReplicationController {
    pub pods: PodPolicy,
}

impl Own for ReplicationController {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        workload::prepare(new, old);
    }

    /// The name's rule is a declarative one, and so comes last.
    fn validate_name(&self, name: &str, prefix: bool) -> Option<Messages> {
        Some(name_is_path_segment(name, prefix))
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        let selector = spec.object_at(&["selector"]);
        if selector.is_none_or(Map::is_empty) {
            errors.push(FieldError::required(&path.child("selector"), ""));
        }
        let at = path.child("template");
        match spec.get("template").filter(|it| !it.is_null()) {
            None => errors.push(FieldError::required(&at, "")),
            Some(template) => {
                workload::validate_template_labels(template, &Selector::from_set(selector), &at, errors);
                TemplateOf { pods: self.pods, old, kind: "ReplicationController" }.validate(template, &at, errors);
            }
        }
        declarative::merge(errors, declared(new, old, spec));
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let name = if old.is_none() { workload_name_warning(new) } else { None };
        name.into_iter().chain(workload::warnings(new, old)).collect()
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        validate_status(new, errors);
    }
}

fn declared(new: &Value, old: Option<&Value>, spec: &Value) -> ErrorList {
    let (mut errors, path, metadata) = (ErrorList::new(), Path::new("spec"), Path::new("metadata"));
    let name = new.str_at(&["metadata", "name"]);
    if old.is_none() && !name.is_empty() {
        declarative::format(name, Format::LongName, &metadata.child("name"), &mut errors);
    }
    for member in ["replicas", "minReadySeconds"] {
        let before = old.and_then(|old| old.at(&["spec", member]));
        if let Some(number) = spec.i64_at(&[member])
            && declarative::changed(spec.get(member), old, before)
        {
            declarative::minimum(number, 0, &path.child(member), &mut errors);
        }
    }
    errors
}
