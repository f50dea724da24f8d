//! events.k8s.io: the other face of core events.

use std::sync::Arc;

use super::{core::event::Event, kind::Own};

pub const GROUP: &str = "events.k8s.io";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    match plural {
        "events" => Some(Arc::new(Event::Events)),
        _ => None,
    }
}
