//! What a definition's schema may say, keyword by keyword (apiextensions-apiserver
//! `pkg/apis/apiextensions/validation/validation.go`, `ValidateCustomResourceDefinitionOpenAPISchema`).
//!
//! Rules (`x-kubernetes-validations`) are checked for their form; their expressions are not compiled.

use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Map, Value},
    schema::structural::{check, field_path},
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is asked of a schema; an update is not asked what the old object did not keep.
#[derive(Clone, Copy, Debug)]
pub struct SchemaOptions {
    pub valid_types: bool,
    pub atomic_sets: bool,
    pub keys_of_maps: bool,
}

/// Where a node stands, as far as that decides what it may say.
#[derive(Clone, Copy)]
struct Place<'a> {
    root: bool,
    inside_meta: bool,
    /// Why no default may be here.
    no_default: Option<&'a str>,
}

/// All problems of a schema.
pub fn validate_schema(schema: &Value, options: SchemaOptions, path: &Path<'_>, errors: &mut ErrorList) {
    node(schema, options, Place { root: true, inside_meta: false, no_default: None }, path, errors);
}

/// The type a keyword has to have, in upstream's words.
fn demand_type(kind: &str, wanted: &str, why: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("type");
    match kind {
        kind if kind == wanted => {}
        "" => errors.push(FieldError::required(&path, why)),
        kind => errors.push(FieldError::invalid(&path, kind, why)),
    }
}

fn node(schema: &Value, options: SchemaOptions, place: Place<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    keywords(schema, options, place, path, errors);
    if schema.bool_at(&["uniqueItems"]) {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&path.child("uniqueItems"), why));
    }
    below(schema, options, place, path, errors);
    if schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(false) {
        let path = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&path, false, "must be true or undefined"));
    }
    map_type(schema, path, errors);
    list_type(schema, options, path, errors);
    if options.keys_of_maps {
        keys_and_nulls(schema, path, errors);
    }
    rules(schema, path, errors);
}

fn keywords(schema: &Value, options: SchemaOptions, place: Place<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = schema.str_at(&["type"]);
    if options.valid_types && !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
    }
    if let Some(reason) = place.no_default.filter(|_| schema.get("default").is_some_and(|it| !it.is_null())) {
        errors.push(FieldError::forbidden(&path.child("default"), format!("must not be set {reason}").trim_end()));
    }
    let mut refuse = |keyword: &str, why: &str| errors.push(FieldError::forbidden(&path.child(keyword), why));
    for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let set = match keyword {
            "id" | "patternProperties" | "definitions" => check::says(schema, keyword),
            _ => schema.get(keyword).is_some_and(|it| !it.is_null()),
        };
        if set {
            refuse(keyword, &format!("{keyword} is not supported"));
        }
    }
    if kind == "null" {
        refuse("type", "type cannot be set to null, use nullable as an alternative");
    }
    if !schema.array_at(&["items"]).is_empty() {
        refuse("items", "items must be a schema object and not an array");
    }
    if place.inside_meta && schema.bool_at(&["x-kubernetes-embedded-resource"]) {
        refuse("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
    }
}

fn below(schema: &Value, options: SchemaOptions, place: Place<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let inner = Place { root: false, ..place };
    if let Some(additional) = schema.get("additionalProperties").filter(|it| !it.is_null()) {
        let path = path.child("additionalProperties");
        if check::properties(schema).next().is_some() && additional.as_bool() != Some(true) {
            errors.push(FieldError::forbidden(&path, "additionalProperties and properties are mutual exclusive"));
        }
        if additional.as_object().is_some() {
            let reason = "inside additionalProperties applying to object metadata";
            let place = if place.inside_meta { Place { no_default: Some(reason), ..inner } } else { inner };
            node(additional, options, place, &path, errors);
        }
    }
    let properties_path = path.child("properties");
    for (name, property) in check::properties(schema) {
        let meta = matches!(name, "metadata" | "kind" | "apiVersion");
        let embedded = schema.bool_at(&["x-kubernetes-embedded-resource"]);
        let reason = format!("in top-level {name}");
        let place = Place {
            root: false,
            inside_meta: place.inside_meta || (meta && (place.root || embedded)),
            no_default: if meta && place.root { Some(&reason) } else { place.no_default },
        };
        node(property, options, place, &properties_path.key(name), errors);
    }
    if let Some(not) = schema.get("not").filter(|it| it.as_object().is_some()) {
        node(not, options, inner, &path.child("not"), errors);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        let path = path.child(junctor);
        for (at, branch) in schema.array_at(&[junctor]).iter().enumerate() {
            node(branch, options, inner, &path.index(at), errors);
        }
    }
    let named = |keyword: &str| schema.object_at(&[keyword]).into_iter().flat_map(Map::iter);
    let definitions_path = path.child("definitions");
    named("definitions").for_each(|(name, it)| node(it, options, inner, &definitions_path.key(name), errors));
    let items_path = path.child("items");
    match schema.get("items") {
        Some(Value::Array(items)) => {
            items.iter().enumerate().for_each(|(at, it)| node(it, options, inner, &items_path.index(at), errors));
        }
        Some(items @ Value::Object(_)) => node(items, options, inner, &items_path, errors),
        _ => {}
    }
    let dependencies_path = path.child("dependencies");
    for (name, it) in named("dependencies").filter(|(_, it)| it.as_object().is_some()) {
        node(it, options, inner, &dependencies_path.key(name), errors);
    }
}

fn map_type(schema: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) else { return };
    demand_type(
        schema.str_at(&["type"]),
        "object",
        "must be object if x-kubernetes-map-type is specified",
        path,
        errors,
    );
    if !["atomic", "granular"].contains(&map_type) {
        errors.push(FieldError::not_supported(&path.child("x-kubernetes-map-type"), map_type, &["atomic", "granular"]));
    }
}

/// Items of a set must be one thing each; what is wrong with these.
fn non_atomic_item(items: &Value) -> Option<&'static str> {
    let said = |keyword: &str| items.get(keyword).and_then(Value::as_str);
    match items.str_at(&["type"]) {
        "array" => said("x-kubernetes-list-type").filter(|it| *it != "atomic").map(|_| "x-kubernetes-list-type"),
        "object" => (said("x-kubernetes-map-type") != Some("atomic")).then_some("x-kubernetes-map-type"),
        _ => None,
    }
}

/// Whether some set has items that are not one thing each.
pub fn has_non_atomic_set(schema: &Value) -> bool {
    schema.str_at(&["x-kubernetes-list-type"]) == "set" && check::items(schema).and_then(non_atomic_item).is_some()
}

fn list_type(schema: &Value, options: SchemaOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    let type_path = path.child("x-kubernetes-list-type");
    let kind = schema.str_at(&["type"]);
    if let Some(list_type) = list_type {
        if kind != "array" {
            demand_type(kind, "array", "must be array if x-kubernetes-list-type is specified", path, errors);
        } else if options.atomic_sets
            && list_type == "set"
            && let Some(items) = check::items(schema)
            && let Some(keyword) = non_atomic_item(items)
        {
            // Upstream shows the list type, also where the map type is wrong.
            let shown = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            errors.push(FieldError::invalid_ref(&path.child("items").child(keyword), shown, why));
        }
        if !["atomic", "set", "map"].contains(&list_type) {
            errors.push(FieldError::not_supported(&type_path, list_type, &["atomic", "set", "map"]));
        }
    }
    let keys = schema.array_at(&["x-kubernetes-list-map-keys"]);
    if !keys.is_empty() {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => errors.push(FieldError::required(&type_path, why)),
            Some("map") => {}
            Some(other) => errors.push(FieldError::invalid(&type_path, other, why)),
        }
    }
    if list_type == Some("map") {
        map_list(schema, keys, path, errors);
    }
}

fn map_list(schema: &Value, keys: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let keys_path = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_path = path.child("items");
    let items = match schema.get("items") {
        None | Some(Value::Null) => {
            return errors
                .push(FieldError::required(&items_path, "must have a schema if x-kubernetes-list-type is map"));
        }
        Some(Value::Array(_)) => {
            let shown = super::internal::schema(schema);
            let shown = shown
                .split("\"Items\":")
                .nth(1)
                .and_then(|rest| rest.split(",\"AllOf\"").next())
                .unwrap_or("")
                .to_owned();
            let why = "must only have a single schema if x-kubernetes-list-type is map";
            return errors.push(FieldError::invalid_shown(&items_path, shown, why));
        }
        Some(items) => items,
    };
    let kind = items.str_at(&["type"]);
    if kind != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.push(FieldError::invalid(&items_path.child("type"), kind, why));
    }
    let all: Value = keys.to_vec().into();
    let mut seen = std::collections::HashSet::new();
    for key in keys.iter().filter_map(Value::as_str) {
        match items.at(&["properties", key]).map(|it| it.str_at(&["type"])) {
            Some("array" | "object") => {
                let properties = items_path.child("properties");
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(&properties.key(key).child("type"), kind, why));
            }
            Some(_) => {}
            None => {
                errors.push(FieldError::invalid_ref(&keys_path, &all, "entries must all be names of item properties"))
            }
        }
        if !seen.insert(key) {
            errors.push(FieldError::invalid_ref(&keys_path, &all, "must not contain duplicate entries"));
        }
    }
}

/// Items of sets and maps are never null, and keys are always there.
pub fn keys_and_nulls(schema: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let list_type = schema.str_at(&["x-kubernetes-list-type"]);
    let Some(items) = check::items(schema).filter(|_| matches!(list_type, "set" | "map")) else { return };
    let items_path = path.child("items");
    if items.bool_at(&["nullable"]) {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&items_path.child("nullable"), &why));
    }
    if list_type != "map" {
        return;
    }
    let properties_path = items_path.child("properties");
    for key in schema.array_at(&["x-kubernetes-list-map-keys"]).iter().filter_map(Value::as_str) {
        let Some(property) = items.at(&["properties", key]) else { continue };
        let required = items.array_at(&["required"]).iter().any(|it| it.as_str() == Some(key));
        if !required && property.get("default").is_none_or(Value::is_null) {
            let why =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&properties_path.key(key).child("default"), why));
        }
        if property.bool_at(&["nullable"]) {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&properties_path.key(key).child("nullable"), why));
        }
    }
}

fn rules(schema: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("x-kubernetes-validations");
    let breaks = |text: &str| text.contains(['\n', '\r']);
    for (at, rule) in schema.array_at(&["x-kubernetes-validations"]).iter().enumerate() {
        let path = path.index(at);
        let text = |key: &str| rule.str_at(&[key]);
        let message = text("message");
        if text("rule").trim().is_empty() {
            errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(&path.child("message"), message, "must be non-empty if specified"));
        } else if breaks(message.trim()) {
            errors.push(FieldError::invalid(&path.child("message"), message, "must not contain line breaks"));
        } else if breaks(text("rule").trim()) && message.trim().is_empty() {
            errors.push(FieldError::required(
                &path.child("message"),
                "message must be specified if rule contains line breaks",
            ));
        }
        let expression = text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&path.child("messageExpression"), why));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|it| !REASONS.contains(it)) {
            errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
        }
        let field = text("fieldPath");
        if field.is_empty() {
            continue;
        }
        let path = path.child("fieldPath");
        if field.trim().is_empty() {
            errors.push(FieldError::invalid(&path, field, "must be non-empty if specified"));
        }
        if breaks(field) {
            errors.push(FieldError::invalid(&path, field, "must not contain line breaks"));
        }
        if check::unreadable(schema).is_none() && field_path::resolve(field, schema, true).is_err() {
            errors.push(FieldError::invalid(&path, field, "must be a valid path"));
        }
    }
}

/// Whether `wanted` is true of a schema or any schema in it.
pub fn any(schema: &Value, wanted: &dyn Fn(&Value) -> bool) -> bool {
    if wanted(schema) {
        return true;
    }
    let lists = ["items", "allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| schema.array_at(&[key]));
    let maps = ["properties", "patternProperties", "definitions", "dependencies"];
    let maps = maps.into_iter().flat_map(|key| schema.object_at(&[key])).flat_map(Map::values);
    let ones =
        ["items", "not", "additionalProperties", "additionalItems"].into_iter().filter_map(|key| schema.get(key));
    lists.chain(maps).chain(ones).filter(|it| it.as_object().is_some()).any(|inner| any(inner, wanted))
}

pub fn has_invalid_type(schema: &Value) -> bool {
    let kind = schema.str_at(&["type"]);
    !kind.is_empty() && !TYPES.contains(&kind)
}

pub fn has_default(schema: &Value) -> bool {
    schema.get("default").is_some_and(|it| !it.is_null())
}

/// Whether a schema uses what only structural schemas may.
pub fn has_extensions(schema: &Value) -> bool {
    const NAMES: [&str; 6] = [
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ];
    NAMES.iter().any(|name| check::says(schema, name))
        || schema.get("x-kubernetes-preserve-unknown-fields").is_some_and(|it| !it.is_null())
}
