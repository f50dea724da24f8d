//! networking.k8s.io.

pub mod ip_address;
mod service_cidr;

use std::sync::Arc;

use crate::registry::{
    resource::{Behaviour, SubresourceBehaviour},
    strategy::Strategy,
};

/// What a kind of this group has of its own.
pub fn behaviour(plural: &str) -> Option<Behaviour> {
    let strategy: Arc<dyn Strategy> = match plural {
        "ipaddresses" => Arc::new(ip_address::IpAddressStrategy),
        "servicecidrs" => Arc::new(service_cidr::ServiceCidrStrategy),
        _ => return None,
    };
    Some(Behaviour::Stored { strategy, lifecycle: None })
}

/// How a subresource of this group behaves.
pub fn subresource(plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    match (plural, name) {
        ("servicecidrs", "status") => Some(SubresourceBehaviour::Part(Arc::new(service_cidr::StatusStrategy))),
        _ => None,
    }
}
