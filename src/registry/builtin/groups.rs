//! Which group's module answers for a kind.

use std::sync::Arc;

use super::{
    apiextensions, apiregistration, apps, autoscaling, batch, certificates, coordination, core, discovery, events,
    kind::{Kind, Own, Plain, StatusEndpoint},
    networking, node, policy, rbac, reviews, rules, scheduling, storage,
};
use crate::registry::{
    resource::{Behaviour, Convert, SubresourceBehaviour},
    strategy::Strategy,
};

/// What the behaviour of built-in kinds may use: handles of the generation that the rows are made for.
pub struct Wiring {
    pub reader: Arc<dyn crate::registry::reader::ObjectReader>,
    pub authorizer: Arc<crate::auth::authz::Union>,
    pub authenticators: Arc<crate::auth::authn::Authenticators>,
    pub components: Arc<dyn crate::registry::resource::Compute>,
    pub pods: core::pod::PodPolicy,
    pub services: core::service::Allocation,
    /// `None`: there is no key to sign tokens with, and they cannot be asked for.
    pub issuer: Option<Arc<crate::auth::issuer::Issuer>>,
    /// Where calls find what they write; filled once the rows are made.
    pub stores: Arc<crate::registry::catalog::Stores>,
}

/// How the objects of a kind come about; `version` and `kind` name the type they are stored as.
pub fn behaviour(wiring: &Wiring, group: &str, plural: &str, version: &str, kind: &str) -> Behaviour {
    let other = match group {
        "" => core::behaviour(wiring, plural),
        "discovery.k8s.io" => discovery::behaviour(plural),
        networking::GROUP => networking::behaviour(plural),
        apiextensions::GROUP => apiextensions::behaviour(plural),
        rbac::GROUP => rbac::strategy(plural).map(stored),
        "authentication.k8s.io" | "authorization.k8s.io" => reviews::behaviour(wiring, plural),
        _ => None,
    };
    other.unwrap_or_else(|| {
        let stored_group = if group == events::GROUP { "" } else { group };
        Kind::new(rules::of(group, plural), own(wiring, group, plural), (stored_group, version, kind)).behaviour()
    })
}

/// What a kind adds to its row of rules.
fn own(wiring: &Wiring, group: &str, plural: &str) -> Arc<dyn Own> {
    let own = match group {
        "" => core::own(wiring, plural),
        apiregistration::GROUP if plural == "apiservices" => {
            Some(Arc::new(apiregistration::ApiService) as Arc<dyn Own>)
        }
        "apps" => apps::own(wiring, plural),
        autoscaling::GROUP => autoscaling::own(plural),
        batch::GROUP => batch::own(wiring, plural),
        coordination::GROUP => coordination::own(plural),
        events::GROUP => events::own(plural),
        networking::GROUP => networking::own(plural),
        node::GROUP => node::own(plural),
        policy::GROUP => policy::own(plural),
        scheduling::GROUP => scheduling::own(plural),
        storage::GROUP => storage::own(plural),
        _ => None,
    };
    own.unwrap_or_else(|| Arc::new(Plain))
}

/// How a subresource behaves; `None`: it is not served.
pub fn subresource(wiring: &Wiring, group: &str, plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    let other = match group {
        "" => core::subresource(wiring, plural, name),
        apiextensions::GROUP => apiextensions::subresource(plural, name),
        "apps" => apps::subresource(plural, name),
        certificates::GROUP => certificates::subresource(plural, name),
        networking::GROUP => networking::subresource(plural, name),
        _ => None,
    };
    let status = || StatusEndpoint::behaviour(rules::of(group, plural), own(wiring, group, plural));
    other
        .or_else(|| streams(group, plural, name).map(SubresourceBehaviour::Connect))
        .or_else(|| (name == "status").then(status))
}

/// Subresources that stream to somewhere else.
fn streams(group: &str, plural: &str, name: &str) -> Option<&'static str> {
    const STREAMS: [(&str, &str); 7] = [
        ("pods", "log"),
        ("pods", "exec"),
        ("pods", "attach"),
        ("pods", "portforward"),
        ("pods", "proxy"),
        ("services", "proxy"),
        ("nodes", "proxy"),
    ];
    let found = STREAMS.iter().find(|(of, it)| group.is_empty() && *of == plural && *it == name);
    found.map(|(_, name)| *name)
}

/// Objects of this strategy, without more around their writes.
fn stored(strategy: Arc<dyn Strategy>) -> Behaviour {
    Behaviour::Stored { strategy, lifecycle: None }
}

/// Conversion between the versions of one resource.
pub fn convert(group: &str, plural: &str) -> Option<Convert> {
    match (group, plural) {
        (events::GROUP, "events") => Some(Arc::new(|event, _from, to| core::event::convert(event, to))),
        (autoscaling::GROUP, "horizontalpodautoscalers") => {
            Some(Arc::new(|autoscaler, _from, to| autoscaling::convert(autoscaler, to)))
        }
        _ => None,
    }
}

/// The warning of a deprecated version.
pub fn deprecation(group_version: &str, kind: &str) -> Option<String> {
    match (group_version, kind) {
        ("v1", "Endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned())
        }
        ("v1", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+".to_owned()),
        _ => None,
    }
}
