//! The targets. A panic is a finding; so is an `assert!` that fails.

use std::path::Path;

use kenter::{
    api::{ErrorList, duration, field, fields, go_url, intstr::IntOrString, ip, labels, names, quantity::Quantity},
    codec::{self, Format, cbor, protobuf},
    object::{Map, Style, Value, parse, parse_reporting_duplicates, to_string, to_vec, write_json, yaml},
    options::ServerRunOptions,
    registry::{
        builtin::{
            apiextensions::schema_rules::{SchemaOptions, validate_schema},
            defaults::apply_defaults,
        },
        dynamic::{CustomSchema, Pool, json_path::JsonPath},
        resource::VersionSchema,
    },
    schema::{
        self, TypeId, builtin,
        ownership::{ApplyContext, FieldSet, apply as apply_config, update_managed_fields},
        patch::{
            JsonPatch, Opened, convert_types, merge_patch as merge, parse_merge_patch, parse_strategic_patch,
            show_patched, strategic_merge,
        },
        structural::{check, default_check, go_regex, validate},
    },
    server::{endpoints::list::Token, negotiate, query::Query, request_info::RequestInfo},
};

use super::fixtures;

/// The parts of an input; missing ones are empty.
fn parts<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let mut rest = data.splitn(N, |byte| *byte == 0);
    std::array::from_fn(|_| rest.next().unwrap_or_default())
}

fn text(data: &[u8]) -> &str {
    std::str::from_utf8(data)
        .unwrap_or_else(|error| std::str::from_utf8(data.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or(""))
}

/// A tree prints as text that reads as the same tree.
fn prints_as_itself(value: &Value) {
    let printed = to_vec(value);
    if has_negative_zero(value) {
        // It reads as the integer 0, in Go as here.
        assert!(parse(&printed).is_ok());
        return;
    }
    let again = parse(&printed);
    assert_eq!(again.as_ref().map(to_string), Ok(to_string(value)), "JSON changed by printing");
    let mut indented = Vec::new();
    write_json(&mut indented, value, Style::Indented);
    assert_eq!(parse(&indented), again, "JSON changed by indenting");
}

fn has_negative_zero(value: &Value) -> bool {
    match value {
        Value::Float(it) => *it == 0.0 && it.is_sign_negative(),
        Value::Array(items) => items.iter().any(has_negative_zero),
        Value::Object(map) => map.values().any(has_negative_zero),
        _ => false,
    }
}

pub fn json(data: &[u8]) {
    let plain = parse(data);
    let reported = parse_reporting_duplicates(data);
    match (plain, reported) {
        (Ok(value), Ok(parsed)) => {
            assert_eq!(value, parsed.value);
            assert!(parsed.duplicates.len() <= 100);
            prints_as_itself(&value);
            let yaml = codec::encode(Format::Yaml, &value, Style::Compact).expect("every tree has a YAML form");
            let yaml = String::from_utf8(yaml).expect("YAML is text");
            match yaml::parse(yaml.as_bytes()) {
                // These end a line in YAML 1.1, and are folded where text is not quoted.
                _ if yaml.contains(['\u{85}', '\u{2028}', '\u{2029}']) || has_negative_zero(&value) => {}
                Ok(back) => assert_eq!(to_string(&back.value), to_string(&value), "changed by YAML: {yaml}"),
                Err(error) => panic!("{error}: {yaml}"),
            }
        }
        (Err(one), Err(other)) => assert_eq!(one, other),
        (one, other) => panic!("{one:?} but {other:?}"),
    }
}

pub fn yaml(data: &[u8]) {
    if let Ok(parsed) = yaml::parse(data) {
        prints_as_itself(&parsed.value);
    }
}

pub fn protobuf(data: &[u8]) {
    let Ok(value) = codec::decode_protobuf(data) else { return };
    prints_as_itself(&value);
    // What upstream would write of it reads as the same.
    if let Ok(bytes) = codec::encode(Format::Protobuf, &value, Style::Compact) {
        let again = codec::decode_protobuf(&bytes);
        assert_eq!(again.as_ref().map(to_string), Ok(to_string(&value)));
    }
}

pub fn cbor(data: &[u8]) {
    let Ok(value) = cbor::decode(data) else { return };
    prints_as_itself(&value);
    let bytes = cbor::encode(builtin(), TypeId::ANY, &value);
    assert_eq!(cbor::decode(&bytes).as_ref(), Ok(&value));
}

pub fn json_patch(data: &[u8]) {
    let [patch, doc] = parts(data);
    let read = JsonPatch::parse(patch, false);
    let reported = JsonPatch::parse(patch, true);
    assert!(read.is_ok() || reported.is_err(), "strict reading takes what lenient reading refuses");
    let (Ok((patch, _)), Ok(doc)) = (read, parse(doc)) else { return };
    if let Ok(patched) = patch.apply(doc) {
        prints_as_itself(&patched);
        let (table, ty, _) = fixtures::kind(b"v1/ConfigMap");
        show_patched(table, ty, &patched, &Opened::by_operations(&patch));
    }
}

pub fn merge_patch(data: &[u8]) {
    let [patch, doc] = parts(data);
    let _ = parse_merge_patch(patch, true);
    let (Ok((patch, _)), Ok(doc)) = (parse_merge_patch(patch, false), parse(doc)) else { return };
    let Ok(patched) = merge(doc.clone(), &patch) else { return };
    prints_as_itself(&patched);
    // Merging again changes nothing, except where nulls were kept as values in the place of an object.
    if let Ok(again) = merge(patched.clone(), &patch)
        && let Ok(third) = merge(again.clone(), &patch)
    {
        assert_eq!(again, third);
    }
    let (table, ty, _) = fixtures::kind(b"v1/ConfigMap");
    show_patched(table, ty, &patched, &Opened::by_merge(&patch));
}

pub fn strategic_patch(data: &[u8]) {
    let [kind, patch, doc] = parts(data);
    let (table, ty, _) = fixtures::kind(kind);
    let _ = parse_strategic_patch(patch, true);
    let (Ok((patch, _)), Ok(doc)) = (parse_strategic_patch(patch, false), parse(doc)) else { return };
    let Ok(mut merged) = strategic_merge(table, ty, doc, &patch) else { return };
    prints_as_itself(&merged);
    if convert_types(table, ty, &mut merged).is_ok() && schema::decode(table, ty, &mut merged, None).is_ok() {
        prints_as_itself(&merged);
    }
}

/// One manager applies two configurations after another, another one updates in between.
pub fn apply(data: &[u8]) {
    let [kind, first, second, update] = parts(data);
    let (table, ty, kind) = fixtures::kind(kind);
    let name = kind.rsplit('/').next().unwrap_or("");
    let finish = |mut value: Value| {
        schema::decode(table, ty, &mut value, None).map_err(|error| error.to_string())?;
        Ok(value)
    };
    let context = |manager: &'static str, force| ApplyContext {
        write: fixtures::write_context(manager, kind),
        kind: name,
        force,
        finish: &finish,
    };
    let Ok(config) = parse(first) else { return };
    let Ok(Some(mut live)) = apply_config(table, ty, None, &config, &context("one", false)) else { return };
    prints_as_itself(&live);
    // The same again changes nothing, unless a null in it became something else or nothing in it is owned.
    match apply_config(table, ty, Some(&live), &config, &context("one", false)) {
        Ok(None) => {}
        _ if to_string(&config).contains("null") || live.at(&["metadata", "managedFields"]).is_none() => {}
        other => panic!("applied twice: {} then {:?}", to_string(&live), other.map(|it| it.as_ref().map(to_string))),
    }
    if let Ok(mut new) = parse(update)
        && new.as_object().is_some()
        && schema::decode(table, ty, &mut new, None).is_ok()
    {
        let list = live.at(&["metadata", "managedFields"]).cloned().unwrap_or_default();
        if new.get("metadata").is_some_and(|it| it.as_object().is_some()) {
            new.set(&["metadata", "managedFields"], list);
        }
        update_managed_fields(table, ty, Some(&live), &mut new, &fixtures::write_context("two", kind));
        live = new;
    }
    if let Ok(config) = parse(second) {
        let _ = apply_config(table, ty, Some(&live), &config, &context("one", false));
        if let Ok(Some(forced)) = apply_config(table, ty, Some(&live), &config, &context("three", true)) {
            prints_as_itself(&forced);
        }
    }
    if let Ok(set) = FieldSet::from_fields_v1(&live) {
        let again = FieldSet::from_fields_v1(&set.clone().into_fields_v1());
        assert_eq!(again.as_ref(), Ok(&set));
        assert_eq!(set.clone().union(set.clone()), set);
        assert!(set.clone().difference(&set).is_empty());
        assert_eq!(set.intersection(&set), set);
        set.paths();
        set.leaves();
    }
}

/// An object of a built-in kind: decoded, defaulted, in every encoding and back.
pub fn object(data: &[u8]) {
    let [kind, source] = parts(data);
    let (table, ty, kind) = fixtures::kind(kind);
    let Ok(mut value) = parse(source) else { return };
    let Ok(unknown) = schema::decode(table, ty, &mut value, Some(source)) else { return };
    schema::strict_errors(unknown, Vec::new(), Some(source));
    let mut again = value.clone();
    assert_eq!(schema::decode(table, ty, &mut again, None), Ok(Vec::new()), "decoded trees are valid");
    assert_eq!(again, value, "decoding twice changes nothing");
    if let Some((group, version, name)) = fixtures::split_kind(kind)
        && let Ok(now) = duration::parse_time(fixtures::NOW)
    {
        apply_defaults(group, version, name, &mut value, now);
    }
    prints_as_itself(&value);
    if let Ok(bytes) = protobuf::encode_body(table, ty, &value) {
        protobuf::decode_body(table, ty, &bytes).expect("what was encoded decodes");
    }
    let bytes = cbor::encode(table, ty, &value);
    cbor::decode(&bytes).expect("what was encoded decodes");
}

/// A custom resource's schema, judged; and an object, if the schema is one.
pub fn custom(data: &[u8]) {
    let [schema, object] = parts(data);
    let Ok(schema) = parse(schema) else { return };
    let Some(crd) = builtin().kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition") else { return };
    let version = Value::from([("schema", Value::from([("openAPIV3Schema", schema)]))]);
    let mut definition = Value::from([("spec", Value::from([("versions", vec![version])]))]);
    if schema::decode(builtin(), crd, &mut definition, None).is_err() {
        return;
    }
    let version = definition.array_at(&["spec", "versions"]).first();
    let Some(schema) = version.and_then(|version| version.at(&["schema", "openAPIV3Schema"])) else { return };
    if check::unreadable(schema).is_some() {
        return;
    }
    let root = field::Path::new("schema");
    let structural = check::structural_problems(schema, &root).is_empty();
    let mut errors = ErrorList::new();
    let options = SchemaOptions { valid_types: true, atomic_sets: true, keys_of_maps: true };
    validate_schema(schema, options, &root, &mut errors);
    if !structural || !errors.is_empty() {
        return;
    }
    default_check::has_unpruned(schema);
    let custom = CustomSchema::new(&Pool::default(), "example.com", "v1", Some(schema), false);
    let Ok(mut object) = parse(object) else { return };
    if object.as_object().is_none() || custom.decode(&mut object, None).is_err() {
        return;
    }
    custom.default(&mut object);
    prints_as_itself(&object);
    let mut errors = ErrorList::new();
    validate::validate(custom.root(), &object, None, "", &mut errors);
    let (table, ty) = custom.typed();
    update_managed_fields(table, ty, None, &mut object, &fixtures::write_context("one", "example.com/v1/Foo"));
}

pub fn selectors(data: &[u8]) {
    let text = text(data);
    if let Ok(selector) = labels::Selector::parse(text) {
        let printed = selector.to_string();
        match labels::Selector::parse(&printed) {
            Ok(again) => assert_eq!(again.to_string(), printed),
            Err(error) => panic!("{text:?} prints as {printed:?}: {}", error.0),
        }
        selector.matches(&Map::new());
    }
    if let Ok(selector) = fields::Selector::parse(text) {
        let printed = selector.to_string();
        match fields::Selector::parse(&printed) {
            // Terms are in the order of their text, in which `==` may have stood.
            Ok(again) => assert_eq!(fields::Selector::parse(&again.to_string()).as_ref(), Ok(&again)),
            Err(error) => panic!("{text:?} prints as {printed:?}: {}", error.0),
        }
        selector.matches(|_| "");
    }
    assert_eq!(fields::unescape(&fields::escape(text)).as_deref().ok(), Some(text));
    if let Ok(value) = parse(data) {
        let _ = labels::Selector::from_object(Some(&value));
        let _ = labels::Selector::from_set(value.as_object());
    }
}

pub fn continue_token(data: &[u8]) {
    let text = text(data);
    for token in [text.to_owned(), Token::inconsistent(text), Token::after(text, 7)] {
        if let Ok(token) = Token::decode(&token) {
            let steps_out = token.start.split('/').any(|part| part == "..") || token.start.starts_with('/');
            assert!(!steps_out, "leaves its resource: {:?}", token.start);
        }
    }
}

pub fn quantity(data: &[u8]) {
    let [a, b] = parts(data).map(text);
    let _ = Quantity::from_json(a);
    let Ok(a) = Quantity::parse(a) else { return };
    let printed = a.to_string();
    let again = Quantity::parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(again.to_string(), printed, "canonical text is canonical");
    std::hint::black_box((a.value(), a.milli_value(), a.as_i64(), a.approximate_f64(), a.sign()));
    let mut rounded = a.clone();
    rounded.round_up(-3);
    let Ok(b) = Quantity::parse(b) else { return };
    assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    let mut sum = a.clone();
    sum.add(&b);
    let sum = sum.to_string();
    let mut difference = a;
    difference.sub(&b);
    let difference = difference.to_string();
    assert!(sum.len() < 20_000 && difference.len() < 20_000, "digits nobody asked for");
}

/// The other small languages: names, durations, times, addresses, paths, expressions.
pub fn scalars(data: &[u8]) {
    let text = text(data);
    if let Ok(nanos) = duration::parse_duration(text) {
        let printed = duration::format_duration(nanos);
        assert_eq!(duration::parse_duration(&printed).ok(), Some(nanos), "{text:?} as {printed:?}");
        duration::human_duration(nanos);
        duration::short_human_duration(nanos);
    }
    if let Ok(at) = duration::parse_time(text) {
        duration::format_time(at);
        duration::is_zero_time(at);
    }
    if let Ok(at) = duration::parse_micro_time(text) {
        duration::format_micro_time(at);
    }
    names::is_qualified_name(text);
    names::is_dns1123_subdomain(text);
    names::is_wildcard_dns1123_subdomain(text);
    names::is_valid_port_name(text);
    names::is_valid_percent(text);
    names::is_http_path(text);
    names::is_relaxed_env_var_name(text);
    names::is_valid_condition_reason(text);
    ip::parse_ip(text);
    ip::parse_ip_strict(text);
    ip::parse_cidr(text);
    ip::parse_cidr_strict(text);
    let _ = go_url::parse(text);
    field::quote(text);
    let value = Value::from(text);
    if let Ok(number) = IntOrString::from_value(&value) {
        number.int_value();
        let _ = number.scaled(i64::MAX, true);
        let _ = number.scaled(i64::MIN, false);
    }
    if let Ok(path) = JsonPath::parse(text) {
        let _ = path.find(&kenter::json!({ "a": [1, { "b": "c" }], "metadata": { "name": "x" } }));
    }
    if let Ok(translated) = go_regex::translate(text)
        && text.len() < 200
    {
        // What is translated is an expression of the other syntax, or too large for it.
        if let Err(error) = go_regex::compiled(text) {
            assert!(error.contains("too large"), "{text:?} became {translated:?}: {error}");
        }
    }
}

/// A request's head: path, query, Accept.
pub fn request(data: &[u8]) {
    let [path, query, accept] = parts(data).map(text);
    let query = Query::parse(query);
    for method in [http::Method::GET, http::Method::POST, http::Method::DELETE] {
        if let Ok(info) = RequestInfo::new(&method, path, &query) {
            info.long_running();
        }
    }
    negotiate::choose(accept, &["application/json", "application/yaml"]);
    negotiate::negotiate_discovery(accept, Format::WITH_CBOR);
    negotiate::router_accepts(accept, Format::WITH_CBOR);
    negotiate::negotiate_page(accept, "Statusz", &["v1alpha1"]);
}

pub fn configuration(data: &[u8]) {
    let options = ServerRunOptions::from_toml(&fixtures::invocation(), Path::new("kenter.toml"), text(data));
    let completed = options.complete(fixtures::catalogue());
    let _ = completed.validate();
}
