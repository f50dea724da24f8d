//! networking.k8s.io.

mod ingress;
mod ingress_class;
pub mod ip_address;
mod network_policy;
mod reference;
mod service_cidr;

use std::sync::Arc;

use super::kind::Own;
use crate::registry::{
    resource::{Behaviour, SubresourceBehaviour},
    strategy::Strategy,
};

pub const GROUP: &str = "networking.k8s.io";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    Some(match plural {
        "ingressclasses" => Arc::new(ingress_class::IngressClass),
        "ingresses" => Arc::new(ingress::Ingress),
        "networkpolicies" => Arc::new(network_policy::NetworkPolicy),
        _ => return None,
    })
}

/// Kinds with a strategy of another make than [`kind`](super::kind).
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
