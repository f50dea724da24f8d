//! Objects inside objects (`x-kubernetes-embedded-resource`): their kind, apiVersion and metadata
//! (apiextensions-apiserver `pkg/apiserver/schema/objectmeta/validation.go`).

use super::node::Node;
use crate::{
    api::{ErrorList, FieldError, Path, names::is_dns1035_label},
    object::{Map, Value},
};

/// Judges the metadata of an embedded object; what a registry knows of metadata is its own.
pub type MetaCheck<'a> = &'a dyn Fn(&Value, &Path<'_>, &mut ErrorList);

/// Judges the embedded objects at and below `value`; with `own`, the value itself where it is one.
pub fn validate(
    node: Node<'_>,
    value: &Value,
    own: bool,
    check: MetaCheck<'_>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    match value {
        Value::Object(map) => {
            if own && node.is_embedded_resource() {
                object(map, check, path, errors);
            }
            for (name, member) in map.iter() {
                if let Some(property) = node.property(name) {
                    validate(property, member, true, check, &path.child(name), errors);
                } else if let Some(additional) = node.additional() {
                    validate(additional, member, true, check, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = node.item() else { return };
            items.iter().enumerate().for_each(|(at, item)| validate(inner, item, true, check, &path.index(at), errors));
        }
        _ => {}
    }
}

fn object(map: &Map, check: MetaCheck<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        let path = path.child(name);
        match map.get(name) {
            None => errors.push(FieldError::required(&path, "")),
            Some(Value::Str(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(&path, "", "must not be empty"))
            }
            Some(Value::Str(text)) => match name {
                "kind" => kind(text, &path, errors),
                _ if text.matches('/').count() > 1 => {
                    let why = format!("unexpected GroupVersion string: {text}");
                    errors.push(FieldError::invalid(&path, text.as_str(), &why));
                }
                _ => {}
            },
            Some(other) => errors.push(FieldError::invalid_ref(&path, other, "must be a string")),
        }
    }
    if let Some(metadata) = map.get("metadata") {
        check(metadata, &path.child("metadata"), errors);
    }
}

fn kind(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let problems = is_dns1035_label(&text.to_lowercase());
    if !problems.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        errors.push(FieldError::invalid(path, text, &why));
    }
}
