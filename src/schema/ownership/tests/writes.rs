//! Writes as the endpoints make them.

use super::super::*;
use crate::{
    json,
    object::{parse, to_string},
    schema::builtin,
};

const NOW: &str = "2026-01-02T00:00:00Z";

fn context(manager: &str) -> WriteContext<'_> {
    WriteContext { manager, subresource: "", api_version: "v1", now: NOW, reset: FieldFilter::All, versions: None }
}

fn config_map(text: &str) -> Value {
    parse(text.as_bytes()).unwrap()
}

fn write(live: Option<&Value>, mut new: Value, ctx: &WriteContext<'_>) -> Value {
    let ty = builtin().kind("", "v1", "ConfigMap").unwrap();
    update_managed_fields(builtin(), ty, live, &mut new, ctx);
    new
}

/// A stored object that `one` made at an earlier time.
fn stored() -> Value {
    let ctx = WriteContext { now: "2026-01-01T00:00:00Z", ..context("one") };
    let object =
        config_map(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","l":"w"}}"#);
    let mut object = write(None, object, &ctx);
    object.set(&["metadata", "uid"], "u");
    object
}

fn owners(object: &Value) -> Vec<String> {
    let entries = object.array_at(&["metadata", "managedFields"]);
    let told = |entry: &Value| {
        let fields = to_string(entry.get("fieldsV1").unwrap());
        format!("{} {} {fields}", entry.str_at(&["manager"]), entry.str_at(&["time"]))
    };
    entries.iter().map(told).collect()
}

#[test]
fn a_write_that_changes_nothing_keeps_owners_and_times() {
    let live = stored();
    assert_eq!(write(Some(&live), live.clone(), &context("two")), live);
    let mut without_list = live.clone();
    without_list.remove_at(&["metadata", "managedFields"]);
    assert_eq!(write(Some(&live), without_list, &context("two")), live);
}

#[test]
fn a_changed_field_goes_from_its_owner_to_the_writer() {
    let live = stored();
    let mut new = live.clone();
    new.set(&["data", "k"], "x");
    let new = write(Some(&live), new, &context("two"));
    assert_eq!(
        owners(&new),
        [
            r#"one 2026-01-01T00:00:00Z {"f:data":{".":{},"f:l":{}}}"#,
            r#"two 2026-01-02T00:00:00Z {"f:data":{"f:k":{}}}"#
        ]
    );
}

#[test]
fn an_object_that_forgot_its_owners_is_not_tracked_again() {
    let live = stored();
    for reset in [json!([]), json!([{}])] {
        let mut new = live.clone();
        new.set(&["metadata", "managedFields"], reset);
        new.set(&["data", "k"], "x");
        let forgotten = write(Some(&live), new, &context("two"));
        assert_eq!(owners(&forgotten), [""; 0]);
        let mut again = forgotten.clone();
        again.set(&["data", "k"], "y");
        assert_eq!(owners(&write(Some(&forgotten), again, &context("two"))), [""; 0]);
    }
}

#[test]
fn invalid_entries_of_a_write_are_ignored() {
    let live = stored();
    let bad = [
        json!([{}, {}]),
        json!([{ "manager": "x", "operation": "Neither", "apiVersion": "v1", "fieldsType": "FieldsV1" }]),
        json!([{ "manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2" }]),
        json!([{ "manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "a": {} } }]),
    ];
    for list in bad {
        assert!(validate_managed_fields(&list).is_err());
        let mut new = live.clone();
        new.set(&["metadata", "managedFields"], list);
        assert_eq!(owners(&write(Some(&live), new, &context("two"))), owners(&live));
    }
}

#[test]
fn through_a_subresource_the_list_cannot_be_given() {
    let live = stored();
    let mut new = live.clone();
    new.set(&["metadata", "managedFields"], json!([{}]));
    let ctx = WriteContext { subresource: "status", ..context("two") };
    assert_eq!(owners(&write(Some(&live), new, &ctx)), owners(&live));
}

#[test]
fn a_set_in_a_version_that_is_no_version_leaves_the_stored_list() {
    let live = stored();
    let mut new = live.clone();
    new.set(
        &["metadata", "managedFields"],
        json!([{ "manager": "x", "operation": "Update", "apiVersion": "a/b/c", "fieldsType": "FieldsV1", "fieldsV1": { "f:data": {} } }]),
    );
    new.set(&["data", "k"], "x");
    assert_eq!(owners(&write(Some(&live), new, &context("two"))), owners(&live));
}

#[test]
fn only_times_are_kept_when_only_times_differ() {
    let live = stored();
    let mut later = live.clone();
    if let Some(entry) = later.at_mut(&["metadata", "managedFields"]).and_then(|list| list.as_array_mut()?.first_mut())
    {
        entry.set(&["time"], NOW);
    }
    let mut same = later.clone();
    assert!(keep_times(&live, &mut same));
    assert_eq!(same, live);
    later.set(&["data", "k"], "x");
    let before = later.clone();
    assert!(!keep_times(&live, &mut later));
    assert_eq!(later, before);
}

#[test]
fn who_scales_owns_the_replicas_through_the_subresource() {
    let mut replicas = Replicas::of("apps/v1");
    replicas.serve("apps/v1", Some(&["spec", "replicas"]));
    let parent = json!([{ "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "manager": "one", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": { "f:spec": { "f:paused": {}, "f:replicas": {} } } }]);
    let shown = replicas.to_scale(Some(&parent));
    let entry = &shown.as_ref().and_then(Value::as_array).unwrap()[0];
    assert_eq!((entry.str_at(&["manager"]), entry.str_at(&["apiVersion"])), ("one", "autoscaling/v1"));
    // Nothing came of it: the object keeps its entry.
    assert_eq!(replicas.to_parent(Some(&parent), shown.as_ref()), Some(parent.clone()));
    let taken = json!([{ "apiVersion": "autoscaling/v1", "fieldsType": "FieldsV1", "manager": "two", "operation": "Update", "subresource": "scale",
        "time": "2026-01-02T00:00:00Z", "fieldsV1": { "f:spec": { "f:replicas": {} } } }]);
    let after = replicas.to_parent(Some(&parent), Some(&taken)).unwrap();
    let object = Value::from([("metadata", Value::from([("managedFields", after)]))]);
    assert_eq!(
        owners(&object),
        [r#"one 2026-01-01T00:00:00Z {"f:spec":{"f:paused":{}}}"#, r#"two  {"f:spec":{"f:replicas":{}}}"#]
    );
}

#[test]
fn filters_by_pattern_keep_what_they_name_and_the_way_to_it() {
    let text = r#"{"f:spec":{".":{},"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:resources":{"f:limits":{}}}},"f:x":{}},"f:status":{}}"#;
    let mut set = FieldSet::from_fields_v1(&parse(text.as_bytes()).unwrap()).unwrap();
    let patterns = [Pattern::of(&["spec", "containers", "*", "resources"])];
    FieldFilter::Only(&patterns).set(&mut set);
    let wanted = r#"{"f:spec":{".":{},"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:resources":{"f:limits":{}}}}}}"#;
    assert_eq!(set.into_fields_v1(), parse(wanted.as_bytes()).unwrap());
}

#[test]
fn an_apply_in_part_keeps_what_others_and_defaults_set() {
    let ty = builtin().kind("", "v1", "ConfigMap").unwrap();
    let live = stored();
    let config =
        config_map(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","n":"o"}}"#);
    let ctx = ApplyContext { write: context("three"), kind: "ConfigMap", force: false, finish: &Ok };
    let applied = apply(builtin(), ty, Some(&live), &config, &ctx).unwrap().unwrap();
    assert_eq!(applied.at(&["data"]), Some(&json!({ "k": "v", "l": "w", "n": "o" })));
    assert_eq!(apply(builtin(), ty, Some(&applied), &config, &ctx), Ok(None), "again changes nothing");
    let config = config_map(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"n":"o"}}"#);
    let dropped = apply(builtin(), ty, Some(&applied), &config, &ctx).unwrap().unwrap();
    assert_eq!(dropped.at(&["data"]), Some(&json!({ "k": "v", "l": "w", "n": "o" })), "one still owns k");
    let config = config_map(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#);
    let dropped = apply(builtin(), ty, Some(&dropped), &config, &ctx).unwrap().unwrap();
    assert_eq!(dropped.at(&["data"]), Some(&json!({ "k": "v", "l": "w" })), "nobody owned n");
}
