//! The fields that an object says something about (structured-merge-diff `typed/tofieldset.go`).

use super::{
    element::field_key,
    error::TypedErrors,
    items::{by_name, groups},
    set::{FieldSet, Node},
    shape::{ListAtom, MapAtom, Part, Ref, Types},
};
use crate::object::{Map, Value};

/// The set of all leaves, items and members of maps in `value`.
pub(super) fn field_set(types: &Types<'_>, ty: Ref, value: &Value) -> FieldSet {
    let mut out = Node::default();
    visit(types, ty, value, &mut out);
    out.into_set()
}

fn visit(types: &Types<'_>, ty: Ref, value: &Value, out: &mut Node) {
    let atom = types.resolve(ty);
    match atom.fitting(value).or(atom.first()) {
        Some(Part::Map) if let Some(map) = atom.map => visit_map(types, &map, value, out),
        Some(Part::List) if let Some(list) = atom.list => visit_list(types, &list, value, out),
        Some(_) => out.member = true,
        None => {}
    }
}

fn visit_map(types: &Types<'_>, map: &MapAtom<'_>, value: &Value, out: &mut Node) {
    if map.atomic {
        out.member = true;
        return;
    }
    let mut types_of = map.in_order();
    for (name, member) in value.as_object().map_or(&[][..], Map::as_slice) {
        let (ty, named) = types_of.member(name);
        let mut below = Node::default();
        visit(types, ty, member, &mut below);
        let empty = member.is_null() || member.as_object().is_some_and(Map::is_empty);
        below.member |= empty || !named;
        out.push(field_key(name), below);
    }
}

fn visit_list(types: &Types<'_>, list: &ListAtom<'_>, value: &Value, out: &mut Node) {
    if !list.associative {
        out.member = true;
        return;
    }
    // Items without a name were found before, when the value was validated.
    let items = value.as_array().unwrap_or(&[]);
    let named = by_name(types, list, items, &mut TypedErrors::default());
    for group in groups(&named) {
        let Some(first) = group.first() else { continue };
        let mut below = Node { member: true, ..Node::default() };
        if group.len() == 1 {
            visit(types, list.item, first.item, &mut below);
        }
        out.push(first.key.clone(), below);
    }
}
