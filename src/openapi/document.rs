//! Whole documents: operations and models written as JSON or protobuf, one path and one model at a time, so that the
//! largest document never stands in memory as a tree.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    custom,
    descriptions::Descriptions,
    models::{self, Dialect, LIST_META, Models, OBJECT_META},
    operations::{Body, Content, Operation, PathItem},
    parameters::{Parameter, Place},
    protobuf,
    sections::Section,
    source::{GroupVersion, Gvk},
};
use crate::{
    json,
    object::{Map, Style, Value, write_json},
};

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Json,
    Protobuf,
}

/// The OpenAPI v3 document of one section.
pub fn v3(section: &Section, form: Form) -> Vec<u8> {
    let custom = matches!(section, Section::GroupVersion(source) if source.custom);
    let loaded = (!custom).then(Descriptions::load);
    let paths = section.paths();
    let models = ModelSet::of(&[section], &paths);
    let writer = Models {
        dialect: Dialect::V3,
        descriptions: match &loaded {
            Some(all) => all,
            None => Descriptions::of_custom_resources(),
        },
        narrowed_to: match section {
            Section::GroupVersion(source) if !source.custom => Some((&source.group, &source.version)),
            _ => None,
        },
        custom,
    };
    let (title, version) = section.info();
    let head = Head {
        info: json!({"title": title, "version": version}),
        // Documents of custom resources say nothing of it.
        security: if writer.custom { Value::object() } else { bearer_token() },
    };
    let paths = paths.iter().map(|item| (item.path.as_str(), v3_path(item)));
    let models = models.names.iter().map(|name| (name.as_str(), models.write(name, &writer)));
    match form {
        Form::Json => v3_json(&head, paths, models),
        Form::Protobuf => protobuf::v3(&head.info, &head.security, paths, models),
    }
}

/// The one OpenAPI v2 document of all sections.
pub fn v2(sections: &[Section], form: Form) -> Vec<u8> {
    let descriptions = Descriptions::load();
    let mut paths: Vec<PathItem> = sections.iter().flat_map(Section::paths).collect();
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    paths.dedup_by(|a, b| a.path == b.path);
    let models = ModelSet::of(&sections.iter().collect::<Vec<_>>(), &paths);
    let writer = Models { dialect: Dialect::V2, descriptions: &descriptions, narrowed_to: None, custom: false };
    let head = Head { info: json!({"title": "Kubernetes", "version": "1.37"}), security: bearer_token() };
    let shared = shared_parameters(&paths);
    let paths = paths.iter().map(|item| (item.path.as_str(), v2_path(item)));
    let models = models.names.iter().map(|name| (name.as_str(), models.write(name, &writer)));
    match form {
        Form::Json => v2_json(&head, paths, models, &shared),
        Form::Protobuf => protobuf::v2(&head.info, &head.security, paths, models, &shared),
    }
}

/// How one proves who one is.
fn bearer_token() -> Value {
    json!({"BearerToken": {
        "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"
    }})
}

struct Head {
    info: Value,
    security: Value,
}

/// The models a document has: all that its operations refer to, with what those refer to.
struct ModelSet {
    names: BTreeSet<String>,
    custom: BTreeMap<String, Custom>,
}

struct Custom {
    source: Arc<GroupVersion>,
    at: usize,
    list: bool,
}

impl ModelSet {
    fn of(sections: &[&Section], paths: &[PathItem]) -> Self {
        let mut custom = BTreeMap::new();
        for section in sections {
            let Section::GroupVersion(source) = section else { continue };
            for (at, resource) in source.resources.iter().enumerate().filter(|_| source.custom) {
                let own = Custom { source: source.clone(), at, list: false };
                custom.insert(source.model(&source.gvk(&resource.kind)), own);
                let list = Custom { source: source.clone(), at, list: true };
                custom.insert(source.model(&source.gvk(&resource.list_kind)), list);
            }
        }
        let mut names = BTreeSet::new();
        for operation in paths.iter().flat_map(|item| &item.operations) {
            let body = operation.body.iter().map(|body| body.model.as_str());
            let answers = operation.answers.iter().filter_map(|(_, content)| match content {
                Content::Model(model) => Some(model.as_str()),
                Content::Text => None,
            });
            for model in body.chain(answers) {
                if custom.contains_key(model) {
                    names.insert(model.to_owned());
                    models::close_over(OBJECT_META, &mut names);
                    models::close_over(LIST_META, &mut names);
                } else {
                    models::close_over(model, &mut names);
                }
            }
        }
        Self { names, custom }
    }

    fn write(&self, name: &str, writer: &Models<'_>) -> Value {
        let Some(custom) = self.custom.get(name) else { return writer.model(name) };
        match custom.source.resources.get(custom.at) {
            Some(resource) if custom.list => custom::list(&custom.source, resource, writer),
            Some(resource) => custom::kind(&custom.source, resource, writer),
            None => writer.model(name),
        }
    }
}

fn v3_json<'a>(
    head: &Head,
    paths: impl Iterator<Item = (&'a str, Value)>,
    models: impl Iterator<Item = (&'a str, Value)>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * 1024);
    out.extend_from_slice(b"{\"openapi\":\"3.0.0\",\"info\":");
    write_json(&mut out, &head.info, Style::Compact);
    out.extend_from_slice(b",\"paths\":");
    write_members(&mut out, paths);
    out.extend_from_slice(b",\"components\":{");
    let mut models = models.peekable();
    let secured = head.security.as_object().is_some_and(|it| !it.is_empty());
    if models.peek().is_some() {
        out.extend_from_slice(b"\"schemas\":");
        write_members(&mut out, models);
        if secured {
            out.push(b',');
        }
    }
    if secured {
        out.extend_from_slice(b"\"securitySchemes\":");
        write_json(&mut out, &head.security, Style::Compact);
    }
    out.extend_from_slice(b"}}");
    out
}

fn v2_json<'a>(
    head: &Head,
    paths: impl Iterator<Item = (&'a str, Value)>,
    models: impl Iterator<Item = (&'a str, Value)>,
    shared: &BTreeMap<String, Value>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024 * 1024);
    out.extend_from_slice(b"{\"swagger\":\"2.0\",\"info\":");
    write_json(&mut out, &head.info, Style::Compact);
    out.extend_from_slice(b",\"paths\":");
    write_members(&mut out, paths);
    out.extend_from_slice(b",\"definitions\":");
    write_members(&mut out, models);
    out.extend_from_slice(b",\"parameters\":");
    write_members(&mut out, shared.iter().map(|(name, value)| (name.as_str(), value.clone())));
    out.extend_from_slice(b",\"securityDefinitions\":");
    write_json(&mut out, &head.security, Style::Compact);
    out.extend_from_slice(b",\"security\":[{\"BearerToken\":[]}]}");
    out
}

fn write_members<'a>(out: &mut Vec<u8>, members: impl Iterator<Item = (&'a str, Value)>) {
    out.push(b'{');
    for (at, (name, value)) in members.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        crate::object::escape_into(out, name);
        out.push(b':');
        write_json(out, &value, Style::Compact);
    }
    out.push(b'}');
}

fn answer_text(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        _ => "OK",
    }
}

fn gvk(it: &Gvk) -> Value {
    json!({"group": (&*it.group), "version": (&*it.version), "kind": (&*it.kind)})
}

/// What an operation says of itself, whatever the version of OpenAPI.
fn about(operation: &Operation) -> Map {
    let mut out = Map::from([
        ("tags", Value::from(vec![operation.tag.as_str()])),
        ("description", Value::from(operation.description.as_str())),
        ("operationId", Value::from(operation.id.as_str())),
    ]);
    if !operation.action.is_empty() {
        out.insert("x-kubernetes-action", operation.action);
    }
    if let Some(it) = &operation.gvk {
        out.insert("x-kubernetes-group-version-kind", gvk(it));
    }
    out
}

/// The operation's parameters without those of its path.
fn own_parameters<'a>(operation: &'a Operation, common: &'a [Parameter]) -> impl Iterator<Item = &'a Parameter> {
    operation
        .parameters
        .iter()
        .filter(|it| !common.iter().any(|other| (other.name, other.place) == (it.name, it.place)))
}

fn v3_path(item: &PathItem) -> Value {
    let common = item.common();
    let mut out = Map::new();
    for operation in &item.operations {
        let mut it = about(operation);
        let own: Vec<Value> = own_parameters(operation, &common).map(v3_parameter).collect();
        if !own.is_empty() {
            it.insert("parameters", own);
        }
        if let Some(body) = &operation.body {
            it.insert("requestBody", v3_body(body, operation.consumes));
        }
        it.insert("responses", v3_answers(operation));
        out.insert(operation.method, it);
    }
    if !common.is_empty() {
        out.insert("parameters", common.iter().map(v3_parameter).collect::<Vec<_>>());
    }
    Value::Object(out)
}

fn v3_parameter(it: &Parameter) -> Value {
    let mut out = Map::from([
        ("name", Value::from(it.name)),
        ("in", Value::from(it.place.as_str())),
        ("description", Value::from(it.description)),
        ("schema", json!({"type": (it.kind), "uniqueItems": true})),
    ]);
    if it.place == Place::Path {
        out.insert("required", true);
    }
    Value::Object(out)
}

fn v3_content(media_types: &[&'static str], schema: &Value) -> Map {
    media_types.iter().map(|name| (*name, Map::from([("schema", schema.clone())]))).collect()
}

fn v3_body(body: &Body, consumes: &[&'static str]) -> Value {
    let schema = Dialect::V3.reference(&body.model);
    let mut out = Map::from([("content", v3_content(consumes, &schema))]);
    if body.required {
        out.insert("required", true);
    }
    Value::Object(out)
}

fn v3_answers(operation: &Operation) -> Map {
    let mut out = Map::new();
    for (code, content) in &operation.answers {
        let schema = schema_of(content, Dialect::V3);
        let content = v3_content(operation.produces, &schema);
        out.insert(code.to_string(), json!({"description": (answer_text(*code)), "content": content}));
    }
    out.insert("401", json!({"description": "Unauthorized"}));
    out
}

fn schema_of(content: &Content, dialect: Dialect) -> Value {
    match content {
        Content::Model(model) => dialect.reference(model),
        Content::Text => json!({"type": "string"}),
    }
}

fn v2_path(item: &PathItem) -> Value {
    let common = item.common();
    let mut out = Map::new();
    for operation in &item.operations {
        let mut it = about(operation);
        let own = own_parameters(operation, &common).map(|parameter| (parameter.name, v2_parameter(parameter)));
        let mut own: Vec<(&str, Value)> = own.collect();
        if let Some(body) = &operation.body {
            // Sorted like the others, by name.
            let at = own.partition_point(|(name, _)| *name < "body");
            own.insert(at, ("body", v2_body(body)));
        }
        if !own.is_empty() {
            it.insert("parameters", own.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
        }
        if !operation.consumes.is_empty() {
            it.insert("consumes", operation.consumes.to_vec());
        }
        it.insert("produces", operation.produces.to_vec());
        it.insert("schemes", vec!["https"]);
        it.insert("responses", v2_answers(operation));
        out.insert(operation.method, it);
    }
    if !common.is_empty() {
        out.insert("parameters", common.iter().map(v2_parameter).collect::<Vec<_>>());
    }
    Value::Object(out)
}

fn v2_answers(operation: &Operation) -> Map {
    let mut out = Map::new();
    for (code, content) in &operation.answers {
        let schema = schema_of(content, Dialect::V2);
        out.insert(code.to_string(), json!({"description": (answer_text(*code)), "schema": schema}));
    }
    out.insert("401", json!({"description": "Unauthorized"}));
    out
}

/// A parameter where it is used: a reference where it is shared.
fn v2_parameter(it: &Parameter) -> Value {
    match it.mark {
        Some(mark) => json!({"$ref": (format!("#/parameters/{}-{mark}", it.name))}),
        None => v2_parameter_in_full(it),
    }
}

fn v2_parameter_in_full(it: &Parameter) -> Value {
    let mut out = Map::from([
        ("name", Value::from(it.name)),
        ("in", Value::from(it.place.as_str())),
        ("description", Value::from(it.description)),
        ("type", Value::from(it.kind)),
        ("uniqueItems", Value::from(true)),
    ]);
    if it.place == Place::Path {
        out.insert("required", true);
    }
    Value::Object(out)
}

/// Shared names of bodies that belong to no kind.
fn body_mark(model: &str) -> Option<&'static str> {
    match model {
        models::DELETE_OPTIONS => Some("2Y1dVQaQ"),
        models::PATCH_MODEL => Some("78PwaGsr"),
        _ => None,
    }
}

fn v2_body(body: &Body) -> Value {
    match body_mark(&body.model) {
        Some(mark) => json!({"$ref": (format!("#/parameters/body-{mark}"))}),
        None => v2_body_in_full(body),
    }
}

fn v2_body_in_full(body: &Body) -> Value {
    let mut out = Map::from([
        ("name", Value::from("body")),
        ("in", Value::from("body")),
        ("schema", Dialect::V2.reference(&body.model)),
    ]);
    if body.required {
        out.insert("required", true);
    }
    Value::Object(out)
}

/// All shared parameters that any operation uses, by their shared names.
fn shared_parameters(paths: &[PathItem]) -> BTreeMap<String, Value> {
    let mut shared = BTreeMap::new();
    for operation in paths.iter().flat_map(|item| &item.operations) {
        for it in &operation.parameters {
            if let Some(mark) = it.mark {
                shared.entry(format!("{}-{mark}", it.name)).or_insert_with(|| v2_parameter_in_full(it));
            }
        }
        if let Some(body) = &operation.body
            && let Some(mark) = body_mark(&body.model)
        {
            shared.entry(format!("body-{mark}")).or_insert_with(|| v2_body_in_full(body));
        }
    }
    shared
}
