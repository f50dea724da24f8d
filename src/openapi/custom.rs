//! Models of custom resources, out of the schemas their authors wrote
//! (apiextensions-apiserver `pkg/controller/openapi/builder`, `pkg/controller/openapi/v2/conversion.go`).
//!
//! v3 says all that the schema says. v2 cannot: what kubectl of old would misread there is left out.

use super::{
    models::{Dialect, LIST_META, Models, OBJECT_META},
    source::{GroupVersion, Resource},
};
use crate::{
    json,
    object::{Key, Map, Value},
};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Where upstream's texts of members that every object has point to.
const CONVENTIONS: &str = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The most levels of a schema that are published; what the API admits is far less deep.
const MAX_DEPTH: usize = 256;

/// The model of a custom kind.
pub fn kind(source: &GroupVersion, resource: &Resource, writer: &Models<'_>) -> Value {
    let schema = resource.schema.as_ref().and_then(Value::as_object);
    let v2 = writer.dialect == Dialect::V2;
    let mut model = match schema {
        // Whoever reads v2 would take a list of properties as the whole.
        None => Map::from([("type", "object")]),
        Some(schema) if v2 && is_true(schema, PRESERVE) => Map::from([("type", "object")]),
        Some(schema) => {
            let mut model = published(schema, writer.dialect, MAX_DEPTH);
            complete(&mut model, writer, MAX_DEPTH);
            let properties = properties_of(&mut model);
            properties.insert("metadata", metadata(writer, OBJECT_META, "Standard object's metadata", "metadata"));
            type_meta(properties, writer);
            model
        }
    };
    let own = kinds(source, &resource.kind);
    model.insert("x-kubernetes-group-version-kind", own);
    selectable(&mut model, resource);
    Value::Object(model)
}

/// The model of a custom kind's list.
pub fn list(source: &GroupVersion, resource: &Resource, writer: &Models<'_>) -> Value {
    let item = writer.dialect.reference(&source.model(&source.gvk(&resource.kind)));
    let mut properties = Map::from([
        (
            "items",
            json!({
                "type": "array",
                "items": item,
                "description": (format!("List of {}. More info: {CONVENTIONS}", resource.plural))
            }),
        ),
        ("metadata", metadata(writer, LIST_META, "Standard list metadata", "types-kinds").into()),
    ]);
    type_meta(&mut properties, writer);
    let mut model = Map::from([
        ("type", Value::from("object")),
        ("description", Value::from(format!("{} is a list of {}", resource.list_kind, resource.kind))),
        ("required", Value::from(vec!["items"])),
        ("properties", Value::Object(properties)),
        ("x-kubernetes-group-version-kind", kinds(source, &resource.list_kind)),
    ]);
    selectable(&mut model, resource);
    Value::Object(model)
}

fn kinds(source: &GroupVersion, kind: &str) -> Value {
    json!([{"group": (&*source.group), "version": (&*source.version), "kind": kind}])
}

fn selectable(model: &mut Map, resource: &Resource) {
    if !resource.selectable.is_empty() {
        let fields = resource.selectable.iter().map(|path| Map::from([("fieldPath", path.as_str())]));
        model.insert("x-kubernetes-selectable-fields", fields.collect::<Vec<_>>());
    }
}

fn is_true(schema: &Map, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn properties_of(model: &mut Map) -> &mut Map {
    model.entry_or("properties", Value::object).make_object()
}

/// A reference to the model of metadata, with upstream's words about it.
fn metadata(writer: &Models<'_>, model: &str, what: &str, place: &str) -> Map {
    let mut reference = writer.dialect.described_reference(model);
    reference.insert("description", format!("{what}. More info: {CONVENTIONS}#{place}"));
    reference
}

/// `apiVersion` and `kind`, with the texts they have everywhere.
fn type_meta(properties: &mut Map, writer: &Models<'_>) {
    for name in ["apiVersion", "kind"] {
        let mut property = Map::from([("type", "string")]);
        if let Some(text) = writer.descriptions.of(super::models::STATUS, name) {
            property.insert("description", text);
        }
        properties.insert(name, property);
    }
}

/// Adds to objects inside the object (`x-kubernetes-embedded-resource`) what every object has.
fn complete(schema: &mut Map, writer: &Models<'_>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for child in children(schema) {
        complete(child, writer, depth);
    }
    if !is_true(schema, EMBEDDED) || (writer.dialect == Dialect::V2 && is_true(schema, PRESERVE)) {
        return;
    }
    let properties = properties_of(schema);
    for (name, what, place) in [
        ("apiVersion", "defines the versioned schema of this representation of an object", "resources"),
        ("kind", "is a string value representing the type of this object. In CamelCase", "types-kinds"),
    ] {
        let text = format!("{name} {what}. More info: {CONVENTIONS}#{place}");
        properties.insert(name, json!({"type": "string", "description": text}));
    }
    properties.insert("metadata", metadata(writer, OBJECT_META, "Standard object's metadata", "metadata"));
    let Value::Array(required) = schema.entry_or("required", || Value::Array(Vec::new())) else { return };
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|it| it.as_str() == Some(name)) {
            required.push(name.into());
        }
    }
}

/// The schemas of members, items and values.
fn children(schema: &mut Map) -> impl Iterator<Item = &mut Map> {
    schema.iter_mut().flat_map(|(name, value)| {
        let found: Vec<&mut Map> = match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().filter_map(Value::as_object_mut).collect()
            }
            ("items" | "additionalProperties", Value::Object(schema)) => vec![schema],
            _ => Vec::new(),
        };
        found
    })
}

/// A node as it is published: what has no effect is left out.
fn published(schema: &Map, dialect: Dialect, depth: usize) -> Map {
    let Some(depth) = depth.checked_sub(1) else { return Map::new() };
    let mut out = Map::new();
    let given = |(name, value): &(&Key, &Value)| matches!(name.as_str(), "default" | "example") || !is_empty(value);
    for (name, value) in schema.iter().filter(given) {
        let value = match (name.as_str(), value) {
            ("default", _) if dialect == Dialect::V2 => continue,
            ("allOf" | "anyOf" | "oneOf" | "not", _) if dialect == Dialect::V2 => continue,
            ("properties", Value::Object(properties)) => {
                let members = properties.iter().filter_map(|(name, schema)| Some((name.clone(), schema.as_object()?)));
                members.map(|(name, schema)| (name, published(schema, dialect, depth))).collect::<Map>().into()
            }
            ("items" | "additionalProperties", Value::Object(schema)) => published(schema, dialect, depth).into(),
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    // An empty schema is one all the same.
    for name in ["items", "additionalProperties"] {
        if let Some(Value::Object(_)) = schema.get(name) {
            out.entry_or(name, Value::object);
        }
    }
    match dialect {
        Dialect::V3 => unfold(&mut out),
        Dialect::V2 => lower(&mut out, schema),
    }
    out
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Str(text) => text.is_empty(),
        _ => false,
    }
}

/// An int-or-string says so in plain OpenAPI too.
fn unfold(schema: &mut Map) {
    if !is_true(schema, INT_OR_STRING) {
        return;
    }
    let either = || json!([{"type": "integer"}, {"type": "string"}]);
    let said = |value: Option<&Value>| value == Some(&either());
    let in_all_of = schema.get("allOf").and_then(Value::as_array).and_then(|all| all.first());
    if said(schema.get("anyOf")) || said(in_all_of.and_then(|first| first.get("anyOf"))) {
        return;
    }
    if !schema.contains_key("anyOf") {
        schema.insert("anyOf", either());
        return;
    }
    if let Value::Array(all) = schema.entry_or("allOf", || Value::Array(Vec::new())) {
        all.insert(0, json!({"anyOf": (either())}));
    }
}

/// What v2 cannot say, or what its readers would misunderstand, goes.
fn lower(out: &mut Map, schema: &Map) {
    if is_true(schema, "nullable") {
        for name in ["nullable", "type", "items", "properties"] {
            out.remove(name);
        }
    }
    if is_true(schema, PRESERVE) {
        out.remove("items");
        out.remove("properties");
    }
    let is = |out: &Map, name: &str| out.get("type").and_then(Value::as_str) == Some(name);
    if (is(out, "array") && !out.contains_key("items")) || (is(out, "object") && is_true(schema, PRESERVE)) {
        out.remove("type");
    }
    let nullable = |schema: &Value| schema.bool_at(&["nullable"]);
    let properties = schema.get("properties").and_then(Value::as_object);
    // Judged after nullable members lost their own properties, as upstream does.
    if let (Some(properties), Some(Value::Array(required))) = (properties, out.get_mut("required")) {
        required.retain(|name| !name.as_str().and_then(|name| properties.get(name)).is_some_and(nullable));
    }
    let values_nullable = schema.get("additionalProperties").is_some_and(nullable);
    if values_nullable || out.get("required").is_some_and(is_empty) {
        out.remove("required");
    }
}
