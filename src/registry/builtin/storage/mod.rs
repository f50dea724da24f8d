//! storage.k8s.io.

use std::sync::Arc;

use super::kind::Own;

mod csi_driver;

pub const GROUP: &str = "storage.k8s.io";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    match plural {
        "csidrivers" => Some(Arc::new(csi_driver::CsiDriver)),
        _ => None,
    }
}
