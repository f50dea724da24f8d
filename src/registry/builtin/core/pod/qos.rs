//! The quality of service class of a pod, and what whole pods ask for where they do not say it.

use super::{
    quantities::{
        List, aggregate, amount, has_pod_level_resources, is_huge_pages, is_overcommit_allowed, is_pod_level,
    },
    view::{given, items, map},
};
use crate::{api::quantity::Quantity, object::Value};

const GUARANTEED: &str = "Guaranteed";
const BURSTABLE: &str = "Burstable";
const BEST_EFFORT: &str = "BestEffort";

/// The class its resources give a pod (kubernetes `pkg/apis/core/helper/qos`).
pub fn compute(spec: &Value) -> &'static str {
    if has_pod_level_resources(spec) {
        return given(spec, "resources").map_or(BEST_EFFORT, class_of);
    }
    let mut class = None;
    let empty = Value::object();
    for container in items(spec, "initContainers").iter().chain(items(spec, "containers")) {
        let own = class_of(container.get("resources").unwrap_or(&empty));
        if own == BURSTABLE || class.is_some_and(|class| class != own) {
            return BURSTABLE;
        }
        class = Some(own);
    }
    class.unwrap_or(BEST_EFFORT)
}

fn class_of(resources: &Value) -> &'static str {
    let (limits, requests) = (map(resources, "limits"), map(resources, "requests"));
    if limits.is_none_or(|it| it.is_empty()) && requests.is_none_or(|it| it.is_empty()) {
        return BEST_EFFORT;
    }
    let of = |name: &str| {
        let zero = Quantity::zero;
        let (limit, request) = (amount(limits, name).unwrap_or_else(zero), amount(requests, name).unwrap_or_else(zero));
        if limit.cmp(&request).is_ne() {
            BURSTABLE
        } else if request.is_zero() {
            BEST_EFFORT
        } else {
            GUARANTEED
        }
    };
    let (cpu, memory) = (of("cpu"), of("memory"));
    if cpu == memory { cpu } else { BURSTABLE }
}

/// The class a pod has: what its status says, else what its resources give.
pub fn of_pod(pod: &Value) -> &str {
    match pod.str_at(&["status", "qosClass"]) {
        "" => pod.get("spec").map_or(BEST_EFFORT, compute),
        said => said,
    }
}

fn member<'v>(spec: &'v Value, list: &str, name: &str) -> Option<&'v Value> {
    spec.at(&["resources", list, name])
}

fn set_amount(spec: &mut Value, list: &'static str, name: &str, value: &Quantity) {
    spec.make(&["resources", list]).make_object().insert(name, value.to_string());
}

/// Fills what a pod that speaks of its resources as a whole leaves open (kubernetes `pkg/api/pod`,
/// DefaultPodLevelResources).
pub fn default_pod_level(spec: &mut Value) {
    let says_something = |spec: &Value| {
        ["requests", "limits"].iter().any(|list| spec.object_at(&["resources", list]).is_some_and(|it| !it.is_empty()))
    };
    if !says_something(spec) {
        return;
    }
    let limits = aggregate(spec, List::Limits);
    for (name, value) in limits.iter().filter(|(name, _)| is_huge_pages(name)) {
        if member(spec, "requests", name).is_none() && member(spec, "limits", name).is_none() {
            set_amount(spec, "limits", name, value);
        }
    }
    for (name, value) in aggregate(spec, List::Requests) {
        if is_pod_level(&name) && is_overcommit_allowed(&name) && member(spec, "requests", &name).is_none() {
            set_amount(spec, "requests", &name, &value);
        }
    }
    for (name, value) in spec.object_at(&["resources", "limits"]).cloned().unwrap_or_default() {
        if is_pod_level(&name) && member(spec, "requests", &name).is_none() {
            spec.make(&["resources", "requests"]).make_object().insert(name, value);
        }
    }
    default_limits(spec);
}

/// A limit for each request, where every container has one.
fn default_limits(spec: &mut Value) {
    let limits = aggregate(spec, List::Limits);
    let requests = spec.object_at(&["resources", "requests"]).cloned().unwrap_or_default();
    for (name, request) in requests {
        let open = is_pod_level(&name) && member(spec, "limits", &name).is_none();
        let everyone = ["initContainers", "containers"]
            .iter()
            .flat_map(|list| items(spec, list))
            .all(|container| container.at(&["resources", "limits", &name]).is_some());
        if let Some(limit) = limits.get(name.as_str()).filter(|_| open && everyone) {
            let request = super::quantities::quantity(&request);
            let limit = if request.cmp(limit).is_gt() { &request } else { limit };
            set_amount(spec, "limits", &name, limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn class(resources: Value) -> &'static str {
        compute(&json!({"containers": [{"resources": resources}]}))
    }

    #[test]
    fn classes_follow_from_cpu_and_memory() {
        assert_eq!(class(json!({})), BEST_EFFORT);
        assert_eq!(class(json!({"requests": {"ephemeral-storage": "1Gi"}})), BEST_EFFORT);
        assert_eq!(class(json!({"requests": {"memory": "1Gi"}})), BURSTABLE);
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(class(json!({"requests": (both.clone()), "limits": (both.clone())})), GUARANTEED);
        let spec = json!({"containers": [{}, {"resources": {"requests": (both.clone()), "limits": both}}]});
        assert_eq!(compute(&spec), BURSTABLE);
    }

    #[test]
    fn a_pod_that_limits_itself_requests_what_its_containers_do() {
        let mut spec = json!({
            "containers": [{"resources": {"requests": {"cpu": "500m"}}}],
            "resources": {"limits": {"cpu": "2", "memory": "2Gi"}}
        });
        default_pod_level(&mut spec);
        assert_eq!(spec.at(&["resources", "requests"]), Some(&json!({"cpu": "500m", "memory": "2Gi"})));
    }
}
