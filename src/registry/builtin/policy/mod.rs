//! The group `policy`.

use std::sync::Arc;

use super::kind::Own;

mod pod_disruption_budget;

pub const GROUP: &str = "policy";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    match plural {
        "poddisruptionbudgets" => Some(Arc::new(pod_disruption_budget::PodDisruptionBudget)),
        _ => None,
    }
}
