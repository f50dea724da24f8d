//! Pieces that many printers are made of.

use jiff::Timestamp;

use crate::{
    api::{Meta, duration, labels::Selector},
    object::{Map, Value},
    registry::printer::Cell,
};

pub const NONE: &str = "<none>";
pub const UNSET: &str = "<unset>";
pub const UNKNOWN: &str = "<unknown>";

pub fn name(object: &Value) -> &str {
    Meta::of(object).name()
}

/// The time since the object was made.
pub fn age(object: &Value) -> Cell {
    Cell::age(Meta::of(object).creation_timestamp())
}

/// The moment the object was made, as it is stored.
pub fn created_at(object: &Value) -> Value {
    object.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default()
}

pub fn is_being_deleted(object: &Value) -> bool {
    Meta::of(object).is_being_deleted()
}

/// A time below `path`, of whole seconds or micros; `None` where it is not set.
pub fn time(object: &Value, path: &[&str]) -> Option<Timestamp> {
    let text = object.str_at(path);
    let time = duration::parse_time(text).ok()?;
    (!duration::is_zero_time(time)).then_some(time)
}

/// An integer; 0 where it is not set.
pub fn number(object: &Value, path: &[&str]) -> i64 {
    object.i64_at(path).unwrap_or(0)
}

/// The first that is not empty.
pub fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// A pointer to text: what it points at, which may be empty, or `unset`.
pub fn text_or<'a>(object: &'a Value, path: &[&str], unset: &'a str) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or(unset)
}

/// A quantity as it is stored, which is canonical; `0` where it is not set.
pub fn quantity(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "0".to_owned(),
        Some(Value::Str(text)) => text.clone(),
        Some(other) => crate::object::to_string(other),
    }
}

/// A number or a percentage.
pub fn int_or_string(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        other => other.as_i64().unwrap_or(0).to_string(),
    }
}

/// `k=v,k=v` by key.
pub fn label_map(map: Option<&Map>) -> String {
    let text = Selector::from_set(map).to_string();
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// A `metav1.LabelSelector`.
pub fn label_selector(selector: Option<&Value>) -> String {
    match Selector::from_object(selector).map(|selector| selector.to_string()) {
        Err(_) => "<error>".to_owned(),
        Ok(text) if text.is_empty() => NONE.to_owned(),
        Ok(text) => text,
    }
}

/// Names and images of the containers of a pod's spec.
pub fn containers(spec: Option<&Value>) -> (String, String) {
    let containers = spec.map(|spec| spec.array_at(&["containers"])).unwrap_or_default();
    let join = |key: &str| containers.iter().map(|it| it.str_at(&[key])).collect::<Vec<_>>().join(",");
    (join("name"), join("image"))
}

/// Texts of a list.
pub fn texts<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a str> {
    object.array_at(path).iter().filter_map(Value::as_str)
}

/// The texts of a list joined by commas.
pub fn joined(object: &Value, path: &[&str]) -> String {
    texts(object, path).collect::<Vec<_>>().join(",")
}

/// The first `most` of a list and how many more there are; `<unset>` where there are none.
pub fn some_of(items: &[String], most: usize) -> String {
    let shown = items.get(..most.min(items.len())).unwrap_or_default().join(",");
    match items.len().checked_sub(most).filter(|more| *more > 0) {
        Some(more) => format!("{shown} + {more} more..."),
        None if shown.is_empty() => UNSET.to_owned(),
        None => shown,
    }
}

/// The condition of a type.
pub fn condition<'a>(object: &'a Value, path: &[&str], kind: &str) -> Option<&'a Value> {
    object.array_at(path).iter().find(|condition| condition.str_at(&["type"]) == kind)
}

/// Whether the condition of a type is there and true.
pub fn is_true(object: &Value, path: &[&str], kind: &str) -> bool {
    condition(object, path, kind).is_some_and(|condition| condition.str_at(&["status"]) == "True")
}

/// Short names of access modes, each once and in this order.
pub fn access_modes(object: &Value, path: &[&str]) -> String {
    const MODES: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| texts(object, path).any(|it| it == mode);
    MODES.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short).collect::<Vec<_>>().join(",")
}
