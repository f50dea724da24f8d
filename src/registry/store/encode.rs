//! The stored form: JSON that begins with apiVersion, kind and metadata and has no resourceVersion, which is the
//! revision it was committed at.

use crate::object::{JsonError, Style, Value, escape_into, parse, write_json};

/// The members that come first, so that a reader finds them without parsing.
const FIRST: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The bytes an object is stored as.
pub fn encode_stored(object: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(2048);
    out.push(b'{');
    let Some(map) = object.as_object() else { return b"{}".to_vec() };
    for name in FIRST {
        match map.get(name) {
            Some(Value::Object(metadata)) if name == "metadata" => {
                member(&mut out, name);
                out.push(b'{');
                for (key, value) in metadata.iter().filter(|(key, _)| key.as_str() != "resourceVersion") {
                    member(&mut out, key);
                    write_json(&mut out, value, Style::Compact);
                }
                out.push(b'}');
            }
            Some(value) => {
                member(&mut out, name);
                write_json(&mut out, value, Style::Compact);
            }
            None => {}
        }
    }
    for (key, value) in map.iter().filter(|(key, _)| !FIRST.contains(&key.as_str())) {
        member(&mut out, key);
        write_json(&mut out, value, Style::Compact);
    }
    out.push(b'}');
    out
}

fn member(out: &mut Vec<u8>, key: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    escape_into(out, key);
    out.push(b':');
}

/// The tree of a stored object.
pub fn decode_stored(bytes: &[u8]) -> Result<Value, JsonError> {
    parse(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_comes_first_and_the_resource_version_is_left_out() {
        let object = parse(
            br#"{"apiVersion":"v1","data":{"b":"1"},"kind":"ConfigMap","metadata":{"name":"x","resourceVersion":"7"}}"#,
        );
        let bytes = encode_stored(&object.unwrap());
        let expected = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"b":"1"}}"#;
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
