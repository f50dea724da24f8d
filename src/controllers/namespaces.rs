//! What controllers of namespaces share: which namespaces changed, and whether one is active.

use std::sync::Arc;

use futures_util::StreamExt;

use super::{ChangeSource, work::Names};
use crate::registry::reader::ObjectReader;

/// Every namespace that is there, then every one that changes.
pub fn names_of_namespaces(changes: &dyn ChangeSource) -> Names<'_> {
    let names = changes.follow("", "namespaces", None);
    names.map(|objects| objects.into_iter().map(|object| object.name).collect()).boxed()
}

/// The namespaces in which an object of this name is there, then those in which it changes.
pub fn namespaces_of<'a>(changes: &'a dyn ChangeSource, resource: &'static str, name: &'static str) -> Names<'a> {
    let objects = changes.follow("", resource, Some(name));
    objects.map(|objects| objects.into_iter().map(|object| object.namespace).collect()).boxed()
}

pub fn is_active(reader: &dyn ObjectReader, namespace: &Arc<str>) -> bool {
    reader.get("", "namespaces", "", namespace).is_some_and(|it| it.str_at(&["status", "phase"]) == "Active")
}
