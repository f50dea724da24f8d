//! coordination.k8s.io.

use std::sync::Arc;

use super::kind::Own;

mod lease;

pub const GROUP: &str = "coordination.k8s.io";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    match plural {
        "leases" => Some(Arc::new(lease::Lease)),
        _ => None,
    }
}
