//! The apps group.

use super::{Hooks, set};
use crate::{
    object::{Key, Map, Value},
    schema::defaults::Context,
};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.apps.v1.Deployment", |it, _| deployment(it)),
    ("io.k8s.api.apps.v1.DaemonSet", |it, _| daemon_set(it)),
    ("io.k8s.api.apps.v1.StatefulSet", stateful_set),
    ("io.k8s.api.apps.v1.ReplicaSet", |it, _| set::nil(set::child(it, "spec"), "replicas", 1)),
];

const ROLLING: &str = "RollingUpdate";

/// The `rollingUpdate` of a strategy that is one, made where it is missing.
fn rolling_update(strategy: &mut Map) -> Option<&mut Map> {
    set::empty(strategy, "type", ROLLING);
    if set::text(strategy, "type") != ROLLING {
        return None;
    }
    set::nil(strategy, "rollingUpdate", Value::object());
    set::some_child(strategy, "rollingUpdate")
}

fn deployment(it: &mut Map) {
    let spec = set::child(it, "spec");
    set::nil(spec, "replicas", 1);
    if let Some(rolling) = rolling_update(set::child(spec, "strategy")) {
        set::nil(rolling, "maxUnavailable", "25%");
        set::nil(rolling, "maxSurge", "25%");
    }
    set::nil(spec, "revisionHistoryLimit", 10);
    set::nil(spec, "progressDeadlineSeconds", 600);
}

fn daemon_set(it: &mut Map) {
    let spec = set::child(it, "spec");
    if let Some(rolling) = rolling_update(set::child(spec, "updateStrategy")) {
        set::nil(rolling, "maxUnavailable", 1);
        set::nil(rolling, "maxSurge", 0);
    }
    set::nil(spec, "revisionHistoryLimit", 10);
}

fn stateful_set(it: &mut Map, context: &Context) {
    let spec = set::child(it, "spec");
    set::empty(spec, "podManagementPolicy", "OrderedReady");
    let strategy = set::child(spec, "updateStrategy");
    // Unlike elsewhere, a strategy that was named does not get a `rollingUpdate` it does not have.
    if set::text(strategy, "type").is_empty() {
        strategy.insert(Key::from_static("type"), ROLLING);
        set::nil(strategy, "rollingUpdate", Value::object());
    }
    if set::text(strategy, "type") == ROLLING
        && let Some(rolling) = set::some_child(strategy, "rollingUpdate")
    {
        set::nil(rolling, "partition", 0);
        if (context.gates)("MaxUnavailableStatefulSet") {
            set::nil(rolling, "maxUnavailable", 1);
        }
    }
    set::nil(spec, "persistentVolumeClaimRetentionPolicy", Value::object());
    if let Some(policy) = set::some_child(spec, "persistentVolumeClaimRetentionPolicy") {
        set::empty(policy, "whenDeleted", "Retain");
        set::empty(policy, "whenScaled", "Retain");
    }
    set::nil(spec, "replicas", 1);
    set::nil(spec, "revisionHistoryLimit", 10);
}
