//! Labels and selectable fields of stored objects, for the cache.

use crate::{
    object::{Map, Value, parse},
    registry::resource::Resource,
    storage::cache::{Attributes, Attrs},
};

/// Reads the fields a row's versions select by, out of stored JSON.
pub struct FieldAttributes {
    /// Label of the selector and the members that lead to its value.
    fields: Vec<(String, Vec<String>)>,
}

impl FieldAttributes {
    pub fn of(resource: &Resource) -> Self {
        let labels = resource.versions.iter().flat_map(|version| &version.selectable.labels);
        let mut fields: Vec<(String, Vec<String>)> = labels
            .filter(|label| !matches!(label.as_str(), "metadata.name" | "metadata.namespace"))
            .map(|label| (label.clone(), stored_path(&resource.group, label)))
            .collect();
        if &*resource.prefix == EVENTS {
            fields = events();
        }
        fields.sort();
        fields.dedup();
        Self { fields }
    }
}

/// Both faces of events read one cache, so its objects carry the fields of both.
const EVENTS: &str = "/registry/events/";

fn events() -> Vec<(String, Vec<String>)> {
    const ABOUT: [&str; 7] = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];
    const OWN: [&str; 5] = ["reason", "type", "source", "reportingComponent", "reportingController"];
    let about = |face: &str| ABOUT.map(|member| format!("{face}.{member}"));
    let labels = about("involvedObject").into_iter().chain(about("regarding")).chain(OWN.map(str::to_owned));
    labels
        .map(|label| {
            let path = stored_path("events.k8s.io", &label);
            (label, path)
        })
        .collect()
}

/// Where a selector's value is in the stored object. Events of `events.k8s.io` are stored as core events, and a few
/// names are not paths (kubernetes `pkg/apis/core/v1/conversion.go`).
fn stored_path(group: &str, label: &str) -> Vec<String> {
    let path = match (group, label) {
        ("events.k8s.io", "reportingController") => "reportingComponent".to_owned(),
        ("events.k8s.io", label) => label.replacen("regarding.", "involvedObject.", 1),
        (_, "spec.host") => "spec.nodeName".to_owned(),
        (_, "status.successful") => "status.succeeded".to_owned(),
        (_, label) => label.to_owned(),
    };
    path.split('.').map(str::to_owned).collect()
}

impl Attributes for FieldAttributes {
    fn attributes(&self, value: &[u8]) -> Attrs {
        let Ok(object) = parse(value) else { return Attrs::default() };
        let labels = object.object_at(&["metadata", "labels"]);
        let labels =
            labels.into_iter().flat_map(Map::iter).filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        let fields = self.fields.iter().map(|(label, path)| (label.as_str(), field(&object, label, path)));
        Attrs::new(labels, fields)
    }
}

fn field(object: &Value, label: &str, path: &[String]) -> String {
    let at = |path: &[String]| path.iter().try_fold(object, |node, key| node.get(key));
    match label {
        "source" => {
            let source = object.str_at(&["source", "component"]);
            let source = if source.is_empty() { object.str_at(&["reportingComponent"]) } else { source };
            return source.to_owned();
        }
        "status.podIP" => {
            let first = object.array_at(&["status", "podIPs"]).first().map_or("", |ip| ip.str_at(&["ip"]));
            let plain = object.str_at(&["status", "podIP"]);
            return if plain.is_empty() { first } else { plain }.to_owned();
        }
        // Booleans that are false where absent.
        "spec.unschedulable" | "spec.hostNetwork" => {
            return at(path).and_then(Value::as_bool).unwrap_or(false).to_string();
        }
        // Numbers that are zero where absent.
        "status.replicas" | "status.successful" => return at(path).and_then(Value::as_i64).unwrap_or(0).to_string(),
        _ => {}
    }
    match at(path) {
        None | Some(Value::Null) => String::new(),
        Some(Value::Str(text)) => text.clone(),
        Some(other) => crate::object::to_string(other),
    }
}
