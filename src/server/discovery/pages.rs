//! The unaggregated documents: versions, groups, resources.

use super::priorities::ListedGroup;
use crate::{
    json,
    object::{Map, Value},
    registry::{
        catalog::Group,
        resource::{Resource, Subresource, Verb, Verbs, Version},
    },
};

/// `/api`. It says no apiVersion, as upstream's does not.
pub fn api_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    })
}

/// `/apis`.
pub fn group_list(groups: &[ListedGroup]) -> Value {
    let groups: Vec<Value> = groups.iter().map(|it| Value::Object(group_of(it))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`.
pub fn group(it: &ListedGroup) -> Value {
    let mut out = group_of(it);
    out.insert("kind", "APIGroup");
    out.insert("apiVersion", "v1");
    Value::Object(out)
}

fn group_of(it: &ListedGroup) -> Map {
    let version = |version: &str| json!({"groupVersion": (format!("{}/{version}", it.name)), "version": version});
    let versions: Vec<Value> = it.versions.iter().map(|listed| version(&listed.version)).collect();
    let mut out = Map::from([("name", Value::from(it.name.as_str()))]);
    if let Some(preferred) = versions.first() {
        out.insert("preferredVersion", preferred.clone());
    }
    out.insert("versions", versions);
    out
}

/// `/api/v1`, `/apis/<group>/<version>`.
pub fn resource_list(group: &Group, version: &str, custom: bool) -> Value {
    let mut resources: Vec<(String, Value)> = Vec::new();
    for row in group.listed() {
        let resource = &row.resource;
        let Some(own) = resource.version(version) else { continue };
        resources.push((resource.plural.to_string(), self::resource(resource, own)));
        for subresource in &own.subresources {
            let name = format!("{}/{}", resource.plural, subresource.name);
            let value = self::subresource(resource, own, subresource, &name);
            resources.push((name, value));
        }
    }
    if !custom {
        resources.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let name = &*group.name;
    let group_version = if name.is_empty() { version.to_owned() } else { format!("{name}/{version}") };
    let resources: Vec<Value> = resources.into_iter().map(|(_, value)| value).collect();
    let mut out = Map::from([
        ("kind", Value::from("APIResourceList")),
        ("groupVersion", Value::from(group_version)),
        ("resources", Value::from(resources)),
    ]);
    if !name.is_empty() {
        out.insert("apiVersion", "v1");
    }
    Value::Object(out)
}

fn resource(resource: &Resource, version: &Version) -> Value {
    let mut out = Map::from([
        ("name", Value::from(&*resource.plural)),
        ("singularName", Value::from(&*resource.singular)),
        ("namespaced", Value::from(resource.namespaced)),
        ("kind", Value::from(&*resource.kind)),
        ("verbs", Value::from(resource.discovery_verbs())),
    ]);
    if !resource.short_names.is_empty() {
        out.insert("shortNames", texts(&resource.short_names));
    }
    if !resource.categories.is_empty() {
        out.insert("categories", texts(&resource.categories));
    }
    if !version.storage_version_hash.is_empty() {
        out.insert("storageVersionHash", version.storage_version_hash.as_str());
    }
    Value::Object(out)
}

fn subresource(resource: &Resource, version: &Version, it: &Subresource, name: &str) -> Value {
    let mut out = Map::from([
        ("name", Value::from(name)),
        ("singularName", Value::from("")),
        ("namespaced", Value::from(resource.namespaced)),
        ("kind", Value::from(&*it.kind)),
        ("verbs", Value::from(verbs(it.verbs))),
    ]);
    if (&it.group, &it.version) != (&resource.group, &version.name) {
        out.insert("group", &*it.group);
        out.insert("version", &*it.version);
    }
    Value::Object(out)
}

pub fn texts(list: &[std::sync::Arc<str>]) -> Vec<Value> {
    list.iter().map(|it| Value::from(&**it)).collect()
}

/// The verbs of a subresource.
pub fn verbs(verbs: Verbs) -> Vec<&'static str> {
    verbs.iter().map(Verb::as_str).collect()
}
