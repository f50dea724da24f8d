//! node.k8s.io.

use std::sync::Arc;

use super::kind::Own;

mod runtime_class;

pub const GROUP: &str = "node.k8s.io";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    match plural {
        "runtimeclasses" => Some(Arc::new(runtime_class::RuntimeClass)),
        _ => None,
    }
}
