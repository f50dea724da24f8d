//! All vectors of the real code.

use super::*;
use crate::{
    api::ApiError,
    object::{Value, parse, to_string},
    schema::{builtin, vectors},
};

/// What a vector says of the outcome, and what came out. `None` if they agree.
fn disagreement(vector: &Value, outcome: Result<Value, PatchError>) -> Option<String> {
    let said = match &outcome {
        Ok(value) => format!("result {}", to_string(value)),
        Err(error) => format!("error {error}"),
    };
    let agrees = match &outcome {
        Ok(value) => vector.get("result") == Some(value),
        Err(error) => {
            let status = vector.get("status").is_none_or(|wanted| {
                let mut got = ApiError::from(error.clone()).to_value();
                got.remove_at(&["kind"]);
                got.remove_at(&["apiVersion"]);
                got == *wanted
            });
            status && vector.str_at(&["error"]) == error.to_string()
        }
    };
    (!agrees).then(|| format!("{}\n  got {said}", to_string(vector)))
}

fn none_disagree(name: &str, least: usize, apply: impl Fn(&Value) -> Result<Value, PatchError>) {
    let vectors = vectors::read(name);
    assert!(vectors.len() >= least, "{} vectors", vectors.len());
    let wrong: Vec<String> = vectors.iter().filter_map(|vector| disagreement(vector, apply(vector))).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
}

#[test]
fn json_patches_do_what_upstreams_do() {
    none_disagree("vectors/json-patch.json", 119, |vector| {
        let (patch, _) = JsonPatch::parse(vector.str_at(&["patch"]).as_bytes(), false)?;
        patch.apply(vector.get("doc").cloned().unwrap())
    });
}

#[test]
fn merge_patches_do_what_upstreams_do() {
    none_disagree("vectors/json-merge-patch.json", 121, |vector| {
        let (patch, _) = parse_merge_patch(vector.str_at(&["patch"]).as_bytes(), false)?;
        merge_patch(vector.get("doc").cloned().unwrap(), &patch)
    });
}

fn json(text: &str) -> Value {
    parse(text.as_bytes()).unwrap()
}

fn json_patch(doc: &str, patch: &str) -> Result<Value, PatchError> {
    JsonPatch::parse(patch.as_bytes(), false)?.0.apply(json(doc))
}

#[test]
fn ten_thousand_operations_are_taken_and_no_more() {
    let operations = |n: usize| format!("[{}]", vec![r#"{"op":"add","path":"/a","value":1}"#; n].join(","));
    assert!(json_patch("{}", &operations(10_000)).is_ok());
    let error = ApiError::from(json_patch("{}", &operations(10_001)).unwrap_err());
    assert_eq!(error.code, 413);
    assert_eq!(
        error.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_may_not_add_more_than_three_mebibytes() {
    let text = "x".repeat(MAX_COPIED_BYTES / 2);
    let doc = format!(r#"{{"a":"{text}"}}"#);
    let copies = |n| format!("[{}]", vec![r#"{"op":"copy","from":"/a","path":"/b"}"#; n].join(","));
    assert!(json_patch(&doc, &copies(1)).is_ok());
    let error = json_patch(&doc, &copies(2)).unwrap_err();
    assert!(error.to_string().starts_with("Unable to complete the copy"), "{error}");
}

#[test]
fn a_patch_cannot_make_a_document_too_deep_to_walk() {
    let patched = || {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(9_900), "}".repeat(9_900));
        let path = "/a".repeat(200);
        let patch =
            format!(r#"[{{"op":"add","path":"/a","value":{deep}}},{{"op":"add","path":"{path}","value":{deep}}}]"#);
        json_patch("{}", &patch).unwrap_err()
    };
    let thread = std::thread::Builder::new().stack_size(crate::object::DEEP_STACK).spawn(patched).unwrap();
    assert_eq!(thread.join().unwrap(), PatchError::Rejected("exceeded max depth".into()));
}

#[test]
fn unknown_and_repeated_members_are_reported_when_asked_for() {
    let patch = br#"[{"op":"add","path":"/a","value":1,"foo":1},{"op":"add","path":"/a","value":1,"value":2}]"#;
    let (_, problems) = JsonPatch::parse(patch, true).unwrap();
    assert_eq!(
        problems,
        [r#"json patch duplicate field "[1].value""#, r#"json patch unknown field "[0].foo""#].map(String::from)
    );
    let (_, problems) = parse_merge_patch(br#"{"a":{"b":1,"b":2}}"#, true).unwrap();
    assert_eq!(problems, [r#"duplicate field "a.b""#.to_owned()]);
}

#[test]
fn strategic_patches_do_what_upstreams_do() {
    none_disagree("vectors/strategic-merge.json", 139, |vector| {
        let (group, version, kind) = vectors::split_kind(vector.str_at(&["kind"]));
        let ty = builtin().kind(group, version, kind).unwrap();
        let text = match vector.get("patch").unwrap() {
            // Patches that are no JSON objects are given as text.
            Value::Str(text) => text.clone(),
            patch => to_string(patch),
        };
        let (patch, _) = parse_strategic_patch(text.as_bytes(), false)?;
        strategic_merge(builtin(), ty, vector.get("original").cloned().unwrap(), &patch)
    });
}

#[test]
fn values_of_the_wrong_type_are_told_as_after_a_strategic_merge() {
    let ty = builtin().kind("apps", "v1", "Deployment").unwrap();
    let convert = |text: &str| {
        let mut value = json(text);
        convert_types(builtin(), ty, &mut value).map(|()| value)
    };
    let error = |text: &str| convert(text).unwrap_err();
    assert_eq!(error(r#"{"spec":{"replicas":"two"}}"#), "unrecognized type: int32");
    assert_eq!(error(r#"{"spec":{"replicas":1.5}}"#), "cannot convert float64 to int32");
    assert_eq!(error(r#"{"spec":{"paused":1}}"#), "unrecognized type: bool");
    assert_eq!(error(r#"{"spec":{"template":{"spec":{"containers":{"name":"a"}}}}}"#), "cannot restore slice from map");
    assert_eq!(error(r#"{"spec":{"template":{"spec":{"containers":"a"}}}}"#), "cannot restore slice from string");
    assert_eq!(
        error(r#"{"spec":{"template":{"spec":{"containers":[{"image":7}]}}}}"#),
        "cannot convert int64 to string"
    );
    assert_eq!(error(r#"{"spec":"x"}"#), "cannot restore struct from: string");
    assert_eq!(error(r#"{"metadata":{"labels":[]}}"#), "cannot restore map from slice");
    assert_eq!(convert(r#"{"spec":{"replicas":2.0}}"#), Ok(json(r#"{"spec":{"replicas":2}}"#)));
    assert_eq!(convert(r#"{"spec":{"replicas":4294967297}}"#), Ok(json(r#"{"spec":{"replicas":1}}"#)));
}

#[test]
fn lists_of_ten_thousand_items_merge_by_key() {
    let items = |from: usize| -> Vec<Value> {
        (from..from + 10_000).map(|at| json(&format!(r#"{{"name":"c{at}","image":"i"}}"#))).collect()
    };
    let ty = builtin().kind("", "v1", "Pod").unwrap();
    let spec = |items: Vec<Value>| Value::from([("spec", Value::from([("containers", items)]))]);
    let (original, patch) = (spec(items(0)), spec(items(5_000)));
    let merged = strategic_merge(builtin(), ty, original, patch.as_object().unwrap()).unwrap();
    assert_eq!(merged.array_at(&["spec", "containers"]).len(), 15_000);
}

#[test]
fn a_refused_result_is_shown_as_go_would_print_it() {
    let ty = builtin().kind("", "v1", "ConfigMap").unwrap();
    let patch = json(r#"{"data":{"k":1}}"#);
    let value = json(
        r#"{"apiVersion":"v1","data":{"k":1,"n":"w"},"kind":"ConfigMap","metadata":{"creationTimestamp":"t","labels":{"l":"m"},
        "managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}},"manager":"m","operation":"Update","time":"t"}],
        "name":"a","namespace":"n","resourceVersion":"1","uid":"u"}}"#,
    );
    let wanted = r#"{"apiVersion":"v1","data":{"k":1,"n":"w"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1","creationTimestamp":"t","labels":{"l":"m"},"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"t","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}"#;
    assert_eq!(show_patched(builtin(), ty, &value, &Opened::by_merge(&patch)), wanted);
    let (patch, _) = JsonPatch::parse(br#"[{"op":"replace","path":"/metadata/name","value":"a"}]"#, false).unwrap();
    let opened = show_patched(builtin(), ty, &value, &Opened::by_operations(&patch));
    assert!(
        opened.contains(r#""metadata":{"creationTimestamp":"t","labels":{"l":"m"},"managedFields":[{"manager""#),
        "{opened}"
    );
}

#[test]
fn what_a_patch_has_not_touched_prints_in_the_order_of_the_go_struct() {
    let text = r#"{"spec":{"containers":[{"image":"x","imagePullPolicy":"Always","name":"c","terminationMessagePath":"p","terminationMessagePolicy":"File"}]}}"#;
    let value = parse(text.as_bytes()).unwrap();
    let ty = builtin().kind("", "v1", "Pod").unwrap();
    assert_eq!(
        show_patched(builtin(), ty, &value, &Opened::default()),
        r#"{"spec":{"containers":[{"name":"c","image":"x","terminationMessagePath":"p","terminationMessagePolicy":"File","imagePullPolicy":"Always"}]}}"#
    );
}
