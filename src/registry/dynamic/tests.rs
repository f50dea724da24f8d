//! Custom resources against upstream's own answers.

use super::*;
use crate::{
    api::{ErrorList, warnings::Warnings},
    json,
    object::{Value, parse},
    registry::{strategy::StrategyContext, validation::validate_object_meta},
    schema::vectors,
};

fn definition(schema: &Value) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
                 "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
                 "versions": [{"name": "v1", "served": true, "storage": true}]},
        "status": {"acceptedNames": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}}
    });
    let version = crd.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap().first_mut().unwrap();
    version.set(&["schema", "openAPIV3Schema"], schema.clone());
    crd
}

fn made(crd: &Value) -> Option<Made> {
    make(crd, 1, 0, &Pool::default())
}

fn context(warnings: &Warnings) -> StrategyContext<'_> {
    StrategyContext { namespace: "ns", now: jiff::Timestamp::UNIX_EPOCH, user: "", groups: &[], warnings }
}

/// The errors of one object as upstream words them, sorted.
fn errors(row: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    let version = row.version("v1").unwrap();
    let prepare = |object: &Value| {
        let mut value = object.clone();
        value.set(&["apiVersion"], "example.com/v1");
        value.set(&["kind"], "Foo");
        version.schema.decode(&mut value, None).unwrap();
        version.schema.default(&mut value);
        value
    };
    let strategy = version.strategy.as_ref().unwrap();
    let warnings = Warnings::default();
    let mut errors = ErrorList::new();
    let new = prepare(object);
    match old {
        None => {
            validate_object_meta(&new, true, &|name, prefix| strategy.validate_name(name, prefix), &mut errors);
            strategy.validate_create(&context(&warnings), &new, &mut errors);
        }
        Some(old) => {
            let old = prepare(old);
            // What the store keeps of the old object before it judges.
            let mut new = new;
            new.set(&["metadata", "resourceVersion"], "1");
            strategy.validate_update(&context(&warnings), &new, &old, &mut errors);
        }
    }
    let mut texts: Vec<String> = errors.iter().map(|error| format!("{} {error}", error.kind.reason())).collect();
    texts.sort();
    texts
}

#[test]
fn objects_are_judged_as_upstream_judges_them() {
    let mut objects = 0;
    for case in vectors::read("vectors/crd-value-validation.json") {
        let row = made(&definition(case.get("schema").unwrap())).unwrap().resource;
        for (at, entry) in case.array_at(&["objects"]).iter().enumerate() {
            if let Some(why) = entry.get("decode_error") {
                let mut object = entry.get("object").unwrap().clone();
                let refused = row.version("v1").unwrap().schema.decode(&mut object, None);
                assert_eq!(refused.unwrap_err(), why.as_str().unwrap());
                continue;
            }
            let Some(Value::Array(wanted)) = entry.get("errors") else { continue };
            let word = |error: &Value| format!("{} {}", error.str_at(&["type"]), error.str_at(&["error"]));
            let mut wanted: Vec<String> = wanted.iter().map(word).collect();
            wanted.sort();
            let found = errors(&row, entry.get("object").unwrap(), entry.get("old"));
            assert_eq!(
                found,
                wanted,
                "{} {at}: {}",
                case.str_at(&["case"]),
                crate::object::to_string(entry.get("object").unwrap())
            );
            objects += 1;
        }
    }
    assert!(objects > 180, "{objects}");
}

#[test]
fn an_update_is_not_held_to_what_it_does_not_touch() {
    let schema = parse(
        br#"{"type":"object","properties":{"spec":{"type":"object","properties":{
            "a":{"type":"string","maxLength":2},"l":{"type":"array","items":{"type":"string","maxLength":2}},
            "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
            "any":{"type":"string","anyOf":[{"maxLength":1},{"pattern":"^zz"}]}}}}}"#,
    )
    .unwrap();
    let row = made(&definition(&schema)).unwrap().resource;
    let object = |spec: Value| json!({"metadata": {"name": "x", "namespace": "ns"}, "spec": spec});
    let old = object(json!({"a": "long", "l": ["long"], "s": ["x", "x"], "any": "yy"}));
    let unchanged = object(json!({"a": "long", "l": ["long"], "s": ["x", "x"], "any": "yy", "n": 1}));
    assert_eq!(errors(&row, &unchanged, Some(&old)), [""; 0]);
    let grown = object(json!({"a": "longer", "l": ["long", "ok"], "s": ["x", "x", "y"], "any": "yy"}));
    assert_eq!(
        errors(&row, &grown, Some(&old)),
        [
            "FieldValueTooLong spec.a: Too long: may not be more than 2 bytes",
            "FieldValueTooLong spec.l[0]: Too long: may not be more than 2 bytes"
        ],
        "a list without keys is one thing, and what was there twice may stay so"
    );
    assert_eq!(errors(&row, &old, None).len(), 5);
}

#[test]
fn an_object_is_shown_by_todays_schema_in_whichever_version_it_is_stored() {
    let mut crd = definition(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "f": {"type": "string"}, "late": {"type": "string", "default": "now"}}}}}));
    let mut second = crd.at(&["spec", "versions"]).and_then(Value::as_array).unwrap()[0].clone();
    second.set(&["name"], "v2");
    second.set(&["storage"], false);
    second.set(
        &["schema", "openAPIV3Schema"],
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "f": {"type": "string"}, "two": {"type": "string", "default": "2"}}}}}),
    );
    crd.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap().push(second);
    let made = make(&crd, 1, 10, &Pool::default()).unwrap();
    let row = made.resource;
    let revive = row.revive.as_ref().unwrap();
    assert!(revive.is_current(11) && !revive.is_current(10));
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": {"f": "1", "gone": 1}});
    revive.revive(&mut object);
    assert_eq!(object.at(&["spec"]), Some(&json!({"f": "1", "late": "now"})));
    row.convert(&mut object, "example.com/v1", "example.com/v2").unwrap();
    assert_eq!(object.at(&["spec"]), Some(&json!({"f": "1"})), "pruned, and no defaults of the other version");
    assert_eq!(object.str_at(&["apiVersion"]), "example.com/v2");
    let names: Vec<&str> = row.versions.iter().map(|version| &*version.name).collect();
    assert_eq!(names, ["v2", "v1"]);
    assert_eq!(&*row.storage_group_version, "example.com/v1");
    assert_eq!(row.hub(row.version("v2").unwrap()), "example.com/v2");
    object.set(&["apiVersion"], "example.com/v9");
    assert!(row.convert(&mut object, "", "example.com/v1").is_err());

    crd.set(&["spec", "conversion", "strategy"], "Webhook");
    let row = make(&crd, 1, 10, &Pool::default()).unwrap().resource;
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x"}});
    row.convert(&mut object, "example.com/v1", "example.com/v1").unwrap();
    let error = row.convert(&mut object, "example.com/v1", "example.com/v2").unwrap_err();
    assert!(error.message.starts_with("conversion webhook for example.com/v1, Kind=Foo failed: "), "{}", error.message);
    assert_eq!(object.str_at(&["apiVersion"]), "example.com/v1", "nothing is relabelled");
}

#[test]
fn deprecated_versions_point_to_the_best_of_the_others() {
    let mut crd = definition(&json!({"type": "object"}));
    let versions = crd.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap();
    for (name, deprecated) in [("v1beta1", true), ("v2", false), ("v3", false)] {
        let mut version = versions[0].clone();
        version.set(&["name"], name);
        version.set(&["storage"], false);
        version.set(&["served"], name != "v3");
        version.set(&["deprecated"], deprecated);
        versions.push(version);
    }
    let row = made(&crd).unwrap().resource;
    assert_eq!(
        row.version("v1beta1").unwrap().deprecation.as_deref(),
        Some("example.com/v1beta1 Foo is deprecated; use example.com/v2 Foo")
    );
    assert_eq!(row.version("v1").unwrap().deprecation, None);
    assert!(row.version("v3").is_none());
}

#[test]
fn a_written_schema_is_given_back_as_it_was() {
    let schema = json!({"type": "object", "description": "d", "properties": {"spec": {"type": "string"}}});
    let row = made(&definition(&schema)).unwrap().resource;
    assert_eq!(row.version("v1").unwrap().schema.written_schema(), Some(schema));
}

#[test]
fn equal_schemas_are_compiled_once_and_let_go_with_their_last_row() {
    let pool = Pool::default();
    let mut crd = definition(&json!({"type": "object", "properties": {"spec": {"type": "string"}}}));
    let versions = crd.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap();
    let mut second = versions[0].clone();
    second.set(&["name"], "v2");
    second.set(&["storage"], false);
    versions.push(second);
    let one = make(&crd, 1, 0, &pool).unwrap();
    crd.set(&["spec", "group"], "other.example.com");
    let two = make(&crd, 2, 0, &pool).unwrap();
    let schema = |made: &Made, version: &str| made.schemas.version(version).unwrap().clone();
    let first = schema(&one, "example.com/v1");
    assert!(first.shares_with(&schema(&one, "example.com/v2")), "versions of one definition");
    assert!(first.shares_with(&schema(&two, "other.example.com/v1")), "definitions");
    let other = make(&definition(&json!({"type": "object"})), 3, 0, &pool).unwrap();
    assert!(!first.shares_with(&schema(&other, "example.com/v1")));
    for at in 0..1000 {
        make(&definition(&json!({"type": "object", "description": (format!("{at}"))})), 4, 0, &pool).unwrap();
    }
    assert!(pool.known() < 100, "{}", pool.known());
}

#[test]
fn a_row_is_listed_when_its_definition_is_established_and_shares_what_it_is_made_of() {
    let crd = definition(&json!({"type": "object"}));
    let before = made(&crd).unwrap();
    assert!(!before.resource.listed);
    let after = before.with_standing(Standing { listed: true, terminating: false }, 2);
    assert!(after.resource.listed && Arc::ptr_eq(&before.schemas, &after.schemas));
    assert_eq!((before.resource.revision, after.resource.revision), (1, 2));
}
