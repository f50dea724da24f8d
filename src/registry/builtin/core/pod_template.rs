//! PodTemplate: a template that nothing is made of yet (kubernetes `pkg/registry/core/podtemplate`).

use super::pod::{PodPolicy, prepare_template, template_warnings, validate_pod_template_spec};
use crate::{
    api::{ErrorList, Path},
    object::Value,
    registry::{builtin::kind::Own, strategy::StrategyContext},
};

const TEMPLATE: Path<'static> = Path::new("template");

pub struct PodTemplate {
    pub pods: PodPolicy,
}

impl Own for PodTemplate {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        if let Some(template) = new.get_mut("template") {
            prepare_template(template, old.and_then(|old| old.get("template")));
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let empty = Value::object();
        let template = new.get("template").unwrap_or(&empty);
        let before = old.and_then(|old| old.get("template"));
        validate_pod_template_spec(template, before, self.pods, &TEMPLATE, errors);
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let generation = |object: &Value| object.i64_at(&["metadata", "generation"]);
        match new.get("template") {
            Some(template) if old.is_none_or(|old| generation(new) != generation(old)) => {
                template_warnings(template, &TEMPLATE)
            }
            _ => Vec::new(),
        }
    }
}
