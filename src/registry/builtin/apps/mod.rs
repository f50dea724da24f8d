//! The group `apps`.

use std::sync::Arc;

use super::kind::Own;
use crate::registry::{
    builtin::Wiring,
    resource::{ScalePaths, SubresourceBehaviour},
};

mod controller_revision;
mod daemon_set;
mod deployment;
pub mod replica_set;
mod stateful_set;
pub mod workload;

/// What a kind of this group has of its own.
pub fn own(wiring: &Wiring, plural: &str) -> Option<Arc<dyn Own>> {
    let pods = wiring.pods;
    Some(match plural {
        "controllerrevisions" => Arc::new(controller_revision::ControllerRevision),
        "daemonsets" => Arc::new(daemon_set::DaemonSet { pods }),
        "deployments" => Arc::new(deployment::Deployment { pods }),
        "replicasets" => Arc::new(replica_set::ReplicaSet { pods }),
        "statefulsets" => Arc::new(stateful_set::StatefulSet { pods }),
        _ => return None,
    })
}

/// How a subresource of this group behaves; the status is like everybody's.
pub fn subresource(plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    match (plural, name) {
        ("deployments" | "replicasets" | "statefulsets", "scale") => Some(scale()),
        _ => None,
    }
}

/// The Scale of workloads.
pub fn scale() -> SubresourceBehaviour {
    let path = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    SubresourceBehaviour::Scale(Arc::new(ScalePaths {
        spec_replicas: path(["spec", "replicas"]),
        status_replicas: path(["status", "replicas"]),
        selector: Some(path(["spec", "selector"])),
        default_replicas: Some(1),
    }))
}
