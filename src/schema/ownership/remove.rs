//! Taking fields out of an object (structured-merge-diff `typed/remove.go`).

use super::{
    element::field_key,
    items::item_key,
    set::FieldSet,
    shape::{ListAtom, MapAtom, Part, Ref, Types},
};
use crate::object::{Key, Map, Value};

/// `value` without the fields of `set`. A map or list that loses its last member becomes null, as upstream's does; the
/// pass that follows an apply drops it from built-in kinds.
pub(super) fn remove_fields(types: &Types<'_>, ty: Ref, value: &Value, set: &FieldSet) -> Value {
    walk(types, ty, value, set.as_map())
}

/// Is the element `key` in the set, and the part of the set below it.
fn lookup<'s>(set: &'s Map, key: &str) -> (bool, Option<&'s Map>) {
    match set.get(key).and_then(Value::as_object) {
        None => (false, None),
        Some(node) if node.is_empty() => (true, None),
        Some(node) => {
            let member = node.contains_key(".");
            (member, (node.len() > usize::from(member)).then_some(node))
        }
    }
}

fn walk(types: &Types<'_>, ty: Ref, value: &Value, set: &Map) -> Value {
    let atom = types.resolve(ty);
    match atom.fitting(value).or(atom.first()) {
        Some(Part::Map) if let Some(map) = atom.map => walk_map(types, &map, value, set),
        Some(Part::List) if let Some(list) = atom.list => walk_list(types, &list, value, set),
        Some(Part::Scalar) => value.clone(),
        _ => Value::Null,
    }
}

fn walk_map(types: &Types<'_>, map: &MapAtom<'_>, value: &Value, set: &Map) -> Value {
    if map.atomic {
        return Value::Null;
    }
    let mut kept: Vec<(Key, Value)> = Vec::new();
    for (name, member) in value.as_object().map_or(&[][..], Map::as_slice) {
        match lookup(set, &field_key(name)) {
            (true, _) => {}
            (false, None) => kept.push((name.clone(), member.clone())),
            (false, Some(below)) => kept.push((name.clone(), walk(types, map.member(name).0, member, below))),
        }
    }
    if kept.is_empty() { Value::Null } else { Value::Object(Map::from_members(kept, |_| {})) }
}

fn walk_list(types: &Types<'_>, list: &ListAtom<'_>, value: &Value, set: &Map) -> Value {
    if !list.associative {
        return Value::Null;
    }
    let mut kept = Vec::new();
    for item in value.as_array().unwrap_or(&[]) {
        let key = item_key(types, list, item).unwrap_or(Key::from_static(""));
        match lookup(set, &key) {
            (true, _) => {}
            (false, None) => kept.push(item.clone()),
            (false, Some(below)) => kept.push(walk(types, list.item, item, below)),
        }
    }
    if kept.is_empty() { Value::Null } else { Value::Array(kept) }
}
