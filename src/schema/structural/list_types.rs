//! Uniqueness in lists that are sets or maps (apiextensions-apiserver `pkg/apiserver/schema/listtype`).

use std::collections::HashMap;

use super::node::Node;
use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Key, Map, Value, to_string},
    schema::table::{ListType, Shape},
};

/// What is there twice below `value`.
pub fn validate(node: Node<'_>, value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        Value::Object(map) => {
            for (name, member) in map.iter() {
                if let Some(property) = node.property(name) {
                    validate(property, member, &path.child(name), errors);
                } else if let Some(additional) = node.additional() {
                    validate(additional, member, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match list_of(node) {
                Some((ListType::Set, _)) => {
                    for at in repeated(items.iter().map(distinct)) {
                        if let Some(item) = items.get(at) {
                            errors.push(FieldError::duplicate(&path.index(at), item.clone()));
                        }
                    }
                }
                Some((ListType::Map, keys)) => check_keys(items, keys, path, errors),
                _ => {}
            }
            if let Some(inner) = node.item() {
                items.iter().enumerate().for_each(|(at, item)| validate(inner, item, &path.index(at), errors));
            }
        }
        _ => {}
    }
}

fn list_of(node: Node<'_>) -> Option<(ListType, &[Key])> {
    match node {
        Node::Type { ty, .. } => match &ty.shape {
            Shape::List(list) => Some((list.list_type, &list.keys)),
            _ => None,
        },
        Node::Nested(_) => None,
    }
}

/// A text that only equal values have; 1 and 1.0 are not equal.
fn distinct(value: &Value) -> String {
    match value {
        Value::Float(_) => format!("f{}", to_string(value)),
        other => to_string(other),
    }
}

/// Where each repeated text is met for the second time.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (at, text) in texts.enumerate() {
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            found.push(at);
        }
    }
    found
}

fn check_keys(items: &[Value], keys: &[Key], path: &Path<'_>, errors: &mut ErrorList) {
    if let Some((at, item)) = items.iter().enumerate().find(|(_, item)| !matches!(item, Value::Null | Value::Object(_)))
    {
        errors.push(FieldError::invalid_ref(&path.index(at), item, "must be an object for an array of list-type map"));
        return;
    }
    let key_of = |item: &Value| -> Value {
        keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect::<Map>().into()
    };
    let text = |item: &Value| keys.iter().map(|key| item.get(key).map_or_else(String::new, distinct) + "\0").collect();
    for at in repeated(items.iter().map(text)) {
        if let Some(item) = items.get(at) {
            errors.push(FieldError::duplicate(&path.index(at), key_of(item)));
        }
    }
}
