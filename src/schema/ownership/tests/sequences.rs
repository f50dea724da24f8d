//! All sequences of the real code, and what they do not reach.

use std::cell::RefCell;

use super::super::*;
use crate::{
    api::ApiError,
    object::{self, Key, to_string},
    schema::{
        AdditionalMembers, Field, Granularity, List, ListType, MapOf, Omit, PatchStrategy, Scalar, Shape, Slot, Struct,
        Type, builtin, decode, vectors,
    },
};

fn read() -> Value {
    let path = format!("{}/tests/data/vectors/structured-merge-diff.json", env!("CARGO_MANIFEST_DIR"));
    object::parse(&std::fs::read(path).unwrap()).unwrap()
}

/// A table out of an OpenAPI schema, as a custom resource has one.
fn table_of(schema: &Value, table: &mut Table) -> TypeId {
    let shape = match schema.str_at(&["type"]) {
        "object" => match schema.get("additionalProperties") {
            Some(value) => Shape::Map(Box::new(MapOf {
                value: Slot::of(table_of(value, table)),
                granularity: granularity(schema),
                map_type_shown: true,
            })),
            None => Shape::Struct(Box::new(struct_of(schema, table))),
        },
        "array" => Shape::List(Box::new(List {
            item: Slot::of(table_of(schema.get("items").unwrap(), table)),
            list_type: match schema.str_at(&["x-kubernetes-list-type"]) {
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Atomic,
            },
            list_type_shown: true,
            message: false,
            keys: schema
                .array_at(&["x-kubernetes-list-map-keys"])
                .iter()
                .map(|key| Key::new(key.as_str().unwrap()))
                .collect(),
        })),
        "string" => Shape::Scalar(Scalar::String),
        "integer" => Shape::Scalar(Scalar::Int64),
        "boolean" => Shape::Scalar(Scalar::Bool),
        "" => Shape::Scalar(Scalar::IntOrString),
        other => panic!("{other}"),
    };
    table.add(Type::new(shape))
}

fn granularity(schema: &Value) -> Granularity {
    match schema.str_at(&["x-kubernetes-map-type"]) {
        "atomic" => Granularity::Atomic,
        _ => Granularity::Granular,
    }
}

fn struct_of(schema: &Value, table: &mut Table) -> Struct {
    let properties = schema.object_at(&["properties"]).cloned().unwrap_or_default();
    let fields: Vec<Field> = properties
        .iter()
        .map(|(name, schema)| Field {
            name: name.clone(),
            slot: Slot { pointer: true, ..Slot::of(table_of(schema, table)) },
            omit: Omit::Empty,
            required: false,
            patch: PatchStrategy::default(),
            merge_key: Key::new(""),
            embedded_in: Key::new(""),
            gate: Key::new(""),
            nil_differs: false,
            granularity: None,
            enumeration: Box::default(),
            shown_default: schema.get("default").cloned().map(Box::new),
        })
        .collect();
    Struct {
        fields: fields.into(),
        granularity: granularity(schema),
        additional: match schema.bool_at(&["x-kubernetes-preserve-unknown-fields"]) {
            true => AdditionalMembers::Preserved,
            false => AdditionalMembers::Pruned,
        },
        ..Struct::default()
    }
}

/// Plays the operations of one sequence and tells where they differ from what is expected.
struct Player<'t> {
    table: &'t Table,
    live: Option<Value>,
    /// Brings a decoded object into its final form.
    finish: &'t dyn Fn(&str, Value) -> Value,
    versions: Option<&'t dyn Versions>,
}

impl Player<'_> {
    fn run(&mut self, operation: &Value) -> Result<(), ApiError> {
        let kind = operation.str_at(&["kind"]);
        let (group, version, name) = vectors::split_kind(kind);
        let ty = self.table.kind(group, version, name).unwrap();
        let api_version = kind.rsplit_once('/').unwrap().0;
        let object = operation.get("object").unwrap();
        let live = self.live_in(api_version);
        let reset =
            FieldSet::of(&[if operation.str_at(&["subresource"]).is_empty() { &["status"] } else { &["spec"] }]);
        let write = WriteContext {
            manager: operation.str_at(&["manager"]),
            subresource: operation.str_at(&["subresource"]),
            api_version,
            now: "2026-01-01T00:00:00Z",
            reset: if self.is_builtin() { FieldFilter::Without(&reset) } else { FieldFilter::All },
            versions: self.versions,
        };
        if operation.str_at(&["op"]) == "update" {
            let mut new = (self.finish)(kind, object.clone());
            if let Some(given) = object.at(&["metadata", "managedFields"]) {
                new.set(&["metadata", "managedFields"], given.clone());
            }
            update_managed_fields(self.table, ty, live.as_ref(), &mut new, &write);
            self.live = Some(new);
            return Ok(());
        }
        let finish = |object: Value| Ok((self.finish)(kind, object));
        let ctx = ApplyContext { write, kind: name, force: operation.bool_at(&["force"]), finish: &finish };
        if let Some(object) = apply(self.table, ty, live.as_ref(), object, &ctx)? {
            self.live = Some(object);
        } else {
            self.live = live;
        }
        Ok(())
    }

    fn is_builtin(&self) -> bool {
        std::ptr::eq(self.table, builtin())
    }

    fn live_in(&self, api_version: &str) -> Option<Value> {
        let live = self.live.as_ref()?;
        match self.versions {
            Some(versions) if live.str_at(&["apiVersion"]) != api_version => {
                match versions.convert(live, api_version) {
                    Converted::Object { value, .. } => Some(value),
                    _ => panic!("no conversion to {api_version}"),
                }
            }
            _ => Some(live.clone()),
        }
    }
}

/// What an operation should have given against what it gave.
fn difference(operation: &Value, live: Option<&Value>, outcome: Result<(), ApiError>) -> Option<String> {
    if let Err(error) = outcome {
        let mut status = error.to_value();
        status.remove_at(&["kind"]);
        status.remove_at(&["apiVersion"]);
        let text_agrees = match operation.get("unordered") {
            None => operation.str_at(&["error"]) == error.message,
            Some(_) => lines(operation.str_at(&["error"])) == lines(&error.message),
        };
        let status_agrees = match operation.get("status") {
            None => error.code == 500,
            Some(wanted) if operation.get("unordered").is_none() => *wanted == status,
            Some(wanted) => wanted.i64_at(&["code"]) == Some(error.code.into()),
        };
        return (!text_agrees || !status_agrees).then(|| format!("got {error:?}"));
    }
    let mut object = live.cloned().unwrap_or_default();
    let mut list = object.remove_at(&["metadata", "managedFields"]).unwrap_or_default();
    for entry in list.as_array_mut().into_iter().flatten() {
        entry.remove_at(&["time"]);
    }
    let wanted = operation.get("managedFields").cloned().unwrap_or_default();
    if operation.get("result") != Some(&object) {
        return Some(format!("got object {}", to_string(&object)));
    }
    (list != wanted).then(|| format!("got managedFields {}", to_string(&list)))
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn play(schema: &str, new_player: &dyn Fn() -> Player<'static>) {
    let vectors = read();
    let wrong = RefCell::new(Vec::new());
    let mut operations = 0;
    for sequence in vectors.array_at(&["sequences"]).iter().filter(|it| it.str_at(&["schema"]) == schema) {
        let mut player = new_player();
        for (at, operation) in sequence.array_at(&["ops"]).iter().enumerate() {
            operations += 1;
            let outcome = player.run(operation);
            if let Some(difference) = difference(operation, player.live.as_ref(), outcome) {
                let case = sequence.str_at(&["case"]);
                wrong.borrow_mut().push(format!("{case} #{at}: {}\n   {difference}", to_string(operation)));
                break;
            }
        }
    }
    let wrong = wrong.into_inner();
    assert!(operations >= 100, "{operations} operations");
    assert!(wrong.is_empty(), "{} sequences differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn custom_resources_are_owned_as_upstreams_are() {
    let vectors = read();
    let schema =
        vectors.array_at(&["schemas"]).first().and_then(|it| it.at(&["models", "com.example.v1.Foo"])).unwrap();
    let mut table = Table::new();
    let root = table_of(schema, &mut table);
    table.add_kind("example.com", "v1", "Foo", root);
    let table: &'static Table = Box::leak(Box::new(table));
    let player = || Player { table, live: None, finish: &|_, object| object, versions: None };
    play("typed", &player);
}

/// Autoscalers in v1 and v2, as far as the sequences use them: one metric, the CPU's.
struct Autoscalers;

impl Versions for Autoscalers {
    fn convert(&self, object: &Value, api_version: &str) -> Converted<'_> {
        let Some(ty) =
            builtin().kind("autoscaling", api_version.trim_start_matches("autoscaling/"), "HorizontalPodAutoscaler")
        else {
            return Converted::Missing;
        };
        let mut value = object.clone();
        value.set(&["apiVersion"], api_version);
        if object.str_at(&["apiVersion"]) != api_version {
            let spec = value.make(&["spec"]).make_object();
            match api_version {
                "autoscaling/v1" => {
                    let metrics = spec.remove("metrics").unwrap_or_default();
                    let target = metrics
                        .as_array()
                        .and_then(|it| it.first()?.at(&["resource", "target", "averageUtilization"]).cloned());
                    target.map(|target| spec.insert("targetCPUUtilizationPercentage", target));
                }
                _ => {
                    // Upstream's conversion puts a default here when there is no target.
                    let target = spec.remove("targetCPUUtilizationPercentage").unwrap_or(Value::Int(80));
                    let target = Value::from([("type", Value::from("Utilization")), ("averageUtilization", target)]);
                    let resource = Value::from([("name", Value::from("cpu")), ("target", target)]);
                    let metric = Value::from([("type", Value::from("Resource")), ("resource", resource)]);
                    spec.insert("metrics", Value::Array(vec![metric]));
                }
            }
            value.make(&["status"]).make_object().remove("currentMetrics");
        }
        decode(builtin(), ty, &mut value, None).unwrap();
        Converted::Object { table: builtin(), ty, value }
    }
}

/// Decodes and defaults an object of a built-in kind.
fn finish_builtin(kind: &str, mut object: Value) -> Value {
    let (group, version, name) = vectors::split_kind(kind);
    let ty = builtin().kind(group, version, name).unwrap();
    decode(builtin(), ty, &mut object, None).unwrap();
    crate::registry::builtin::defaults::apply_defaults(group, version, name, &mut object, jiff::Timestamp::UNIX_EPOCH);
    if name == "Secret"
        && let Some(texts) = object.remove_at(&["stringData"])
    {
        for (name, text) in texts.as_object().unwrap().iter() {
            let text = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text.as_str().unwrap());
            object.make(&["data"]).make_object().insert(name.clone(), text);
        }
    }
    object
}

#[test]
fn built_in_kinds_are_owned_as_upstreams_are() {
    let player = || Player { table: builtin(), live: None, finish: &finish_builtin, versions: Some(&Autoscalers) };
    play("builtin", &player);
}

/// Not among them: kinds that are changed by their conversion, which is not this module's.
#[test]
fn creates_own_what_a_real_server_recorded() {
    let status = FieldSet::of(&[&["status"]]);
    let recorded = vectors::read("vectors/managed-fields-create.json");
    assert!(recorded.len() > 150);
    for case in &recorded {
        let kind = case.str_at(&["kind"]);
        let (group, version, name) = vectors::split_kind(kind);
        let ty = builtin().kind(group, version, name).unwrap();
        let mut object = finish_builtin(kind, case.get("object").unwrap().clone());
        let ctx = WriteContext {
            manager: "oracle",
            subresource: "",
            api_version: kind.rsplit_once('/').unwrap().0,
            now: "2026-01-01T00:00:00Z",
            // Reviews have a status that no strategy puts back.
            reset: if name.ends_with("Review") { FieldFilter::All } else { FieldFilter::Without(&status) },
            versions: None,
        };
        update_managed_fields(builtin(), ty, None, &mut object, &ctx);
        let got = object.array_at(&["metadata", "managedFields"]).first().and_then(|entry| entry.get("fieldsV1"));
        assert_eq!(got, case.get("fieldsV1"), "{}", to_string(case));
    }
}
