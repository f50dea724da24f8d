//! The networking and discovery groups.

use super::{Hooks, set};
use crate::{
    json,
    object::{Key, Map},
};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.networking.v1.NetworkPolicy", |it, _| network_policy(it)),
    ("io.k8s.api.networking.v1.NetworkPolicyPort", |it, _| set::nil(it, "protocol", "TCP")),
    ("io.k8s.api.networking.v1.IngressClass", |it, _| {
        if let Some(parameters) = set::some_child(set::child(it, "spec"), "parameters") {
            set::nil(parameters, "scope", "Cluster");
        }
    }),
    ("io.k8s.api.networking.v1beta1.HTTPIngressPath", |it, _| set::nil(it, "pathType", "ImplementationSpecific")),
    ("io.k8s.api.discovery.v1.EndpointPort", |it, _| {
        set::nil(it, "name", "");
        set::nil(it, "protocol", "TCP");
    }),
];

/// A policy that does not say is about ingress, and about egress if it has rules for it.
fn network_policy(it: &mut Map) {
    let spec = set::child(it, "spec");
    if set::has_none(spec, "policyTypes") {
        let types = if set::has_none(spec, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        spec.insert(Key::from_static("policyTypes"), types);
    }
}
