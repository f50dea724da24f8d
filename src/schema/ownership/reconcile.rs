//! Field sets written when a type was granular, read when it is of one piece (structured-merge-diff
//! `typed/reconcile_schema.go`).

use super::{
    set::{FieldSet, Node},
    shape::{Part, Ref, Types},
};
use crate::object::{Key, Map, Value};

/// Where a map, struct or list has become atomic, whoever owned something in it owns it whole. `None`: nothing to do.
pub(super) fn reconcile(types: &Types<'_>, ty: Ref, set: &FieldSet) -> Option<FieldSet> {
    if !needs_it(types, ty, set.as_map(), true) {
        return None;
    }
    Some(rebuild(types, ty, set.as_map()).into_set())
}

/// Whether this node is now atomic although there is something below it.
fn collapses(types: &Types<'_>, ty: Ref, node: &Map, root: bool) -> bool {
    if root || node.is_empty() || (node.len() == 1 && node.contains_key(".")) {
        return false;
    }
    let atom = types.resolve(ty);
    match atom.first() {
        Some(Part::Map) => atom.map.is_some_and(|map| map.atomic),
        Some(Part::List) => atom.list.is_some_and(|list| !list.associative),
        _ => false,
    }
}

fn below(types: &Types<'_>, ty: Ref, key: &str) -> Ref {
    let atom = types.resolve(ty);
    match (atom.list, atom.map) {
        (Some(list), None) if key.starts_with("k:") || key.starts_with("v:") => list.item,
        _ => atom.below(types, key).0,
    }
}

fn needs_it(types: &Types<'_>, ty: Ref, node: &Map, root: bool) -> bool {
    collapses(types, ty, node, root)
        || node.iter().any(|(key, child)| match child.as_object() {
            Some(child) if !child.is_empty() && key.as_str() != "." => match below(types, ty, key) {
                // Types that are deduced have no opinion.
                Ref::Nothing | Ref::Deduced => false,
                ty => needs_it(types, ty, child, false),
            },
            _ => false,
        })
}

fn rebuild(types: &Types<'_>, ty: Ref, node: &Map) -> Node {
    let mut out = Node { member: node.is_empty() || node.contains_key("."), ..Node::default() };
    for (key, child) in node.iter().filter(|(key, _)| key.as_str() != ".") {
        let below = below(types, ty, key);
        match child.as_object() {
            Some(node) if collapses(types, below, node, false) => out.push_leaf(key.clone()),
            Some(node) if !node.is_empty() && below != Ref::Nothing => {
                out.push(key.clone(), rebuild(types, below, node))
            }
            _ => out.below.push((Key::clone(key), Value::clone(child))),
        }
    }
    out
}
