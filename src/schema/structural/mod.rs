//! The type table of a custom resource, from the structural schema of its definition (`openAPIV3Schema`).
//!
//! The schema must have been accepted before; what no accepted schema contains is read as if it were not there. Every
//! place of a custom resource holds a pointer in Go's sense: absent and zero differ, and nothing is left out when it
//! is printed.

pub mod check;
pub mod correlate;
pub mod default_check;
pub mod embedded;
pub mod field_path;
pub mod formats;
pub mod go_regex;
pub mod list_types;
mod mail;
pub mod node;
pub mod validate;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    builtin::builtin,
    table::{
        AdditionalMembers, Field, Granularity, List, ListType, MapOf, Nested, Omit, PatchStrategy, Scalar, Shape, Slot,
        Struct, Table, Type, TypeId, Validation,
    },
};
use crate::object::{Key, Value};

/// The table of a custom resource's schema, laid over the built-in one, and the type of its objects. Without a schema
/// everything is kept. Types that are equal are one type: schemas say the same thing (a reference to a Secret, say) over
/// and over.
pub fn custom_resource(schema: Option<&Value>) -> (Table, TypeId) {
    let mut table = Table::over(builtin());
    let everything = preserving_object();
    let root = Builder::new(&mut table).root(schema.unwrap_or(&everything));
    table.shrink();
    (table, root)
}

/// The type by which upstream judges a default: as the schema says, but nothing is known of what may be an integer or a
/// string. `root`: the schema is that of a whole object.
pub fn default_type(table: &mut Table, schema: &Value, root: bool) -> TypeId {
    let mut builder = Builder { loose: true, ..Builder::new(table) };
    if root { builder.root(schema) } else { builder.add(schema) }
}

/// How many types of one likeness are compared with a new one.
const MOST_ALIKE: usize = 16;

/// A hash of what most types differ in; equal types have equal ones.
fn likeness(ty: &Type) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(&ty.shape).hash(&mut hasher);
    match &ty.shape {
        Shape::Scalar(scalar) => scalar.hash(&mut hasher),
        Shape::Struct(it) => {
            it.fields.iter().for_each(|field| (field.name.as_str(), field.slot.ty, field.required).hash(&mut hasher));
        }
        Shape::List(it) => (it.item.ty, it.list_type).hash(&mut hasher),
        Shape::Map(it) => it.value.ty.hash(&mut hasher),
        Shape::Any | Shape::OneOf(_) => {}
    }
    if let Some(it) = &ty.validation {
        for text in [&it.format, &it.pattern] {
            text.as_ref().map(Key::as_str).hash(&mut hasher);
        }
        (it.min_length, it.max_length, it.enumeration.len()).hash(&mut hasher);
        [it.minimum, it.maximum].map(|it| it.map(f64::to_bits)).hash(&mut hasher);
        it.enumeration.first().and_then(Value::as_str).hash(&mut hasher);
    }
    hasher.finish()
}

fn preserving_object() -> Value {
    crate::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

struct Builder<'t> {
    table: &'t mut Table,
    /// Types that were made before, by a hash of some of what they say.
    known: HashMap<u64, Vec<TypeId>>,
    nothing: Option<TypeId>,
    /// `x-kubernetes-int-or-string` is no type.
    loose: bool,
}

impl<'t> Builder<'t> {
    fn new(table: &'t mut Table) -> Self {
        Self { table, known: HashMap::new(), nothing: None, loose: false }
    }

    /// The root is an embedded resource whose metadata is the real one; what the schema says of it (name, generateName)
    /// only judges.
    fn root(&mut self, schema: &Value) -> TypeId {
        let mut ty = self.type_of(schema);
        let metadata = schema.at(&["properties", "metadata"]);
        let mut it = match ty.shape {
            Shape::Struct(it) => *it,
            _ => Struct { additional: AdditionalMembers::Preserved, ..Struct::default() },
        };
        it.embedded_resource = true;
        it.openapi = true;
        let mut fields: Vec<Field> = it.fields.into_vec();
        fields.retain(|field| field.name.as_str() != "metadata");
        it.fields = self.with_object_fields(fields);
        ty.shape = Shape::Struct(Box::new(it));
        if let Some(metadata) = metadata {
            ty.validation.get_or_insert_default().metadata = Some(Box::new(nested(metadata)));
        }
        self.table.add(ty)
    }

    fn add(&mut self, schema: &Value) -> TypeId {
        let ty = self.type_of(schema);
        if matches!(ty.shape, Shape::Any) && ty.validation.is_none() && !ty.preserve_unknown {
            return TypeId::ANY;
        }
        let (table, alike) = (&mut *self.table, self.known.entry(likeness(&ty)).or_default());
        if let Some(same) = alike.iter().find(|id| *table.get(**id) == ty) {
            return *same;
        }
        let id = table.add(ty);
        // Types that differ only in what is not hashed are few, or not worth the search.
        if alike.len() < MOST_ALIKE {
            alike.push(id);
        }
        id
    }

    fn type_of(&mut self, schema: &Value) -> Type {
        let preserve_unknown = schema.bool_at(&["x-kubernetes-preserve-unknown-fields"]);
        let has = |name: &str| schema.get(name).is_some_and(|it| !it.is_null());
        let shape = if schema.bool_at(&["x-kubernetes-int-or-string"]) && !self.loose {
            Shape::Scalar(Scalar::IntOrString)
        } else {
            match schema.str_at(&["type"]) {
                "string" => Shape::Scalar(Scalar::String),
                "boolean" => Shape::Scalar(Scalar::Bool),
                "integer" => Shape::Scalar(Scalar::Int64),
                "number" => Shape::Scalar(Scalar::Double),
                "array" => self.list(schema),
                "object" => self.object(schema, preserve_unknown),
                _ if has("properties") || has("additionalProperties") => self.object(schema, preserve_unknown),
                _ if has("items") => self.list(schema),
                _ => Shape::Any,
            }
        };
        // "Anything" keeps everything anyway.
        let preserve_unknown = preserve_unknown && !matches!(shape, Shape::Any);
        let mut validation = validation(schema);
        let untyped = schema.str_at(&["type"]).is_empty() && !matches!(shape, Shape::Any | Shape::Scalar(_));
        let forbids_additional = schema.get("additionalProperties").and_then(Value::as_bool) == Some(false);
        if untyped || forbids_additional {
            let validation = validation.get_or_insert_default();
            (validation.untyped, validation.forbids_additional) = (untyped, forbids_additional);
        }
        Type { shape, go: Key::default(), validation: validation.map(Box::new), preserve_unknown }
    }

    fn slot(&mut self, schema: &Value) -> Slot {
        Slot {
            ty: self.add(schema),
            default: schema.get("default").filter(|it| !it.is_null()).cloned().map(Box::new),
            nullable: schema.bool_at(&["nullable"]),
            pointer: true,
        }
    }

    fn list(&mut self, schema: &Value) -> Shape {
        let item = match schema.get("items") {
            Some(items @ Value::Object(_)) => self.slot(items),
            _ => self.nothing(),
        };
        let list_type = schema.str_at(&["x-kubernetes-list-type"]);
        Shape::List(Box::new(List {
            item,
            list_type: match list_type {
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Atomic,
            },
            list_type_shown: !list_type.is_empty(),
            keys: keys(schema, "x-kubernetes-list-map-keys"),
            message: false,
        }))
    }

    fn object(&mut self, schema: &Value, preserve_unknown: bool) -> Shape {
        let map_type = schema.str_at(&["x-kubernetes-map-type"]);
        let granularity = if map_type == "atomic" { Granularity::Atomic } else { Granularity::Granular };
        let embedded_resource = schema.bool_at(&["x-kubernetes-embedded-resource"]);
        let rest = match schema.get("additionalProperties") {
            Some(Value::Bool(_)) => Some(self.nothing()),
            Some(inner @ Value::Object(_)) => Some(self.slot(inner)),
            _ => None,
        };
        let properties = schema.object_at(&["properties"]);
        match rest {
            Some(value) if properties.is_none_or(|it| it.is_empty()) && !embedded_resource => {
                Shape::Map(Box::new(MapOf { value, granularity, map_type_shown: !map_type.is_empty() }))
            }
            rest => {
                let required = keys(schema, "required");
                let properties = properties.into_iter().flat_map(|it| it.iter());
                let fields = properties.map(|(name, schema)| {
                    let slot = self.slot(schema);
                    field(name.clone(), slot, required.contains(name))
                });
                let fields: Vec<Field> = fields.collect();
                let fields = if embedded_resource { self.with_object_fields(fields) } else { fields.into() };
                let additional = match preserve_unknown {
                    true => AdditionalMembers::Preserved,
                    false => AdditionalMembers::Pruned,
                };
                Shape::Struct(Box::new(Struct {
                    fields,
                    granularity,
                    additional,
                    embedded_resource,
                    rest,
                    ..Struct::default()
                }))
            }
        }
    }

    /// What upstream has no schema for: nothing below it survives pruning, and nothing is judged.
    fn nothing(&mut self) -> Slot {
        let ty = match self.nothing {
            Some(ty) => ty,
            None => {
                let validation = Some(Box::new(Validation { untyped: true, ..Validation::default() }));
                self.table.add(Type { validation, ..Type::new(Shape::Struct(Box::default())) })
            }
        };
        self.nothing = Some(ty);
        Slot { nullable: true, pointer: true, ..Slot::of(ty) }
    }

    /// Adds `apiVersion`, `kind` and `metadata` where they are missing.
    fn with_object_fields(&mut self, mut fields: Vec<Field>) -> Box<[Field]> {
        let metadata = self.table.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or(TypeId::ANY);
        let text = self.add(&crate::json!({"type": "string"}));
        for (name, ty) in [("apiVersion", text), ("kind", text), ("metadata", metadata)] {
            if !fields.iter().any(|field| field.name.as_str() == name) {
                fields.push(field(Key::from_static(name), Slot { pointer: true, ..Slot::of(ty) }, false));
            }
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.into()
    }
}

fn field(name: Key, slot: Slot, required: bool) -> Field {
    Field {
        name,
        shown_default: None,
        slot,
        omit: Omit::Empty,
        required,
        patch: PatchStrategy::default(),
        merge_key: Key::default(),
        embedded_in: Key::default(),
        gate: Key::default(),
        nil_differs: false,
        granularity: None,
        enumeration: Box::default(),
    }
}

fn keys(schema: &Value, name: &str) -> Box<[Key]> {
    schema.array_at(&[name]).iter().filter_map(Value::as_str).map(Key::new).collect()
}

/// The judging keywords of a node, `None` if it has none.
fn validation(schema: &Value) -> Option<Validation> {
    const JUDGING: [&str; 21] = [
        "allOf",
        "anyOf",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "required",
        "uniqueItems",
        "x-kubernetes-validations",
    ];
    let judges = schema.as_object()?.keys().any(|key| JUDGING.contains(&key.as_str()));
    judges.then(|| read_validation(schema))
}

fn read_validation(schema: &Value) -> Validation {
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let count = |name: &str| schema.get(name).and_then(Value::as_i64);
    let text = |name: &str| schema.get(name).and_then(Value::as_str).filter(|it| !it.is_empty()).map(Key::new);
    let nested_list = |name: &str| schema.array_at(&[name]).iter().map(nested).collect();
    Validation {
        format: text("format"),
        pattern: text("pattern"),
        maximum: number("maximum"),
        exclusive_maximum: schema.bool_at(&["exclusiveMaximum"]),
        minimum: number("minimum"),
        exclusive_minimum: schema.bool_at(&["exclusiveMinimum"]),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: schema.bool_at(&["uniqueItems"]),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        enumeration: schema.array_at(&["enum"]).into(),
        required: keys(schema, "required"),
        all_of: nested_list("allOf"),
        any_of: nested_list("anyOf"),
        one_of: nested_list("oneOf"),
        not: schema.get("not").filter(|it| !it.is_null()).map(|it| Box::new(nested(it))),
        rules: schema.array_at(&["x-kubernetes-validations"]).into(),
        metadata: None,
        untyped: false,
        forbids_additional: schema.get("additionalProperties").and_then(Value::as_bool) == Some(false),
    }
}

fn nested(schema: &Value) -> Nested {
    let below = |name: &str| match schema.get(name) {
        Some(inner @ Value::Object(_)) => Some(Box::new(nested(inner))),
        _ => None,
    };
    let properties = schema.object_at(&["properties"]).into_iter().flat_map(|it| it.iter());
    Nested {
        here: read_validation(schema),
        types: match schema.get("type").and_then(Value::as_str) {
            Some(name) => [Key::new(name)].into(),
            None => Box::default(),
        },
        properties: properties.map(|(name, schema)| (name.clone(), nested(schema))).collect(),
        items: below("items"),
        additional: below("additionalProperties"),
    }
}
