//! scheduling.k8s.io.

use std::sync::Arc;

use super::kind::Own;

mod priority_class;

pub const GROUP: &str = "scheduling.k8s.io";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    match plural {
        "priorityclasses" => Some(Arc::new(priority_class::PriorityClass)),
        _ => None,
    }
}
