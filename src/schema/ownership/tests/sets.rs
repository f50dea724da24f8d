//! Sets against the plain idea of them: a set of paths.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::*;
use crate::object::{self, Key};

type Plain = BTreeSet<Vec<u8>>;

/// Paths of up to four steps out of few names, so that sets overlap.
fn plain() -> impl Strategy<Value = Plain> {
    prop::collection::btree_set(prop::collection::vec(0u8..5, 1..5), 0..30)
}

/// One name, of any kind of path element.
fn element(name: u8) -> PathElement {
    match name {
        0 => PathElement::Field(Key::new("a")),
        1 => PathElement::Field(Key::new("b/c.d")),
        2 => PathElement::Item(object::Map::from([("port", Value::Int(80)), ("protocol", "TCP".into())])),
        3 => PathElement::Value("x".into()),
        _ => PathElement::Field(Key::new("metadata")),
    }
}

fn set(plain: &Plain) -> FieldSet {
    let mut set = FieldSet::new();
    for path in plain {
        set.insert(&Path(path.iter().map(|name| element(*name)).collect()));
    }
    set
}

fn below_or_same(path: &[u8], others: &Plain) -> bool {
    (1..=path.len()).any(|length| others.contains(&path[..length]))
}

proptest! {
    #[test]
    fn sets_do_what_sets_of_paths_do(a in plain(), b in plain()) {
        let (left, right) = (set(&a), set(&b));
        prop_assert_eq!(left.clone().union(right.clone()), set(&a.union(&b).cloned().collect()));
        prop_assert_eq!(left.intersection(&right), set(&a.intersection(&b).cloned().collect()));
        prop_assert_eq!(left.clone().difference(&right), set(&a.difference(&b).cloned().collect()));
        let mut recursive = left.clone();
        recursive.subtract_recursively(&right);
        prop_assert_eq!(recursive, set(&a.iter().filter(|path| !below_or_same(path, &b)).cloned().collect()));
        prop_assert_eq!(left.is_within(&right), a.is_subset(&b));
        prop_assert!(left.intersection(&right).is_within(&right));
        let is_leaf = |path: &&Vec<u8>| !a.iter().any(|other| other.len() > path.len() && other.starts_with(path));
        prop_assert_eq!(left.leaves(), set(&a.iter().filter(is_leaf).cloned().collect()));
        for path in a.union(&b) {
            let path_of = Path(path.iter().map(|name| element(*name)).collect());
            prop_assert_eq!(left.has(&path_of), a.contains(path));
        }
        prop_assert_eq!(left.paths().len(), a.len());
    }

    #[test]
    fn the_stored_form_is_read_back(a in plain()) {
        let set = set(&a);
        let stored = set.clone().into_fields_v1();
        let text = object::to_vec(&stored);
        let read = FieldSet::from_fields_v1(&object::parse(&text).unwrap()).unwrap();
        prop_assert_eq!(read.paths().len(), a.len());
        prop_assert_eq!(read, set);
    }
}

fn read(text: &str) -> Result<Value, String> {
    FieldSet::from_fields_v1(&object::parse(text.as_bytes()).unwrap()).map(FieldSet::into_fields_v1)
}

#[test]
fn what_others_wrote_is_brought_into_one_form() {
    let canonical = object::parse(br#"{"f:a":{},"k:{\"a\":1,\"b\":2}":{".":{},"f:a":{}}}"#).unwrap();
    let written = r#"{"f:a":{".":{}},"k:{\"b\": 2, \"a\":1}":{"f:a":{},".":{}},"x:unknown":{"f:a":{}}}"#;
    assert_eq!(read(written), Ok(canonical));
    assert_eq!(read(r#"{"f:a":null}"#), read(r#"{"f:a":{}}"#));
    assert!(read(r#"{"f:a":5}"#).is_err());
    assert!(read(r#"{"fa":{}}"#).is_err());
    assert!(read(r#"{"k:[]":{}}"#).is_err());
    assert!(read(r#"{"i:x":{}}"#).is_err());
}

#[test]
fn paths_are_told_level_by_level_and_numbers_in_their_order() {
    let text = r#"{"f:b":{"f:c":{}},"f:z":{},"k:{\"port\":443}":{},"k:{\"port\":80}":{},"v:\"q\"":{}}"#;
    let set = FieldSet::from_fields_v1(&object::parse(text.as_bytes()).unwrap()).unwrap();
    let told: Vec<String> = set.paths().iter().map(Path::to_string).collect();
    assert_eq!(told, [".z", "[port=80]", "[port=443]", "[=\"q\"]", ".b.c"]);
}
