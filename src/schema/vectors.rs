//! Vectors out of the real code, as tests use them.

use crate::object::{self, Value};

/// Reads `tests/data/<name>`, a list of objects.
pub fn read(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    match object::parse(&text) {
        Ok(Value::Array(items)) => items,
        other => panic!("{path} is no list: {other:?}"),
    }
}

/// Group, version and kind of `apps/v1/Deployment` or `v1/Pod`.
pub fn split_kind(kind: &str) -> (&str, &str, &str) {
    let (group_version, kind) = kind.rsplit_once('/').unwrap();
    let (group, version) = group_version.rsplit_once('/').unwrap_or(("", group_version));
    (group, version, kind)
}
