//! Aggregated discovery: everything in one document (`apidiscovery.k8s.io/v2`).

use super::{
    pages::{texts, verbs},
    priorities::{ListedGroup, Origin},
};
use bytes::Bytes;

use crate::{
    json,
    object::{Map, Style, Value},
    registry::{
        catalog::{Catalog, Group, Row},
        resource::{Resource, Subresource, Version},
    },
};

/// One group of the document of `/apis`. `owner` answers the rows of a version by who serves it.
pub fn group<'a>(group: &ListedGroup, owner: impl Fn(Origin) -> Option<&'a Group>) -> Value {
    let versions =
        group.versions.iter().map(|listed| version(owner(listed.origin), &group.name, &listed.version, listed.origin));
    json!({"metadata": {"name": (group.name.as_str())}, "versions": (versions.collect::<Vec<_>>())})
}

/// [`document`] as JSON, out of the JSON of its groups.
pub fn join(items: &[Bytes]) -> Vec<u8> {
    // An empty document is what stands around the items.
    const EMPTY: &[u8] = b"\"items\":[";
    let mut out = super::print(&document(Vec::new()), Style::Compact);
    let at = out.windows(EMPTY.len()).position(|bytes| bytes == EMPTY).map_or(out.len(), |at| at + EMPTY.len());
    let tail = out.split_off(at);
    out.reserve(tail.len() + items.iter().map(|item| item.len() + 1).sum::<usize>());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.extend_from_slice(&tail);
    out
}

/// The document of `/api`.
pub fn legacy(catalog: &Catalog) -> Value {
    let group = catalog.group("").map(|group| &**group);
    let version = version(group, "", "v1", Origin::BuiltIn);
    document(vec![json!({"metadata": {}, "versions": [version]})])
}

/// A document of these groups.
pub fn document(items: Vec<Value>) -> Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn version(group: Option<&Group>, name: &str, version: &str, origin: Origin) -> Value {
    // What another server serves is not known here.
    let freshness = if origin == Origin::Remote { "Stale" } else { "Current" };
    let mut out = Map::from([("version", version), ("freshness", freshness)]);
    let rows = group.filter(|_| origin != Origin::Remote).into_iter().flat_map(Group::listed);
    let own: Vec<(&Row, &Version)> = rows.filter_map(|row| Some((&**row, row.resource.version(version)?))).collect();
    if !own.is_empty() {
        let custom = origin == Origin::Custom;
        let resources = own.into_iter().map(|(row, it)| resource(&row.resource, it, name, version, custom));
        out.insert("resources", resources.collect::<Vec<_>>());
    }
    Value::Object(out)
}

fn resource(it: &Resource, own: &Version, group: &str, version: &str, custom: bool) -> Value {
    let mut out = Map::from([
        ("resource", Value::from(&*it.plural)),
        ("responseKind", response_kind(custom, (group, version), (group, version), &it.kind)),
        ("scope", Value::from(if it.namespaced { "Namespaced" } else { "Cluster" })),
        ("singularResource", Value::from(&*it.singular)),
        ("verbs", Value::from(it.discovery_verbs())),
    ]);
    if !it.short_names.is_empty() {
        out.insert("shortNames", texts(&it.short_names));
    }
    if !it.categories.is_empty() {
        out.insert("categories", texts(&it.categories));
    }
    if !own.subresources.is_empty() {
        let mut subresources: Vec<&Subresource> = own.subresources.iter().collect();
        if !custom {
            subresources.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let subresources = subresources.into_iter().map(|it| subresource(it, group, version, custom));
        out.insert("subresources", subresources.collect::<Vec<_>>());
    }
    Value::Object(out)
}

/// The kind of what is answered. Built-in kinds of the same group and version do not repeat them.
fn response_kind(custom: bool, listed: (&str, &str), own: (&str, &str), kind: &str) -> Value {
    let (group, version) = if own == listed && !custom { ("", "") } else { own };
    json!({"group": group, "version": version, "kind": kind})
}

fn subresource(it: &Subresource, group: &str, version: &str, custom: bool) -> Value {
    json!({
        "subresource": (&*it.name),
        "responseKind": (response_kind(custom, (group, version), (&it.group, &it.version), &it.kind)),
        "verbs": (verbs(it.verbs))
    })
}
