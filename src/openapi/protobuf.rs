//! Documents as protobuf messages of gnostic's `OpenAPIv2.proto` and `OpenAPIv3.proto`, which is what clients ask for
//! to save time. The messages follow the JSON member by member, so a table says which member is which field.

use std::collections::BTreeMap;

use crate::object::{Map, Style, Value, write_json};

/// How a member is written.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    Number,
    Count,
    /// Repeated texts; one text counts as a list of it.
    Texts,
    /// Anything: its YAML, of which JSON is a part.
    Any,
    Anys,
    One(&'static Message),
    Many(&'static Message),
    /// A choice by what the value is.
    Choice(fn(&Value) -> Option<(u32, Kind)>),
    Choices(fn(&Value) -> Option<(u32, Kind)>),
    /// A message that wraps what it holds in field 1: lists of types, items of lists.
    Wrapped(&'static Kind),
}

/// A message made of an object.
struct Message {
    /// Name, tag, kind; in order of the tags.
    fields: &'static [(&'static str, u32, Kind)],
    /// Members that are no field, each with its name: tag, and what the value is. For most these are extensions.
    rest: (u32, Kind),
    /// Members that `rest` takes: extensions only, or all.
    takes: Takes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Extensions,
    All,
}

const fn message(fields: &'static [(&'static str, u32, Kind)], extensions: u32) -> Message {
    Message { fields, rest: (extensions, Kind::Any), takes: Takes::Extensions }
}

/// An object whose members are all alike: repeated name and value.
const fn named(tag: u32, value: Kind) -> Message {
    Message { fields: &[], rest: (tag, value), takes: Takes::All }
}

// OpenAPI v3

static INFO_3: Message =
    message(&[("title", 1, Kind::Text), ("description", 2, Kind::Text), ("version", 6, Kind::Text)], 7);
static REFERENCE: Message = message(&[("$ref", 1, Kind::Text), ("description", 3, Kind::Text)], 0);
static EXTERNAL_DOCS: Message = message(&[("description", 1, Kind::Text), ("url", 2, Kind::Text)], 3);

/// The value itself in field 1, or a reference in field 2.
macro_rules! or_reference {
    ($name:ident, $message:expr) => {
        fn $name(value: &Value) -> Option<(u32, Kind)> {
            Some(match value.get("$ref") {
                Some(Value::Str(_)) => (2, Kind::One(&REFERENCE)),
                _ => (1, Kind::One($message)),
            })
        }
    };
}
or_reference!(schema_or_reference, &SCHEMA_3);
or_reference!(parameter_or_reference, &PARAMETER_3);
or_reference!(body_or_reference, &BODY_3);
or_reference!(response_or_reference, &RESPONSE_3);
or_reference!(security_or_reference, &SECURITY_3);

fn additional_3(value: &Value) -> Option<(u32, Kind)> {
    Some(match value {
        Value::Bool(_) => (2, Kind::Flag),
        _ => (1, Kind::Choice(schema_or_reference)),
    })
}

/// Scalars alone have a place in `default`; anything else leaves it empty.
fn default_3(value: &Value) -> Option<(u32, Kind)> {
    match value {
        Value::Int(_) | Value::Float(_) => Some((1, Kind::Number)),
        Value::Bool(_) => Some((2, Kind::Flag)),
        Value::Str(_) => Some((3, Kind::Text)),
        _ => None,
    }
}

static SCHEMA_3: Message = message(
    &[
        ("nullable", 1, Kind::Flag),
        ("externalDocs", 6, Kind::One(&EXTERNAL_DOCS)),
        ("example", 7, Kind::Any),
        ("title", 9, Kind::Text),
        ("multipleOf", 10, Kind::Number),
        ("maximum", 11, Kind::Number),
        ("exclusiveMaximum", 12, Kind::Flag),
        ("minimum", 13, Kind::Number),
        ("exclusiveMinimum", 14, Kind::Flag),
        ("maxLength", 15, Kind::Count),
        ("minLength", 16, Kind::Count),
        ("pattern", 17, Kind::Text),
        ("maxItems", 18, Kind::Count),
        ("minItems", 19, Kind::Count),
        ("uniqueItems", 20, Kind::Flag),
        ("maxProperties", 21, Kind::Count),
        ("minProperties", 22, Kind::Count),
        ("required", 23, Kind::Texts),
        ("enum", 24, Kind::Anys),
        ("type", 25, Kind::Text),
        ("allOf", 26, Kind::Choices(schema_or_reference)),
        ("oneOf", 27, Kind::Choices(schema_or_reference)),
        ("anyOf", 28, Kind::Choices(schema_or_reference)),
        ("not", 29, Kind::One(&SCHEMA_3)),
        ("items", 30, Kind::Wrapped(&Kind::Choice(schema_or_reference))),
        ("properties", 31, Kind::One(&PROPERTIES_3)),
        ("additionalProperties", 32, Kind::Choice(additional_3)),
        ("default", 33, Kind::Choice(default_3)),
        ("description", 34, Kind::Text),
        ("format", 35, Kind::Text),
    ],
    36,
);
static PROPERTIES_3: Message = named(1, Kind::Choice(schema_or_reference));
static PARAMETER_3: Message = message(
    &[
        ("name", 1, Kind::Text),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("required", 4, Kind::Flag),
        ("schema", 10, Kind::Choice(schema_or_reference)),
    ],
    14,
);
static MEDIA_TYPE: Message = message(&[("schema", 1, Kind::Choice(schema_or_reference))], 5);
static MEDIA_TYPES: Message = named(1, Kind::One(&MEDIA_TYPE));
static BODY_3: Message =
    message(&[("description", 1, Kind::Text), ("content", 2, Kind::One(&MEDIA_TYPES)), ("required", 3, Kind::Flag)], 4);
static RESPONSE_3: Message = message(&[("description", 1, Kind::Text), ("content", 3, Kind::One(&MEDIA_TYPES))], 5);
static RESPONSES_3: Message = named(2, Kind::Choice(response_or_reference));
static OPERATION_3: Message = message(
    &[
        ("tags", 1, Kind::Texts),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("parameters", 6, Kind::Choices(parameter_or_reference)),
        ("requestBody", 7, Kind::Choice(body_or_reference)),
        ("responses", 8, Kind::One(&RESPONSES_3)),
    ],
    13,
);
static PATH_3: Message = message(
    &[
        ("get", 4, Kind::One(&OPERATION_3)),
        ("put", 5, Kind::One(&OPERATION_3)),
        ("post", 6, Kind::One(&OPERATION_3)),
        ("delete", 7, Kind::One(&OPERATION_3)),
        ("options", 8, Kind::One(&OPERATION_3)),
        ("head", 9, Kind::One(&OPERATION_3)),
        ("patch", 10, Kind::One(&OPERATION_3)),
        ("parameters", 13, Kind::Choices(parameter_or_reference)),
    ],
    14,
);
static SECURITY_3: Message = message(
    &[("type", 1, Kind::Text), ("description", 2, Kind::Text), ("name", 3, Kind::Text), ("in", 4, Kind::Text)],
    9,
);
static SECURITIES_3: Message = named(1, Kind::Choice(security_or_reference));

/// The `Document` of v3.
pub fn v3<'a>(
    info: &Value,
    security: &Value,
    paths: impl Iterator<Item = (&'a str, Value)>,
    models: impl Iterator<Item = (&'a str, Value)>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * 1024);
    text(&mut out, 1, "3.0.0");
    write(&mut out, 2, Kind::One(&INFO_3), info);
    bytes(&mut out, 4, &members(1, Kind::One(&PATH_3), paths));
    let mut components = Vec::new();
    let schemas = members(1, Kind::Choice(schema_or_reference), models);
    if !schemas.is_empty() {
        bytes(&mut components, 1, &schemas);
    }
    if security.as_object().is_some_and(|it| !it.is_empty()) {
        write(&mut components, 7, Kind::One(&SECURITIES_3), security);
    }
    bytes(&mut out, 5, &components);
    out
}

// OpenAPI v2

static INFO_2: Message =
    message(&[("title", 1, Kind::Text), ("version", 2, Kind::Text), ("description", 3, Kind::Text)], 7);
static JSON_REFERENCE: Message = message(&[("$ref", 1, Kind::Text), ("description", 2, Kind::Text)], 0);

fn additional_2(value: &Value) -> Option<(u32, Kind)> {
    Some(match value {
        Value::Bool(_) => (2, Kind::Flag),
        _ => (1, Kind::One(&SCHEMA_2)),
    })
}

static SCHEMA_2: Message = message(
    &[
        ("$ref", 1, Kind::Text),
        ("format", 2, Kind::Text),
        ("title", 3, Kind::Text),
        ("description", 4, Kind::Text),
        ("default", 5, Kind::Any),
        ("multipleOf", 6, Kind::Number),
        ("maximum", 7, Kind::Number),
        ("exclusiveMaximum", 8, Kind::Flag),
        ("minimum", 9, Kind::Number),
        ("exclusiveMinimum", 10, Kind::Flag),
        ("maxLength", 11, Kind::Count),
        ("minLength", 12, Kind::Count),
        ("pattern", 13, Kind::Text),
        ("maxItems", 14, Kind::Count),
        ("minItems", 15, Kind::Count),
        ("uniqueItems", 16, Kind::Flag),
        ("maxProperties", 17, Kind::Count),
        ("minProperties", 18, Kind::Count),
        ("required", 19, Kind::Texts),
        ("enum", 20, Kind::Anys),
        ("additionalProperties", 21, Kind::Choice(additional_2)),
        ("type", 22, Kind::Wrapped(&Kind::Texts)),
        ("items", 23, Kind::Wrapped(&Kind::One(&SCHEMA_2))),
        ("allOf", 24, Kind::Many(&SCHEMA_2)),
        ("properties", 25, Kind::One(&PROPERTIES_2)),
        ("externalDocs", 29, Kind::One(&EXTERNAL_DOCS)),
        ("example", 30, Kind::Any),
    ],
    31,
);
static PROPERTIES_2: Message = named(1, Kind::One(&SCHEMA_2));
static BODY_2: Message = message(
    &[
        ("description", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("required", 4, Kind::Flag),
        ("schema", 5, Kind::One(&SCHEMA_2)),
    ],
    6,
);
static QUERY_2: Message = message(
    &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 6, Kind::Text),
        ("format", 7, Kind::Text),
        ("uniqueItems", 20, Kind::Flag),
    ],
    23,
);
static IN_PATH_2: Message = message(
    &[
        ("required", 1, Kind::Flag),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 5, Kind::Text),
        ("format", 6, Kind::Text),
        ("uniqueItems", 19, Kind::Flag),
    ],
    22,
);

fn not_in_body(value: &Value) -> Option<(u32, Kind)> {
    Some(match value.str_at(&["in"]) {
        "path" => (4, Kind::One(&IN_PATH_2)),
        _ => (3, Kind::One(&QUERY_2)),
    })
}

fn parameter_2(value: &Value) -> Option<(u32, Kind)> {
    Some(match value.str_at(&["in"]) {
        "body" => (1, Kind::One(&BODY_2)),
        _ => (2, Kind::Choice(not_in_body)),
    })
}

fn parameter_item_2(value: &Value) -> Option<(u32, Kind)> {
    Some(match value.get("$ref") {
        Some(_) => (2, Kind::One(&JSON_REFERENCE)),
        None => (1, Kind::Choice(parameter_2)),
    })
}

static RESPONSE_2: Message =
    message(&[("description", 1, Kind::Text), ("schema", 2, Kind::Wrapped(&Kind::One(&SCHEMA_2)))], 5);
static RESPONSES_2: Message = named(1, Kind::Wrapped(&Kind::One(&RESPONSE_2)));
static OPERATION_2: Message = message(
    &[
        ("tags", 1, Kind::Texts),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("produces", 6, Kind::Texts),
        ("consumes", 7, Kind::Texts),
        ("parameters", 8, Kind::Choices(parameter_item_2)),
        ("responses", 9, Kind::One(&RESPONSES_2)),
        ("schemes", 10, Kind::Texts),
    ],
    13,
);
static PATH_2: Message = message(
    &[
        ("get", 2, Kind::One(&OPERATION_2)),
        ("put", 3, Kind::One(&OPERATION_2)),
        ("post", 4, Kind::One(&OPERATION_2)),
        ("delete", 5, Kind::One(&OPERATION_2)),
        ("options", 6, Kind::One(&OPERATION_2)),
        ("head", 7, Kind::One(&OPERATION_2)),
        ("patch", 8, Kind::One(&OPERATION_2)),
        ("parameters", 9, Kind::Choices(parameter_item_2)),
    ],
    10,
);
static API_KEY_2: Message = message(
    &[("type", 1, Kind::Text), ("name", 2, Kind::Text), ("in", 3, Kind::Text), ("description", 4, Kind::Text)],
    5,
);

/// The one way to prove who one is that documents show.
fn api_key_2(_: &Value) -> Option<(u32, Kind)> {
    Some((2, Kind::One(&API_KEY_2)))
}

static SECURITIES_2: Message = named(1, Kind::Choice(api_key_2));
static NO_SCOPES: Message = named(1, Kind::Wrapped(&Kind::Texts));

/// The `Document` of v2.
pub fn v2<'a>(
    info: &Value,
    security: &Value,
    paths: impl Iterator<Item = (&'a str, Value)>,
    models: impl Iterator<Item = (&'a str, Value)>,
    shared: &BTreeMap<String, Value>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024 * 1024);
    text(&mut out, 1, "2.0");
    write(&mut out, 2, Kind::One(&INFO_2), info);
    bytes(&mut out, 8, &members(2, Kind::One(&PATH_2), paths));
    bytes(&mut out, 9, &members(1, Kind::One(&SCHEMA_2), models));
    let shared = shared.iter().map(|(name, value)| (name.as_str(), value.clone()));
    bytes(&mut out, 10, &members(1, Kind::Choice(parameter_2), shared));
    write(&mut out, 12, Kind::One(&NO_SCOPES), &crate::json!({"BearerToken": []}));
    write(&mut out, 13, Kind::One(&SECURITIES_2), security);
    out
}

// Writing

/// Repeated messages of a name (1) and a value (2).
fn members<'a>(tag: u32, kind: Kind, members: impl Iterator<Item = (&'a str, Value)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in members {
        member(&mut out, tag, kind, name, &value);
    }
    out
}

fn member(out: &mut Vec<u8>, tag: u32, kind: Kind, name: &str, value: &Value) {
    let mut inner = Vec::new();
    text(&mut inner, 1, name);
    write(&mut inner, 2, kind, value);
    bytes(out, tag, &inner);
}

fn write(out: &mut Vec<u8>, tag: u32, kind: Kind, value: &Value) {
    match (kind, value) {
        (Kind::Text, Value::Str(it)) if !it.is_empty() => text(out, tag, it),
        (Kind::Flag, Value::Bool(true)) => flag(out, tag, true),
        (Kind::Number, _) => value.as_f64().filter(|it| *it != 0.0).into_iter().for_each(|it| number(out, tag, it)),
        (Kind::Count, Value::Int(it)) if *it != 0 => {
            varint(out, u64::from(tag) << 3);
            varint(out, *it as u64);
        }
        (Kind::Texts, Value::Str(it)) => text(out, tag, it),
        (Kind::Texts, Value::Array(items)) => items.iter().filter_map(Value::as_str).for_each(|it| text(out, tag, it)),
        (Kind::Any, _) => any(out, tag, value),
        (Kind::Anys, Value::Array(items)) => items.iter().for_each(|it| any(out, tag, it)),
        (Kind::One(message), Value::Object(map)) => bytes(out, tag, &of_object(message, map)),
        (Kind::Many(message), Value::Array(items)) => {
            items.iter().filter_map(Value::as_object).for_each(|map| bytes(out, tag, &of_object(message, map)));
        }
        (Kind::Choice(choose), _) => choice(out, tag, choose, value),
        (Kind::Choices(choose), Value::Array(items)) => items.iter().for_each(|it| choice(out, tag, choose, it)),
        (Kind::Wrapped(inner), _) => {
            let mut wrapped = Vec::new();
            write(&mut wrapped, 1, *inner, value);
            bytes(out, tag, &wrapped);
        }
        // Zero values are not written; anything else in a place where it does not belong is nothing.
        _ => {}
    }
}

fn choice(out: &mut Vec<u8>, tag: u32, choose: fn(&Value) -> Option<(u32, Kind)>, value: &Value) {
    let mut chosen = Vec::new();
    match choose(value) {
        // Which field is there says which choice was made, so zero values are written here.
        Some((tag, Kind::Text)) => text(&mut chosen, tag, value.as_str().unwrap_or("")),
        Some((tag, Kind::Flag)) => flag(&mut chosen, tag, value.as_bool().unwrap_or(false)),
        Some((tag, Kind::Number)) => number(&mut chosen, tag, value.as_f64().unwrap_or(0.0)),
        Some((tag, kind)) => write(&mut chosen, tag, kind, value),
        None => {}
    }
    bytes(out, tag, &chosen);
}

fn of_object(message: &Message, map: &Map) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, tag, kind) in message.fields {
        if let Some(value) = map.get(name) {
            write(&mut out, *tag, *kind, value);
        }
    }
    let (tag, kind) = message.rest;
    for (name, value) in map.iter() {
        if message.takes == Takes::All || name.starts_with("x-") {
            member(&mut out, tag, kind, name, value);
        }
    }
    out
}

/// Gnostic's `Any`: field 2 is YAML.
fn any(out: &mut Vec<u8>, tag: u32, value: &Value) {
    let mut yaml = Vec::new();
    write_json(&mut yaml, value, Style::Compact);
    yaml.push(b'\n');
    let mut inner = Vec::new();
    bytes(&mut inner, 2, &yaml);
    bytes(out, tag, &inner);
}

fn flag(out: &mut Vec<u8>, tag: u32, value: bool) {
    varint(out, u64::from(tag) << 3);
    out.push(u8::from(value));
}

fn number(out: &mut Vec<u8>, tag: u32, value: f64) {
    varint(out, u64::from(tag) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn text(out: &mut Vec<u8>, tag: u32, text: &str) {
    bytes(out, tag, text.as_bytes());
}

fn bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    varint(out, u64::from(tag) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
