//! The items of lists that merge: what each is called, and which come more than once.

use super::{
    element::value_key,
    error::TypedErrors,
    shape::{ListAtom, Types},
};
use crate::{
    api::field::quote,
    object::{Key, Style, Value, write_json},
};

/// The name of an item as a path element.
///
/// Errors: the item cannot be told apart from others; the text is upstream's.
pub(super) fn item_key(types: &Types<'_>, list: &ListAtom<'_>, item: &Value) -> Result<Key, String> {
    if list.keys.is_empty() { set_item(item) } else { keyed_item(types, list, item) }
}

fn set_item(item: &Value) -> Result<Key, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        scalar => Ok(value_key(scalar)),
    }
}

fn keyed_item(types: &Types<'_>, list: &ListAtom<'_>, item: &Value) -> Result<Key, String> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let mut keys: [(&Key, Option<&Value>); 8] = [(const { &Key::from_static("") }, None); 8];
    let mut many = Vec::new();
    let keys = match keys.get_mut(..list.keys.len()) {
        Some(keys) => keys,
        None => {
            many.resize(list.keys.len(), (const { &Key::from_static("") }, None));
            &mut many[..]
        }
    };
    for (slot, name) in keys.iter_mut().zip(list.keys) {
        let value = match members.get(name) {
            Some(value) => Some(value),
            None => types
                .key_default(list.item, name)
                .map_err(|why| format!("couldn't find default value for {name}: {why}"))?,
        };
        *slot = (name, value);
    }
    if keys.iter().all(|(_, value)| value.is_none()) {
        let names: Vec<String> = list.keys.iter().map(|name| quote(name)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    keys.sort_by_key(|(name, _)| *name);
    Ok(print_keys(keys))
}

fn print_keys(keys: &[(&Key, Option<&Value>)]) -> Key {
    let mut text = Vec::with_capacity(64);
    text.extend_from_slice(b"k:{");
    for (name, value) in keys.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        if text.len() > 3 {
            text.push(b',');
        }
        crate::object::escape_into(&mut text, name);
        text.push(b':');
        write_json(&mut text, value, Style::Compact);
    }
    text.push(b'}');
    std::str::from_utf8(&text).map(Key::new).unwrap_or(Key::from_static("k:{}"))
}

/// One item with its name.
pub(super) struct Named<'v> {
    pub key: Key,
    pub item: &'v Value,
}

/// The items of a list in the order of their names, repeated ones beside each other in the order of the list.
/// Items without a name are reported and left out. O(n log n).
pub(super) fn by_name<'v>(
    types: &Types<'_>,
    list: &ListAtom<'_>,
    items: &'v [Value],
    errors: &mut TypedErrors,
) -> Vec<Named<'v>> {
    let mut named = in_order(types, list, items, errors);
    named.sort_by(|a, b| a.key.cmp(&b.key));
    named
}

/// The items of a list with their names, in the order of the list.
pub(super) fn in_order<'v>(
    types: &Types<'_>,
    list: &ListAtom<'_>,
    items: &'v [Value],
    errors: &mut TypedErrors,
) -> Vec<Named<'v>> {
    let mut named = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item_key(types, list, item) {
            Ok(key) => named.push(Named { key, item }),
            Err(why) => errors.push(format!("element {index}: {why}")),
        }
    }
    named
}

/// Cuts a list ordered by name into the groups of equal names.
pub(super) fn groups<'a, 'v>(named: &'a [Named<'v>]) -> impl Iterator<Item = &'a [Named<'v>]> {
    named.chunk_by(|a, b| a.key == b.key)
}
