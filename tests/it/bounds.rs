//! Inputs that are made to be expensive: each is refused, or taken at a cost in proportion to its size. Sizes are those
//! that a body or a header can have; what would be quadratic takes minutes at these, so the limits are generous.

use std::time::Duration;

use kenter::{
    api::{ErrorList, fields, labels, quantity::Quantity},
    codec::{self, Format, cbor},
    json,
    object::{Map, Style, Value, parse, parse_reporting_duplicates, yaml},
    registry::{
        builtin::defaults::apply_defaults,
        dynamic::{CustomSchema, Pool, json_path::JsonPath},
        resource::VersionSchema,
    },
    schema::{
        self, TypeId, builtin,
        ownership::{ApplyContext, FieldFilter, WriteContext, apply, update_managed_fields},
        patch::{
            JsonPatch, Opened, merge_patch, parse_merge_patch, parse_strategic_patch, show_patched, strategic_merge,
        },
        structural::{go_regex, validate},
    },
    server::{endpoints::list::Token, negotiate, query::Query, request_info::RequestInfo},
};

use crate::support::bounds::within;

const SECONDS: Duration = Duration::from_secs(20);
const MIB: usize = 1 << 20;
/// The most a request's body may have.
const BODY: usize = 3 * MIB;

fn kind(group: &str, version: &str, kind: &str) -> TypeId {
    builtin().kind(group, version, kind).expect("a known kind")
}

fn context(manager: &str) -> WriteContext<'_> {
    WriteContext {
        manager,
        subresource: "",
        api_version: "v1",
        now: "2026-01-01T00:00:00Z",
        reset: FieldFilter::All,
        versions: None,
    }
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// `"k0":"v","k1":"v",…`, as many as there is room for.
fn members(prefix: &str, count: usize) -> String {
    (0..count).map(|n| format!("\"{prefix}{n:06}\":\"v\"")).collect::<Vec<_>>().join(",")
}

#[test]
fn nesting_without_end_is_refused_in_every_format() {
    for depth in [10_001, 500_000] {
        within("JSON", SECONDS, 64 * MIB, || {
            assert!(parse(nested("[", "", "]", depth).as_bytes()).is_err());
            assert!(parse(nested("{\"a\":", "1", "}", depth).as_bytes()).is_err());
            assert!(parse_reporting_duplicates("{\"a\":".repeat(depth).as_bytes()).is_err());
        });
        within("YAML", SECONDS, 256 * MIB, || {
            for text in
                [nested("[", "", "]", depth), nested("{a: ", "", "}", depth), "- ".repeat(depth), "? ".repeat(depth)]
            {
                assert!(yaml::parse(text.as_bytes()).is_err(), "{}…", &text[..20]);
            }
        });
        within("CBOR", SECONDS, 64 * MIB, || {
            for byte in [0x81u8, 0x9f, 0xbf, 0xc1, 0xd6] {
                assert!(cbor::decode(&vec![byte; depth]).is_err(), "{byte:x}");
            }
            let map: Vec<u8> = b"\xa1\x41a".repeat(depth);
            assert!(cbor::decode(&map).is_err());
        });
        within("protobuf", SECONDS, 64 * MIB, || {
            // An extension's raw JSON.
            let mut inner = vec![0x0a];
            let text = "[".repeat(depth.min(100_000));
            inner.extend([
                0x80 | (text.len() & 0x7f) as u8,
                0x80 | (text.len() >> 7 & 0x7f) as u8,
                (text.len() >> 14) as u8,
            ]);
            inner.extend_from_slice(text.as_bytes());
            let _ = codec::decode_protobuf(&inner);
        });
        within("patches", SECONDS, 256 * MIB, || {
            assert!(JsonPatch::parse(nested("[", "", "]", depth).as_bytes(), true).is_err());
            assert!(parse_merge_patch(nested("{\"a\":", "1", "}", depth).as_bytes(), true).is_err());
            assert!(parse_strategic_patch(nested("{\"a\":", "1", "}", depth).as_bytes(), true).is_err());
        });
        within("selectors", SECONDS, 64 * MIB, || {
            assert!(labels::Selector::parse(&format!("a in {}", nested("(", "b", ")", depth))).is_err());
            let _ = fields::Selector::parse(&"=".repeat(depth));
        });
        within("expressions", SECONDS, 256 * MIB, || {
            assert!(go_regex::compiled(&nested("(", "a", ")", depth)).is_err());
            assert!(go_regex::compiled(&nested("(?:", "a", ")*", depth)).is_err());
            assert!(go_regex::compiled(&nested("[", "a", "]", depth)).is_err() || depth > 0);
            let _ = JsonPath::parse(&nested("[?(@.a", "", ")]", depth));
            let _ = JsonPath::parse(&"[".repeat(depth));
            let _ = JsonPath::parse(&"\\\"".repeat(depth));
        });
        within("a continue token", SECONDS, 64 * MIB, || {
            assert!(Token::decode(&"W1tb".repeat(depth / 3)).is_err());
        });
    }
}

#[test]
fn nesting_as_deep_as_is_taken_is_stood_by_all_that_walks_over_it() {
    let deepest = kenter::object::MAX_DEPTH - 3;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = nested(open, "1", close, deepest);
        let text = format!("{{\"spec\":{{\"x\":{deep}}}}}");
        within("a deep object", SECONDS, 64 * MIB, || {
            let value = parse_reporting_duplicates(text.as_bytes()).expect("not too deep").value;
            assert_eq!(value.clone(), value);
            for format in [Format::Json, Format::Yaml] {
                for style in [Style::Compact, Style::Indented] {
                    codec::encode(format, &value, style).expect("encoded");
                }
            }
            let bytes = cbor::encode(builtin(), TypeId::ANY, &value);
            assert_eq!(cbor::decode(&bytes).as_ref(), Ok(&value));
            let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            let custom = CustomSchema::new(&Pool::default(), "example.com", "v1", Some(&schema), false);
            let (table, ty) = custom.typed();
            let mut object = value.clone();
            object.set(&["apiVersion"], "example.com/v1");
            object.set(&["kind"], "Foo");
            object.set(&["metadata"], json!({ "name": "a" }));
            custom.decode(&mut object, None).expect("decoded");
            custom.default(&mut object);
            validate::validate(custom.root(), &object, None, "", &mut ErrorList::new());
            let write = WriteContext { api_version: "example.com/v1", ..context("one") };
            update_managed_fields(table, ty, None, &mut object, &write);
            let finish = Ok;
            let ctx = ApplyContext { write, kind: "Foo", force: true, finish: &finish };
            let mut config = object.clone();
            config.remove_at(&["metadata", "managedFields"]);
            let applied = apply(table, ty, Some(&object), &config, &ctx).expect("applied").expect("changed");
            config.remove_at(&["spec"]);
            apply(table, ty, Some(&applied), &config, &ctx).expect("applied").expect("changed");
            let merged = merge_patch(object.clone(), &value).expect("merged");
            assert_eq!(merged.get("spec"), value.get("spec"));
            JsonPath::parse("..a").and_then(|path| path.find(&value).map(drop)).ok();
            // What stands in an untyped place of a built-in kind.
            let ty = kind("apps", "v1", "ControllerRevision");
            let mut revision = json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": { "name": "a" }, "revision": 1i64 });
            revision.set(&["data"], value.clone());
            schema::decode(builtin(), ty, &mut revision, None).expect("decoded");
            let bytes = codec::encode(Format::Protobuf, &revision, Style::Compact).expect("encoded");
            codec::decode_protobuf(&bytes).expect("decoded");
            update_managed_fields(builtin(), ty, None, &mut revision, &context("one"));
            let Value::Object(patch) = value.clone() else { return };
            let _ = strategic_merge(builtin(), ty, revision, &patch);
        });
    }
    within("many items far in", SECONDS, 768 * MIB, || {
        let items = "1,".repeat(BODY / 2 - 1_000);
        let value = parse(nested("[", items.trim_end_matches(','), "]", deepest).as_bytes()).expect("not too deep");
        for format in [Format::Json, Format::Yaml] {
            let bytes = codec::encode(format, &value, Style::Indented).expect("encoded");
            assert!(bytes.len() < 100 * BODY, "{} MiB", bytes.len() / MIB);
        }
    });
    // A schema nests by itself: three levels for each of its own.
    let schema = nested("{\"type\":\"object\",\"properties\":{\"a\":", "{\"type\":\"string\"}", "}}", 490);
    let crd = format!("{{\"spec\":{{\"versions\":[{{\"schema\":{{\"openAPIV3Schema\":{schema}}}}}]}}}}");
    within("a deep schema", SECONDS, 256 * MIB, || {
        let ty = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let mut crd = parse(crd.as_bytes()).expect("JSON");
        schema::decode(builtin(), ty, &mut crd, None).expect("decoded");
        update_managed_fields(builtin(), ty, None, &mut crd, &context("one"));
        let schema =
            crd.at(&["spec", "versions"]).and_then(|it| it.as_array()?.first()?.at(&["schema", "openAPIV3Schema"]));
        let schema = schema.expect("it is there").clone();
        use kenter::{registry::builtin::apiextensions::schema_rules, schema::structural::check};
        let path = kenter::api::Path::new("schema");
        check::unreadable(&schema);
        check::structural_problems(&schema, &path);
        let options = schema_rules::SchemaOptions { valid_types: true, atomic_sets: true, keys_of_maps: true };
        schema_rules::validate_schema(&schema, options, &path, &mut ErrorList::new());
        let custom = CustomSchema::new(&Pool::default(), "example.com", "v1", Some(&schema), false);
        let mut object = parse(nested("{\"a\":", "1", "}", 490).as_bytes()).expect("JSON");
        let _ = custom.decode(&mut object, None);
        custom.default(&mut object);
        let mut errors = ErrorList::new();
        validate::validate(custom.root(), &object, None, "", &mut errors);
        assert!(!errors.is_empty());
    });
}

#[test]
fn a_path_of_a_patch_may_be_as_long_as_a_body() {
    let long = "/a".repeat(BODY / 2 - 100);
    within("a path to nowhere", SECONDS, 512 * MIB, || {
        let patch = format!(r#"[{{"op":"add","path":"/x","from":"{long}","value":1}}]"#);
        let (patch, _) = JsonPatch::parse(patch.as_bytes(), true).expect("a patch");
        let patched = patch.apply(json!({ "a": 1i64 })).expect("the other path is not needed");
        let ty = kind("", "v1", "ConfigMap");
        show_patched(builtin(), ty, &patched, &Opened::by_operations(&patch));
    });
    within("a path of tildes", SECONDS, 512 * MIB, || {
        let patch = format!(r#"[{{"op":"remove","path":"/{}"}}]"#, "~".repeat(BODY - 100));
        let (patch, _) = JsonPatch::parse(patch.as_bytes(), true).expect("a patch");
        patch.apply(json!({ "a": 1i64 })).expect_err("there is no such member");
    });
}

#[test]
fn members_by_the_hundred_thousand_are_merged_in_one_go() {
    let config_map = kind("", "v1", "ConfigMap");
    let (old, new) = (members("old", BODY / 2 / 16), members("new", BODY / 2 / 16));
    let doc = parse(format!("{{\"data\":{{{old}}}}}").as_bytes()).expect("JSON");
    // Each new name sorts before every old one.
    let patch = parse(format!("{{\"data\":{{{new}}}}}").as_bytes()).expect("JSON");
    let gone: Map = doc.object_at(&["data"]).expect("there").keys().map(|key| (key.clone(), Value::Null)).collect();
    let gone = Value::from([("data", Value::Object(gone))]);
    let Value::Object(patch_map) = patch.clone() else { unreachable!("an object") };
    let Value::Object(gone_map) = gone.clone() else { unreachable!("an object") };
    within("a merge patch", SECONDS, 256 * MIB, || {
        let merged = merge_patch(doc.clone(), &patch).expect("merged");
        let rest = merge_patch(merged, &gone).expect("merged");
        assert_eq!(rest.get("data"), patch.get("data"));
    });
    within("a strategic merge patch", SECONDS, 256 * MIB, || {
        let merged = strategic_merge(builtin(), config_map, doc.clone(), &patch_map).expect("merged");
        let rest = strategic_merge(builtin(), config_map, merged, &gone_map).expect("merged");
        assert_eq!(rest.get("data"), patch.get("data"));
    });
    within("ownership", SECONDS, 1024 * MIB, || {
        let typed = |data: &Value| {
            let mut object = data.clone();
            object.set(&["apiVersion"], "v1");
            object.set(&["kind"], "ConfigMap");
            object.set(&["metadata"], json!({ "name": "a" }));
            object
        };
        let mut live = typed(&doc);
        update_managed_fields(builtin(), config_map, None, &mut live, &context("one"));
        let finish = Ok;
        let ctx = |manager, force| ApplyContext { write: context(manager), kind: "ConfigMap", force, finish: &finish };
        let first = apply(builtin(), config_map, Some(&live), &typed(&patch), &ctx("two", true))
            .expect("applied")
            .expect("new");
        let second =
            apply(builtin(), config_map, Some(&first), &typed(&doc), &ctx("two", true)).expect("applied").expect("new");
        // Few fields among many, and a conflict over all of them.
        let few = typed(&parse(format!("{{\"data\":{{{}}}}}", members("few", 9_000)).as_bytes()).expect("JSON"));
        let third =
            apply(builtin(), config_map, Some(&second), &few, &ctx("three", true)).expect("applied").expect("new");
        let none = typed(&json!({ "data": {} }));
        apply(builtin(), config_map, Some(&third), &none, &ctx("three", true)).expect("applied").expect("new");
        let mut changed = typed(&doc);
        if let Some(map) = changed.get_mut("data").and_then(Value::as_object_mut) {
            map.values_mut().for_each(|value| *value = "w".into());
        }
        apply(builtin(), config_map, Some(&second), &changed, &ctx("four", false)).expect_err("all are somebody's");
    });
    within("protobuf", SECONDS, 512 * MIB, || {
        // Entries in falling order: each goes before all others.
        let mut body = Vec::new();
        for n in (0..BODY / 16).rev() {
            let key = format!("k{n:06}");
            let entry = [&[0x0a, key.len() as u8], key.as_bytes(), &[0x12, 0x01, b'v']].concat();
            body.extend([0x12, entry.len() as u8]);
            body.extend(entry);
        }
        let decoded = codec::protobuf::decode_body(builtin(), config_map, &body).expect("decoded");
        assert_eq!(decoded.object_at(&["data"]).map(Map::len), Some(BODY / 16));
    });
}

#[test]
fn a_million_members_and_items_are_read_in_every_format() {
    let keys: Vec<String> = (0..250_000).rev().map(|n| format!("{n}")).collect();
    within("JSON members", SECONDS, 256 * MIB, || {
        let text = format!("{{{}}}", (0..1_000_000).rev().map(|n| format!("\"{n}\":1")).collect::<Vec<_>>().join(","));
        assert_eq!(parse(text.as_bytes()).expect("JSON").as_object().map(Map::len), Some(1_000_000));
    });
    within("the same JSON member again and again", SECONDS, 512 * MIB, || {
        let text = format!("{{{}}}", "\"a\":1,".repeat(400_000).trim_end_matches(','));
        let parsed = parse_reporting_duplicates(text.as_bytes()).expect("JSON");
        assert_eq!(parsed.duplicates, ["a"]);
    });
    within("YAML members", SECONDS, 512 * MIB, || {
        let text: String = keys.iter().map(|key| format!("{key}: \n")).collect();
        let _ = yaml::parse(text.as_bytes());
        let text: String = (0..100_000).rev().map(|n| format!("k{n}: 1\n")).collect();
        assert_eq!(yaml::parse(text.as_bytes()).expect("YAML").value.as_object().map(Map::len), Some(100_000));
    });
    within("the same YAML member again and again", SECONDS, 512 * MIB, || {
        let text = format!("{}:\n{}", "k".repeat(900), " a: 1\n".repeat(100_000));
        let parsed = yaml::parse(text.as_bytes()).expect("YAML");
        assert_eq!(parsed.repeated.len(), 99_999);
    });
    within("CBOR members", SECONDS, 256 * MIB, || {
        let map: Map = keys.iter().map(|key| (kenter::object::Key::new(key), Value::Int(1))).collect();
        let bytes = cbor::encode(builtin(), TypeId::ANY, &map.clone().into());
        assert_eq!(cbor::decode(&bytes), Ok(map.into()));
        // Lengths that are lies cost nothing.
        for lie in [
            &b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff"[..],
            b"\xbb\x7f\xff\xff\xff\xff\xff\xff\xff",
            b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(cbor::decode(lie).is_err());
        }
    });
    within("aliases", SECONDS, 256 * MIB, || {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        let mut merges = "a0: &a0 {x0: 1, x1: 1}\n".to_owned();
        for level in 1..30 {
            let below = level - 1;
            let aliases = format!("*a{below},").repeat(10);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", aliases.trim_end_matches(',')));
            merges.push_str(&format!("a{level}: &a{level} {{<<: [{}]}}\n", aliases.trim_end_matches(',')));
        }
        assert!(yaml::parse(bomb.as_bytes()).is_err());
        let _ = yaml::parse(merges.as_bytes());
        let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(MIB), "*a,".repeat(100_000).trim_end_matches(','));
        assert!(yaml::parse(long.as_bytes()).is_err());
        let keys =
            format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(MIB / 2), "{*a : 1},".repeat(10_000).trim_end_matches(','));
        assert!(yaml::parse(keys.as_bytes()).is_err());
        let circle = "a: &a [*a]\n";
        assert!(yaml::parse(circle.as_bytes()).is_err());
    });
}

#[test]
fn long_lists_merge_without_comparing_all_with_all() {
    let pod = kind("", "v1", "Pod");
    let list = |count: usize, image: &str| -> Vec<Value> {
        (0..count).map(|at| Value::from([("name", Value::from(format!("c{at}"))), ("image", image.into())])).collect()
    };
    let object = |containers: Vec<Value>| {
        let mut object = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } });
        object.set(&["spec", "containers"], containers);
        object
    };
    for count in [10_000, 30_000] {
        within("a strategic merge of a long list", SECONDS * 2, 1024 * MIB, || {
            let mut patch = list(count, "j");
            patch.reverse();
            let order: Vec<Value> = patch
                .iter()
                .map(|item| Value::from([("name", item.get("name").cloned().unwrap_or_default())]))
                .collect();
            let mut patch = Value::from([("containers", patch)]);
            patch.set(&["$setElementOrder/containers"], order);
            let Value::Object(patch) = Value::from([("spec", patch)]) else { return };
            let merged = strategic_merge(builtin(), pod, object(list(count, "i")), &patch).expect("merged");
            assert_eq!(merged.array_at(&["spec", "containers"]).len(), count);
            let gone: Vec<Value> = list(count, "i")
                .iter()
                .map(|item| {
                    Value::from([("name", item.get("name").cloned().unwrap_or_default()), ("$patch", "delete".into())])
                })
                .collect();
            let Value::Object(patch) = Value::from([("spec", Value::from([("containers", gone)]))]) else { return };
            let merged = strategic_merge(builtin(), pod, merged, &patch).expect("merged");
            assert!(merged.array_at(&["spec", "containers"]).is_empty());
        });
        within("an apply of a long list", SECONDS * 2, 1024 * MIB, || {
            let finish = Ok;
            let ctx = |manager, force| ApplyContext { write: context(manager), kind: "Pod", force, finish: &finish };
            let mut live = object(list(count, "i"));
            update_managed_fields(builtin(), pod, None, &mut live, &context("one"));
            let mut config = list(count, "j");
            config.reverse();
            let live =
                apply(builtin(), pod, Some(&live), &object(config), &ctx("two", true)).expect("applied").expect("new");
            let half = object(list(count, "j").into_iter().step_by(2).collect());
            let live = apply(builtin(), pod, Some(&live), &half, &ctx("two", true)).expect("applied").expect("new");
            apply(builtin(), pod, Some(&live), &object(list(count, "k")), &ctx("three", false)).expect_err("conflicts");
        });
        within("a patch that inserts at the front", SECONDS, 1024 * MIB, || {
            let mut doc = json!({});
            doc.set(&["list"], vec![Value::Int(0); BODY / 4]);
            let operations = r#"{"op":"add","path":"/list/0","value":1},"#.repeat(10_000);
            let (patch, _) =
                JsonPatch::parse(format!("[{}]", operations.trim_end_matches(',')).as_bytes(), true).expect("a patch");
            let _ = patch.apply(doc);
        });
    }
    within("a million items", SECONDS, 1024 * MIB, || {
        let text = format!("{{\"spec\":{{\"containers\":[{}]}}}}", "{},".repeat(BODY / 3 - 100).trim_end_matches(','));
        let mut value = parse(text.as_bytes()).expect("JSON");
        // A member or item may stand for several; what grows past all reason is refused.
        if schema::decode(builtin(), pod, &mut value, None).is_ok() {
            apply_defaults("", "v1", "Pod", &mut value, "2026-01-01T00:00:00Z".parse().expect("a time"));
        }
    });
}

#[test]
fn a_long_name_is_not_written_out_for_all_that_stands_below_it() {
    let long = "n".repeat(BODY / 2);
    let count = BODY / 2 / 5;
    let text = format!("{{\"spec\":{{\"{long}\":[{}]}}}}", "\"a\",".repeat(count).trim_end_matches(','));
    within("a validation", SECONDS, 512 * MIB, || {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "additionalProperties": {
            "type": "array", "items": { "type": "string" } } } } });
        let custom = CustomSchema::new(&Pool::default(), "example.com", "v1", Some(&schema), false);
        let object = parse(text.as_bytes()).expect("JSON");
        let mut errors = ErrorList::new();
        validate::validate(custom.root(), &object, None, "", &mut errors);
        assert!(errors.is_empty());
    });
    within("a validation that fails everywhere", SECONDS, 512 * MIB, || {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "additionalProperties": {
            "type": "array", "items": { "type": "integer" } } } } });
        let custom = CustomSchema::new(&Pool::default(), "example.com", "v1", Some(&schema), false);
        let object = parse(text.as_bytes()).expect("JSON");
        let mut errors = ErrorList::new();
        validate::validate(custom.root(), &object, None, "", &mut errors);
        assert!(!errors.is_empty());
        let _ = errors.to_string();
    });
    within("what strict decoding says", SECONDS, 512 * MIB, || {
        let pod = kind("", "v1", "Pod");
        let mut value = parse(text.as_bytes()).expect("JSON");
        let unknown = schema::decode(builtin(), pod, &mut value, Some(text.as_bytes())).expect("decoded");
        schema::strict_errors(unknown, Vec::new(), Some(text.as_bytes()));
        let doubled = format!("{{\"{long}\":[{}]}}", "{\"a\":1,\"a\":2},".repeat(count / 4).trim_end_matches(','));
        let parsed = parse_reporting_duplicates(doubled.as_bytes()).expect("JSON");
        schema::strict_errors(Vec::new(), parsed.duplicates, Some(doubled.as_bytes()));
    });
    within("a wrong type", SECONDS, 512 * MIB, || {
        let pod = kind("", "v1", "Pod");
        let text = format!(
            "{{\"metadata\":{{\"labels\":{{\"{long}\":1}}}},\"spec\":{{\"containers\":[{}]}}}}",
            "1,".repeat(count).trim_end_matches(',')
        );
        let mut value = parse(text.as_bytes()).expect("JSON");
        schema::decode(builtin(), pod, &mut value, Some(text.as_bytes())).expect_err("wrong types");
    });
}

#[test]
fn numbers_of_any_size_cost_what_their_text_does() {
    within("quantities", SECONDS, 16 * MIB, || {
        for text in [
            "1e1000000000",
            "-1e1000000000",
            "1e-1000000000",
            "1e2147483647",
            "1e-2147483648",
            "1e9223372036854775807",
            "0e1000000000",
            "1.5e1000000000",
        ] {
            for text in [text.to_owned(), text.to_uppercase()] {
                let Ok(quantity) = Quantity::parse(&text) else { continue };
                let forms =
                    (quantity.value(), quantity.milli_value(), quantity.approximate_f64(), quantity.to_string());
                std::hint::black_box(forms);
                for other in ["1", "1n", "1Ei", "-1e1000000000", "1e-1000000000", "1e4000"] {
                    let other = Quantity::parse(other).expect("a quantity");
                    let (mut sum, mut rest) = (quantity.clone(), quantity.clone());
                    sum.add(&other);
                    rest.sub(&other);
                    assert!(sum.to_string().len() + rest.to_string().len() < 20_000);
                    let _ = quantity.cmp(&other);
                }
            }
        }
        assert!(Quantity::parse(&"9".repeat(BODY)).is_err());
        assert!(Quantity::parse(&format!("1e{}", "9".repeat(BODY))).is_err());
    });
    within("JSON numbers", SECONDS, 128 * MIB, || {
        for text in [
            "9".repeat(BODY),
            format!("0.{}1", "0".repeat(BODY)),
            format!("1e-{}", "9".repeat(BODY)),
            format!("-{}.{}e-5", "9".repeat(BODY / 2), "9".repeat(BODY / 2)),
        ] {
            let _ = parse(text.as_bytes());
            let _ = yaml::parse(text.as_bytes());
        }
    });
}

#[test]
fn heads_of_requests_are_read_in_one_pass() {
    within("label selectors", SECONDS, 512 * MIB, || {
        let many = "a=b,".repeat(MIB / 4);
        let selector = labels::Selector::parse(many.trim_end_matches(',')).expect("a selector");
        assert!(!selector.matches(&Map::new()));
        let _ = selector.to_string();
        let values: String = (0..MIB / 8).map(|n| format!("v{n},")).collect();
        labels::Selector::parse(&format!("a in ({})", values.trim_end_matches(','))).expect("a selector");
        assert!(labels::Selector::parse(&format!("{}=b", "a".repeat(MIB))).is_err());
        assert!(labels::Selector::parse(&format!("a in ({})", "_,".repeat(MIB / 2))).is_err());
        assert!(labels::Selector::parse(&"!".repeat(MIB)).is_err());
    });
    within("field selectors", SECONDS, 512 * MIB, || {
        fields::Selector::parse("a=b,".repeat(MIB / 4).trim_end_matches(',')).expect("a selector");
        assert!(fields::Selector::parse(&"\\".repeat(MIB)).is_err());
        let _ = fields::Selector::parse(&format!("a={}", "\\,".repeat(MIB / 2)));
    });
    within("continue tokens", SECONDS, 64 * MIB, || {
        let _ = Token::decode(&Token::after(&"/..".repeat(MIB / 3), 5));
        let _ = Token::decode(&"A".repeat(MIB));
    });
    within("paths and queries", SECONDS, 512 * MIB, || {
        for path in [
            "/a".repeat(MIB / 2),
            "/".repeat(MIB),
            format!("/api/v1/namespaces/{}", "%2F".repeat(MIB / 3)),
            format!("/apis/{}", "a/".repeat(MIB / 2)),
        ] {
            let _ = RequestInfo::new(&http::Method::GET, &path, &Query::parse(""));
        }
        let query = Query::parse(&"a=b&".repeat(MIB / 4));
        assert_eq!(query.first("z"), None);
        let _ = Query::parse(&"%41".repeat(MIB / 3));
    });
    within("Accept", SECONDS, 512 * MIB, || {
        for accept in [
            "a/b,".repeat(MIB / 4),
            "a/b;q=0.1;".repeat(MIB / 10),
            "application/json;as=Table,".repeat(MIB / 26),
            ";=".repeat(MIB / 2),
            "\"".repeat(MIB),
        ] {
            negotiate::choose(&accept, &["application/json", "application/yaml"]);
            negotiate::negotiate_discovery(&accept, codec::Format::WITH_CBOR);
        }
    });
}

#[test]
fn expressions_that_explode_are_refused_or_cheap() {
    within("regular expressions", SECONDS * 2, 512 * MIB, || {
        for pattern in [
            "((a{1000}){1000}){1000}".to_owned(),
            "(((a{0,100}){0,100}){0,100}){0,100}".to_owned(),
            r"\pL{1000}".to_owned(),
            r"(\pL{30}){30}".to_owned(),
            r"(?i)[\pL\pN]{500}".to_owned(),
            "(x+x+)+y".to_owned(),
            "a?".repeat(5_000) + &"a".repeat(5_000),
            "(a|b|c|d|e|f|g|h)*z".repeat(1_000),
            "[a-z]".repeat(20_000),
            "a|".repeat(50_000),
            "(".to_owned() + &"a|".repeat(1_000) + ")*{1000}",
        ] {
            if let Ok(expression) = go_regex::compiled(&pattern) {
                expression.is_match("x".repeat(10_000).as_bytes());
            }
        }
    });
    within("many large expressions", SECONDS * 3, 512 * MIB, || {
        for n in 0..12 {
            let _ = go_regex::compiled(&format!(r"(\pL{{20}}){{15}}{n}"));
        }
    });
    within("paths", SECONDS, 256 * MIB, || {
        let deep = parse(nested("{\"a\":", "1", "}", 900).as_bytes()).expect("JSON");
        for path in ["..a..a..a..a", "..*..*..*", ".a..a[*]..a"] {
            if let Ok(path) = JsonPath::parse(path) {
                let _ = path.find(&deep);
            }
        }
        let wide =
            parse(format!("[{}]", "[1,1,1,1,1,1,1,1],".repeat(10_000).trim_end_matches(',')).as_bytes()).expect("JSON");
        if let Ok(path) = JsonPath::parse("[*][*,*,*,*,*,*,*,*][*]") {
            let _ = path.find(&wide);
        }
    });
}
