//! The core group.

pub mod pod;

use crate::registry::{
    builtin::Wiring,
    resource::{Behaviour, SubresourceBehaviour},
};

/// What a kind of this group has of its own.
pub fn behaviour(wiring: &Wiring, plural: &str) -> Option<Behaviour> {
    match plural {
        "pods" => Some(pod::behaviour(wiring)),
        "bindings" => Some(pod::bindings(wiring)),
        _ => None,
    }
}

/// How a subresource of this group behaves.
pub fn subresource(wiring: &Wiring, plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    match (plural, name) {
        ("pods", name) => pod::subresource(wiring, name),
        _ => None,
    }
}
