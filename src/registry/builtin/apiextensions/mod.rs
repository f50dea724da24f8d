//! CustomResourceDefinitions. What becomes of them is in [`crate::registry::dynamic`].

pub mod approval;
mod internal;
pub mod schema_rules;
mod strategy;
mod validation;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{
    api::{ErrorList, Path},
    object::Value,
    registry::{
        dynamic::definition,
        resource::{Behaviour, SubresourceBehaviour},
    },
    schema::structural::check,
};

pub const GROUP: &str = definition::GROUP;

/// What a kind of this group has of its own.
pub fn behaviour(plural: &str) -> Option<Behaviour> {
    let strategy = Arc::new(strategy::DefinitionStrategy);
    (plural == definition::RESOURCE).then(|| Behaviour::Stored { strategy, lifecycle: None })
}

/// How a subresource of this group behaves.
pub fn subresource(plural: &str, name: &str) -> Option<SubresourceBehaviour> {
    let status = (plural, name) == (definition::RESOURCE, "status");
    status.then(|| SubresourceBehaviour::Part(Arc::new(strategy::DefinitionStatus)))
}

/// What the condition NonStructuralSchema of a definition should say: status, reason and message; `None` where its schemas
/// are structural (apiextensions-apiserver `pkg/controller/nonstructuralschema`).
pub fn non_structural(crd: &Value) -> Option<(&'static str, &'static str, String)> {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    if crd.bool_at(&["spec", "preserveUnknownFields"]) {
        errors.push(crate::api::FieldError::invalid(&spec.child("preserveUnknownFields"), true, "must be false"));
    }
    let versions = spec.child("versions");
    for (at, version) in definition::versions(crd).iter().enumerate() {
        let Some(schema) = definition::schema(version) else { continue };
        if let Some(why) = check::unreadable(schema) {
            let name = version.str_at(&["name"]);
            return Some((
                "Unknown",
                "StructuralError",
                format!("failed to check validation schema for version {name}: {why}"),
            ));
        }
        let path = versions.index(at);
        errors.extend(check::structural_problems(schema, &path.child("schema").child("openAPIV3Schema")));
    }
    (!errors.is_empty()).then(|| ("True", "Violations", errors.to_string()))
}
