//! Vectors out of the real code, as tests use them.

use super::{TypeId, builtin};
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

/// Cases that have a `kind` and a `case`: a name for messages, the kind's type where it is built in, and the case.
pub fn typed(name: &str) -> Vec<(String, Option<TypeId>, Value)> {
    let named = read(name).into_iter().map(|case| {
        let (group, version, kind) = split_kind(case.str_at(&["kind"]));
        let ty = builtin().kind(group, version, kind);
        (format!("{} {}", case.str_at(&["kind"]), case.str_at(&["case"])), ty, case)
    });
    named.collect()
}
