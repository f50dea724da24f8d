//! Models: the shapes of documents as OpenAPI writes them, out of the type table.
//!
//! A model's name is a type's name in the table; scalars that Go gives a type of their own (times, quantities) are
//! models too.

use std::collections::BTreeSet;

use super::{descriptions::Descriptions, sections::VERSION_MODEL, source::Gvk};
use crate::{
    json,
    object::{Key, Map, Value},
    schema::{
        Field, Granularity, KindRow, List, ListType, MapOf, Scalar, Shape, Struct, Table, Type, TypeId, WireMember,
        builtin,
    },
};

pub const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
pub const PATCH_MODEL: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const DURATION: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Duration";
const FIELDS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const JSON: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";
/// Its fields, `default` excepted, have no descriptions upstream, so that references stand there without the wrapping
/// others have.
const JSON_SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Two fields on which upstream writes a word for which their types have no place.
const ON_FIELDS: [(&str, &str, &str, &str); 2] = [
    ("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef", "x-kubernetes-map-type", "granular"),
    (
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec",
        "caBundle",
        "x-kubernetes-list-type",
        "atomic",
    ),
];

/// Which OpenAPI a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    V2,
    V3,
}

impl Dialect {
    pub fn reference(self, model: &str) -> Value {
        let prefix = match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        };
        Value::Object(Map::from([("$ref", format!("{prefix}{model}"))]))
    }

    /// A reference that may have words beside it: v3 wraps it, v2 lets them stand there.
    pub fn described_reference(self, model: &str) -> Map {
        let reference = self.reference(model);
        match (self, reference) {
            (Self::V2, Value::Object(map)) => map,
            (_, reference) => Map::from([("allOf", Value::Array(vec![reference]))]),
        }
    }
}

/// The model of a built-in kind.
pub fn of_kind(gvk: &Gvk) -> Option<String> {
    let table = builtin();
    let id = table.kind(&gvk.group, &gvk.version, &gvk.kind)?;
    table.struct_of(id).map(|it| it.name.to_string())
}

/// Adds the names of all models that this one refers to, itself included.
pub fn close_over(name: &str, known: &mut BTreeSet<String>) {
    if !known.insert(name.to_owned()) {
        return;
    }
    let table = builtin();
    let Some(it) = table.named(name).and_then(|id| table.struct_of(id)) else { return };
    for field in it.fields.iter() {
        if let Some(model) = referred(table, field.slot.ty) {
            close_over(model, known);
        }
    }
}

/// The model behind a type, below lists and maps.
fn referred(table: &Table, id: TypeId) -> Option<&str> {
    let ty = table.get(id);
    match &ty.shape {
        Shape::List(it) => referred(table, it.item.ty),
        Shape::Map(it) => referred(table, it.value.ty),
        _ => model_of(ty),
    }
}

fn model_of(ty: &Type) -> Option<&str> {
    match &ty.shape {
        Shape::Struct(it) => Some(&it.name),
        Shape::OneOf(it) => Some(&it.name),
        Shape::Scalar(scalar) => match scalar {
            Scalar::Quantity => Some(QUANTITY),
            Scalar::Time => Some(TIME),
            Scalar::MicroTime => Some(MICRO_TIME),
            Scalar::Duration => Some(DURATION),
            Scalar::FieldsV1 => Some(FIELDS),
            Scalar::IntOrString => Some(INT_OR_STRING),
            Scalar::RawExtension | Scalar::Unknown => Some(RAW_EXTENSION),
            Scalar::Json if ty.go.as_str() == "v1.JSON" => Some(JSON),
            _ => None,
        },
        _ => None,
    }
}

/// Writes models in one dialect.
pub struct Models<'a> {
    pub dialect: Dialect,
    pub descriptions: &'a Descriptions,
    /// The group and version whose document this is: it alone is shown on kinds that belong to all of them. `None`:
    /// all are shown.
    pub narrowed_to: Option<(&'a str, &'a str)>,
    /// The document of custom resources, whose server knows fewer groups.
    pub custom: bool,
}

impl Models<'_> {
    /// A model by name. What nobody knows is an object.
    pub fn model(&self, name: &str) -> Value {
        let table = builtin();
        let mut model = match name {
            QUANTITY if self.dialect == Dialect::V3 => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            QUANTITY | DURATION => json!({"type": "string"}),
            TIME | MICRO_TIME => json!({"type": "string", "format": "date-time"}),
            INT_OR_STRING if self.dialect == Dialect::V3 => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            INT_OR_STRING => json!({"type": "string", "format": "int-or-string"}),
            JSON => Value::object(),
            VERSION_MODEL => self.version_info(),
            _ => match table.named(name).map(|id| (id, table.get(id))) {
                Some((_, Type { shape: Shape::OneOf(_), .. })) => Value::object(),
                Some((id, Type { shape: Shape::Struct(it), .. })) => self.structure(table, id, it),
                _ => json!({"type": "object"}),
            },
        };
        if let Some(map) = model.as_object_mut() {
            match self.descriptions.of(name, "") {
                Some(text) => drop(map.insert("description", text)),
                None => self.describe_list(name, map),
            }
        }
        model
    }

    /// Lists are one generic type where the texts come from, so they have none of their own.
    fn describe_list(&self, name: &str, model: &mut Map) {
        let kind = name.rsplit('.').next().and_then(|kind| kind.strip_suffix("List"));
        let (Some(kind), Some(meta)) = (kind, self.descriptions.of(STATUS, "metadata")) else { return };
        let Some(Value::Object(properties)) = model.get_mut("properties") else { return };
        if !properties.contains_key("items") {
            return;
        }
        let text_of = |name: &str| match name {
            "metadata" => Some(meta),
            "items" => Some("The objects of this list."),
            name => self.descriptions.of(STATUS, name),
        };
        for (name, property) in properties.iter_mut() {
            if let (Some(property), Some(text)) = (property.as_object_mut(), text_of(name)) {
                property.insert("description", text);
            }
        }
        model.insert("description", format!("{kind}List is a list of {kind}"));
    }

    /// apimachinery's `version.Info`, which is no API type and so is not in the table.
    fn version_info(&self) -> Value {
        const REQUIRED: [&str; 9] = [
            "major",
            "minor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        ];
        const OPTIONAL: [&str; 4] =
            ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
        let mut properties = Map::new();
        for name in REQUIRED.into_iter().chain(OPTIONAL) {
            let mut property = Map::from([("type", "string")]);
            if self.dialect == Dialect::V3 && REQUIRED.contains(&name) {
                property.insert("default", "");
            }
            if let Some(text) = self.descriptions.of(VERSION_MODEL, name) {
                property.insert("description", text);
            }
            properties.insert(name, property);
        }
        json!({"type": "object", "properties": properties, "required": (REQUIRED.to_vec())})
    }

    fn structure(&self, table: &Table, id: TypeId, it: &Struct) -> Value {
        let mut model = Map::from([("type", "object")]);
        if !it.fields.is_empty() {
            let fields = it.fields.iter().map(|field| (field.name.clone(), self.field(table, it, field)));
            model.insert("properties", fields.collect::<Map>());
        }
        let required = required(it);
        if !required.is_empty() {
            model.insert("required", required);
        }
        if it.granularity == Granularity::Atomic {
            model.insert("x-kubernetes-map-type", "atomic");
        }
        if let Some(unions) = &it.unions {
            model.insert("x-kubernetes-unions", (**unions).clone());
        }
        let kinds = self.kinds(table, id, &it.name);
        if !kinds.is_empty() {
            model.insert("x-kubernetes-group-version-kind", kinds);
        }
        Value::Object(model)
    }

    fn kinds(&self, table: &Table, id: TypeId, name: &str) -> Vec<Value> {
        let kind = match name {
            DELETE_OPTIONS => "DeleteOptions",
            WATCH_EVENT => "WatchEvent",
            _ => {
                let own = table.kinds().iter().filter(|row| row.ty == id);
                return own.map(|KindRow { group, version, kind, .. }| kind_of(group, version, kind)).collect();
            }
        };
        let mut everywhere: Vec<(&str, &str)> = match self.narrowed_to {
            Some(own) => vec![("", "v1"), own],
            None => super::known_groups::GROUP_VERSIONS
                .iter()
                .filter(|(group, _)| !self.custom || !super::known_groups::NOT_OF_CUSTOM.contains(group))
                .copied()
                .collect(),
        };
        everywhere.dedup();
        everywhere.into_iter().map(|(group, version)| kind_of(group, version, kind)).collect()
    }

    fn field(&self, table: &Table, owner: &Struct, field: &Field) -> Value {
        let words = owner.name.as_str() != JSON_SCHEMA || field.name.as_str() == "default";
        let ty = table.get(field.slot.ty);
        let mut out = match model_of(ty) {
            Some(model) if words || field.shown_default.is_some() => self.dialect.described_reference(model),
            Some(model) => return self.dialect.reference(model),
            None => self.inline(table, ty, field),
        };
        if self.dialect == Dialect::V3
            && let Some(default) = &field.shown_default
        {
            out.insert("default", (**default).clone());
        }
        if let Some(strategy) = patch_strategy(field) {
            out.insert("x-kubernetes-patch-strategy", strategy);
        }
        if !field.merge_key.is_empty() {
            out.insert("x-kubernetes-patch-merge-key", field.merge_key.as_str());
        }
        for (_, _, word, value) in ON_FIELDS.iter().filter(|it| (it.0, it.1) == (&*owner.name, &*field.name)) {
            out.insert(*word, *value);
        }
        if let Some(text) = self.descriptions.of(&owner.name, &field.name) {
            out.insert("description", format!("{text}{}", possible_values(&field.enumeration)));
        }
        Value::Object(out)
    }

    /// What stands in the field itself: scalars, lists, maps.
    fn inline(&self, table: &Table, ty: &Type, field: &Field) -> Map {
        match &ty.shape {
            Shape::List(list) => self.list(table, list, field),
            Shape::Map(map) => self.map(table, map, field),
            Shape::Scalar(scalar) => {
                let mut out = scalar_type(*scalar);
                if !field.enumeration.is_empty() {
                    out.insert("enum", field.enumeration.iter().map(Key::as_str).collect::<Vec<_>>());
                }
                out
            }
            _ => Map::new(),
        }
    }

    fn list(&self, table: &Table, list: &List, field: &Field) -> Map {
        let mut out = Map::from([("type", Value::from("array")), ("items", self.element(table, list.item.ty, field))]);
        if list.list_type_shown {
            out.insert(
                "x-kubernetes-list-type",
                match list.list_type {
                    ListType::Atomic => "atomic",
                    ListType::Set => "set",
                    ListType::Map => "map",
                },
            );
        }
        if !list.keys.is_empty() {
            out.insert("x-kubernetes-list-map-keys", list.keys.iter().map(Key::as_str).collect::<Vec<_>>());
        }
        out
    }

    fn map(&self, table: &Table, map: &MapOf, field: &Field) -> Map {
        let values = self.element(table, map.value.ty, field);
        let mut out = Map::from([("type", Value::from("object")), ("additionalProperties", values)]);
        if map.map_type_shown {
            out.insert(
                "x-kubernetes-map-type",
                match map.granularity {
                    Granularity::Atomic => "atomic",
                    Granularity::Granular => "granular",
                },
            );
        }
        out
    }

    fn element(&self, table: &Table, id: TypeId, field: &Field) -> Value {
        let ty = table.get(id);
        match model_of(ty) {
            Some(model) => self.dialect.reference(model),
            None => Value::Object(self.inline(table, ty, field)),
        }
    }
}

fn kind_of(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn scalar_type(scalar: Scalar) -> Map {
    match scalar {
        Scalar::Bool => Map::from([("type", "boolean")]),
        Scalar::Int32 => Map::from([("type", "integer"), ("format", "int32")]),
        Scalar::Int64 => Map::from([("type", "integer"), ("format", "int64")]),
        Scalar::Double => Map::from([("type", "number"), ("format", "double")]),
        Scalar::Bytes => Map::from([("type", "string"), ("format", "byte")]),
        Scalar::Json => Map::from([("type", "object")]),
        _ => Map::from([("type", "string")]),
    }
}

/// Required members in Go's order: that of the protobuf tags, unless the table says another.
fn required(it: &Struct) -> Vec<&str> {
    if !it.required_order.is_empty() {
        return it.required_order.iter().map(Key::as_str).collect();
    }
    let tag = |at: usize| {
        let own = |member: WireMember| matches!(member, WireMember::Field(field) if field as usize == at);
        it.wire.iter().find(|entry| own(entry.member)).map_or(0, |entry| entry.tag)
    };
    let mut required: Vec<(u32, &str)> = Vec::new();
    for (at, field) in it.fields.iter().enumerate().filter(|(_, field)| field.required) {
        required.push((tag(at), field.name.as_str()));
    }
    required.sort();
    required.into_iter().map(|(_, name)| name).collect()
}

fn patch_strategy(field: &Field) -> Option<&'static str> {
    let patch = field.patch;
    match (patch.merge, patch.retain_keys, patch.replace) {
        (true, true, _) => Some("merge,retainKeys"),
        (true, false, _) => Some("merge"),
        (false, true, _) => Some("retainKeys"),
        (false, false, true) => Some("replace"),
        _ => None,
    }
}
/// The values of an enumeration as the text of its field lists them; nothing for what is none.
fn possible_values(values: &[Key]) -> String {
    const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
    if values.is_empty() {
        return String::new();
    }
    let protocols = values.iter().map(Key::as_str).eq(PROTOCOLS);
    let mut out = "\n\nPossible enum values:".to_owned();
    for value in values.iter().map(Key::as_str) {
        out.push_str(&format!("\n - `\"{value}\"`"));
        if protocols {
            out.push_str(&format!(" is the {value} protocol."));
        }
    }
    out
}
