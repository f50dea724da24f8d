use super::*;
use crate::schema::TypeId;
use crate::{
    api::hex,
    object::{Value, to_string},
    schema::{builtin, decode as decode_tree, vectors},
};

fn cases() -> Vec<(String, TypeId, Value)> {
    let cases = vectors::typed("vectors/protobuf.json");
    assert!(cases.len() > 600);
    cases.into_iter().map(|(name, ty, case)| (name, ty.unwrap(), case)).collect()
}

#[test]
fn trees_become_the_bytes_upstream_writes() {
    for (name, ty, case) in cases() {
        if name == "v1/ConfigMap zero-time" {
            // A pointer to a zero time; JSON has no such thing.
            continue;
        }
        let bytes = encode_object(builtin(), ty, case.get("json").unwrap()).unwrap();
        if name == "audit.k8s.io/v1/Event full" {
            // The object in it is JSON text, whose members were in another order than trees keep.
            assert_eq!(bytes.len() * 2, case.str_at(&["hex"]).len());
            continue;
        }
        assert_eq!(hex::encode(&bytes), case.str_at(&["hex"]), "{name}");
    }
}

#[test]
fn bytes_become_the_tree_upstream_prints() {
    for (name, ty, case) in cases() {
        let bytes = hex::decode(case.str_at(&["hex"]));
        let envelope = open(&bytes).unwrap();
        let value = decode_object(builtin(), ty, &envelope).unwrap();
        let expected = case.get("json_decoded").or(case.get("json")).unwrap();
        if name == "v1/ConfigMap zero-time" {
            assert_eq!(value.at(&["metadata", "deletionTimestamp"]), None);
            continue;
        }
        assert_eq!(to_string(&value), to_string(expected), "{name}");
    }
}

#[test]
fn decoded_trees_need_no_further_decoding() {
    for (name, ty, case) in cases() {
        let bytes = hex::decode(case.str_at(&["hex"]));
        let value = decode_object(builtin(), ty, &open(&bytes).unwrap()).unwrap();
        let mut again = value.clone();
        assert_eq!(decode_tree(builtin(), ty, &mut again, None), Ok(Vec::new()), "{name}");
        assert_eq!(to_string(&again), to_string(&value), "{name}");
    }
}

#[test]
fn a_list_is_its_items_one_after_the_other() {
    let (name, ty, case) = cases().into_iter().find(|(name, ..)| name == "v1/ConfigMapList full").unwrap();
    let json = case.get("json").unwrap();
    let item = builtin().kind("", "v1", "ConfigMap").unwrap();
    let mut raw = encode_list_start(builtin(), json.get("metadata").unwrap()).unwrap();
    for config_map in json.array_at(&["items"]) {
        append_list_item(&mut raw, &encode_body(builtin(), item, config_map).unwrap());
    }
    let list = wrap("v1", "ConfigMapList", &raw);
    assert_eq!(hex::encode(&list), case.str_at(&["hex"]), "{name}");
    assert_eq!(decode_object(builtin(), ty, &open(&list).unwrap()).unwrap(), *json);
}

#[test]
fn a_watch_event_is_framed_by_its_length() {
    assert_eq!(hex::encode(&watch_event("ADDED", b"x")), "0000000c0a0541444445441203 0a0178".replace(' ', ""));
}

#[test]
fn envelopes_that_are_none_are_refused_in_upstreams_words() {
    let message = |data: &[u8]| open(data).unwrap_err().to_string();
    assert_eq!(message(b""), "empty data");
    assert_eq!(message(b"k8s\0"), "empty body");
    assert_eq!(
        message(b"{\"kind\":1}"),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert_eq!(message(b"k8s\0\x0a\xff"), "unexpected EOF");
    assert_eq!(message(b"k8s\0\x08\x01"), "proto: wrong wireType = 0 for field TypeMeta");
}

#[test]
fn every_truncation_is_an_error_or_a_shorter_object_and_never_a_panic() {
    for (_, ty, case) in cases().into_iter().filter(|(name, ..)| name.ends_with("full")).step_by(13) {
        let bytes = hex::decode(case.str_at(&["hex"]));
        let step = bytes.len() / 200 + 1;
        for end in (0..bytes.len()).step_by(step) {
            if let Ok(envelope) = open(&bytes[..end]) {
                let _ = decode_object(builtin(), ty, &envelope);
            }
            let mut flipped = bytes.clone();
            flipped[end] ^= 0x55;
            if let Ok(envelope) = open(&flipped) {
                let _ = decode_object(builtin(), ty, &envelope);
            }
        }
    }
}

#[test]
fn a_small_message_cannot_grow_without_bound() {
    // spec { containers {} containers {} … }: two bytes each.
    let ty = builtin().kind("", "v1", "Pod").unwrap();
    let mut spec = wire::Backward::default();
    let end = spec.len();
    for _ in 0..1_000_000 {
        spec.delimited(2, b"");
    }
    spec.close(2, end);
    assert_eq!(decode_body(builtin(), ty, &spec.finish()).unwrap_err().to_string(), "proto: message too large");
    // Schemas nest without end.
    let crd = builtin().kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    let mut deep = wire::Backward::default();
    for _ in 0..10_000 {
        // not: JSONSchemaProps has tag 27
        deep.close(27, 0);
    }
    deep.close(1, 0);
    deep.close(4, 0);
    deep.close(7, 0);
    deep.close(2, 0);
    assert_eq!(decode_body(builtin(), crd, &deep.finish()).unwrap_err().to_string(), "proto: message nested too deep");
}
