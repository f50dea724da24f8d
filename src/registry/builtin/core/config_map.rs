//! ConfigMap (kubernetes `pkg/registry/core/configmap`, `ValidateConfigMap`).

use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Map, Value},
    registry::{
        builtin::kind::{NameRule, Own, validate_metadata_as_on_create},
        strategy::StrategyContext,
        validation::validate_config_map_key,
    },
    schema::go_base64,
};

/// Most bytes the values of a ConfigMap or Secret may have together.
pub const MAX_DATA: usize = 1024 * 1024;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub struct ConfigMap;

impl Own for ConfigMap {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        if let Some(old) = old {
            validate_immutable_data(new, old, &["data", "binaryData"], errors);
            // The update runs the whole create once more.
            validate_metadata_as_on_create(new, true, NameRule::Subdomain, errors);
        }
        validate_data(new, errors);
    }
}

/// What an object with `immutable: true` may not change any more.
pub fn validate_immutable_data(new: &Value, old: &Value, members: &[&str], errors: &mut ErrorList) {
    if !old.bool_at(&["immutable"]) {
        return;
    }
    if !new.bool_at(&["immutable"]) {
        errors.push(FieldError::forbidden(&Path::new("immutable"), IMMUTABLE));
    }
    for member in members {
        if new.get(member) != old.get(member) {
            errors.push(FieldError::forbidden(&Path::new(member), IMMUTABLE));
        }
    }
}

fn validate_data(new: &Value, errors: &mut ErrorList) {
    let mut size = 0usize;
    let binary = new.object_at(&["binaryData"]);
    let path = Path::new("data");
    for (key, value) in new.object_at(&["data"]).into_iter().flat_map(Map::iter) {
        let path = path.key(key);
        validate_config_map_key(key, &path, errors);
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            errors.push(FieldError::invalid(&path, key.as_str(), "duplicate of key present in binaryData"));
        }
        size = size.saturating_add(value.as_str().map_or(0, str::len));
    }
    let path = Path::new("binaryData");
    for (key, value) in binary.into_iter().flat_map(Map::iter) {
        validate_config_map_key(key, &path.key(key), errors);
        size = size.saturating_add(decoded_len(value));
    }
    if size > MAX_DATA {
        // Upstream's path is empty here, and an empty path prints so.
        errors.push(FieldError::too_long(&Path::new("[]"), MAX_DATA));
    }
}

/// Bytes behind a base64 text.
pub fn decoded_len(value: &Value) -> usize {
    value.as_str().and_then(|text| go_base64::decode(text).ok()).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, registry::builtin::kind::testing};

    fn say(new: Value, old: Option<Value>) -> String {
        testing::say(&ConfigMap, &new, old.as_ref())
    }

    #[test]
    fn a_key_stands_in_one_bag_only() {
        let new = json!({"data": {"k": "v"}, "binaryData": {"k": "AA=="}});
        assert_eq!(say(new, None), "data[k]: Invalid value: \"k\": duplicate of key present in binaryData");
    }

    #[test]
    fn all_values_together_have_a_limit_counted_in_decoded_bytes() {
        let text = "x".repeat(MAX_DATA);
        assert_eq!(say(json!({"data": {"k": (text.as_str())}}), None), "");
        let new = json!({"data": {"k": (text.as_str())}, "binaryData": {"b": "AA=="}});
        assert_eq!(say(new, None), "[]: Too long: may not be more than 1048576 bytes");
    }

    #[test]
    fn an_immutable_one_changes_nothing_but_metadata() {
        let meta = json!({"name": "a", "namespace": "ns"});
        let old = json!({"metadata": (meta.clone()), "data": {"k": "v"}, "immutable": true});
        let mut new = old.clone();
        assert_eq!(say(new.clone(), Some(old.clone())), "");
        new.set(&["data"], json!({"k": "w"}));
        assert_eq!(say(new.clone(), Some(old.clone())), "data: Forbidden: field is immutable when `immutable` is set");
        new.remove_at(&["immutable"]);
        assert!(say(new, Some(old)).starts_with("[immutable: Forbidden"));
    }
}
