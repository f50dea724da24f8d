//! Pods, at full depth: every rule of their spec and status, their subresources, and what templates of workloads
//! share with them.
//!
//! Rules run on decoded and defaulted trees: what is missing is Go's zero value, and null members are gone. Feature
//! gates have their defaults of 1.37. Errors come in upstream's order and words; where upstream walks a map in random
//! order, names go in order here. Mirrors kubernetes `pkg/apis/core/validation/validation.go`, `pkg/api/pod`,
//! `pkg/registry/core/pod`.
//!
//! Read next: [`strategy`] for the endpoints, `spec` for the order of rules, [`template`] for workloads.

mod annotations;
mod binding;
mod budget;
mod claim_template;
mod containers;
mod difference;
mod disabled;
mod disks;
mod env;
mod eviction;
mod mounts;
mod network;
mod options;
mod probes;
mod projected;
mod qos;
pub mod quantities;
mod resize;
pub mod resources;
mod scheduling;
mod security;
mod spec;
mod status;
mod strategy;
mod template;
mod update;
mod view;
mod volumes;
mod warnings;
mod windows;

use std::sync::Arc;

pub use claim_template::validate_claim_spec;
pub use difference::unified;
pub use disks::iscsi_name_error;
pub use options::{PodOptions, PodPolicy};
pub use projected::validate_signer_name;
pub use quantities::{Amounts, List, aggregate, has_pod_level_resources, is_integer};
pub use resources::validate_container_resource_name;
pub use scheduling::{
    validate_node_selector, validate_node_selector_term, validate_preferred_terms, validate_tolerations,
};
pub use spec::validate_overhead;
pub use status::set_condition;
pub use strategy::{EphemeralContainersStrategy, PodStatusStrategy, PodStrategy, ResizeStrategy};
pub use template::{prepare_template, validate_pod_template_spec};
pub use volumes::validate_shared_source;
pub use warnings::{
    claim_warnings, deprecated_node_label, node_selector_term_warnings, template_warnings, workload_name_warning,
};

use crate::{
    api::Path,
    registry::{
        builtin::{Wiring, internal},
        resource::{Behaviour, SubresourceBehaviour},
    },
};

/// What upstream tells errors at that are about no field: an empty path, which prints as `[]`.
static ROOT: Path<'static> = Path::ROOT;
static EMPTY_PATH: Path<'static> = ROOT.key("");

/// How pods are stored.
pub fn behaviour(wiring: &Wiring) -> Behaviour {
    Behaviour::Stored { strategy: Arc::new(PodStrategy { policy: wiring.pods }), lifecycle: None }
}

/// The resource `bindings`, which is answered and not stored.
pub fn bindings(wiring: &Wiring) -> Behaviour {
    Behaviour::Call(Arc::new(binding::Binding { stores: wiring.stores.clone() }))
}

/// How a subresource of pods behaves; `None` where others know it.
pub fn subresource(wiring: &Wiring, name: &str) -> Option<SubresourceBehaviour> {
    let policy = wiring.pods;
    Some(match name {
        "status" => SubresourceBehaviour::Part(Arc::new(PodStatusStrategy { policy })),
        "ephemeralcontainers" => SubresourceBehaviour::Part(Arc::new(EphemeralContainersStrategy { policy })),
        "binding" => SubresourceBehaviour::Call(Arc::new(binding::Binding { stores: wiring.stores.clone() })),
        "eviction" => {
            let (stores, reader) = (wiring.stores.clone(), wiring.reader.clone());
            SubresourceBehaviour::Call(Arc::new(eviction::Eviction { stores, reader, policy }))
        }
        "attach" => SubresourceBehaviour::Connect("attach"),
        "exec" => SubresourceBehaviour::Connect("exec"),
        "log" => SubresourceBehaviour::Connect("log"),
        "portforward" => SubresourceBehaviour::Connect("portforward"),
        "proxy" => SubresourceBehaviour::Connect("proxy"),
        "resize" => SubresourceBehaviour::Part(Arc::new(ResizeStrategy { policy })),
        _ => return None,
    })
}
