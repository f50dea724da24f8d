//! What happens to a custom resource between parsing and validation: metadata takes its typed form, unknown members go,
//! nulls that may not be go, defaults come. Mirrors apiextensions-apiserver `pkg/apiserver/schema/{pruning,
//! defaulting,objectmeta}`; all of them look at the shape of the value, not at the type the schema says.
//!
//! Order: [`coerce`], [`prune`], [`drop_nulls`], [`fill_defaults`].

use super::{
    builtin::builtin,
    decode::decode,
    table::{AdditionalMembers, Shape, Slot, Struct, Table, Type, TypeId},
};
use crate::{
    api::{FieldError, Path},
    object::{FieldPath, Key, Map, Room, Value},
};

/// Unknown members reported at most.
const MAX_REPORTED: usize = 100;

const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What the schema says below one node, by the shape of the value.
#[derive(Clone, Copy)]
struct Node<'t> {
    table: &'t Table,
    ty: &'t Type,
    /// What is kept although nothing describes it.
    preserves: bool,
}

impl<'t> Node<'t> {
    fn of(table: &'t Table, id: TypeId) -> Self {
        Self::new(table, table.get(id))
    }

    fn new(table: &'t Table, ty: &'t Type) -> Self {
        let by_members = matches!(&ty.shape, Shape::Struct(it) if it.additional == AdditionalMembers::Preserved);
        Self { table, ty, preserves: ty.preserve_unknown || by_members || matches!(ty.shape, Shape::Any) }
    }

    fn fields(&self) -> Option<&'t Struct> {
        match &self.ty.shape {
            Shape::Struct(it) => Some(it),
            _ => None,
        }
    }

    fn is_embedded_resource(&self) -> bool {
        self.fields().is_some_and(|it| it.embedded_resource)
    }

    /// What a member is, if anything says so.
    fn member(&self, name: &str) -> Option<&'t Slot> {
        match &self.ty.shape {
            Shape::Struct(it) => it.field(name).map(|field| &field.slot).or(it.rest.as_ref()),
            Shape::Map(it) => Some(&it.value),
            _ => None,
        }
    }

    fn item(&self) -> Option<&'t Slot> {
        match &self.ty.shape {
            Shape::List(it) => Some(&it.item),
            _ => None,
        }
    }

    fn at(&self, slot: &Slot) -> Node<'t> {
        Self::of(self.table, slot.ty)
    }

    /// Upstream's missing schema: it has no properties, and so nothing below it survives.
    fn nothing(&self) -> Node<'t> {
        static NOTHING: std::sync::OnceLock<Type> = std::sync::OnceLock::new();
        let ty = NOTHING.get_or_init(|| Type::new(Shape::Struct(Box::default())));
        Self { table: self.table, ty, preserves: false }
    }
}

/// Drops members that the schema of `ty` does not know and returns their paths, sorted.
pub fn prune(table: &Table, ty: TypeId, value: &mut Value) -> Vec<String> {
    let mut pruner = Pruner { path: FieldPath::default(), unknown: Vec::new() };
    pruner.value(Node::of(table, ty), value);
    let mut room = Room::default();
    let mut unknown: Vec<String> = pruner.unknown.iter().map_while(|path| path.text_within(&mut room)).collect();
    unknown.sort_unstable();
    unknown.truncate(MAX_REPORTED);
    unknown
}

struct Pruner {
    path: FieldPath,
    unknown: Vec<FieldPath>,
}

impl Pruner {
    fn value(&mut self, node: Node, value: &mut Value) {
        match value {
            Value::Object(map) => {
                let embedded = node.is_embedded_resource();
                map.retain(|key, value| {
                    if embedded && OBJECT_FIELDS.contains(&key.as_str()) {
                        return true;
                    }
                    match node.member(key) {
                        Some(slot) => {
                            self.path.push_key(key);
                            self.value(node.at(slot), value);
                            self.path.pop();
                            true
                        }
                        None if node.preserves => true,
                        None => {
                            self.report(key);
                            false
                        }
                    }
                });
            }
            Value::Array(items) => {
                let inner = match node.item() {
                    // Below a node that keeps, so does an item's own schema.
                    Some(slot) => Node { preserves: node.preserves || node.at(slot).preserves, ..node.at(slot) },
                    None if node.preserves => return,
                    None => node.nothing(),
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_index(index);
                    self.value(inner, item);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, key: &Key) {
        // The names of an object's own fields are never unknown at the root.
        if self.path.is_empty() && OBJECT_FIELDS.contains(&key.as_str()) {
            return;
        }
        // More than is told, since the first in order are told; but not without end.
        if self.unknown.len() < 100 * MAX_REPORTED {
            self.path.push_key(key);
            self.unknown.push(self.path.clone());
            self.path.pop();
        }
    }
}

/// Drops members that are null, may not be, and have no default.
pub fn drop_nulls(table: &Table, ty: TypeId, value: &mut Value) {
    nulls(Some(Node::of(table, ty)), value);
}

fn nulls(node: Option<Node>, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let slot = node.and_then(|node| node.member(key));
            if value.is_null() && slot.is_some_and(|slot| !slot.nullable && slot.default.is_none()) {
                return false;
            }
            nulls(node.zip(slot).map(|(node, slot)| node.at(slot)), value);
            true
        }),
        Value::Array(items) => {
            let inner = node.and_then(|node| Some(node.at(node.item()?)));
            items.iter_mut().for_each(|item| nulls(inner, item));
        }
        _ => {}
    }
}

/// Fills what is missing from the defaults of the schema, parents before what is in them.
pub fn fill_defaults(table: &Table, ty: TypeId, value: &mut Value) {
    fill(Node::of(table, ty), value);
}

fn fill(node: Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for field in node.fields().iter().flat_map(|it| it.fields.iter()) {
                let Some(default) = &field.slot.default else { continue };
                let missing = map.get(&field.name).is_none_or(|value| value.is_null() && !field.slot.nullable);
                if missing {
                    map.insert(field.name.clone(), (**default).clone());
                }
            }
            for (key, value) in map.iter_mut() {
                if let Some(slot) = node.member(key) {
                    fill_slot(node, slot, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(slot) = node.item() {
                items.iter_mut().for_each(|item| fill_slot(node, slot, item));
            }
        }
        _ => {}
    }
}

fn fill_slot(node: Node, slot: &Slot, value: &mut Value) {
    if value.is_null()
        && !slot.nullable
        && let Some(default) = &slot.default
    {
        *value = (**default).clone();
    }
    fill(node.at(slot), value);
}

/// Something of a wrong type, at a place relative to the object.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub field: String,
    pub value: Value,
    pub cause: String,
}

impl Refused {
    /// As validation tells it, below `path` (`""` for the object itself): `spec.pod.metadata: Invalid value: …`.
    pub fn below(&self, path: &str) -> FieldError {
        let field = if path.is_empty() { self.field.clone() } else { format!("{path}.{}", self.field) };
        FieldError::invalid_ref(&field, &self.value, &self.cause)
    }
}

/// What to do with metadata, `apiVersion` or `kind` of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// As for what a client sends.
    Refuse,
    /// As for what was stored.
    Drop,
}

/// Gives the metadata of the object, and of objects embedded in it, the form of `ObjectMeta`; returns the paths of
/// members it does not have (the root's first, then sorted), which are dropped.
///
/// # Errors
/// The first thing of a wrong type, if it is to be refused.
pub fn coerce(table: &Table, ty: TypeId, value: &mut Value, malformed: Malformed) -> Result<Vec<String>, Box<Refused>> {
    let mut coercer = Coercer { malformed, unknown: Vec::new(), room: Room::default() };
    coercer.value(Node::of(table, ty), value, Path::ROOT)?;
    coercer.unknown.sort_unstable();
    coercer.unknown.truncate(MAX_REPORTED);
    Ok(coercer.unknown)
}

struct Coercer {
    malformed: Malformed,
    unknown: Vec<String>,
    room: Room,
}

impl Coercer {
    fn value(&mut self, node: Node, value: &mut Value, path: Path) -> Result<(), Box<Refused>> {
        match value {
            Value::Object(map) => {
                if node.is_embedded_resource() {
                    self.object(map, path)?;
                }
                for (key, value) in map.iter_mut() {
                    if node.is_embedded_resource() && OBJECT_FIELDS.contains(&key.as_str()) {
                        continue;
                    }
                    let Some(slot) = node.member(key) else { continue };
                    let is_field = node.fields().is_some_and(|it| it.field(key).is_some());
                    let below = if is_field { path.child(key) } else { path.key(key) };
                    self.value(node.at(slot), value, below)?;
                }
                Ok(())
            }
            Value::Array(items) => {
                let Some(slot) = node.item() else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(node.at(slot), item, path.index(index))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn object(&mut self, map: &mut Map, path: Path) -> Result<(), Box<Refused>> {
        for name in ["apiVersion", "kind"] {
            match map.get(name) {
                None | Some(Value::Str(_)) => {}
                Some(_) if self.malformed == Malformed::Drop => {
                    map.remove(name);
                }
                Some(other) => {
                    let field = path.child(name).to_string();
                    return Err(Box::new(Refused { field, value: other.clone(), cause: "must be a string".into() }));
                }
            }
        }
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
        let path = path.child("metadata");
        let ty = builtin().named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or(TypeId::ANY);
        let written = metadata.clone();
        match decode(builtin(), ty, metadata, None) {
            Ok(unknown) => self.report(&path, unknown),
            Err(error) if self.malformed == Malformed::Refuse => {
                return Err(Box::new(Refused { field: path.to_string(), value: written, cause: error.message }));
            }
            // Member by member: what can be read alone is kept.
            Err(_) => {
                let mut kept = Map::new();
                for (name, member) in written.as_object().into_iter().flat_map(|it| it.iter()) {
                    let mut alone = Value::Object([(name.clone(), member.clone())].into());
                    if let Ok(unknown) = decode(builtin(), ty, &mut alone, None) {
                        self.report(&path, unknown);
                        if let Some(member) = alone.as_object_mut().and_then(|it| it.remove(name)) {
                            kept.insert(name.clone(), member);
                        }
                    }
                }
                if written.as_object().is_some() {
                    *metadata = Value::Object(kept);
                } else {
                    *metadata = written;
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, path: &Path, unknown: Vec<String>) {
        let told = unknown.into_iter().map_while(|name| self.room.take(&format_args!("{path}.{name}")));
        self.unknown.extend(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        json,
        object::{self, to_string},
        schema::{structural, vectors},
    };

    fn table(schema: &str) -> (Table, TypeId) {
        let schema = object::parse(schema.as_bytes()).unwrap();
        structural::custom_resource(Some(&schema))
    }

    #[test]
    fn objects_come_out_as_upstreams_handler_makes_them() {
        let mut objects = 0;
        for case in vectors::read("vectors/crd-value-validation.json") {
            let schema = case.get("schema").unwrap();
            let (table, ty) = structural::custom_resource(Some(schema));
            for (at, object) in case.array_at(&["objects"]).iter().enumerate() {
                let Some(expected) = object.get("result") else { continue };
                let name = format!("{} {at}", case.str_at(&["case"]));
                let mut value = object.get("object").unwrap().clone();
                value.set(&["apiVersion"], "example.com/v1");
                value.set(&["kind"], "Foo");
                let mut unknown = coerce(&table, ty, &mut value, Malformed::Refuse).unwrap();
                unknown.extend(prune(&table, ty, &mut value));
                drop_nulls(&table, ty, &mut value);
                fill_defaults(&table, ty, &mut value);
                let wanted: Vec<&str> =
                    object.array_at(&["unknown_fields"]).iter().map(|it| it.as_str().unwrap()).collect();
                assert_eq!(unknown, wanted, "{name}");
                assert_eq!(to_string(&value), to_string(expected), "{name}");
                objects += 1;
            }
        }
        assert!(objects > 150, "{objects}");
    }

    #[test]
    fn a_node_that_keeps_unknown_members_prunes_the_known_ones() {
        let (table, ty) = table(
            r#"{"type":"object","properties":{
                "p":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"k":{"type":"object","properties":{"a":{"type":"string"}}}}},
                "t":{"type":"object","additionalProperties":true},
                "l":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"a":{"type":"string"}}}},
                "s":{"type":"string"}}}"#,
        );
        let mut value = json!({
            "p": {"k": {"a": "1", "b": "2"}, "free": {"x": {"y": 1}}},
            "t": {"k": {"deep": 1}, "n": 1, "l": [{"a": 1}, 2]},
            "l": [{"a": "1", "b": {"c": 1}}],
            "s": {"a": 1},
            "z": 1
        });
        assert_eq!(prune(&table, ty, &mut value), ["p.k.b", "s.a", "t.k.deep", "t.l[0].a", "z"]);
        assert_eq!(
            to_string(&value),
            r#"{"l":[{"a":"1","b":{"c":1}}],"p":{"free":{"x":{"y":1}},"k":{"a":"1"}},"s":{},"t":{"k":{},"l":[{},2],"n":1}}"#
        );
    }

    #[test]
    fn metadata_of_a_wrong_type_is_refused_or_dropped() {
        let (table, ty) = table(
            r#"{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}"#,
        );
        let refused =
            |value: Value| coerce(&table, ty, &mut value.clone(), Malformed::Refuse).unwrap_err().below("").to_string();
        assert_eq!(
            refused(json!({"metadata": {"name": 1}})),
            r#"metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#
        );
        assert_eq!(
            refused(json!({"e": {"metadata": "x"}})),
            r#"e.metadata: Invalid value: "x": json: cannot unmarshal string into Go value of type v1.ObjectMeta"#
        );
        assert_eq!(refused(json!({"e": {"kind": 1}})), "e.kind: Invalid value: 1: must be a string");
        let mut value =
            json!({"metadata": {"name": 1, "labels": {"a": "b"}, "foo": 1}, "kind": 5, "e": {"apiVersion": 1}});
        assert_eq!(coerce(&table, ty, &mut value, Malformed::Drop).unwrap(), ["metadata.foo"]);
        assert_eq!(to_string(&value), r#"{"e":{},"metadata":{"labels":{"a":"b"}}}"#);
    }

    #[test]
    fn everything_is_kept_without_a_schema() {
        let (table, ty) = structural::custom_resource(None);
        let mut value = json!({"metadata": {}, "spec": {"a": [{"b": null}]}});
        let before = value.clone();
        assert!(prune(&table, ty, &mut value).is_empty());
        drop_nulls(&table, ty, &mut value);
        fill_defaults(&table, ty, &mut value);
        assert_eq!(value, before);
    }
}
