//! Deployment (kubernetes `pkg/registry/apps/deployment`).

use super::{
    replica_set::validate_pods,
    workload::{self, TemplateOf, number},
};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::{
        builtin::{
            core::pod::{PodPolicy, workload_name_warning},
            kind::Own,
        },
        strategy::StrategyContext,
    },
};

pub struct Deployment {
    pub pods: PodPolicy,
}

impl Own for Deployment {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        workload::prepare(new, old);
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (spec, empty) = (Path::new("spec"), Value::object());
        let body = new.get("spec").unwrap_or(&empty);
        workload::validate_nonnegative_members(body, &["replicas"], &spec, errors);
        // A deployment's pods belong to its replica sets, which upstream's text names.
        validate_pods(body, TemplateOf { pods: self.pods, old, kind: "ReplicaSet" }, &spec, errors);
        validate_strategy(body.get("strategy").unwrap_or(&empty), &spec.child("strategy"), errors);
        workload::validate_nonnegative_members(body, &["minReadySeconds", "revisionHistoryLimit"], &spec, errors);
        validate_deadline(body, &spec, errors);
        if let Some(old) = old {
            workload::validate_selector_kept(new, old, errors);
        }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let name = if old.is_none() { workload_name_warning(new) } else { None };
        name.into_iter().chain(workload::warnings(new, old)).collect()
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("status"), Value::object());
        let status = new.get("status").unwrap_or(&empty);
        let counts = [
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ];
        workload::validate_nonnegative_members(status, &counts, &path, errors);
        let bounded = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        workload::validate_counts(status, &bounded, "readyReplicas", &path, errors);
        workload::validate_collisions(new, old, errors);
    }
}

fn validate_strategy(strategy: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("rollingUpdate");
    let rolling = strategy.get("rollingUpdate").filter(|it| !it.is_null());
    match (strategy.str_at(&["type"]), rolling) {
        ("Recreate", None) => {}
        ("Recreate", Some(_)) => {
            errors.push(FieldError::forbidden(&at, "may not be specified when strategy `type` is 'Recreate'"));
        }
        ("RollingUpdate", None) => {
            errors.push(FieldError::required(&at, "this should be defaulted and never be nil"));
        }
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling, &at, errors),
        _ => {
            let shown = workload::show_strategy(strategy, workload::show_rolling);
            errors.push(FieldError::not_supported_shown(path, shown, &["Recreate", "RollingUpdate"]));
        }
    }
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    workload::validate_int_or_percents(rolling, &["maxUnavailable", "maxSurge"], path, errors);
    if workload::is_zero(rolling, "maxUnavailable") && workload::is_zero(rolling, "maxSurge") {
        let shown = workload::int_or_percent(rolling, "maxUnavailable");
        let why = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid_ref(&path.child("maxUnavailable"), shown, why));
    }
    workload::validate_at_most_100_percent(rolling, &["maxUnavailable"], path, errors);
}

fn validate_deadline(body: &Value, spec: &Path<'_>, errors: &mut ErrorList) {
    let Some(deadline) = body.i64_at(&["progressDeadlineSeconds"]) else { return };
    workload::validate_nonnegative_members(body, &["progressDeadlineSeconds"], spec, errors);
    if deadline <= number(body, &["minReadySeconds"]) {
        let why = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(&spec.child("progressDeadlineSeconds"), deadline, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, registry::builtin::kind::testing::say};

    fn of(spec: Value) -> Value {
        let mut object = json!({"metadata": {"name": "a", "namespace": "ns"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "x"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {
                "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}],
                "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}}
        }});
        for (key, value) in spec.as_object().unwrap().iter() {
            object.get_mut("spec").unwrap().as_object_mut().unwrap().insert(key.clone(), value.clone());
        }
        object
    }

    fn judge(spec: Value) -> String {
        say(&Deployment { pods: PodPolicy::default() }, &of(spec), None)
    }

    #[test]
    fn a_rollout_has_to_be_able_to_move() {
        assert_eq!(judge(json!({})), "");
        let stuck =
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}});
        let why = "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0";
        assert_eq!(judge(stuck), why);
        let odd = judge(json!({"strategy": {"type": "X"}}));
        assert_eq!(
            odd,
            r#"spec.strategy: Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate""#
        );
    }

    #[test]
    fn a_missing_selector_also_does_not_match() {
        assert_eq!(
            judge(json!({"selector": null})),
            r#"[spec.selector: Required value, spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`]"#
        );
    }
}
