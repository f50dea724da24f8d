//! A patched object as upstream shows it when it cannot be decoded: JSON with members in two orders.
//!
//! Objects that the patch has opened are Go maps and print by name; those it has not touched print as the encoder wrote
//! them, in the order of the Go struct, which is that of the protobuf tags but for some types.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use super::JsonPatch;
use crate::{
    object::{Key, Map, Style, Value, escape_into, write_json},
    schema::{Shape, Struct, Table, TypeId, WireMember},
};

/// The containers that a patch has opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opened(BTreeMap<String, Opened>);

impl Opened {
    /// Those of a merge patch: the root, and every object that it merges into.
    pub fn by_merge(patch: &Value) -> Self {
        let members = patch.as_object().into_iter().flat_map(Map::iter);
        let objects = members.filter(|(_, value)| value.as_object().is_some());
        Self(objects.map(|(name, value)| (name.as_str().to_owned(), Self::by_merge(value))).collect())
    }

    /// Those of a JSON patch: what lies on the ways of its operations.
    pub fn by_operations(patch: &JsonPatch) -> Self {
        let mut opened = Self::default();
        for path in patch.paths() {
            let mut at = &mut opened;
            for name in path {
                at = at.0.entry(name).or_default();
            }
        }
        opened
    }
}

/// The object as one line of JSON.
pub fn show_patched(table: &Table, ty: TypeId, value: &Value, opened: &Opened) -> String {
    let mut out = Vec::with_capacity(1024);
    write(&mut out, table, ty, value, Some(opened));
    String::from_utf8(out).unwrap_or_default()
}

fn write(out: &mut Vec<u8>, table: &Table, ty: TypeId, value: &Value, opened: Option<&Opened>) {
    match (value, &table.get(ty).shape) {
        (Value::Object(members), Shape::Struct(fields)) => {
            let names: Vec<&Key> = match opened {
                Some(_) => members.keys().collect(),
                None => in_go_order(table, fields, members),
            };
            let type_of = |name: &Key| fields.field(name).map_or(TypeId::ANY, |field| field.slot.ty);
            write_members(out, table, members, &names, type_of, opened);
        }
        (Value::Object(members), Shape::Map(map)) => {
            let names: Vec<&Key> = members.keys().collect();
            write_members(out, table, members, &names, |_| map.value.ty, opened);
        }
        (Value::Array(items), Shape::List(list)) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(out, table, list.item.ty, item, opened.and_then(|opened| opened.0.get(&at.to_string())));
            }
            out.push(b']');
        }
        _ => write_json(out, value, Style::Compact),
    }
}

fn write_members(
    out: &mut Vec<u8>,
    table: &Table,
    members: &Map,
    names: &[&Key],
    type_of: impl Fn(&Key) -> TypeId,
    opened: Option<&Opened>,
) {
    out.push(b'{');
    for (at, name) in names.iter().enumerate() {
        let Some(value) = members.get(name) else { continue };
        if at > 0 {
            out.push(b',');
        }
        escape_into(out, name);
        out.push(b':');
        write(out, table, type_of(name), value, opened.and_then(|opened| opened.0.get(name.as_str())));
    }
    out.push(b'}');
}

/// The members that are there: kind and version, the fields by their tags, then what the struct does not know.
fn in_go_order<'m>(table: &Table, fields: &Struct, members: &'m Map) -> Vec<&'m Key> {
    let mut order = Vec::new();
    tagged(table, fields, &mut order);
    // Where they are no fields of their own, an embedded TypeMeta without a tag comes first.
    let type_meta = ["kind", "apiVersion"].map(Key::from_static);
    let untagged = type_meta.into_iter().filter(|name| !order.contains(name)).collect::<Vec<_>>();
    order.splice(0..0, untagged);
    let mut names: Vec<&Key> = members.keys().collect();
    let place = |name: &Key| order.iter().position(|other| other == name).unwrap_or(order.len());
    names.sort_by_cached_key(|name| place(name));
    names
}

/// The types whose fields stand in another order than that of their tags: model name and fields.
static GO_ORDER: LazyLock<HashMap<&str, Vec<&'static str>>> = LazyLock::new(|| {
    let lines = include_str!("../data/go-order.txt").lines();
    lines.filter_map(|line| line.split_once('\t')).map(|(name, fields)| (name, fields.split(' ').collect())).collect()
});

fn tagged(table: &Table, fields: &Struct, order: &mut Vec<Key>) {
    if let Some(own) = GO_ORDER.get(fields.name.as_str()) {
        return order.extend(own.iter().map(|name| Key::new(name)));
    }
    for entry in &fields.wire {
        match entry.member {
            WireMember::Field(at) => order.extend(fields.fields.get(at as usize).map(|field| field.name.clone())),
            WireMember::Embedded(ty) => {
                if let Some(embedded) = table.struct_of(ty) {
                    tagged(table, embedded, order);
                }
            }
        }
    }
}
