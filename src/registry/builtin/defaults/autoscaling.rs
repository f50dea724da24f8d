//! The autoscaling group.

use super::{Hooks, set};
use crate::{
    json,
    object::{Key, Map, Value},
};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", |it, _| set::nil(set::child(it, "spec"), "minReplicas", 1)),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler", |it, _| autoscaler(it)),
];

fn autoscaler(it: &mut Map) {
    let spec = set::child(it, "spec");
    set::nil(spec, "minReplicas", 1);
    if set::has_none(spec, "metrics") {
        let cpu = json!({"type": "Utilization", "averageUtilization": 80});
        let metrics = json!([{"type": "Resource", "resource": {"name": "cpu", "target": cpu}}]);
        spec.insert(Key::from_static("metrics"), metrics);
    }
    if let Some(behavior) = set::some_child(spec, "behavior") {
        scaling_rules(behavior, "scaleUp");
        scaling_rules(behavior, "scaleDown");
    }
}

/// Once there is a behavior, both directions are spelled out. The window for scaling down stays open, since
/// kube-controller-manager has a flag for it.
fn scaling_rules(behavior: &mut Map, direction: &'static str) {
    set::nil(behavior, direction, Value::object());
    let Some(rules) = set::some_child(behavior, direction) else { return };
    let by_percent = || json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    if direction == "scaleUp" {
        set::nil(rules, "stabilizationWindowSeconds", 0);
        set::nil(rules, "policies", json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, (by_percent())]));
    } else {
        set::nil(rules, "policies", json!([(by_percent())]));
    }
    // A list that was given, and given empty, keeps the defaults out.
    if set::has_none(rules, "policies") {
        rules.remove("policies");
    }
    set::nil(rules, "selectPolicy", "Max");
}
