//! Custom resource definitions and API services.

use super::{Hooks, set};
use crate::{
    json,
    object::{Key, Map, Value},
};

pub const HOOKS: Hooks = &[
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", |it, _| {
        custom_resource_definition(it)
    }),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference", |it, _| set::nil(it, "port", 443)),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference", |it, _| set::nil(it, "port", 443)),
];

fn custom_resource_definition(it: &mut Map) {
    let spec = set::child(it, "spec");
    let names = set::child(spec, "names");
    let kind = set::text(names, "kind").to_owned();
    if !kind.is_empty() {
        set::empty(names, "singular", kind.to_lowercase());
        set::empty(names, "listKind", kind + "List");
    }
    set::nil(spec, "conversion", json!({"strategy": "None"}));
    let versions = spec.get("versions").and_then(Value::as_array).unwrap_or(&[]);
    let stored = versions.iter().find(|version| version.bool_at(&["storage"]));
    let stored = stored.map(|version| version.str_at(&["name"]).to_owned());
    let status = set::child(it, "status");
    if let Some(stored) = stored
        && set::has_none(status, "storedVersions")
    {
        status.insert(Key::from_static("storedVersions"), json!([stored]));
    }
}
