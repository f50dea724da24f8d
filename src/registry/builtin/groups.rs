//! Which group's module answers for a kind.

use std::sync::Arc;

use super::{apps, core, rbac, reviews};
use crate::{
    object::Value,
    registry::{
        resource::{Behaviour, Cells, Convert, SubresourceBehaviour},
        strategy::{DefaultStrategy, Strategy},
    },
};

/// What the behaviour of built-in kinds may use: handles of the generation that the rows are made for.
pub struct Wiring {
    pub reader: Arc<dyn crate::registry::reader::ObjectReader>,
    pub authorizer: Arc<crate::auth::authz::Union>,
    pub authenticators: Arc<crate::auth::authn::Authenticators>,
    pub pods: core::pod::PodPolicy,
    /// Where calls find what they write; filled once the rows are made.
    pub stores: Arc<crate::registry::catalog::Stores>,
}

/// A strategy of its own, or what answers instead of a store; `None`: the default strategy.
pub fn behaviour(wiring: &Wiring, group: &str, plural: &str) -> Option<Behaviour> {
    match group {
        "" => core::behaviour(wiring, plural),
        "apps" => apps::behaviour(wiring, plural),
        rbac::GROUP => rbac::strategy(plural).map(stored),
        "authentication.k8s.io" | "authorization.k8s.io" => reviews::behaviour(wiring, plural),
        _ => None,
    }
}

/// How a subresource behaves; `None`: it is not served. A status without a strategy of its own takes the status alone.
pub fn subresource(wiring: &Wiring, group: &str, plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    let own = match group {
        "" => core::subresource(wiring, plural, name),
        "apps" => apps::subresource(wiring, plural, name),
        _ => None,
    };
    own.or_else(|| streams(group, plural, name).map(SubresourceBehaviour::Connect))
        .or_else(|| (name == "status").then(|| SubresourceBehaviour::Part(Arc::new(StatusPart))))
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
pub fn convert(_group: &str, _plural: &str) -> Option<Convert> {
    None
}

/// The printer of a kind.
pub fn cells(group: &str, kind: &str, columns: usize) -> Cells {
    let own = match group {
        rbac::GROUP => rbac::cells(kind),
        _ => None,
    };
    if let Some(own) = own {
        return own;
    }
    Arc::new(move |object: &Value, _now| {
        // Kinds without a printer have a name and the time they were made.
        let made = object.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
        let mut cells = vec![Value::from(object.str_at(&["metadata", "name"])), made];
        cells.resize(columns.max(1), Value::Null);
        cells
    })
}

/// The warning of a deprecated version.
pub fn deprecation(group_version: &str, kind: &str) -> Option<String> {
    match (group_version, kind) {
        ("v1", "Endpoints") => Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()),
        ("v1", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+".to_owned()),
        _ => None,
    }
}

/// The status of kinds without a strategy of their own: nothing but the status is taken.
struct StatusPart;

impl Strategy for StatusPart {
    fn prepare_for_update(&self, _cx: &crate::registry::strategy::StrategyContext<'_>, new: &mut Value, old: &Value) {
        let status = new.remove_at(&["status"]);
        let metadata = new.remove_at(&["metadata"]);
        *new = old.clone();
        if let Some(map) = new.as_object_mut() {
            match status {
                Some(status) => map.insert("status", status),
                None => map.remove("status"),
            };
            if let Some(metadata) = metadata {
                map.insert("metadata", metadata);
            }
        }
    }
    fn validate_name(&self, name: &str, prefix: bool) -> crate::api::names::Messages {
        DefaultStrategy.validate_name(name, prefix)
    }
}
