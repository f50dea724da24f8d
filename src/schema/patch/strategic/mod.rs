//! Strategic merge patch (apimachinery `pkg/util/strategicpatch`), driven by the type table.
//!
//! Like a merge patch, except that lists of some fields merge, by a key or as sets, and that members whose names begin
//! with `$` say what else to do: `$patch`, `$retainKeys`, `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>`.
//! Upstream goes over patches in random order; here the order is that of names, so of several errors always the same
//! is told. What makes upstream panic (keys that are lists or maps) matches nothing here.

mod convert;
mod directives;
mod lists;
mod meta;

use super::{PatchError, go_print};
use crate::{
    object::{Key, Map, Parsed, Value, parse, parse_reporting_duplicates},
    schema::{Table, TypeId},
};
pub use convert::convert_types;
use directives::{discard_nulls, remove_directives};
use meta::{Lookup, Strategy};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Reads a patch; null is an empty one. With `report` (field validation Warn or Strict) the members that are written
/// twice are told as well.
pub fn parse_strategic_patch(text: &[u8], report: bool) -> Result<(Map, Vec<String>), PatchError> {
    let (value, duplicates) = if report {
        let Parsed { value, duplicates, .. } =
            parse_reporting_duplicates(text).map_err(|e| PatchError::Malformed(e.message))?;
        (value, duplicates.into_iter().map(|path| format!("duplicate field \"{path}\"")).collect())
    } else {
        (parse(text).map_err(|e| PatchError::Malformed(e.message))?, Vec::new())
    };
    match value {
        Value::Object(map) => Ok((map, duplicates)),
        Value::Null => Ok((Map::new(), duplicates)),
        other => Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            other.json_type()
        ))),
    }
}

/// Applies a patch to an object of type `ty`, in the version that the patch is written for. The result is not decoded.
///
/// O(n log n) in object and patch together.
pub fn strategic_merge(table: &Table, ty: TypeId, original: Value, patch: &Map) -> Result<Value, PatchError> {
    let original = match original {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    merge_maps(Lookup::root(table, ty), original, patch.clone()).map(Value::Object)
}

fn unmapped(message: impl Into<String>) -> PatchError {
    PatchError::Unmapped(message.into())
}

fn bad_type(expected: &str, got: &Value) -> PatchError {
    let got = if got.is_null() { "%!s(<nil>)" } else { go_print::type_name(got) };
    unmapped(format!("expected a {expected}, but received a {got}"))
}

fn no_merge_key(item: &Map, merge_key: &str) -> PatchError {
    unmapped(format!("map: {} does not contain declared merge key: {merge_key}", go_print::plain_map(item)))
}

fn unknown_directive(directive: &Value, map: &Map) -> PatchError {
    unmapped(format!("unknown patch type: {} in map: {}", go_print::text(directive), go_print::plain_map(map)))
}

/// The list's name behind a directive: `$setElementOrder/ports`.
fn list_name<'k>(key: &'k str, directive: &str) -> Option<&'k str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// Go's idea of two JSON values having one type: integers and doubles differ.
fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

fn merge_maps(schema: Lookup<'_>, mut original: Map, mut patch: Map) -> Result<Map, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    lists::merge_ordered(schema, &mut original, &mut patch)?;
    let mut changes = Changes::default();
    for (key, value) in patch {
        if key.starts_with(DELETE_FROM_LIST) {
            // The directive may speak of what was changed just before.
            changes.make(&mut original);
            let name = list_name(&key, DELETE_FROM_LIST)
                .ok_or_else(|| PatchError::Malformed("invalid patch format of primitive list".into()))?;
            delete_from_list(schema, &mut original, if name.is_empty() { &key } else { name }, value)?;
        } else if value.is_null() {
            changes.gone.push(key);
        } else if let Some(there) = original.get_mut(&key).filter(|there| same_type(there, &value)) {
            merge_values(schema, &key, there, value)?;
        } else {
            let mut value = value;
            discard_nulls(&mut value);
            match remove_directives(value) {
                Some(value) => changes.new.push((key, value)),
                None => changes.gone.push(key),
            };
        }
    }
    changes.make(&mut original);
    Ok(original)
}

/// What a patch does to the members of one map, gathered so that it is done in one pass. Names come in order.
#[derive(Default)]
struct Changes {
    gone: Vec<Key>,
    new: Vec<(Key, Value)>,
}

impl Changes {
    fn make(&mut self, map: &mut Map) {
        let gone = std::mem::take(&mut self.gone);
        map.remove_all(&gone.iter().collect::<Vec<_>>());
        map.insert_all(std::mem::take(&mut self.new));
    }
}

/// Merges into a member that is there, with a value of the same JSON type.
fn merge_values(schema: Lookup<'_>, key: &str, there: &mut Value, value: Value) -> Result<(), PatchError> {
    let merged = match (there.take(), value) {
        (Value::Object(old), Value::Object(new)) => {
            let field = schema.member(key)?;
            Value::Object(match field.strategy {
                Strategy::Replace => new,
                _ => merge_maps(field.schema, old, new)?,
            })
        }
        (Value::Array(old), Value::Array(new)) => {
            let field = schema.list_member(key)?;
            Value::Array(match field.strategy {
                Strategy::Merge => lists::merge(&field, old, new, false)?,
                _ => new,
            })
        }
        (_, scalar) => scalar,
    };
    *there = merged;
    Ok(())
}

/// Takes items out of a list of scalars. Upstream treats the directive as if it were the list itself, so null deletes
/// the list, and anything that is no list does nothing.
fn delete_from_list(schema: Lookup<'_>, original: &mut Map, name: &str, items: Value) -> Result<(), PatchError> {
    if items.is_null() {
        original.remove(name);
        return Ok(());
    }
    let Some(there) = original.get_mut(name).filter(|there| same_type(there, &items)) else { return Ok(()) };
    let merged = match (there.take(), items) {
        (Value::Array(old), Value::Array(items)) => {
            let field = schema.list_member(name)?;
            Value::Array(lists::merge(&field, old, items, true)?)
        }
        // Not a list on either side: upstream goes on as without the directive.
        (old, items) => {
            *there = old;
            return merge_values(schema, name, there, items);
        }
    };
    *there = merged;
    Ok(())
}

/// `$retainKeys`: members that the list does not name are dropped; the patch itself may have none of them.
fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".into());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let retained: std::collections::HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let exempt = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    let named = patch.iter().filter(|(key, value)| !value.is_null() && !exempt(key));
    if named.into_iter().any(|(key, _)| !retained.contains(key.as_str())) {
        return Err(malformed());
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}
