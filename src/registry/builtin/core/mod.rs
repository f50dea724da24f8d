//! The core group.

use std::sync::Arc;

use super::kind::Own;
use crate::registry::{
    builtin::Wiring,
    resource::{Behaviour, SubresourceBehaviour},
};

mod config_map;
mod endpoints;
pub mod event;
mod limit_range;
mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
pub mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub mod service;
mod service_account;
mod token_request;
pub mod volume_spec;

/// Kinds with a strategy of another make than [`kind`](super::kind), or none.
pub fn behaviour(wiring: &Wiring, plural: &str) -> Option<Behaviour> {
    match plural {
        "pods" => Some(pod::behaviour(wiring)),
        "services" => Some(service::behaviour(&wiring.reader, &wiring.services)),
        "endpoints" => Some(Behaviour::Stored { strategy: Arc::new(endpoints::EndpointsStrategy), lifecycle: None }),
        "componentstatuses" => Some(Behaviour::Computed(wiring.components.clone())),
        "bindings" => Some(pod::bindings(wiring)),
        _ => None,
    }
}

/// What a kind of this group has of its own.
pub fn own(wiring: &Wiring, plural: &str) -> Option<Arc<dyn Own>> {
    Some(match plural {
        "configmaps" => Arc::new(config_map::ConfigMap),
        "events" => Arc::new(event::Event::Core),
        "limitranges" => Arc::new(limit_range::LimitRange),
        "namespaces" => Arc::new(namespace::Namespace),
        "nodes" => Arc::new(node::Node),
        "persistentvolumeclaims" => Arc::new(persistent_volume_claim::PersistentVolumeClaim),
        "persistentvolumes" => Arc::new(persistent_volume::PersistentVolume),
        "podtemplates" => Arc::new(pod_template::PodTemplate { pods: wiring.pods }),
        "replicationcontrollers" => Arc::new(replication_controller::ReplicationController { pods: wiring.pods }),
        "resourcequotas" => Arc::new(resource_quota::ResourceQuota),
        "secrets" => Arc::new(secret::Secret),
        "serviceaccounts" => Arc::new(service_account::ServiceAccount),
        _ => return None,
    })
}

/// How a subresource of this group behaves.
pub fn subresource(wiring: &Wiring, plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    match (plural, name) {
        ("pods", name) => pod::subresource(wiring, name),
        ("replicationcontrollers", "scale") => Some(super::apps::scale()),
        ("namespaces", "finalize") => Some(SubresourceBehaviour::Part(Arc::new(namespace::Finalize))),
        ("serviceaccounts", "token") => {
            let (issuer, reader) = (wiring.issuer.clone()?, wiring.reader.clone());
            Some(SubresourceBehaviour::Call(Arc::new(token_request::TokenRequest { issuer, reader })))
        }
        ("services", "status") => Some(service::status(&wiring.services)),
        _ => None,
    }
}
