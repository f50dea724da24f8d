//! What is left of a part of a patch that has nothing to merge with.

use super::PATCH;
use crate::object::{Map, Value};

/// Removes members that are null, at any depth; nulls in lists stay.
pub(super) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// The value without the maps that hold a `$patch`; `None` if it is one itself.
pub(super) fn remove_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) => {
            if map.contains_key(PATCH) {
                return None;
            }
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, remove_directives(value)?)));
            Some(kept.collect::<Map>().into())
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(remove_directives).collect())),
        scalar => Some(scalar),
    }
}
