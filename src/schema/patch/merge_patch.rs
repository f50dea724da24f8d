//! JSON merge patch, RFC 7386, as gopkg.in/evanphx/json-patch.v4 `merge.go` does it.

use super::PatchError;
use crate::object::{Map, Parsed, Value, parse, parse_reporting_duplicates};

/// Reads a patch. With `report` (field validation Warn or Strict) the members that are written twice are told as well,
/// and the patch must be an object.
pub fn parse_merge_patch(text: &[u8], report: bool) -> Result<(Value, Vec<String>), PatchError> {
    if !report {
        return match parse(text) {
            Ok(value) => Ok((value, Vec::new())),
            Err(_) => Err(not_a_patch()),
        };
    }
    let malformed = |why: String| PatchError::Malformed(format!("error decoding patch: {why}"));
    let Parsed { value, duplicates, .. } = parse_reporting_duplicates(text).map_err(|e| malformed(e.message))?;
    match value {
        Value::Object(_) | Value::Null => {
            Ok((value, duplicates.into_iter().map(|path| format!("duplicate field \"{path}\"")).collect()))
        }
        other => Err(malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            other.json_type()
        ))),
    }
}

fn not_a_patch() -> PatchError {
    PatchError::Malformed("Invalid JSON Patch".into())
}

/// Merges a patch into a document: null deletes, lists replace. A patch that is a list becomes the document.
pub fn merge_patch(doc: Value, patch: &Value) -> Result<Value, PatchError> {
    match (doc, patch) {
        (Value::Null, _) => Err(PatchError::Unmapped("Invalid JSON Document".into())),
        (_, Value::Null) => Err(not_a_patch()),
        (Value::Object(mut doc), Value::Object(patch)) => {
            merge_members(&mut doc, patch);
            Ok(doc.into())
        }
        (_, Value::Object(_) | Value::Array(_)) => Ok(without_nulls(patch)),
        _ => Err(not_a_patch()),
    }
}

fn merge_members(doc: &mut Map, patch: &Map) {
    // Gathered, and done in one pass each: names of the patch are sorted, and no name is in both.
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for (name, value) in patch.iter() {
        match (doc.get_mut(name), value) {
            (Some(_), Value::Null) => gone.push(name),
            (None, Value::Null) => {}
            (Some(Value::Object(there)), Value::Object(value)) => merge_members(there, value),
            // A list or scalar in the place of an object keeps its nulls.
            (Some(there @ Value::Object(_)), value) => *there = value.clone(),
            (Some(there), value) => *there = without_nulls(value),
            (None, value) => new.push((name.clone(), without_nulls(value))),
        }
    }
    doc.remove_all(&gone);
    doc.insert_all(new);
}

/// A value without the members that are null; nulls in lists stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map>().into()
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}
