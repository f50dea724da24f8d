//! Field ownership of a write: which manager, through which endpoint, in which version.

use jiff::Timestamp;

use super::Scope;
use crate::{
    api::duration::format_time,
    object::Value,
    registry::{resource::SubresourceBehaviour, strategy::ResetFields},
    schema::{
        builtin,
        ownership::{self, Converted, FieldFilter, Replicas, Versions, WriteContext},
    },
    server::context::Exchange,
};

/// The version of a Scale, whatever it belongs to.
const SCALE: &str = "autoscaling/v1";

/// Longest name taken from a user agent, in bytes.
const MAX_MANAGER: usize = 128;

/// The manager's name: what the request says, else the user agent up to its first slash.
pub fn manager(cx: &Exchange, given: &str) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    let agent = cx.header("user-agent").split('/').next().unwrap_or("");
    let mut name = String::new();
    for c in agent.chars().filter(|c| super::options::printable(*c)) {
        if name.len() + c.len_utf8() > MAX_MANAGER {
            break;
        }
        name.push(c);
    }
    name
}

/// The other versions of the scope's kind.
struct Others<'a>(&'a Scope<'a>);

impl Versions for Others<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Converted<'_> {
        let resource = self.0.resource;
        let Some(version) = resource.versions.iter().find(|version| &*version.group_version == api_version) else {
            return Converted::Missing;
        };
        let mut value = object.clone();
        let from = object.str_at(&["apiVersion"]).to_owned();
        match resource.convert(&mut value, &from, api_version) {
            Ok(()) => {
                let (table, ty) = version.schema.typed();
                Converted::Object { table, ty, value }
            }
            Err(error) => Converted::Failed(error.message.clone()),
        }
    }
}

/// Runs `write` with who writes through this endpoint.
pub fn with_context<T>(
    scope: &Scope<'_>,
    manager: &str,
    now: Timestamp,
    write: impl FnOnce(&WriteContext<'_>) -> T,
) -> T {
    let now = format_time(now);
    let reset = match scope.strategy().reset_fields() {
        _ if scope.is_scale() => FieldFilter::All,
        ResetFields::None => FieldFilter::All,
        ResetFields::Without(fields) => FieldFilter::Without(fields),
        ResetFields::Only(patterns) => FieldFilter::Only(patterns),
    };
    write(&WriteContext {
        manager,
        subresource: scope.subresource_name(),
        api_version: if scope.is_scale() { SCALE } else { scope.group_version() },
        now: &now,
        reset,
        versions: Some(&Others(scope)),
    })
}

/// Writes `metadata.managedFields` of a Scale.
pub fn track_scale(scope: &Scope<'_>, manager: &str, live: &Value, new: &mut Value) {
    let Some(ty) = builtin().kind("autoscaling", "v1", "Scale") else { return };
    with_context(scope, manager, crate::api::clock::now_seconds(), |context| {
        ownership::update_managed_fields(builtin(), ty, Some(live), new, context);
    });
}

/// Where the versions of the scope's kind keep the replicas that a Scale shows.
pub fn replicas(scope: &Scope<'_>) -> Replicas {
    let mut replicas = Replicas::of(scope.group_version());
    for version in &scope.resource.versions {
        let paths = version.subresources.iter().find_map(|subresource| match &subresource.behaviour {
            SubresourceBehaviour::Scale(paths) => Some(paths.spec_replicas.as_slice()),
            _ => None,
        });
        replicas.serve(&version.group_version, paths);
    }
    replicas
}

/// Writes `metadata.managedFields` of an object in the request's version.
pub fn track(scope: &Scope<'_>, manager: &str, live: Option<&Value>, new: &mut Value) {
    let (table, ty) = scope.version.schema.typed();
    with_context(scope, manager, crate::api::clock::now_seconds(), |context| {
        ownership::update_managed_fields(table, ty, live, new, context);
    });
}

/// Writes `metadata.managedFields` of a document that is answered and not stored.
pub fn track_call(scope: &Scope<'_>, manager: &str, new: &mut Value) {
    let Some(subresource) = scope.subresource else { return track(scope, manager, None, new) };
    let Some(ty) = builtin().kind(&subresource.group, &subresource.version, &subresource.kind) else { return };
    let api_version = new.str_at(&["apiVersion"]).to_owned();
    with_context(scope, manager, crate::api::clock::now_seconds(), |context| {
        let context = WriteContext { api_version: &api_version, versions: None, ..*context };
        ownership::update_managed_fields(builtin(), ty, None, new, &context);
    });
}
