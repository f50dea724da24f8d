//! Whether a schema is structural (apiextensions-apiserver `pkg/apiserver/schema/{validation,complete,convert}.go`).
//!
//! Works on the schema as it is written (`openAPIV3Schema` in its v1 form).

use super::go_regex;
use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Map, Value},
};

/// Keywords that no structural schema can hold, with what is said of them.
const UNSUPPORTED: [(&str, &str); 7] = [
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
];

/// Whether a keyword says something: it is there, and not null, false, empty text or an empty list.
pub fn says(schema: &Value, keyword: &str) -> bool {
    match schema.get(keyword) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Str(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => {
            !map.is_empty() || !matches!(keyword, "patternProperties" | "definitions" | "dependencies")
        }
        Some(_) => true,
    }
}

/// The properties of a node.
pub fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema.object_at(&["properties"]).into_iter().flat_map(Map::iter).map(|(name, value)| (name.as_str(), value))
}

/// The schema of a node's items, where it is one schema.
pub fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|it| matches!(it, Value::Object(_)))
}

/// The schema of what has no property of its own, where it is one.
pub fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|it| matches!(it, Value::Object(_)))
}

fn has_additional(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(|it| !it.is_null())
}

/// Why a schema cannot even be read as a structural one.
pub fn unreadable(schema: &Value) -> Option<String> {
    for (keyword, name) in UNSUPPORTED {
        if says(schema, keyword) {
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if schema.get("additionalItems").is_some_and(|it| !it.is_null()) {
        return Some("OpenAPIV3Schema 'additionalItems' is not supported".into());
    }
    let nested = schema.get("not").into_iter();
    let nested = nested.chain(["allOf", "anyOf", "oneOf"].iter().flat_map(|junctor| schema.array_at(&[junctor])));
    if let Some(why) = nested.filter(|it| it.as_object().is_some()).find_map(unreadable) {
        return Some(why);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(false) {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".into());
    }
    if !schema.array_at(&["items"]).is_empty() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".into());
    }
    let below = items(schema).into_iter().chain(properties(schema).map(|(_, it)| it)).chain(additional(schema));
    below.into_iter().find_map(unreadable)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a readable schema from being structural, sorted by text.
pub fn structural_problems(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = ErrorList::new();
    invariants(schema, Level::Root, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    let mut errors: Vec<FieldError> = errors.into_iter().collect();
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(schema: &Value, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = schema.str_at(&["type"]);
    let extension = |name: &str| schema.bool_at(&[name]);
    let embedded = extension("x-kubernetes-embedded-resource");
    let preserves = extension("x-kubernetes-preserve-unknown-fields");
    let int_or_string = extension("x-kubernetes-int-or-string");
    match items(schema) {
        None if kind == "array" => errors.push(FieldError::required(&path.child("items"), "must be specified")),
        None => {}
        Some(items) => invariants(items, Level::Item, &path.child("items"), errors),
    }
    let properties_path = path.child("properties");
    for (name, property) in properties(schema) {
        invariants(property, Level::Field, &properties_path.key(name), errors);
    }
    if has_additional(schema) {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if let Some(inner) = additional(schema) {
            invariants(inner, Level::Field, &path, errors);
        }
    }
    for (name, set) in
        [("x-kubernetes-preserve-unknown-fields", preserves), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            errors.push(FieldError::invalid(
                &path.child(name),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            ));
        }
    }
    let any_of = is_int_or_string(schema.array_at(&["anyOf"]));
    let all_of = schema.array_at(&["allOf"]).first().is_some_and(|it| is_int_or_string(it.array_at(&["anyOf"])));
    value_validation(schema, any_of, all_of, path, errors);
    types(schema, level, embedded, preserves || int_or_string, path, errors);
    let checks_metadata = level == Level::Root || embedded;
    if checks_metadata {
        for name in ["kind", "apiVersion"] {
            let given = schema.at(&["properties", name]).map(|it| it.str_at(&["type"]));
            if let Some(given) = given.filter(|it| *it != "string") {
                errors.push(FieldError::invalid(&properties_path.key(name).child("type"), given, "must be string"));
            }
        }
    }
    if let Some(metadata) = schema.at(&["properties", "metadata"]) {
        metadata_invariants(metadata, checks_metadata, level, &properties_path.key("metadata"), errors);
    }
    if embedded && !preserves && properties(schema).next().is_none() {
        let why =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&properties_path, why));
    }
}

fn types(schema: &Value, level: Level, embedded: bool, may_miss: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = schema.str_at(&["type"]);
    let path_of_type = path.child("type");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&path_of_type, why),
            kind => FieldError::invalid(&path_of_type, kind, why),
        });
    } else if kind.is_empty() && !may_miss {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&path_of_type, why));
    }
    if embedded && has_additional(schema) {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&path_of_type, kind, "must be object at the root"));
    }
}

/// Of an object's metadata a schema may say something of its names alone.
fn metadata_invariants(metadata: &Value, checks: bool, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = metadata.str_at(&["type"]);
    if checks && kind != "object" {
        errors.push(FieldError::invalid(&path.child("type"), kind, "must be object"));
    }
    if level != Level::Root {
        return;
    }
    let names_only = properties(metadata).all(|(name, _)| matches!(name, "name" | "generateName"));
    let allowed = |keyword: &str| matches!(keyword, "type" | "default") || (keyword == "properties" && names_only);
    let keywords = metadata.as_object().into_iter().flat_map(Map::keys);
    if keywords.into_iter().any(|keyword| !allowed(keyword) && says(metadata, keyword)) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, why));
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, the one place where a junctor may name types.
fn is_int_or_string(branches: &[Value]) -> bool {
    let only_type = |branch: &Value, kind: &str| {
        branch.as_object().is_some_and(|map| map.keys().all(|key| key.as_str() == "type" || !says(branch, key)))
            && branch.str_at(&["type"]) == kind
    };
    matches!(branches, [first, second] if only_type(first, "integer") && only_type(second, "string"))
}

fn value_validation(
    schema: &Value,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if !skip_any_of {
        junctor(schema, "anyOf", false, path, errors);
    }
    junctor(schema, "allOf", skip_first_all_of, path, errors);
    junctor(schema, "oneOf", false, path, errors);
    if let Some(not) = schema.get("not").filter(|it| it.as_object().is_some()) {
        nested(not, false, &path.child("not"), errors);
    }
    let pattern = schema.str_at(&["pattern"]);
    if !pattern.is_empty()
        && let Err(why) = go_regex::compiled(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(&path.child("pattern"), pattern, &why));
    }
}

fn junctor(schema: &Value, name: &'static str, skip_first: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child(name);
    for (at, branch) in schema.array_at(&[name]).iter().enumerate() {
        nested(branch, skip_first && at == 0, &path.index(at), errors);
    }
}

fn nested(schema: &Value, skip_any_of: bool, path: &Path<'_>, errors: &mut ErrorList) {
    value_validation(schema, skip_any_of, false, path, errors);
    if let Some(items) = items(schema) {
        nested(items, false, &path.child("items"), errors);
    }
    let properties_path = path.child("properties");
    for (name, property) in properties(schema) {
        nested(property, false, &properties_path.key(name), errors);
    }
    let forbidden_additional = match schema.get("additionalProperties") {
        Some(Value::Bool(allowed)) => *allowed,
        other => other.is_some_and(|it| !it.is_null()),
    };
    const FORBIDDEN: [(&str, &str); 12] = [
        ("type", "must be empty to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    if forbidden_additional {
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), "must be undefined to be structural"));
    }
    for (keyword, why) in FORBIDDEN {
        let set = match keyword {
            // Anything at all is a default.
            "default" => schema.get(keyword).is_some_and(|it| !it.is_null()),
            _ => says(schema, keyword),
        };
        if set {
            errors.push(FieldError::forbidden(&path.child(keyword), why));
        }
    }
    if schema.at(&["properties", "metadata"]).is_some() {
        errors
            .push(FieldError::forbidden(&properties_path.key("metadata"), "must not be specified in a nested context"));
    }
}

/// What junctors of the root mention must be in the structure.
fn complete(schema: &Value, structure: Option<&Value>, s_path: &Path<'_>, v_path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(not) = schema.get("not").filter(|it| it.as_object().is_some()) {
        complete_nested(not, structure, s_path, &v_path.child("not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let path = v_path.child(name);
        for (at, branch) in schema.array_at(&[name]).iter().enumerate() {
            complete_nested(branch, structure, s_path, &path.index(at), errors);
        }
    }
}

fn complete_nested(
    schema: &Value,
    structure: Option<&Value>,
    s_path: &Path<'_>,
    v_path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let missing =
        |path: &Path<'_>, of: &Path<'_>| FieldError::required(path, &format!("because it is defined in {of}"));
    let Some(structure) = structure else { return errors.push(missing(s_path, v_path)) };
    complete(schema, Some(structure), s_path, v_path, errors);
    if let Some(inner) = items(schema) {
        complete_nested(inner, items(structure), &s_path.child("items"), &v_path.child("items"), errors);
    }
    let (s_path, v_path) = (s_path.child("properties"), v_path.child("properties"));
    for (name, property) in properties(schema) {
        let (s_path, v_path) = (s_path.key(name), v_path.key(name));
        match structure.at(&["properties", name]) {
            Some(own) => complete_nested(property, Some(own), &s_path, &v_path, errors),
            None => errors.push(missing(&s_path, &v_path)),
        }
    }
}
