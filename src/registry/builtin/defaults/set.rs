//! Setting members that are not set, in Go's sense: a pointer that is nil (absent or null), a value that is zero.

use crate::object::{Key, Map, Value};

pub fn is_nil(map: &Map, name: &str) -> bool {
    map.get(name).is_none_or(Value::is_null)
}

/// Sets a pointer that is nil.
pub fn nil(map: &mut Map, name: &'static str, value: impl Into<Value>) {
    if is_nil(map, name) {
        map.insert(Key::from_static(name), value);
    }
}

/// Sets text that is empty.
pub fn empty(map: &mut Map, name: &'static str, value: impl Into<Value>) {
    if text(map, name).is_empty() {
        map.insert(Key::from_static(name), value);
    }
}

/// Sets a number that is zero.
pub fn zero(map: &mut Map, name: &'static str, value: i64) {
    if map.get(name).and_then(Value::as_i64).unwrap_or(0) == 0 {
        map.insert(Key::from_static(name), value);
    }
}

/// The text of a member; empty where there is none.
pub fn text<'a>(map: &'a Map, name: &str) -> &'a str {
    map.get(name).and_then(Value::as_str).unwrap_or("")
}

/// Whether a list or map has nothing in it.
pub fn has_none(map: &Map, name: &str) -> bool {
    match map.get(name) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        _ => true,
    }
}

/// A struct that is held by value: made where it is missing.
pub fn child<'a>(map: &'a mut Map, name: &'static str) -> &'a mut Map {
    map.entry_or(Key::from_static(name), Value::object).make_object()
}

/// A struct or map behind a pointer, if it is set.
pub fn some_child<'a>(map: &'a mut Map, name: &str) -> Option<&'a mut Map> {
    map.get_mut(name)?.as_object_mut()
}

/// The items of a list that are structs.
pub fn items<'a>(map: &'a mut Map, name: &str) -> impl Iterator<Item = &'a mut Map> {
    let items = map.get_mut(name).and_then(Value::as_array_mut).map_or(&mut [][..], |it| it);
    items.iter_mut().filter_map(Value::as_object_mut)
}
