//! The JSON Schema of the raw options, and look-ups in it: which keys there are, and what a text at a key is to
//! become. One description feeds the loader, the environment, the reference and editors.

use std::sync::LazyLock;

use serde_json::Value;

use super::raw::RawOptions;

/// The schema with everything inlined.
pub fn root() -> &'static Value {
    static ROOT: LazyLock<Value> = LazyLock::new(|| {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        settings.into_generator().into_root_schema_for::<RawOptions>().to_value()
    });
    &ROOT
}

/// The schema of the key `section.key`.
pub fn find(key: &str) -> Option<&'static Value> {
    let (section, key) = key.split_once('.')?;
    child(child(root(), section)?, key)
}

/// What a value may be, seen through "or null", which every optional field has.
pub fn resolve(node: &Value) -> &Value {
    let Some(alternatives) = node.get("anyOf").and_then(Value::as_array) else { return node };
    alternatives.iter().find(|node| node.get("type").and_then(Value::as_str) != Some("null")).unwrap_or(node)
}

/// The keys of a table with fixed keys.
pub fn properties(node: &Value) -> Option<&serde_json::Map<String, Value>> {
    resolve(node).get("properties").and_then(Value::as_object)
}

/// The schema of one key, in a table with fixed keys or a map.
pub fn child<'a>(node: &'a Value, key: &str) -> Option<&'a Value> {
    match properties(node) {
        Some(properties) => properties.get(key),
        None => map_value(node),
    }
}

/// The schema of a map's values.
pub fn map_value(node: &Value) -> Option<&Value> {
    resolve(node).get("additionalProperties").filter(|node| node.is_object())
}

/// The schema of a list's entries.
pub fn items(node: &Value) -> Option<&Value> {
    resolve(node).get("items")
}

/// The format of a text, as the types of `types.rs` name it.
pub fn format(node: &Value) -> Option<&str> {
    resolve(node).get("format").and_then(Value::as_str)
}

/// Whether the value may be of that JSON type.
pub fn is_type(node: &Value, name: &str) -> bool {
    match resolve(node).get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// Whether a secret is in the value.
pub fn holds_secret(node: &Value) -> bool {
    format(node) == Some(super::types::FORMAT_SECRET)
        || items(node).is_some_and(holds_secret)
        || map_value(node).is_some_and(holds_secret)
        || properties(node).is_some_and(|properties| properties.values().any(holds_secret))
}

/// What a field's documentation gives as its range: one sentence.
pub fn range(key: &str) -> Option<String> {
    let text = description(find(key)?).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, range) = text.split_once("Range: ")?;
    let range = range.split(". ").next()?;
    Some(range.to_owned())
}

/// The documentation of a field.
pub fn description(node: &Value) -> &str {
    node.get("description").and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::flags;

    #[test]
    fn a_flag_has_a_key_exactly_if_it_works() {
        for flag in flags::all() {
            assert_eq!(find(&flag.key()).is_some(), flag.sets_key(), "--{}", flag.name);
        }
    }

    #[test]
    fn a_range_is_what_its_documentation_says() {
        assert_eq!(range("serving.secure_port").as_deref(), Some("1 to 65535"));
        assert_eq!(range("network.endpoint_reconciler_type").as_deref(), Some("lease, master-count, none"));
        assert_eq!(range("authentication.tokens"), None);
    }

    #[test]
    fn every_option_says_default_and_class() {
        for (section, node) in properties(root()).unwrap() {
            for (key, field) in properties(node).unwrap() {
                let text = description(field);
                assert!(text.contains("Default: "), "{section}.{key}: {text}");
                let class = ["Class: live", "Class: rebind", "Class: reopen"];
                let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(class.iter().any(|class| plain.contains(class)), "{section}.{key}: {plain}");
            }
        }
    }
}
