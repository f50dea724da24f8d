//! The cells of bindings in the Table form (kubernetes `pkg/printers/internalversion`).

use std::sync::Arc;

use crate::api::{duration, meta::Meta};
use crate::object::Value;
use crate::registry::resource::Cells;

/// The printer of a kind; `None` for roles, which have the columns every kind has.
pub fn cells(kind: &str) -> Option<Cells> {
    match kind {
        "RoleBinding" | "ClusterRoleBinding" => Some(Arc::new(binding)),
        _ => None,
    }
}

fn binding(binding: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let meta = Meta::of(binding);
    let role = format!("{}/{}", binding.str_at(&["roleRef", "kind"]), binding.str_at(&["roleRef", "name"]));
    let age = meta.creation_timestamp().map_or_else(|| "<unknown>".to_owned(), |since| duration::age(since, now));
    let subjects = |kind: &str| -> Value {
        let these = binding.array_at(&["subjects"]).iter().filter(|it| it.str_at(&["kind"]) == kind);
        let names: Vec<String> = these
            .map(|it| match kind {
                "ServiceAccount" => format!("{}/{}", it.str_at(&["namespace"]), it.str_at(&["name"])),
                _ => it.str_at(&["name"]).to_owned(),
            })
            .collect();
        names.join(", ").into()
    };
    vec![meta.name().into(), role.into(), age.into(), subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_listed_by_their_kind() {
        let object = crate::object::parse(
            br#"{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"},{"kind":"ServiceAccount","name":"s","namespace":"n"},{"kind":"User","name":"w"}]}"#,
        )
        .expect("test JSON");
        let cells = binding(&object, jiff::Timestamp::UNIX_EPOCH);
        let texts: Vec<&str> = cells.iter().filter_map(Value::as_str).collect();
        assert_eq!(texts, ["b", "ClusterRole/r", "<unknown>", "u, w", "g", "n/s"]);
    }
}
