//! Path elements: the names by which sets of fields know the members of maps and lists.
//!
//! Written `f:<member>`, `k:<JSON object of the key members>`, `v:<JSON value>` or `i:<index>`; printed in messages as
//! `.member`, `[name="a",port=80]`, `[="value"]`, `[3]`. Mirrors structured-merge-diff `fieldpath/element.go` and
//! `serialize-pe.go`.

use std::{
    cmp::Ordering,
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    sync::OnceLock,
};

use crate::{
    api::field::quote,
    object::{Key, Map, Style, Value, parse, print_float, static_keys, to_string, write_json},
    schema::builtin,
};

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathElement {
    /// A member of a map or struct.
    Field(Key),
    /// The item of a list of kind `map` whose key members have these values.
    Item(Map),
    /// The item of a set.
    Value(Value),
    /// An item of a list that has no keys.
    Index(i64),
}

/// The name of a member, `f:<name>`; free of allocation for fields of built-in kinds.
pub(super) fn field_key(name: &Key) -> Key {
    match name.as_static().and_then(|name| registered().get(&(name.as_ptr() as usize))) {
        Some(known) => Key::from_static(known),
        None => spell_field_key(name),
    }
}

/// The names `f:<name>` of registered names, by where those are in memory.
fn registered() -> &'static HashMap<usize, &'static str, BuildHasherDefault<PlaceHasher>> {
    static NAMES: OnceLock<HashMap<usize, &'static str, BuildHasherDefault<PlaceHasher>>> = OnceLock::new();
    NAMES.get_or_init(|| {
        builtin();
        let of_field = |owned: &'static str| Some((Key::new(owned.strip_prefix("f:")?).as_static()?, owned));
        static_keys().filter_map(of_field).map(|(name, owned)| (name.as_ptr() as usize, owned)).collect()
    })
}

/// Places are well spread by a multiplication.
#[derive(Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, place: usize) {
        self.0 = (self.0 ^ place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

fn spell_field_key(name: &str) -> Key {
    let mut buffer = [0u8; 72];
    let length = name.len() + 2;
    if let Some(text) = buffer.get_mut(..length) {
        text[..2].copy_from_slice(b"f:");
        text[2..].copy_from_slice(name.as_bytes());
        if let Ok(text) = std::str::from_utf8(text) {
            return Key::new(text);
        }
    }
    Key::new(&format!("f:{name}"))
}

/// The name of a set's item, `v:<JSON>`.
pub(super) fn value_key(value: &Value) -> Key {
    json_key(b"v:", value)
}

fn json_key(prefix: &[u8], value: &Value) -> Key {
    let mut text = prefix.to_vec();
    write_json(&mut text, value, Style::Compact);
    Key::from(String::from_utf8(text).unwrap_or_default())
}

impl PathElement {
    /// The name in a `fieldsV1` tree.
    pub fn to_key(&self) -> Key {
        match self {
            Self::Field(name) => field_key(name),
            Self::Item(keys) => json_key(b"k:", &Value::Object(keys.clone())),
            Self::Value(value) => value_key(value),
            Self::Index(index) => Key::from(format!("i:{index}")),
        }
    }

    /// Reads a name. `Ok(None)`: an element of a kind that a later version may know; it is skipped.
    pub fn parse(name: &str) -> Result<Option<Self>, String> {
        let Some((kind, text)) = name.split_at_checked(2) else {
            return Err(if name.len() < 2 {
                "key must be 2 characters long:".into()
            } else {
                format!("missing colon: {name}")
            });
        };
        if !kind.ends_with(':') {
            return Err(format!("missing colon: {name}"));
        }
        Ok(Some(match kind {
            "f:" => Self::Field(Key::new(text)),
            "v:" => Self::Value(parse(text.as_bytes()).map_err(|e| e.message)?),
            "k:" => match parse(text.as_bytes()).map_err(|e| e.message)? {
                Value::Object(keys) => Self::Item(keys),
                _ => return Err(format!("expect {{ in key {text}")),
            },
            "i:" => {
                Self::Index(text.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", quote(text)))?)
            }
            _ => return Ok(None),
        }))
    }

    /// The order of messages: members by name, then items by their keys, values, indexes.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Item(a), Self::Item(b)) => order_maps(a, b),
            (Self::Value(a), Self::Value(b)) => order_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Item(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

fn order_maps(a: &Map, b: &Map) -> Ordering {
    let (mut a, mut b) = (a.iter(), b.iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((name, value)), Some((other_name, other))) => {
                let order = name.cmp(other_name).then_with(|| order_values(value, other));
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}

/// A total order of values: numbers, texts, booleans, lists, maps, null (structured-merge-diff `value.Compare`).
fn order_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let different = a.iter().zip(b).map(|(a, b)| order_values(a, b)).find(|order| *order != Ordering::Equal);
            different.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => order_maps(a, b),
        _ => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => value_rank(a).cmp(&value_rank(b)),
        },
    }
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Float(_) | Value::Int(_) => 0,
        Value::Str(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// A value inside a printed path.
fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => quote(text),
        Value::Float(it) => print_float(*it),
        Value::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(name, value)| format!("{name}={}", show(value))).collect(),
        other => to_string(other),
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Item(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={}", show(value))).collect();
                write!(f, "[{}]", keys.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", show(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}
