//! What has to change in a stored role or binding so that it holds what it must: a pure decision
//! (component-helpers `auth/rbac/reconciliation`). Nothing is ever taken away that somebody added.

use crate::auth::authz::{PolicyRule, missing};
use crate::object::{Map, Value};

/// What to do with a stored object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Nothing,
    /// Its owner said `rbac.authorization.kubernetes.io/autoupdate: "false"`.
    Protected,
    Update(Value),
    /// It refers to another role, which no update may change: delete it and make it anew.
    Recreate,
}

fn protected(existing: &Value) -> bool {
    existing.str_at(&["metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"]) == "false"
}

/// `update` if it differs from what is stored, unless that is protected.
fn changed(existing: &Value, update: Value) -> Change {
    match (update != *existing, protected(existing)) {
        (false, _) => Change::Nothing,
        (true, true) => Change::Protected,
        (true, false) => Change::Update(update),
    }
}

/// Adds the labels and annotations that are missing; values that are there win.
fn merge_metadata(into: &mut Value, expected: &Value) {
    for field in ["labels", "annotations"] {
        for (key, value) in expected.object_at(&["metadata", field]).into_iter().flat_map(Map::iter) {
            into.make(&["metadata", field]).make_object().entry_or(key.clone(), || value.clone());
        }
    }
}

/// Appends to the list below `path`.
fn append(into: &mut Value, path: &[&'static str], items: Vec<Value>) {
    let list = into.make(path);
    match list {
        Value::Array(list) => list.extend(items),
        other => *other = items.into(),
    }
}

/// For a Role or ClusterRole.
pub fn reconcile_role(existing: &Value, expected: &Value) -> Change {
    let mut role = existing.clone();
    merge_metadata(&mut role, expected);
    let wanted = PolicyRule::all_of(expected);
    // What is expected is ours and small, so that the comparison never ends early.
    let lacking = missing(&PolicyRule::all_of(existing), &wanted).unwrap_or(wanted);
    if !lacking.is_empty() {
        append(&mut role, &["rules"], lacking.iter().map(PolicyRule::to_value).collect());
    }
    let path = ["aggregationRule", "clusterRoleSelectors"];
    let aggregated = |role: &Value| role.get("aggregationRule").is_some_and(|it| !it.is_null());
    if !aggregated(expected) {
        if aggregated(existing) {
            role.remove_at(&["aggregationRule"]);
        }
        return changed(existing, role);
    }
    let there = existing.array_at(&path);
    let lacking: Vec<Value> = expected.array_at(&path).iter().filter(|it| !there.contains(it)).cloned().collect();
    if !lacking.is_empty() {
        append(&mut role, &path, lacking);
    }
    changed(existing, role)
}

/// For a RoleBinding or ClusterRoleBinding.
pub fn reconcile_binding(existing: &Value, expected: &Value) -> Change {
    let member = |binding: &Value, key: &str| binding.str_at(&["roleRef", key]).to_owned();
    if ["apiGroup", "kind", "name"].iter().any(|key| member(existing, key) != member(expected, key)) {
        return if protected(existing) { Change::Protected } else { Change::Recreate };
    }
    let mut binding = existing.clone();
    merge_metadata(&mut binding, expected);
    let same = |a: &Value, b: &Value| {
        ["apiGroup", "kind", "name", "namespace"].iter().all(|key| a.str_at(&[key]) == b.str_at(&[key]))
    };
    let mut lacking: Vec<Value> = Vec::new();
    for subject in expected.array_at(&["subjects"]) {
        let there = existing.array_at(&["subjects"]);
        if !there.iter().chain(&lacking).any(|it| same(it, subject)) {
            lacking.push(subject.clone());
        }
    }
    if !lacking.is_empty() {
        append(&mut binding, &["subjects"], lacking);
    }
    changed(existing, binding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{parse, to_string};

    fn value(text: &str) -> Value {
        parse(text.as_bytes()).expect("test JSON")
    }

    fn updated(change: Change) -> String {
        match change {
            Change::Update(object) => to_string(&object),
            other => panic!("no update: {other:?}"),
        }
    }

    const ROLE: &str = r#"{"metadata":{"name":"r","labels":{"a":"b"}},"rules":[{"apiGroups":[""],"resources":["pods","nodes"],"verbs":["get","list"]}]}"#;

    #[test]
    fn a_role_that_holds_what_it_must_is_left_alone_whatever_else_it_holds() {
        let wider = r#"{"metadata":{"name":"r","uid":"1","labels":{"a":"other","x":"y"}},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#;
        assert_eq!(reconcile_role(&value(wider), &value(ROLE)), Change::Nothing);
        assert_eq!(reconcile_role(&value(ROLE), &value(ROLE)), Change::Nothing);
    }

    #[test]
    fn missing_permissions_and_labels_are_added_and_extra_ones_stay() {
        let narrow =
            r#"{"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","delete"]}]}"#;
        assert_eq!(
            updated(reconcile_role(&value(narrow), &value(ROLE))),
            r#"{"metadata":{"labels":{"a":"b"},"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","delete"]},{"apiGroups":[""],"resources":["pods"],"verbs":["list"]},{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]},{"apiGroups":[""],"resources":["nodes"],"verbs":["list"]}]}"#
        );
    }

    #[test]
    fn aggregation_is_added_where_expected_and_removed_where_not() {
        let aggregated = r#"{"metadata":{"name":"r","labels":{"a":"b"}},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"x":"y"}}]},"rules":null}"#;
        let filled = r#"{"metadata":{"name":"r","labels":{"a":"b"}},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"own":"1"}}]},"rules":[{"apiGroups":[""],"resources":["pods","nodes"],"verbs":["get","list"]}]}"#;
        let text = updated(reconcile_role(&value(filled), &value(aggregated)));
        assert!(text.contains(r#"[{"matchLabels":{"own":"1"}},{"matchLabels":{"x":"y"}}]"#), "{text}");
        assert!(!updated(reconcile_role(&value(filled), &value(ROLE))).contains("aggregationRule"));
    }

    #[test]
    fn a_protected_object_is_left_alone() {
        let protected = r#"{"metadata":{"name":"r","annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]}"#;
        assert_eq!(reconcile_role(&value(protected), &value(ROLE)), Change::Protected);
    }

    #[test]
    fn a_binding_gets_missing_subjects_and_is_remade_for_another_role() {
        let expected = r#"{"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"}]}"#;
        let existing = r#"{"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"Group","name":"g"},{"kind":"User","name":"extra"}]}"#;
        let text = updated(reconcile_binding(&value(existing), &value(expected)));
        assert!(
            text.ends_with(
                r#""subjects":[{"kind":"Group","name":"g"},{"kind":"User","name":"extra"},{"kind":"User","name":"u"}]}"#
            ),
            "{text}"
        );
        let other = existing.replace(r#""name":"r"}"#, r#""name":"q"}"#);
        assert_eq!(reconcile_binding(&value(&other), &value(expected)), Change::Recreate);
        assert_eq!(reconcile_binding(&value(expected), &value(expected)), Change::Nothing);
    }
}
