//! The flowcontrol group.

use super::{Hooks, set};
use crate::object::Map;

pub const HOOKS: Hooks = &[
    ("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", |it, _| set::zero(it, "matchingPrecedence", 1000)),
    ("io.k8s.api.flowcontrol.v1.ExemptPriorityLevelConfiguration", |it, _| shares(it, 0)),
    ("io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration", |it, _| shares(it, 30)),
    ("io.k8s.api.flowcontrol.v1.QueuingConfiguration", |it, _| {
        set::zero(it, "handSize", 8);
        set::zero(it, "queues", 64);
        set::zero(it, "queueLengthLimit", 50);
    }),
];

fn shares(it: &mut Map, nominal: i64) {
    set::nil(it, "nominalConcurrencyShares", nominal);
    set::nil(it, "lendablePercent", 0);
}
