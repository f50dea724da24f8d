//! Which part of the old object a part of the new one was (apiserver `pkg/cel/common/equality.go`).
//!
//! Members of objects belong together by name, items of lists of type map by their keys; items of other lists belong to
//! nothing, only the list as a whole does. An update need not mend what it does not touch, so what is wrong in an
//! unchanged part is not held against it.

use std::{cell::RefCell, collections::HashMap};

use super::node::Node;
use crate::{
    object::{Key, Value, to_string},
    schema::table::{ListType, Shape},
};

/// What is remembered while one object is compared; keys are addresses of values of the old and new objects.
#[derive(Default)]
pub struct Comparison {
    equal: RefCell<HashMap<*const Value, bool>>,
    by_key: RefCell<HashMap<*const Value, HashMap<String, usize>>>,
}

/// A new value and the old one it was.
#[derive(Clone, Copy)]
pub struct Correlated<'a, 't> {
    node: Node<'t>,
    new: &'a Value,
    old: &'a Value,
    comparison: &'a Comparison,
}

impl<'a, 't> Correlated<'a, 't> {
    pub fn new(node: Node<'t>, new: &'a Value, old: &'a Value, comparison: &'a Comparison) -> Self {
        Self { node, new, old, comparison }
    }

    /// The member of this name, where both objects have it and the schema describes it.
    pub fn key(self, name: &str) -> Option<Self> {
        let (Value::Object(new), Value::Object(old)) = (self.new, self.old) else { return None };
        let (new, old) = (new.get(name)?, old.get(name)?);
        let node = self.node.property(name).or_else(|| self.node.additional())?;
        Some(Self { node, new, old, ..self })
    }

    /// The item at this place of the new list, where the old one has one of the same keys.
    pub fn index(self, at: usize) -> Option<Self> {
        let keys = self.list_keys()?;
        let (Value::Array(new), Value::Array(old)) = (self.new, self.old) else { return None };
        let new = new.get(at)?;
        let wanted = composite(new, keys)?;
        let mut all = self.comparison.by_key.borrow_mut();
        let items = all.entry(self.old as *const Value).or_insert_with(|| {
            let mut places = HashMap::new();
            for (at, item) in old.iter().enumerate() {
                if let Some(key) = composite(item, keys) {
                    places.entry(key).or_insert(at);
                }
            }
            places
        });
        let old = old.get(*items.get(&wanted)?)?;
        Some(Self { node: self.node.item()?, new, old, ..self })
    }

    fn list_keys(self) -> Option<&'t [Key]> {
        let Node::Type { ty, .. } = self.node else { return None };
        match &ty.shape {
            Shape::List(it) if it.list_type == ListType::Map => Some(&it.keys),
            _ => None,
        }
    }

    /// Whether nothing has changed, as far as the schema lets one tell.
    pub fn is_equal(self) -> bool {
        let known = self.comparison.equal.borrow().get(&(self.new as *const Value)).copied();
        known.unwrap_or_else(|| {
            let equal = self.compare();
            self.comparison.equal.borrow_mut().insert(self.new, equal);
            equal
        })
    }

    fn compare(self) -> bool {
        match (self.new, self.old) {
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|name| self.key(name).is_some_and(Self::is_equal))
            }
            (Value::Array(new), Value::Array(old)) if self.list_keys().is_some() => {
                new.len() == old.len() && (0..new.len()).all(|at| self.index(at).is_some_and(Self::is_equal))
            }
            (new, old) => new == old,
        }
    }
}

/// The keys of an item as one text; `None` where one is missing or no scalar.
fn composite(item: &Value, keys: &[Key]) -> Option<String> {
    let mut text = String::new();
    for key in keys {
        let value = item.get(key).filter(|it| !matches!(it, Value::Null | Value::Array(_) | Value::Object(_)))?;
        text.push('\0');
        // 1 and 1.0 are different keys.
        text.push(if matches!(value, Value::Float(_)) { 'f' } else { ' ' });
        text += &to_string(value);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, schema::structural};

    #[test]
    fn items_belong_together_by_key_and_other_lists_only_as_a_whole() {
        let schema = json!({"type": "object", "properties": {
            "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                  "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}},
            "a": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let (table, ty) = structural::custom_resource(Some(&schema));
        let old = json!({"m": [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}], "a": ["x", "y"], "free": {"z": 1}});
        let new = json!({"m": [{"k": "b", "v": "2"}, {"k": "a", "v": "1"}], "a": ["y", "x"], "free": {"z": 1}});
        let comparison = Comparison::default();
        let root = Correlated::new(Node::of(&table, ty), &new, &old, &comparison);
        assert!(root.key("m").unwrap().is_equal());
        assert!(root.key("m").unwrap().index(0).unwrap().key("v").unwrap().is_equal());
        assert!(!root.key("a").unwrap().is_equal() && root.key("a").unwrap().index(0).is_none());
        assert!(!root.key("free").unwrap().is_equal(), "what no schema describes counts as changed");
        assert!(root.key("nothing").is_none());
    }
}
