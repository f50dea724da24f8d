//! ReplicaSet (kubernetes `pkg/registry/apps/replicaset`), and what Deployments share with it.

use super::workload::{self, TemplateOf};
use crate::{
    api::{ErrorList, Path},
    object::Value,
    registry::{
        builtin::{
            core::pod::{PodPolicy, workload_name_warning},
            kind::Own,
        },
        strategy::StrategyContext,
    },
};

pub struct ReplicaSet {
    pub pods: PodPolicy,
}

impl Own for ReplicaSet {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        workload::prepare(new, old);
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (spec, empty) = (Path::new("spec"), Value::object());
        let body = new.get("spec").unwrap_or(&empty);
        workload::validate_nonnegative_members(body, &["replicas", "minReadySeconds"], &spec, errors);
        validate_pods(body, TemplateOf { pods: self.pods, old, kind: "ReplicaSet" }, &spec, errors);
        if let Some(old) = old {
            workload::validate_selector_kept(new, old, errors);
        }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let name = if old.is_none() { workload_name_warning(new) } else { None };
        name.into_iter().chain(workload::warnings(new, old)).collect()
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        validate_status(new, errors);
    }
}

/// Selector and template.
pub fn validate_pods(body: &Value, template_of: TemplateOf<'_>, spec: &Path<'_>, errors: &mut ErrorList) {
    let path = spec.child("selector");
    // Upstream's text says so for ReplicaSets, too.
    workload::validate_required_selector(body, "deployment", &path, errors);
    let Some(selector) = workload::parsed_selector(body, "invalid label selector", &path, errors) else { return };
    let empty = Value::object();
    let template = body.get("template").unwrap_or(&empty);
    let path = spec.child("template");
    workload::validate_template_labels(template, &selector, &path, errors);
    template_of.validate(template, &path, errors);
}

/// The status of a ReplicaSet or a ReplicationController.
pub fn validate_status(object: &Value, errors: &mut ErrorList) {
    let (path, empty) = (Path::new("status"), Value::object());
    let status = object.get("status").unwrap_or(&empty);
    let counts = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    workload::validate_nonnegative_members(status, &counts, &path, errors);
    workload::validate_nonnegative_members(status, &["terminatingReplicas"], &path, errors);
    let bounded = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    workload::validate_counts(status, &bounded, "readyReplicas", &path, errors);
}
