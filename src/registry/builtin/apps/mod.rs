//! The group `apps`.

use crate::registry::{
    builtin::Wiring,
    resource::{Behaviour, SubresourceBehaviour},
};

/// What a kind of this group has of its own.
pub fn behaviour(_wiring: &Wiring, plural: &str) -> Option<Behaviour> {
    match plural {
        _ => None,
    }
}

/// How a subresource of this group behaves.
pub fn subresource(_wiring: &Wiring, plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    match (plural, name) {
        _ => None,
    }
}
