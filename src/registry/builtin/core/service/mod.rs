//! Services (kubernetes `pkg/registry/core/service`, `pkg/apis/core/validation`, `pkg/api/service`).
//!
//! A Service is a union over `spec.type` whose fields depend on each other, so three things run around its writes:
//! [`strategy`] clears what a type has no use for and judges the result, [`allocate`] reads what the client means with
//! its cluster IPs and families and takes addresses and ports, and [`addresses`] and [`ports`] know what is free.
//! An address is taken by making its `IPAddress` object, a port by a bit in memory that is set anew out of the stored
//! Services when the process starts. Nothing here talks to the storage: objects are made and read through handles.

mod addresses;
mod allocate;
mod families;
mod ports;
pub mod resolve;
mod strategy;
mod validation;
mod view;
mod warnings;

use std::sync::Arc;

use ipnet::IpNet;

pub use addresses::{AddressFuture, Addresses, ClaimError, contains};
pub use ports::{NodePorts, PortProblem, PortRange};
pub use view::{Family, cluster_ips, node_ports_of, takes_address};

use crate::registry::{
    reader::ObjectReader,
    resource::{Behaviour, SubresourceBehaviour},
};

/// What allocation needs: options of the generation and handles that outlive it.
#[derive(Clone)]
pub struct Allocation {
    /// `--service-cluster-ip-range`: one or two, of different families; the first is the default family.
    pub ranges: Vec<IpNet>,
    pub node_ports: PortRange,
    pub addresses: Arc<dyn Addresses>,
    pub ports: Arc<NodePorts>,
}

impl Allocation {
    /// The families that Services may have, the default one first.
    fn families(&self) -> Vec<Family> {
        self.ranges.iter().map(|range| Family::of(range.addr())).collect()
    }

    fn default_family(&self) -> Family {
        self.families().first().copied().unwrap_or(Family::V4)
    }
}

/// The row's behaviour.
pub fn behaviour(reader: &Arc<dyn ObjectReader>, allocation: &Allocation) -> Behaviour {
    Behaviour::Stored {
        strategy: Arc::new(strategy::ServiceStrategy { default_family: allocation.default_family() }),
        lifecycle: Some(Arc::new(allocate::Allocators::new(allocation.clone(), reader.clone()))),
    }
}

/// `services/status`.
pub fn status(allocation: &Allocation) -> SubresourceBehaviour {
    SubresourceBehaviour::Part(Arc::new(strategy::StatusStrategy { default_family: allocation.default_family() }))
}
