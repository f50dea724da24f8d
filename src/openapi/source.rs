//! What documents are made from: names and verbs of resources, without any handle to a store or a server.

use std::sync::Arc;

use crate::object::Value;

/// A group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
}

/// One group and version with the resources it serves.
#[derive(Clone, Debug)]
pub struct GroupVersion {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub resources: Vec<Resource>,
    /// Custom resources: documents of the API extensions server, which differ in title, media types and parameters.
    pub custom: bool,
}

impl GroupVersion {
    /// `api/v1`, `apis/apps/v1`.
    pub fn path(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }

    pub fn gvk(&self, kind: &Arc<str>) -> Gvk {
        Gvk { group: self.group.clone(), version: self.version.clone(), kind: kind.clone() }
    }

    /// The name of a kind's model: from the type table for built-in kinds, the reversed group for custom ones.
    pub(super) fn model(&self, gvk: &Gvk) -> String {
        let own = gvk.group == self.group && gvk.version == self.version;
        if self.custom && own {
            custom_model(gvk)
        } else {
            super::models::of_kind(gvk).unwrap_or_else(|| custom_model(gvk))
        }
    }
}

/// `stable.example.com`, `v1`, `CronTab` → `com.example.stable.v1.CronTab`.
fn custom_model(gvk: &Gvk) -> String {
    let reversed: Vec<&str> = gvk.group.split('.').rev().collect();
    format!("{}.{}.{}", reversed.join("."), gvk.version, gvk.kind)
}

/// A resource in one version.
#[derive(Clone, Debug)]
pub struct Resource {
    pub plural: Arc<str>,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    pub namespaced: bool,
    /// Verbs as discovery lists them.
    pub verbs: Vec<&'static str>,
    /// A deletion answers the object instead of a Status.
    pub returns_deleted: bool,
    pub subresources: Vec<Subresource>,
    /// Custom resources: the schema as written; `None` where there is none (and for built-in kinds).
    pub schema: Option<Value>,
    /// Custom resources: JSON paths of selectable fields (`.spec.color`).
    pub selectable: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Subresource {
    pub name: Arc<str>,
    pub gvk: Gvk,
    pub verbs: Vec<&'static str>,
    /// Answered by a stream to somewhere else: `exec`, `attach`, `portforward`, `proxy`, `log`.
    pub connect: bool,
}
