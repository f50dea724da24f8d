//! One node of the tree.

use super::{Key, Map};

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// Never NaN or infinite: the parsers refuse such text.
    Float(f64),
    Str(String),
    Array(Vec<Value>),
    Object(Map),
}

impl Value {
    pub fn object() -> Self {
        Self::Object(Map::new())
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(it) = self { Some(*it) } else { None }
    }

    /// Integers only; a float is none, even `1.0`.
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Int(it) = self { Some(*it) } else { None }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(it) => Some(*it as f64),
            Self::Float(it) => Some(*it),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(it) = self { Some(it) } else { None }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(it) = self { Some(it) } else { None }
    }

    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Self::Array(it) = self { Some(it) } else { None }
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    pub fn as_object(&self) -> Option<&Map> {
        if let Self::Object(it) = self { Some(it) } else { None }
    }

    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        if let Self::Object(it) = self { Some(it) } else { None }
    }

    /// A member; `None` where this is no object or has none of that name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(key)
    }

    /// The node below `path`, following members of objects.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub fn at_mut(&mut self, path: &[&str]) -> Option<&mut Value> {
        path.iter().try_fold(self, |node, key| node.get_mut(key))
    }

    /// The text below `path`; `""` where there is none. Most of Kubernetes' optional strings mean the same.
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Self::as_str).unwrap_or("")
    }

    pub fn i64_at(&self, path: &[&str]) -> Option<i64> {
        self.at(path).and_then(Self::as_i64)
    }

    /// `false` where missing.
    pub fn bool_at(&self, path: &[&str]) -> bool {
        self.at(path).and_then(Self::as_bool).unwrap_or(false)
    }

    /// The list below `path`; empty where there is none.
    pub fn array_at(&self, path: &[&str]) -> &[Value] {
        self.at(path).and_then(Self::as_array).unwrap_or(&[])
    }

    /// The object below `path`, if there is one.
    pub fn object_at(&self, path: &[&str]) -> Option<&Map> {
        self.at(path).and_then(Self::as_object)
    }

    /// Sets the node below `path`, making objects on the way (whatever else stood there is replaced).
    pub fn set(&mut self, path: &[&'static str], value: impl Into<Value>) {
        *self.make(path) = value.into();
    }

    /// The node below `path`, made (as Null, its parents as objects) where missing.
    pub fn make(&mut self, path: &[&'static str]) -> &mut Value {
        let mut node = self;
        for key in path {
            node = node.make_object().entry_or(Key::from_static(key), || Value::Null);
        }
        node
    }

    /// This node as an object; anything else that stood here is replaced by an empty one.
    pub fn make_object(&mut self) -> &mut Map {
        if !matches!(self, Self::Object(_)) {
            *self = Self::object();
        }
        match self {
            Self::Object(map) => map,
            _ => unreachable!("made an object just above"),
        }
    }

    /// Removes and returns the node below `path`.
    pub fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        self.at_mut(parents)?.as_object_mut()?.remove(last)
    }

    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// What Go calls it in messages: `null`, `bool`, `number`, `string`, `array`, `object`.
    pub fn json_type(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Float(_) => "number",
            Self::Str(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

impl From<&str> for Value {
    fn from(it: &str) -> Self {
        Self::Str(it.to_owned())
    }
}
impl From<String> for Value {
    fn from(it: String) -> Self {
        Self::Str(it)
    }
}
impl From<bool> for Value {
    fn from(it: bool) -> Self {
        Self::Bool(it)
    }
}
impl From<i64> for Value {
    fn from(it: i64) -> Self {
        Self::Int(it)
    }
}
impl From<i32> for Value {
    fn from(it: i32) -> Self {
        Self::Int(it.into())
    }
}
impl From<u16> for Value {
    fn from(it: u16) -> Self {
        Self::Int(it.into())
    }
}
impl From<u32> for Value {
    fn from(it: u32) -> Self {
        Self::Int(it.into())
    }
}
impl From<f64> for Value {
    fn from(it: f64) -> Self {
        Self::Float(it)
    }
}
impl From<Map> for Value {
    fn from(it: Map) -> Self {
        Self::Object(it)
    }
}
impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(it: Vec<T>) -> Self {
        Self::Array(it.into_iter().map(Into::into).collect())
    }
}
impl<K: Into<Key>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Value {
    fn from(it: [(K, V); N]) -> Self {
        Self::Object(it.into())
    }
}

/// Builds a [`Value`] from JSON-like text: `json!({"a": [1, x, null]})`. Keys are static.
#[macro_export]
macro_rules! json {
    (null) => { $crate::object::Value::Null };
    ([ $($item:tt),* $(,)? ]) => { $crate::object::Value::Array(vec![ $( $crate::json!($item) ),* ]) };
    ({ $($key:literal : $value:tt),* $(,)? }) => {{
        #[allow(unused_mut)]
        let mut map = $crate::object::Map::new();
        $( map.insert($crate::object::Key::from_static($key), $crate::json!($value)); )*
        $crate::object::Value::Object(map)
    }};
    ($other:expr) => { $crate::object::Value::from($other) };
}
