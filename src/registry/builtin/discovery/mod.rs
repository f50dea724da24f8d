//! discovery.k8s.io.

mod endpoint_slice;

use std::sync::Arc;

use crate::registry::resource::Behaviour;

/// What a kind of this group has of its own.
pub fn behaviour(plural: &str) -> Option<Behaviour> {
    match plural {
        "endpointslices" => {
            Some(Behaviour::Stored { strategy: Arc::new(endpoint_slice::EndpointSliceStrategy), lifecycle: None })
        }
        _ => None,
    }
}
