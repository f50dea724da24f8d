//! The rules against what upstream's own code said: `field_errors` of the name vectors, and the selectors.

use super::{
    address::*, condition::validate_conditions, declarative, object_meta::*, options::*, rules::*, selector::*,
};
use crate::{
    api::{
        ErrorList, FieldError, Meta, Path,
        field::ErrorType,
        names::name_is_dns_subdomain,
        vectors::{Differences, Vectors},
    },
    json,
    object::{Value, parse, to_string},
};

/// Type, field, text and origin, as the vectors have them.
type Shown = [String; 4];

fn shown(errors: &ErrorList) -> Vec<Shown> {
    let show = |it: &FieldError| [it.kind.reason().into(), it.field.clone(), it.to_string(), it.origin.into()];
    errors.iter().map(show).collect()
}

fn wanted(errors: &[Value]) -> Vec<Shown> {
    errors.iter().map(|it| ["type", "field", "error", "origin"].map(|key| it.str_at(&[key]).to_owned())).collect()
}

fn collect(check: impl FnOnce(&mut ErrorList)) -> ErrorList {
    let mut errors = ErrorList::new();
    check(&mut errors);
    errors
}

const METADATA: Path<'static> = Path::new("metadata");

fn check(function: &str, input: &Value, errors: &mut ErrorList) -> Option<Vec<String>> {
    let field = Path::new("f");
    let text = input.as_str().unwrap_or("");
    match function {
        "IsValidIP" => validate_ip(text, &field, errors),
        "IsValidIPForLegacyField(strict)" => validate_ip_for_legacy_field(text, true, &[], &field, errors),
        "IsValidIPForLegacyField(legacy)" => validate_ip_for_legacy_field(text, false, &[], &field, errors),
        "GetWarningsForIP" => return Some(ip_warnings(input.str_at(&["ip"]), &field)),
        "IsValidCIDR" => validate_cidr(text, &field, errors),
        "IsValidCIDRForLegacyField(strict)" => validate_cidr_for_legacy_field(text, true, &[], &field, errors),
        "IsValidCIDRForLegacyField(legacy)" => validate_cidr_for_legacy_field(text, false, &[], &field, errors),
        "GetWarningsForCIDR" => return Some(cidr_warnings(input.str_at(&["cidr"]), &field)),
        "ValidateLabels" => validate_labels(input.as_object(), &METADATA.child("labels"), errors),
        "ValidateAnnotations" => validate_annotations(input.as_object(), &METADATA.child("annotations"), errors),
        "ValidateFinalizerName" => validate_finalizer_name(text, &METADATA.child("finalizers"), errors),
        "ValidateObjectMetaUpdate" => {
            let view = |key: &str| Meta::from_map(input.object_at(&[key]));
            validate_meta_update(view("new"), view("old"), &METADATA, errors);
        }
        "ValidateObjectMeta(namespaced=true,NameIsDNSSubdomain)"
        | "ValidateObjectMeta(namespaced=false,NameIsDNSSubdomain)" => {
            let namespaced = function.contains("true");
            let meta = Meta::from_map(input.as_object());
            validate_meta(meta, namespaced, &name_is_dns_subdomain, &METADATA, errors);
        }
        // Tried where names are.
        "IsValidPortNum" | "IsInRange(0..10)" | "IsValidUserID" => return None,
        other => panic!("{other} is not tried"),
    }
    Some(Vec::new())
}

#[test]
fn fields_are_judged_in_upstreams_words_and_order() {
    let vectors = Vectors::load("validation-names");
    let mut differences = Differences::default();
    let mut tried = 0;
    for case in vectors.group("field_errors") {
        let (function, input) = (case.str_at(&["func"]), case.get("in").unwrap());
        let mut errors = ErrorList::new();
        let Some(warnings) = check(function, input, &mut errors) else { continue };
        tried += 1;
        let about = (function, to_string(input));
        let expected: Vec<String> =
            input.array_at(&["warnings"]).iter().map(|it| it.as_str().unwrap().to_owned()).collect();
        differences.same(&about, warnings, expected);
        // Upstream walks maps in any order.
        let (mut got, mut want) = (shown(&errors), wanted(case.array_at(&["errors"])));
        if input.as_object().is_some_and(|it| it.len() > 1) && function.starts_with("ValidateLabels") {
            got.sort();
            want.sort();
        }
        differences.same(&about, got, want);
    }
    differences.none();
    assert!(tried > 200, "{tried}");
}

#[test]
fn label_selectors_are_judged_as_upstream() {
    let vectors = Vectors::load("labels-selector");
    let mut differences = Differences::default();
    for case in vectors.group("label_selector") {
        let path = Path::new("selector");
        let errors = collect(|e| validate_label_selector(case.get("in"), LabelSelectorOptions::default(), &path, e));
        differences.same(to_string(case), shown(&errors), wanted(case.array_at(&["validation"])));
    }
    differences.none();
}

#[test]
fn old_values_of_a_selector_may_stay_bad() {
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]});
    assert!(has_invalid_label_value(Some(&selector)));
    let options = LabelSelectorOptions { allow_invalid_values: true, ..Default::default() };
    assert!(collect(|e| validate_label_selector(Some(&selector), options, &Path::new("s"), e)).is_empty());
}

#[test]
fn core_kinds_want_finalizers_with_a_domain() {
    let object = json!({"metadata": {"name": "a", "finalizers": ["kubernetes", "bare", "a/b", "orphan"]}});
    let errors = collect(|e| validate_bare_finalizers(&object, e));
    assert_eq!(
        errors.to_string(),
        "metadata.finalizers[1]: Invalid value: \"bare\": name is neither a standard finalizer name nor is it fully qualified"
    );
}

#[test]
fn a_declarative_error_replaces_the_covered_one_and_comes_last() {
    let path = Path::new("f");
    let other = Path::new("g");
    let mut errors: ErrorList = [
        FieldError::required(&path, "must not be empty").covered_by_declarative(),
        FieldError::required(&other, "kept: another field").covered_by_declarative(),
        FieldError::invalid(&path, 0, "no origin: kept").covered_by_declarative(),
        FieldError::invalid(&path, -1, "x").with_origin("minimum").covered_by_declarative(),
        FieldError::invalid(&path, -1, "not covered: kept").with_origin("minimum"),
    ]
    .into_iter()
    .collect();
    let declarative = collect(|e| {
        declarative::required(None, &path, e);
        declarative::minimum(-1, 0, &path, e);
    });
    declarative::merge(&mut errors, declarative);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "g: Required value: kept: another field",
            "f: Invalid value: 0: no origin: kept",
            "f: Invalid value: -1: not covered: kept",
            "f: Required value",
            "f: Invalid value: -1: must be greater than or equal to 0",
        ]
    );
}

#[test]
fn unions_name_their_members() {
    let path = Path::new("f");
    let check = |new: &Value, old: Option<&Value>, kind| {
        collect(|e| declarative::union(new, old, kind, &["a", "b"], &path, e)).to_string()
    };
    use declarative::Union::{AtMostOne, ExactlyOne};
    let (none, one, both) = (json!({}), json!({"a": 0}), json!({"a": 1, "b": 2}));
    assert_eq!(check(&none, None, ExactlyOne), "f: Invalid value: \"\": must specify one of: `a`, `b`");
    assert_eq!(check(&both, None, ExactlyOne), "f: Invalid value: \"{a, b}\": must specify exactly one of: `a`, `b`");
    assert_eq!(check(&both, None, AtMostOne), "f: Invalid value: \"{a, b}\": must specify at most one of: `a`, `b`");
    assert_eq!(check(&one, None, ExactlyOne), "");
    assert_eq!(check(&both, Some(&both), ExactlyOne), "", "what did not change is not judged");
}

#[test]
fn updates_and_duplicates_are_found() {
    let path = Path::new("f");
    let (a, b) = (json!("a"), json!("b"));
    use declarative::Update::{NoModify, NoSet, NoUnset};
    let all = [NoSet, NoUnset, NoModify];
    let text = |new, old| collect(|e| declarative::update(new, old, &all, &path, e)).to_string();
    assert_eq!(text(Some(&a), None), "f: Invalid value: null: field cannot be set once created");
    assert_eq!(text(None, Some(&a)), "f: Invalid value: null: field cannot be cleared once set");
    assert_eq!(text(Some(&b), Some(&a)), "f: Invalid value: null: field cannot be modified once set");
    assert_eq!(text(Some(&a), Some(&a)), "");
    let items = [json!({"k": "x", "v": 1}), json!({"k": "y"}), json!({"k": "x", "v": 2})];
    let errors = collect(|e| declarative::unique_map(&items, &["k"], &path, e));
    assert_eq!(errors.to_string(), "f[2]: Duplicate value: {\"k\":\"x\",\"v\":2}");
}

#[test]
fn formats_say_what_is_wrong() {
    use declarative::Format;
    let path = Path::new("f");
    for (format, good, bad, count) in [
        (Format::Uuid, "0123abcd-0123-0123-0123-0123456789ab", "0123ABCD-0123-0123-0123-0123456789ab", 1),
        (Format::ResourcePoolName, "a/b.c", "a//B", 2),
        (Format::ResourceFullyQualifiedName, "example.com/a_b", "a-b", 2),
        (Format::ExtendedResourceName, "example.com/gpu", "requests.kubernetes.io/x", 2),
        (Format::LongNameCaseless, "Example.COM", "-", 1),
        (Format::PrefixedLabelKey, "a/b", "b", 1),
    ] {
        assert!(collect(|e| declarative::format(good, format, &path, e)).is_empty(), "{good}");
        let errors = collect(|e| declarative::format(bad, format, &path, e));
        assert_eq!(errors.len(), count, "{bad}: {errors}");
        assert!(errors.iter().all(|it| it.origin == format.origin()));
    }
}

#[test]
fn numbers_percentages_and_paths_are_judged() {
    let path = Path::new("f");
    let text = |check: &dyn Fn(&mut ErrorList)| collect(|e| check(e)).to_string();
    assert_eq!(text(&|e| validate_positive(0, &path, e)), "f: Invalid value: 0: must be greater than zero");
    assert_eq!(
        text(&|e| validate_port_num_or_name(&json!(0), &path, e)),
        "f: Invalid value: 0: must be between 1 and 65535, inclusive"
    );
    assert_eq!(
        text(&|e| validate_positive_int_or_percent(&json!(-1), &path, e)),
        "f: Invalid value: -1: must be greater than or equal to 0"
    );
    assert_eq!(
        text(&|e| validate_not_more_than_100_percent(&json!("101%"), &path, e)),
        "f: Invalid value: \"101%\": must not be greater than 100%"
    );
    assert_eq!(
        text(&|e| validate_nonnegative_quantity(&json!("-1Gi"), &path, e)),
        "f: Invalid value: \"-1Gi\": must be greater than or equal to 0"
    );
    assert_eq!(
        text(&|e| validate_resource_quantity(&json!("1500m"), true, &path, e)),
        "f: Invalid value: \"1500m\": must be an integer"
    );
    assert_eq!(
        text(&|e| validate_local_non_reserved_path("/a/../b", &path, e)),
        "[f: Invalid value: \"/a/../b\": must be a relative path, f: Invalid value: \"/a/../b\": must not contain '..']"
    );
    assert_eq!(
        text(&|e| validate_local_non_reserved_path("..data", &path, e)),
        "f: Invalid value: \"..data\": must not start with '..'"
    );
    assert_eq!(
        text(&|e| validate_immutable_or(None, Some(&json!("a")), "".into(), &path, e)),
        "f: Invalid value: \"\": field is immutable"
    );
    assert_eq!(text(&|e| validate_immutable(Some(&Value::Null), None, &path, e)), "");
    for (ip, parts) in [("0.0.0.0", 1), ("127.0.0.1", 1), ("169.254.1.1", 1), ("ff02::1", 1), ("10.0.0.1", 0)] {
        assert_eq!(collect(|e| validate_endpoint_ip(ip, &path, e)).len(), parts, "{ip}");
    }
}

#[test]
fn conditions_are_judged() {
    let good = json!({"type": "Ready", "status": "True", "reason": "Ok", "lastTransitionTime": "2024-01-01T00:00:00Z"});
    let path = Path::new("conditions");
    assert!(collect(|e| validate_conditions(std::slice::from_ref(&good), &path, e)).is_empty());
    let errors = collect(|e| validate_conditions(&[good.clone(), good.clone(), json!({"status": "Maybe"})], &path, e));
    let kinds: Vec<_> = errors.iter().map(|it| (it.field.as_str(), it.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("conditions[1]", ErrorType::Duplicate),
            ("conditions[2].type", ErrorType::Required),
            ("conditions[2].status", ErrorType::NotSupported),
            ("conditions[2].lastTransitionTime", ErrorType::Required),
            ("conditions[2].reason", ErrorType::Required),
        ]
    );
}

#[test]
fn options_are_judged() {
    let text = |check: fn(&Value, &mut ErrorList), options: &str| {
        let options = parse(options.as_bytes()).unwrap();
        collect(|e| check(&options, e)).to_string()
    };
    assert_eq!(
        text(validate_delete_options, r#"{"propagationPolicy":"X","orphanDependents":true}"#),
        "[propagationPolicy: Invalid value: \"X\": orphanDependents and deletionPropagation cannot be both set, \
         propagationPolicy: Unsupported value: \"X\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"]"
    );
    assert_eq!(
        text(validate_write_options, r#"{"dryRun":["No"],"fieldValidation":"x","fieldManager":"a\u0007"}"#),
        "[fieldManager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1), \
         dryRun: Unsupported value: [\"No\"]: supported values: \"All\", \
         fieldValidation: Unsupported value: \"x\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"]"
    );
    assert_eq!(
        text(|o, e| validate_patch_options(o, true, e), "{}"),
        "fieldManager: Required value: is required for apply patch"
    );
}
