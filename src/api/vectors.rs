//! The words against what upstream's own code said about them: every case of `tests/data/vectors`.
//!
//! Each test counts its cases and wants some, so that an empty file fails. All wrong cases are shown at once.

use std::fmt::Debug;

use super::{
    duration,
    field::{FieldError, Path},
    fields,
    intstr::IntOrString,
    ip, labels, names,
    quantity::{Format, Quantity},
    status::{ApiError, Cause, Details, GroupResource, Reason},
};
use crate::object::{Map, Value, parse, to_string};

/// A file of vectors, by its groups.
pub(crate) struct Vectors(Value, &'static str);

impl Vectors {
    pub(crate) fn load(name: &'static str) -> Self {
        let path = format!("{}/tests/data/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        Self(parse(&text).unwrap_or_else(|e| panic!("{path}: {e}")), name)
    }

    pub(crate) fn group(&self, group: &str) -> &[Value] {
        let cases = self.0.array_at(&[group]);
        assert!(!cases.is_empty(), "{} has no {group}", self.1);
        cases
    }
}

/// Gathers differences, so that one run shows all.
#[derive(Default)]
pub(crate) struct Differences(Vec<String>);

impl Differences {
    pub(crate) fn same<T: PartialEq + Debug>(&mut self, about: impl Debug, got: T, want: T) {
        if got != want {
            self.0.push(format!("{about:?}\n   got {got:?}\n  want {want:?}"));
        }
    }

    #[track_caller]
    pub(crate) fn none(self) {
        assert!(self.0.is_empty(), "{} differ:\n{}", self.0.len(), self.0.join("\n"));
    }
}

/// The text of a member that may be missing.
fn text<'a>(case: &'a Value, key: &str) -> Option<&'a str> {
    case.get(key)?.as_str()
}

/// JSON text into the outcome the vectors show: what was made of it, or the error.
fn outcome<T: ToString, E: ToString>(result: Result<T, E>) -> Result<String, String> {
    result.map(|it| it.to_string()).map_err(|e| e.to_string())
}

fn wanted(case: &Value, key: &str) -> Result<String, String> {
    match text(case, "error") {
        Some(error) => Err(error.to_owned()),
        None => Ok(case.str_at(&[key]).to_owned()),
    }
}

/// Go's `%v` of a float64.
fn go_float(value: f64) -> String {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap();
            if (-4..6).contains(&exponent) {
                return format!("{value}");
            }
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None if value.is_infinite() => {
            if value > 0.0 {
                "+Inf".into()
            } else {
                "-Inf".into()
            }
        }
        None => text,
    }
}

#[test]
fn quantities_parse_print_and_round_as_upstream() {
    let vectors = Vectors::load("quantity");
    let mut differences = Differences::default();
    for case in vectors.group("parse") {
        let input = case.str_at(&["in"]);
        let quantity = Quantity::parse(input);
        differences.same((input, "canonical"), outcome(quantity.clone()), wanted(case, "canonical"));
        let json = outcome(Quantity::from_json(&format!("\"{input}\"")));
        if text(case, "error").is_some() {
            match text(case, "json_error") {
                Some(error) => differences.same((input, "json"), json, Err(error.to_owned())),
                None => differences.same((input, "json"), json, Ok(case.str_at(&["canonical"]).to_owned())),
            }
        }
        let Ok(quantity) = quantity else { continue };
        differences.same((input, "format"), quantity.format().as_str(), case.str_at(&["format"]));
        differences.same((input, "value"), quantity.value().to_string().as_str(), case.str_at(&["value"]));
        differences.same((input, "milli"), quantity.milli_value().to_string().as_str(), case.str_at(&["milli_value"]));
        differences.same((input, "i64"), quantity.as_i64().map(|it| it.to_string()).as_deref(), text(case, "as_int64"));
        differences.same((input, "sign"), Some(i64::from(quantity.sign())), case.i64_at(&["sign"]));
        let float = go_float(quantity.approximate_f64());
        differences.same((input, "float"), float.as_str(), case.str_at(&["approx_float64"]));
        let mut rounded = quantity.clone();
        rounded.round_up(-3);
        differences.same((input, "rounded"), rounded.to_string().as_str(), case.str_at(&["rounded_up_to_milli"]));
        let mut negated = quantity;
        negated.neg();
        differences.same((input, "negated"), negated.to_string().as_str(), case.str_at(&["negated"]));
    }
    differences.none();
}

#[test]
fn quantities_compare_add_and_subtract_as_upstream() {
    let vectors = Vectors::load("quantity");
    let mut differences = Differences::default();
    for case in vectors.group("ops") {
        let (a_text, b_text) = (case.str_at(&["a"]), case.str_at(&["b"]));
        let (a, b) = (Quantity::parse(a_text).unwrap(), Quantity::parse(b_text).unwrap());
        differences.same((a_text, b_text), Some(a.cmp(&b) as i64), case.i64_at(&["cmp"]));
        differences.same((a_text, b_text), a == b, case.bool_at(&["equal"]));
        let (mut sum, mut difference) = (a.clone(), a);
        sum.add(&b);
        difference.sub(&b);
        differences.same((a_text, '+', b_text), sum.to_string().as_str(), case.str_at(&["add"]));
        differences.same((a_text, '-', b_text), difference.to_string().as_str(), case.str_at(&["sub"]));
    }
    differences.none();
}

#[test]
fn quantities_made_from_numbers_print_as_upstream() {
    let vectors = Vectors::load("quantity");
    let mut differences = Differences::default();
    for case in vectors.group("new") {
        let value = case.i64_at(&["value"]).unwrap();
        let format = match case.str_at(&["format"]) {
            "BinarySI" => Format::BinarySI,
            "DecimalExponent" => Format::DecimalExponent,
            _ => Format::DecimalSI,
        };
        let quantity = match case.str_at(&["new"]) {
            "NewQuantity" => Quantity::new(value, format),
            "NewMilliQuantity" => Quantity::milli(value, format),
            _ => Quantity::scaled(value, case.i64_at(&["scale"]).unwrap() as i32),
        };
        differences.same(to_string(case), quantity.to_string().as_str(), case.str_at(&["out"]));
    }
    for case in vectors.group("json") {
        let made = outcome(Quantity::from_json(case.str_at(&["json"]))).map(|it| format!("\"{it}\""));
        differences.same(case.str_at(&["json"]), made, wanted(case, "out"));
    }
    differences.none();
}

#[test]
fn hostile_quantities_cost_no_more_than_their_text() {
    let huge = Quantity::parse("1e1000000000").unwrap();
    let long = Quantity::parse("1234567890123456789e1000000000").unwrap();
    let tiny = Quantity::parse("1e-1000000000").unwrap();
    assert_eq!(tiny.to_string(), "1e-9");
    assert_eq!(huge.to_string(), "10e999999999");
    assert!(huge > tiny && long > huge && huge > Quantity::parse("8Ei").unwrap());
    assert!(Quantity::parse("-1e1000000000").unwrap() < tiny);
    for operand in [&huge, &long, &tiny] {
        for mut sum in [huge.clone(), long.clone(), tiny.clone(), Quantity::parse("3Gi").unwrap()] {
            sum.add(operand);
            sum.sub(operand);
            sum.round_up(-3);
            let _ = sum.value();
            assert!(sum.to_string().len() < 6000 && !sum.approximate_f64().is_nan());
        }
    }
    assert!(Quantity::parse(&"9".repeat(2000)).is_err());
    assert_eq!(Quantity::parse("1000E").unwrap().to_string(), "1000E");
}

#[test]
fn durations_and_times_parse_and_print_as_upstream() {
    let vectors = Vectors::load("duration");
    let mut differences = Differences::default();
    for case in vectors.group("parse") {
        let input = case.str_at(&["in"]);
        let nanos = duration::parse_duration(input);
        let printed = nanos.clone().map(duration::format_duration);
        differences.same(input, outcome(printed), wanted(case, "out"));
        if let Ok(nanos) = nanos {
            differences.same(input, Some(nanos), case.i64_at(&["nanos"]));
        }
    }
    let json = |case: &Value| parse(case.str_at(&["json"]).as_bytes()).unwrap();
    for case in vectors.group("json_duration") {
        let made = duration::duration_from_value(&json(case)).map(|n| to_string(&duration::format_duration(n).into()));
        differences.same(to_string(case), outcome(made), wanted(case, "out"));
    }
    for case in vectors.group("json_time") {
        let made = duration::canonical_time(&json(case)).map(|it| to_string(&it));
        differences.same(to_string(case), outcome(made), wanted(case, "out"));
    }
    for case in vectors.group("json_microtime") {
        let made = duration::canonical_micro_time(&json(case)).map(|it| to_string(&it));
        differences.same(to_string(case), outcome(made), wanted(case, "out"));
    }
    for case in vectors.group("human") {
        let nanos = (case.at(&["seconds"]).and_then(Value::as_f64).unwrap() * 1e9) as i64;
        differences.same(to_string(case), duration::human_duration(nanos).as_str(), case.str_at(&["human"]));
        differences.same(to_string(case), duration::short_human_duration(nanos).as_str(), case.str_at(&["short"]));
    }
    differences.none();
}

#[test]
fn numbers_or_texts_read_and_scale_as_upstream() {
    let vectors = Vectors::load("intstr");
    let mut differences = Differences::default();
    for case in vectors.group("json") {
        let input = case.get("in").unwrap();
        let about = to_string(case);
        match (IntOrString::from_value(input), text(case, "error")) {
            // The tree does not keep how a number was written.
            (Err(error), Some(wanted)) => differences.same(about, error.as_str(), &wanted.replace("1e2", "100")),
            (Ok(value), None) => {
                let kind = if matches!(value, IntOrString::Int(_)) { "int" } else { "string" };
                differences.same(&about, kind, case.str_at(&["type"]));
                differences.same(&about, Some(&value.to_value()), case.get("out"));
                differences.same(&about, Some(value.int_value()), case.i64_at(&["int_value"]));
                differences.same(&about, value.to_string().as_str(), case.str_at(&["string"]));
            }
            (got, wanted) => differences.same(about, format!("{got:?}"), format!("{wanted:?}")),
        }
    }
    for case in vectors.group("scaled") {
        let value = IntOrString::from_value(case.get("in").unwrap()).unwrap();
        let scaled = value.scaled(case.i64_at(&["total"]).unwrap(), case.bool_at(&["round_up"]));
        let wanted = text(case, "error").map_or_else(|| Ok(case.i64_at(&["value"]).unwrap_or(0)), |e| Err(e.into()));
        differences.same(to_string(case), scaled, wanted);
    }
    differences.none();
}

/// Names of the sets a selector matches, in the order of the file.
fn matching(sets: &[Value], member: &str, matches: impl Fn(&Map) -> bool) -> Vec<String> {
    let names = sets.iter().filter(|set| matches(set.object_at(&[member]).unwrap()));
    names.map(|set| set.str_at(&["name"]).to_owned()).collect()
}

fn strings(values: &[Value]) -> Vec<String> {
    values.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

fn label_pairs(labels: &Map) -> Vec<(Box<str>, Box<str>)> {
    labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().unwrap().into())).collect()
}

#[test]
fn label_selectors_parse_print_and_match_as_upstream() {
    let vectors = Vectors::load("labels-selector");
    let sets = vectors.group("label_sets");
    let mut differences = Differences::default();
    for case in vectors.group("parse") {
        let input = case.str_at(&["in"]);
        let selector = labels::Selector::parse(input);
        differences.same(input, outcome(selector.clone()), wanted(case, "string"));
        let Ok(selector) = selector else { continue };
        differences.same(input, selector.is_everything(), case.bool_at(&["empty"]));
        let requirements: Vec<_> = selector
            .requirements()
            .iter()
            .map(|r| (r.key().to_owned(), r.operator().as_str().to_owned(), r.values().map(String::from).collect()))
            .collect();
        let wanted: Vec<(String, String, Vec<String>)> = case
            .array_at(&["requirements"])
            .iter()
            .map(|r| (r.str_at(&["key"]).into(), r.str_at(&["operator"]).into(), strings(r.array_at(&["values"]))))
            .collect();
        differences.same(input, requirements, wanted);
        let wanted = strings(case.array_at(&["matches"]));
        differences.same(input, matching(sets, "labels", |set| selector.matches(set)), wanted.clone());
        let as_pairs = matching(sets, "labels", |set| selector.matches(label_pairs(set).as_slice()));
        differences.same(input, as_pairs, wanted);
        let again = labels::Selector::parse(&selector.to_string());
        differences.same((input, "again"), again.is_ok(), true);
    }
    for case in vectors.group("label_selector") {
        let input = case.get("in").unwrap();
        let selector = labels::Selector::from_object(Some(input));
        differences.same(to_string(input), outcome(selector.clone()), wanted(case, "string"));
        let Ok(selector) = selector else { continue };
        differences.same(to_string(input), selector.is_everything(), case.bool_at(&["empty"]));
        let matches = matching(sets, "labels", |set| selector.matches(set));
        differences.same(to_string(input), matches, strings(case.array_at(&["matches"])));
    }
    differences.none();
}

#[test]
fn field_selectors_parse_print_and_match_as_upstream() {
    let vectors = Vectors::load("field-selector");
    let sets = vectors.group("field_sets");
    let mut differences = Differences::default();
    for case in vectors.group("parse") {
        let input = case.str_at(&["in"]);
        let selector = fields::Selector::parse(input);
        differences.same(input, outcome(selector.clone()), wanted(case, "string"));
        let Ok(selector) = selector else { continue };
        let operator = |negated| if negated { "!=" } else { "=" };
        let terms: Vec<[String; 3]> =
            selector.terms().iter().map(|t| [t.field.clone(), operator(t.negated).into(), t.value.clone()]).collect();
        let wanted: Vec<[String; 3]> = case
            .array_at(&["requirements"])
            .iter()
            .map(|r| ["field", "operator", "value"].map(|key| r.str_at(&[key]).to_owned()))
            .collect();
        differences.same(input, terms, wanted);
        let matches = matching(sets, "fields", |set| {
            selector.matches(|field| set.get(field).and_then(Value::as_str).unwrap_or(""))
        });
        differences.same(input, matches, strings(case.array_at(&["matches"])));
        differences.same(input, fields::Selector::parse(&selector.to_string()), Ok(selector.clone()));
    }
    for case in vectors.group("escape") {
        differences.same(to_string(case), fields::escape(case.str_at(&["in"])).as_str(), case.str_at(&["escaped"]));
    }
    for case in vectors.group("unescape") {
        differences.same(to_string(case), outcome(fields::unescape(case.str_at(&["in"]))), wanted(case, "unescaped"));
    }
    differences.none();
}

#[test]
fn an_exact_match_is_found_only_where_one_value_is_left() {
    let selector = fields::Selector::parse("metadata.name=a,spec.nodeName!=b").unwrap();
    assert_eq!(selector.requires_exact_match("metadata.name"), Some("a"));
    assert_eq!(selector.requires_exact_match("spec.nodeName"), None);
    let selector = labels::Selector::parse("a in (x),b in (x,y),c!=d,e==f").unwrap();
    assert_eq!(["a", "b", "c", "e"].map(|key| selector.requires_exact_match(key)), [Some("x"), None, None, Some("f")]);
}

#[test]
fn names_are_judged_in_upstreams_words() {
    let vectors = Vectors::load("validation-names");
    let mut differences = Differences::default();
    for case in vectors.group("messages") {
        let (function, input) = (case.str_at(&["func"]), case.str_at(&["in"]));
        let messages = match function {
            "IsDNS1123Label" => names::is_dns1123_label(input),
            "IsDNS1123Subdomain" => names::is_dns1123_subdomain(input),
            "IsDNS1123SubdomainWithUnderscore" => names::is_dns1123_subdomain_with_underscore(input),
            "IsDNS1035Label" => names::is_dns1035_label(input),
            "IsWildcardDNS1123Subdomain" => names::is_wildcard_dns1123_subdomain(input),
            "IsQualifiedName" => names::is_qualified_name(input),
            "IsValidLabelValue" => names::is_valid_label_value(input),
            "IsCIdentifier" => names::is_c_identifier(input),
            "IsValidPortName" => names::is_valid_port_name(input),
            "IsHTTPHeaderName" => names::is_http_header_name(input),
            "IsEnvVarName" => names::is_env_var_name(input),
            "IsRelaxedEnvVarName" => names::is_relaxed_env_var_name(input),
            "IsConfigMapKey" => names::is_config_map_key(input),
            "IsValidPercent" => names::is_valid_percent(input),
            "NameIsDNSSubdomain" => names::name_is_dns_subdomain(input, false),
            "NameIsDNSSubdomain(prefix)" => names::name_is_dns_subdomain(input, true),
            "NameIsDNSLabel" => names::name_is_dns_label(input, false),
            "NameIsDNSLabel(prefix)" => names::name_is_dns_label(input, true),
            "NameIsDNS1035Label" => names::name_is_dns1035_label(input, false),
            other => panic!("{other} is not tried"),
        };
        differences.same((function, input), strings_of(messages), strings(case.array_at(&["errors"])));
    }
    for case in vectors.group("field_errors") {
        let n = case.i64_at(&["in", "n"]).unwrap_or(0);
        let messages = match case.str_at(&["func"]) {
            "IsValidPortNum" => names::is_valid_port_num(n),
            "IsInRange(0..10)" => names::is_in_range(n, 0, 10),
            "IsValidUserID" => names::is_valid_user_id(n),
            _ => continue,
        };
        differences.same(to_string(case), strings_of(messages), strings(case.array_at(&["in", "messages"])));
    }
    differences.none();
}

fn strings_of(messages: names::Messages) -> Vec<String> {
    messages.into_iter().map(|it| it.into_owned()).collect()
}

#[test]
fn addresses_are_read_leniently_and_strictly() {
    let mapped = ip::parse_cidr("::ffff:1.2.3.0/120").unwrap();
    assert_eq!((mapped.to_string().as_str(), mapped.mask_bits), ("1.2.3.0/24", 128));
    assert!(mapped.contains("1.2.3.9".parse().unwrap()) && mapped.contains("::ffff:1.2.3.9".parse().unwrap()));
    assert!(!mapped.contains("1.2.4.0".parse().unwrap()));
    assert_eq!(ip::parse_cidr("2001:db8::1/32").unwrap().to_string(), "2001:db8::/32");
    assert_eq!(ip::parse_cidr("10.1.2.3/00").unwrap().to_string(), "0.0.0.0/0");
    for bad in ["1.2.3.0/33", "1.2.3.0", "::/129", "::/", "1.2.3.0/1/2", "fe80::%eth0/64", "1.2.3.4/+8"] {
        assert!(ip::parse_cidr(bad).is_none(), "{bad}");
    }
    for bad in ["1.2.3", "1.2.3.4.5", "::1::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", ":1", "1:", "::ffff:1.2.3", ""]
    {
        assert!(ip::parse_ip(bad).is_none(), "{bad}");
    }
    assert_eq!(ip::parse_ip("0001.2.3.4"), Some("1.2.3.4".parse().unwrap()));
    assert_eq!(ip::parse_ip("00001::"), Some("1::".parse().unwrap()));
    assert!(ip::parse_ip_strict("0001.2.3.4").is_none() && ip::parse_ip_strict("00001::").is_none());
}

fn group_resource(args: &Value) -> GroupResource<'_> {
    GroupResource::new(args.str_at(&["Group"]), args.str_at(&["Resource"]))
}

/// The field errors of the NewInvalid cases, by name.
fn field_errors(case: &str) -> Vec<FieldError> {
    let spec = Path::new("spec");
    let (a, b, c) = (spec.child("a"), spec.child("b"), spec.child("c"));
    let list = |items: &[&str]| Value::from(items.to_vec());
    let map = |pairs: &[(&str, Value)]| Value::from(pairs.iter().cloned().collect::<Map>());
    vec![match case {
        "NotFound" => FieldError::not_found(&a, "v"),
        "Required" | "no kind" => FieldError::required(&a, "must be set"),
        "Required(empty)" => FieldError::required(&a, ""),
        "Duplicate" => FieldError::duplicate(&a.index(0), "v"),
        "Invalid(string)" | "Invalid(pointer)" => FieldError::invalid(&a, "v", "bad"),
        "Invalid(empty detail)" => FieldError::invalid(&a, "v", ""),
        "Invalid(int)" | "Invalid(int64)" => FieldError::invalid(&a, 5, "bad"),
        "Invalid(bool)" => FieldError::invalid(&a, true, "bad"),
        "Invalid(float)" => FieldError::invalid(&a, 1.5, "bad"),
        "Invalid(nil)" | "Invalid(nil pointer)" | "Invalid(nil list)" => {
            FieldError::invalid_ref(&a, &Value::Null, "bad")
        }
        "Invalid(list)" => FieldError::invalid(&a, list(&["x", "y"]), "bad"),
        "Invalid(empty list)" => FieldError::invalid(&a, list(&[]), "bad"),
        "Invalid(map)" => FieldError::invalid(&a, map(&[("b", "2".into()), ("a", "1".into())]), "bad"),
        "Invalid(map any)" => {
            let items = Value::Array(vec![1.into(), "x".into()]);
            FieldError::invalid(&a, map(&[("b", items), ("a", Value::Null)]), "bad")
        }
        "Invalid(time)" | "Invalid(metav1.Time)" => {
            FieldError::invalid(&a, duration::format_time(jiff::Timestamp::UNIX_EPOCH), "bad")
        }
        "Invalid(struct)" => FieldError::invalid(&a, map(&[("matchLabels", map(&[("a", "b".into())]))]), "bad"),
        "Invalid(struct pointer)" => FieldError::invalid(&a, map(&[]), "bad"),
        "Invalid(nil path)" => FieldError::invalid(&"<nil>", "v", "bad"),
        "Invalid(quote)" => FieldError::invalid(&a, "a\"b\n<&>", "bad <&>"),
        "NotSupported" => FieldError::not_supported(&a, "v", &["b", "a"]),
        "NotSupported(none)" => FieldError::not_supported::<&str>(&a, "v", &[]),
        "NotSupported(nil value)" => FieldError::not_supported(&a, Value::Null, &["b"]),
        "Forbidden" => FieldError::forbidden(&a, "not allowed"),
        "Forbidden(empty)" => FieldError::forbidden(&a, ""),
        "TooLong" | "TooLongMaxLength" => FieldError::too_long(&a, 3),
        "TooLong(-1)" => FieldError::too_long_unbounded(&a),
        "TooLongCharacters" => FieldError::too_long_characters(&a, 3),
        "TooShort" => FieldError::too_short(&a, 3),
        "TooMany" => FieldError::too_many(&a, 5, 3),
        "TooMany(-1)" => FieldError::too_many_unbounded(&a, 5),
        "TooFew" => FieldError::too_few(&a, 1, 3),
        "TypeInvalid" => FieldError::type_invalid(&a, "\"v\"", "must be integer"),
        "InternalError" => FieldError::internal(&a, "oops"),
        "key and index paths" => {
            let key = spec.key("k.x");
            let (first, second) = (key.child("a"), Path::new("b"));
            assert_eq!(second.to_string(), "b");
            FieldError::invalid(&first.child("b").index(3), "v", "bad")
        }
        "two" => return vec![FieldError::required(&a, "one"), FieldError::invalid(&b, 5, "two")],
        "three with duplicate text" => {
            let one = FieldError::required(&a, "one");
            return vec![one.clone(), one, FieldError::forbidden(&c, "three")];
        }
        "empty" => return vec![],
        other => panic!("{other} is not tried"),
    }]
}

/// The error a case of `errors.json` constructs.
fn construct(function: &str, args: &Value) -> ApiError {
    let message = args.as_str().unwrap_or("");
    let (gr, name) = (group_resource(args), args.str_at(&["Name"]));
    match function {
        "NewNotFound" => ApiError::not_found(gr, name),
        "NewAlreadyExists" => ApiError::already_exists(gr, name),
        "NewGenerateNameConflict" => ApiError::generate_name_conflict(gr, name, 1),
        "NewForbidden" => ApiError::forbidden(gr, name, "because"),
        "NewForbidden(nil)" => ApiError::forbidden(gr, name, "<nil>"),
        "NewConflict" => ApiError::conflict(
            gr,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        "NewServerTimeout" => ApiError::server_timeout(gr, "create", 2),
        "NewMethodNotSupported" => ApiError::method_not_supported(gr, "patch"),
        "NewGenericServerResponse" => ApiError::generic_server_response(
            args.i64_at(&["code"]).unwrap() as u16,
            args.str_at(&["verb"]),
            GroupResource::new(args.str_at(&["group"]), args.str_at(&["resource"])),
            args.str_at(&["name"]),
            args.str_at(&["message"]),
            args.i64_at(&["retryAfter"]).unwrap() as u32,
            args.bool_at(&["isUnexpected"]),
        ),
        "NewUnauthorized" if message.is_empty() => ApiError::new(401, Reason::Unauthorized, "not authorized"),
        "NewUnauthorized" => ApiError::new(401, Reason::Unauthorized, message),
        "NewBadRequest" => ApiError::bad_request(message),
        "NewServiceUnavailable" => ApiError::service_unavailable(message),
        "NewResourceExpired" => ApiError::expired(message),
        "NewGone" => ApiError::gone(message),
        "NewTooManyRequestsError" => {
            ApiError::new(429, Reason::TooManyRequests, format!("Too many requests: {message}"))
        }
        "NewTooManyRequests" => ApiError::too_many_requests(args.str_at(&["message"]), 5),
        "NewTimeoutError" => ApiError::timeout(args.str_at(&["message"]), 0),
        "NewRequestEntityTooLargeError" => ApiError::request_entity_too_large(message),
        "NewInternalError" => ApiError::internal(message),
        "NewApplyConflict" => {
            let cause = Cause {
                reason: "FieldManagerConflict".into(),
                message: "conflict with \"x\"".into(),
                field: ".spec.a".into(),
            };
            ApiError::apply_conflict(vec![cause], message)
        }
        "NewInvalid" => {
            let errors = field_errors(args.str_at(&["case"])).into_iter().collect();
            ApiError::invalid(args.str_at(&["group"]), args.str_at(&["kind"]), args.str_at(&["name"]), &errors)
        }
        other => panic!("{other} is not tried"),
    }
}

#[test]
fn errors_turn_into_upstreams_status() {
    let vectors = Vectors::load("errors");
    let mut differences = Differences::default();
    for case in vectors.group("constructors") {
        let (function, args) = (case.str_at(&["func"]), case.get("args").unwrap());
        let error = construct(function, args);
        let mut status = error.to_value();
        for key in ["kind", "apiVersion"] {
            status.as_object_mut().unwrap().remove(key);
        }
        let about = (function, to_string(args));
        differences.same(&about, to_string(&status), to_string(case.get("status").unwrap()));
        differences.same(&about, error.to_string().as_str(), case.str_at(&["error"]));
        for (got, wanted) in field_errors_of(function, args).iter().zip(args.array_at(&["errors"])) {
            differences.same(&about, got.kind.reason(), wanted.str_at(&["type"]));
            differences.same(&about, got.field.as_str(), wanted.str_at(&["field"]));
            differences.same(&about, got.to_string().as_str(), wanted.str_at(&["error"]));
        }
    }
    for case in vectors.group("to_status") {
        let message = case.str_at(&["in"]);
        let error = match message {
            m if m.starts_with("Operation cannot") => ApiError::conflict(GroupResource::new("", "pods"), "x", "e"),
            m => ApiError::unmapped(m),
        };
        differences.same(message, to_string(&error.to_value()), to_string(case.get("status").unwrap()));
    }
    differences.none();
}

fn field_errors_of(function: &str, args: &Value) -> Vec<FieldError> {
    if function == "NewInvalid" { field_errors(args.str_at(&["case"])) } else { Vec::new() }
}

#[test]
fn empty_details_are_told_from_none() {
    let error = ApiError::new(500, Reason::Unknown, "x").with_details(Details::default());
    assert_eq!(to_string(error.to_value().get("details").unwrap()), "{}");
    assert!(ApiError::unmapped("x").to_value().get("details").is_none());
}

proptest::proptest! {
    /// Whatever is taken prints as something that is taken again and means the same.
    #[test]
    fn what_prints_parses_back(text in "[+-]?[0-9]{0,22}(\\.[0-9]{0,12})?(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,4})") {
        if let Ok(quantity) = Quantity::parse(&text) {
            let printed = quantity.to_string();
            let again = Quantity::parse(&printed).unwrap();
            proptest::prop_assert_eq!(&again, &quantity, "{} -> {}", text, printed);
            proptest::prop_assert_eq!(again.to_string(), printed);
        }
    }

    #[test]
    fn durations_and_times_parse_back(nanos in proptest::num::i64::ANY, seconds in -60_000_000_000i64..250_000_000_000) {
        let printed = duration::format_duration(nanos);
        proptest::prop_assert_eq!(duration::parse_duration(&printed), Ok(nanos), "{}", printed);
        let at = jiff::Timestamp::from_second(seconds).unwrap();
        proptest::prop_assert_eq!(duration::parse_time(&duration::format_time(at)), Ok(at));
    }

    /// Nothing anyone sends makes a parser panic.
    #[test]
    fn no_text_breaks_a_parser(text in ".{0,40}", odd in "[-+.:,=!()<>%/0-9a-zTZé\\\\ ]{0,30}") {
        for text in [text.as_str(), odd.as_str()] {
            let _ = (Quantity::parse(text), duration::parse_duration(text), duration::parse_time(text));
            let _ = (duration::parse_micro_time(text), ip::parse_cidr(text), ip::parse_ip(text), names::is_qualified_name(text));
            let _ = (fields::Selector::parse(text), fields::unescape(text), super::version::compare(text, "v1"));
            let _ = (names::name_is_dns_subdomain(text, true), names::name_is_dns_label(text, true));
            if let Ok(selector) = labels::Selector::parse(text) {
                proptest::prop_assert_eq!(labels::Selector::parse(&selector.to_string()).unwrap(), selector);
            }
        }
    }
}
