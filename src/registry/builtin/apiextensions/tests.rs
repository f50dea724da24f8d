//! Definitions against upstream's own answers.

use super::strategy::DefinitionStrategy;
use crate::{
    api::{
        ErrorList,
        vectors::{Differences, Vectors},
        warnings::Warnings,
    },
    json,
    object::{Value, parse},
    registry::{
        builtin::defaults::apply_defaults,
        strategy::{Strategy, StrategyContext},
        validation::{validate_object_meta, validate_object_meta_update},
    },
    schema,
};

/// Cases about what rules say: their expressions are kept, not compiled.
const RULES: [&str; 23] = [
    "s150", "s151", "s152", "s160", "s161", "s173", "s175", "s176", "s177", "s178", "s180", "s181", "s183", "s184",
    "s188", "s189", "s190", "s191", "s196", "s197", "s200", "u006", "u007",
];

fn context(warnings: &Warnings) -> StrategyContext<'_> {
    StrategyContext { namespace: "", now: jiff::Timestamp::UNIX_EPOCH, user: "", groups: &[], warnings }
}

fn decoded(crd: &Value) -> Result<Value, String> {
    let mut crd = crd.clone();
    let table = schema::builtin();
    let ty = table.kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    schema::decode(table, ty, &mut crd, None).map_err(|error| error.to_string())?;
    let now = jiff::Timestamp::UNIX_EPOCH;
    apply_defaults("apiextensions.k8s.io", "v1", "CustomResourceDefinition", &mut crd, now);
    Ok(crd)
}

fn sorted(errors: &ErrorList) -> Vec<String> {
    // The old objects of the vectors have a generation that no new one was given.
    let told = errors.iter().filter(|error| error.field != "metadata.generation");
    let mut texts: Vec<String> = told.map(|error| format!("{} {error}", error.kind.reason())).collect();
    texts.sort();
    texts
}

fn errors_of_create(crd: &Value) -> Vec<String> {
    let warnings = Warnings::default();
    let mut crd = decoded(crd).unwrap();
    DefinitionStrategy.prepare_for_create(&context(&warnings), &mut crd);
    let mut errors = ErrorList::new();
    validate_object_meta(&crd, false, &|name, prefix| DefinitionStrategy.validate_name(name, prefix), &mut errors);
    DefinitionStrategy.validate_create(&context(&warnings), &crd, &mut errors);
    sorted(&errors)
}

fn errors_of_update(crd: &Value, old: &Value) -> Vec<String> {
    let warnings = Warnings::default();
    let (mut new, mut old) = (decoded(crd).unwrap(), decoded(old).unwrap());
    DefinitionStrategy.prepare_for_create(&context(&warnings), &mut old);
    for object in [&mut new, &mut old] {
        object.set(&["metadata", "resourceVersion"], "1");
    }
    DefinitionStrategy.prepare_for_update(&context(&warnings), &mut new, &old);
    let mut errors = ErrorList::new();
    validate_object_meta_update(&new, &old, &mut errors);
    DefinitionStrategy.validate_update(&context(&warnings), &new, &old, &mut errors);
    sorted(&errors)
}

fn wanted(case: &Value) -> Vec<String> {
    let errors = case.array_at(&["errors"]).iter().filter(|error| error.str_at(&["field"]) != "metadata.generation");
    let mut errors: Vec<String> =
        errors.map(|error| format!("{} {}", error.str_at(&["type"]), error.str_at(&["error"]))).collect();
    errors.sort();
    errors
}

#[test]
fn schemas_and_definitions_are_judged_as_upstream_judges_them() {
    let vectors = Vectors::load("crd-schema");
    let wrapper = vectors.group("wrapper").first().and_then(Value::as_str).unwrap();
    let mut differences = Differences::default();
    let mut judged = 0;
    let mut judge = |case: &Value, crd: &Value| {
        let name = case.str_at(&["case"]);
        if RULES.contains(&name) {
            return;
        }
        judged += 1;
        if let Some(why) = case.get("decode_error").and_then(Value::as_str) {
            differences.same(name, decoded(crd).err(), Some(why.to_owned()));
            return;
        }
        let found = match case.get("old_crd") {
            Some(old) => errors_of_update(crd, old),
            None => errors_of_create(crd),
        };
        differences.same(name, found, wanted(case));
    };
    for case in vectors.group("schemas") {
        let text = wrapper.replace("%s", &crate::object::to_string(case.get("schema").unwrap()));
        judge(case, &parse(text.as_bytes()).unwrap());
    }
    for case in vectors.group("crds") {
        judge(case, case.get("crd").unwrap());
    }
    differences.none();
    assert_eq!(judged, 278 - RULES.len());
}

#[test]
fn a_first_deletion_only_marks_the_definition() {
    let warnings = Warnings::default();
    let mut crd = json!({"metadata": {"name": "as.b.c", "finalizers": ["own"]}, "status": {"conditions": []}});
    assert!(DefinitionStrategy.takes_over_deletion(&context(&warnings), &mut crd));
    assert_eq!(crd.array_at(&["metadata", "finalizers"]).len(), 2);
    assert_eq!(crd.str_at(&["metadata", "deletionTimestamp"]), "1970-01-01T00:00:00Z");
    assert!(!DefinitionStrategy.takes_over_deletion(&context(&warnings), &mut crd), "the second is like any other");
}
