//! Lists that merge: by a key, or as sets of scalars; and the order they end up in.

use std::collections::{HashMap, HashSet};

use super::{
    ELEMENT_ORDER, PATCH, bad_type, list_name, merge_maps,
    meta::{Lookup, Member, Strategy},
    no_merge_key, remove_directives, same_type, unknown_directive, unmapped,
};
use crate::{
    object::{Map, Value},
    schema::patch::{PatchError, go_print},
};

const LIST: &str = "[]interface {}";
const MAP: &str = "map[string]interface {}";

/// What tells items apart. Lists and maps are equal to nothing, not even to themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ItemKey {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(String),
    Never,
}

impl ItemKey {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Bool(*it),
            Value::Int(it) => Self::Int(*it),
            // 0.0 and -0.0 are equal.
            Value::Float(it) => Self::Float(if *it == 0.0 { 0 } else { it.to_bits() }),
            Value::Str(it) => Self::Text(it.clone()),
            Value::Array(_) | Value::Object(_) => Self::Never,
        }
    }

    /// The key of an item: the member `merge_key` of a map, or the item itself where there is no merge key.
    fn of_item(item: &Value, merge_key: &str) -> Self {
        if merge_key.is_empty() { Self::of(item) } else { item.get(merge_key).map_or(Self::Null, Self::of) }
    }
}

/// Where each key comes first in a list.
struct Index(HashMap<ItemKey, usize>);

impl Index {
    fn of(items: &[Value], merge_key: &str) -> Self {
        let mut index = HashMap::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            index.entry(ItemKey::of_item(item, merge_key)).or_insert(at);
        }
        index.remove(&ItemKey::Never);
        Self(index)
    }

    fn find(&self, item: &Value, merge_key: &str) -> Option<usize> {
        self.0.get(&ItemKey::of_item(item, merge_key)).copied()
    }
}

/// Checks that all items are of one JSON type, and no lists. `Ok(true)`: they are maps.
fn are_maps(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        return Err(unmapped("no elements in any of the given slices"));
    };
    if first.as_array().is_some() {
        return Err(PatchError::Rejected("lists of lists are not supported".into()));
    }
    if !items.all(|item| same_type(first, item)) {
        let shown = format!("[{} {}]", go_print::plain_list(original), go_print::plain_list(patch));
        return Err(unmapped(format!("list element types are not identical: {shown}")));
    }
    Ok(first.as_object().is_some())
}

/// The list after a patch; with `delete` the patch names the scalars to take out.
pub(super) fn merge(
    member: &Member<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
    delete: bool,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let merge_key = member.merge_key;
    if !are_maps(&original, &patch)? {
        if delete {
            let gone: HashSet<ItemKey> = patch.iter().map(ItemKey::of).collect();
            return Ok(original.into_iter().filter(|item| !gone.contains(&ItemKey::of(item))).collect());
        }
        let order = Index::of(&original, merge_key);
        let mut seen = HashSet::with_capacity(original.len() + patch.len());
        let both: Vec<Value> =
            original.into_iter().chain(patch.iter().cloned()).filter(|item| seen.insert(ItemKey::of(item))).collect();
        return arrange(both, &patch, &order, merge_key, false);
    }
    if merge_key.is_empty() {
        return Err(unmapped(format!("cannot merge lists without merge key for {}", member.schema.kind())));
    }
    let (original, patch) = special_items(original, patch, merge_key)?;
    let order = Index::of(&original, merge_key);
    let merged = merge_items(member.schema, original, &patch, merge_key)?;
    arrange(merged, &patch, &order, merge_key, true)
}

/// Carries out the items that are directives. Gives the list to merge into and the items that are left.
fn special_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut gone = HashSet::new();
    let mut replace = false;
    for item in patch {
        let Value::Object(map) = &item else { continue };
        let Some(directive) = map.get(PATCH) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                gone.insert(ItemKey::of(map.get(merge_key).ok_or_else(|| no_merge_key(map, merge_key))?));
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(unmapped("merging lists cannot yet be specified in the patch")),
            _ => return Err(unknown_directive(directive, map)),
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    gone.remove(&ItemKey::Never);
    if !gone.is_empty() {
        original.retain(|item| item.get(merge_key).is_none_or(|key| !gone.contains(&ItemKey::of(key))));
    }
    Ok((original, plain))
}

/// Merges each item of the patch into the one with its key, or appends it.
fn merge_items(
    schema: Lookup<'_>,
    mut original: Vec<Value>,
    patch: &[Value],
    merge_key: &str,
) -> Result<Vec<Value>, PatchError> {
    let mut index: HashMap<ItemKey, usize> = HashMap::with_capacity(original.len() + patch.len());
    for (at, key) in original.iter().enumerate().filter_map(|(at, item)| Some((at, item.get(merge_key)?))) {
        index.entry(ItemKey::of(key)).or_insert(at);
    }
    index.remove(&ItemKey::Never);
    for item in patch {
        let Value::Object(map) = item else { continue };
        let key = ItemKey::of(map.get(merge_key).ok_or_else(|| no_merge_key(map, merge_key))?);
        match index.get(&key).and_then(|at| original.get_mut(*at)) {
            Some(there) => {
                if let Value::Object(old) = there.take() {
                    *there = Value::Object(merge_maps(schema, old, map.clone())?);
                }
            }
            None => {
                if key != ItemKey::Never {
                    index.insert(key, original.len());
                }
                original.push(item.clone());
            }
        }
    }
    Ok(original)
}

/// Orders a merged list: the items that `wanted` has take its order, the others the order they had, and both are
/// interleaved as far as the old order knows.
fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    old: &Index,
    merge_key: &str,
    maps: bool,
) -> Result<Vec<Value>, PatchError> {
    let (theirs, ours) = partition(merged, wanted, merge_key)?;
    let order = Index::of(wanted, merge_key);
    if maps {
        for list in [&theirs[..], wanted, &ours[..]] {
            check_keys(list, merge_key)?;
        }
    }
    let theirs = sort(theirs, &order, merge_key, maps);
    let ours = sort(ours, old, merge_key, maps);
    Ok(interleave(ours, theirs, old, merge_key))
}

fn check_keys(items: &[Value], merge_key: &str) -> Result<(), PatchError> {
    for item in items {
        let map = item.as_object().ok_or_else(|| bad_type(MAP, item))?;
        if !map.contains_key(merge_key) {
            return Err(no_merge_key(map, merge_key));
        }
    }
    Ok(())
}

/// Splits a list into the items that `wanted` has and the others.
fn partition(merged: Vec<Value>, wanted: &[Value], merge_key: &str) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    if merge_key.is_empty() {
        let wanted: HashSet<ItemKey> = wanted.iter().map(ItemKey::of).collect();
        return Ok(merged.into_iter().partition(|item| wanted.contains(&ItemKey::of(item))));
    }
    // A search through `wanted` fails at the first item that is no map.
    let broken = wanted.iter().position(|item| item.as_object().is_none());
    let searched = wanted.get(..broken.unwrap_or(wanted.len())).unwrap_or(wanted);
    let keys: HashSet<ItemKey> = searched.iter().filter_map(|item| item.get(merge_key)).map(ItemKey::of).collect();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for item in merged {
        let map = item.as_object().ok_or_else(|| bad_type(MAP, &item))?;
        let key = ItemKey::of(map.get(merge_key).ok_or_else(|| no_merge_key(map, merge_key))?);
        if key != ItemKey::Never && keys.contains(&key) {
            theirs.push(item);
        } else if let Some(at) = broken {
            return Err(unmapped(format!("value for key {at} is not a map")));
        } else {
            ours.push(item);
        }
    }
    Ok((theirs, ours))
}

/// Sorts by the place in `order`, items to be deleted last.
fn sort(items: Vec<Value>, order: &Index, merge_key: &str, maps: bool) -> Vec<Value> {
    let is_deletion = |item: &Value| maps && item.get(PATCH).and_then(Value::as_str) == Some("delete");
    let (deletions, items): (Vec<Value>, Vec<Value>) = items.into_iter().partition(is_deletion);
    let mut placed: Vec<(Option<usize>, Value)> =
        items.into_iter().map(|item| (order.find(&item, merge_key), item)).collect();
    if placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| *place);
    } else {
        sort_with_strangers(&mut placed);
    }
    placed.into_iter().map(|(_, item)| item).chain(deletions).collect()
}

/// Upstream sorts items without a place by a relation that is no order ("less than anything"), with the effect that
/// each goes before what stood before it.
fn sort_with_strangers(placed: &mut [(Option<usize>, Value)]) {
    // As far as its sort inserts item by item; longer lists upstream leaves to chance.
    const INSERTED: usize = 20;
    if placed.len() > INSERTED {
        placed.sort_by_key(|(place, _)| *place);
        return;
    }
    for from in 1..placed.len() {
        for at in (1..=from).rev() {
            let before = match (placed.get(at), placed.get(at - 1)) {
                (Some((Some(a), _)), Some((Some(b), _))) => a < b,
                _ => true,
            };
            if !before {
                break;
            }
            placed.swap(at, at - 1);
        }
    }
}

/// Puts each of `left` before the first of `right` that the old order has behind it.
fn interleave(left: Vec<Value>, right: Vec<Value>, old: &Index, merge_key: &str) -> Vec<Value> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(l), Some(r)) = (left.peek(), right.peek()) {
        let left_first = match (old.find(l, merge_key), old.find(r, merge_key)) {
            (Some(l), Some(r)) => l < r,
            _ => false,
        };
        out.extend(if left_first { left.next() } else { right.next() });
    }
    out.extend(left);
    out.extend(right);
    out
}

/// Merges the lists of a map that have an order directive beside them, and takes both out of the patch.
pub(super) fn merge_ordered(schema: Lookup<'_>, original: &mut Map, patch: &mut Map) -> Result<(), PatchError> {
    let directives: Vec<_> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(bad_type(LIST, &other.unwrap_or_default())),
        };
        let name = list_name(&directive, ELEMENT_ORDER)
            .ok_or_else(|| PatchError::Malformed("invalid patch format of setElementOrder list".into()))?;
        let list = |found: Option<&Value>| match found {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items.clone())),
            Some(other) => Err(bad_type(LIST, other)),
        };
        let (old, new) = (list(original.get(name))?, list(patch.get(name))?);
        let member = schema.list_member(name)?;
        check_order(new.as_deref().unwrap_or(&[]), &order, member.merge_key)?;
        let merged = match (old.clone(), new.clone()) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(remove_directives).collect(),
            (Some(old), Some(new)) if member.strategy == Strategy::Merge => merge(&member, old, new, false)?,
            (Some(_), Some(new)) => new,
        };
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let index = Index::of(&old, member.merge_key);
        let maps = are_maps(&old, &new)?;
        let arranged = arrange(merged, &order, &index, member.merge_key, maps)?;
        original.insert(name, arranged);
        patch.remove(name);
    }
    Ok(())
}

/// An order must name all items of the patch, in their order.
fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = Vec::with_capacity(patch.len());
    for item in patch {
        let map = item.as_object();
        if !merge_key.is_empty() && map.is_none() {
            return Err(bad_type(MAP, item));
        }
        if map.is_none_or(|map| !map.contains_key(PATCH)) {
            wanted.push(item);
        }
    }
    let mut wanted = wanted.into_iter().peekable();
    for item in order {
        let Some(next) = wanted.peek() else { return Ok(()) };
        if same_item(next, item, merge_key)? {
            wanted.next();
        }
    }
    match wanted.next() {
        None => Ok(()),
        Some(_) => Err(unmapped(format!(
            "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
            go_print::plain_list(patch),
            go_print::plain_list(order)
        ))),
    }
}

fn same_item(a: &Value, b: &Value, merge_key: &str) -> Result<bool, PatchError> {
    let equal = |a: &Value, b: &Value| {
        let key = ItemKey::of(a);
        key != ItemKey::Never && key == ItemKey::of(b)
    };
    if merge_key.is_empty() {
        return Ok(equal(a, b));
    }
    let key = |item: &Value| {
        let map = item.as_object().ok_or_else(|| bad_type(MAP, item))?;
        map.get(merge_key).cloned().ok_or_else(|| no_merge_key(map, merge_key))
    };
    let (a, b) = (a.as_object().map(|_| a).ok_or_else(|| bad_type(MAP, a))?, b);
    if b.as_object().is_none() {
        return Err(bad_type(MAP, b));
    }
    Ok(equal(&key(a)?, &key(b)?))
}
