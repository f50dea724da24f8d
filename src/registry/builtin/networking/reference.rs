//! References to objects of any kind: what an ingress leads to, and where its class finds its parameters.

use crate::{
    api::{
        ErrorList, FieldError, Path,
        names::{is_dns1123_subdomain, is_path_segment_name},
    },
    object::Value,
    registry::validation::object_meta::push_messages,
};

/// How a reference is judged.
#[derive(Clone, Copy)]
pub struct Reference {
    /// Declarative rules say what is missing.
    pub declared: bool,
}

pub fn validate(reference: &Value, how: Reference, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(group) = reference.get("apiGroup").and_then(Value::as_str) {
        push_messages(is_dns1123_subdomain(group), group, &path.child("apiGroup"), errors);
    }
    for member in ["kind", "name"] {
        let (value, at) = (reference.str_at(&[member]), path.child(member));
        if !value.is_empty() {
            push_messages(is_path_segment_name(value), value, &at, errors);
            continue;
        }
        let missing = FieldError::required(&at, "");
        errors.push(if how.declared { missing.covered_by_declarative() } else { missing });
    }
}
