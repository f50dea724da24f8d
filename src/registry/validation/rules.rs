//! Everyday rules of single fields (kubernetes `pkg/apis/core/validation`, `pkg/apis/apps/validation`).

use super::object_meta::push_messages;
use crate::{
    api::{
        ErrorList, FieldError, Path,
        intstr::IntOrString,
        names::{
            Messages, is_config_map_key, is_dns1123_label, is_dns1123_subdomain, is_http_path, is_in_range,
            is_qualified_name, is_valid_percent, is_valid_port_name, is_valid_port_num, regex_error,
        },
        quantity::Quantity,
    },
    object::Value,
};

pub const FIELD_IMMUTABLE: &str = "field is immutable";
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub const POSITIVE: &str = "must be greater than zero";
pub const INTEGER: &str = "must be an integer";

pub fn validate_nonnegative(value: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if value < 0 {
        errors.push(FieldError::invalid(path, value, NOT_NEGATIVE).with_origin("minimum"));
    }
}

pub fn validate_positive(value: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if value <= 0 {
        errors.push(FieldError::invalid(path, value, POSITIVE).with_origin("minimum"));
    }
}

/// `must be between <low> and <high>, inclusive`.
pub fn validate_in_range(value: i64, low: i64, high: i64, path: &Path<'_>, errors: &mut ErrorList) {
    push_number(is_in_range(value, low, high), value, path, errors);
}

fn push_number(messages: Messages, value: i64, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(messages.iter().map(|message| FieldError::invalid(path, value, message)));
}

/// 1 to 65535.
pub fn validate_port_num(port: i64, path: &Path<'_>, errors: &mut ErrorList) {
    push_number(is_valid_port_num(port), port, path, errors);
}

/// A port by number or by name.
pub fn validate_port_num_or_name(port: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match IntOrString::from_value(port) {
        Ok(IntOrString::Int(number)) => validate_port_num(number.into(), path, errors),
        Ok(IntOrString::String(name)) => push_messages(is_valid_port_name(name), name, path, errors),
        Err(why) => errors.push(FieldError::internal(path, &why)),
    }
}

/// A count or a percentage, neither negative.
pub fn validate_positive_int_or_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match IntOrString::from_value(value) {
        Ok(IntOrString::Int(number)) => validate_nonnegative(number.into(), path, errors),
        Ok(IntOrString::String(text)) => push_messages(is_valid_percent(text), text, path, errors),
        Err(_) => {
            // Two percent signs: upstream passes no arguments to this format.
            errors.push(FieldError::invalid_ref(path, value, "must be an integer or percentage (e.g '5%%')"));
        }
    }
}

/// The number before a percent sign; `None` for everything else.
pub fn percent_value(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|text| is_valid_percent(text).is_empty())?;
    // Go's Atoi stops at its bound.
    Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// The percentage without its sign, or the number.
pub fn int_or_percent_value(value: &Value) -> i64 {
    percent_value(value).unwrap_or_else(|| IntOrString::from_value(value).map_or(0, IntOrString::int_value))
}

pub fn validate_not_more_than_100_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if percent_value(value).is_some_and(|percent| percent > 100) {
        errors.push(FieldError::invalid_ref(path, value, "must not be greater than 100%"));
    }
}

/// The new value may not differ; missing and null are the same, and so are missing and `zero` (what Go shows for a
/// field that is no pointer: `""`, `0`, `false`).
pub fn validate_immutable_or(
    new: Option<&Value>,
    old: Option<&Value>,
    zero: Value,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let new = new.filter(|it| !it.is_null()).unwrap_or(&zero);
    if new != old.filter(|it| !it.is_null()).unwrap_or(&zero) {
        errors.push(FieldError::invalid_ref(path, new, FIELD_IMMUTABLE));
    }
}

/// The new value may not differ. A missing one is shown as null; see [`validate_immutable_or`] for others.
pub fn validate_immutable(new: Option<&Value>, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    validate_immutable_or(new, old, Value::Null, path, errors);
}

/// One of `allowed`, shown in the order given. An empty value is unsupported like any other.
pub fn validate_one_of<S: AsRef<str>>(value: &str, allowed: &[S], path: &Path<'_>, errors: &mut ErrorList) {
    if !allowed.iter().any(|it| it.as_ref() == value) {
        errors.push(FieldError::not_supported(path, value, allowed));
    }
}

/// Says whether `value` is there, and adds Required where not.
pub fn validate_required(value: &str, detail: &str, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    if value.is_empty() {
        errors.push(FieldError::required(path, detail));
    }
    !value.is_empty()
}

pub fn validate_dns1123_label(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let messages = is_dns1123_label(value);
    errors.extend(messages.iter().map(|m| FieldError::invalid(path, value, m).with_origin("format=k8s-short-name")));
}

pub fn validate_dns1123_subdomain(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let messages = is_dns1123_subdomain(value);
    errors.extend(messages.iter().map(|m| FieldError::invalid(path, value, m).with_origin("format=k8s-long-name")));
}

pub fn validate_qualified_name(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let messages = is_qualified_name(value);
    errors.extend(messages.iter().map(|m| FieldError::invalid(path, value, m).with_origin("format=qualified-name")));
}

/// A key of a ConfigMap or Secret, where one is named.
pub fn validate_config_map_key(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    push_messages(is_config_map_key(value), value, path, errors);
}

/// A quantity that parses; what does not is a decoding problem that a write never gets this far with.
fn quantity(value: &Value) -> Quantity {
    Quantity::from_value(value).unwrap_or_else(|_| Quantity::zero())
}

pub fn validate_nonnegative_quantity(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let quantity = quantity(value);
    if quantity.is_negative() {
        errors.push(FieldError::invalid(path, quantity.to_string(), NOT_NEGATIVE));
    }
}

pub fn validate_positive_quantity(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let quantity = quantity(value);
    if quantity.sign() <= 0 {
        errors.push(FieldError::invalid(path, quantity.to_string(), POSITIVE));
    }
}

/// Not negative, and whole for resources that are counted (`integer`).
pub fn validate_resource_quantity(value: &Value, integer: bool, path: &Path<'_>, errors: &mut ErrorList) {
    validate_nonnegative_quantity(value, path, errors);
    let quantity = quantity(value);
    if integer && quantity.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, quantity.to_string(), INTEGER));
    }
}

/// Permission bits: 0 to 0777.
pub fn validate_file_mode(mode: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if !(0..=0o777).contains(&mode) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(path, mode, why));
    }
}

/// No element of a path is `..`.
pub fn validate_path_no_backsteps(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if value.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, value, "must not contain '..'"));
    }
}

/// A relative path that stays below where it starts.
pub fn validate_local_descending_path(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if value.starts_with('/') {
        errors.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    validate_path_no_backsteps(value, path, errors);
}

/// Such a path whose beginning is not kept for the kubelet (`..data`).
pub fn validate_local_non_reserved_path(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    validate_local_descending_path(value, path, errors);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
}

/// The name of a CSI driver: a DNS subdomain in any case, at most 63 bytes. `declarative` marks what the declarative
/// rules of the field say too.
pub fn validate_csi_driver_name(name: &str, declarative: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let mark = |error: FieldError, origin| {
        if declarative { error.with_origin(origin).covered_by_declarative() } else { error }
    };
    if name.is_empty() {
        errors.push(mark(FieldError::required(path, ""), ""));
        return;
    }
    if name.len() > 63 {
        errors.push(mark(FieldError::too_long(path, 63), "maxLength"));
    }
    for message in is_dns1123_subdomain(&name.to_lowercase()) {
        errors.push(mark(FieldError::invalid(path, name, &message), "format=k8s-long-name-caseless"));
    }
}

/// `acme.io/foo`: a domain and a path.
pub fn validate_domain_prefixed_path(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    match value.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            push_messages(is_dns1123_subdomain(host), host, path, errors);
            if !is_http_path(rest) {
                let why = regex_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
                errors.push(FieldError::invalid(path, rest, &why));
            }
        }
        _ => errors.push(FieldError::invalid(path, value, "must be a domain-prefixed path (such as \"acme.io/foo\")")),
    }
}

/// `acme.io/foo`: a label key with a prefix.
pub fn validate_domain_prefixed_key(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let messages = is_qualified_name(value);
    if messages.is_empty() && !value.contains('/') {
        errors.push(FieldError::invalid(path, value, "must be a domain-prefixed key (such as \"acme.io/foo\")"));
    }
    push_messages(messages, value, path, errors);
}

/// A DNS subdomain of at least three segments (names of signers and controllers).
pub fn validate_fully_qualified_name(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let messages = is_dns1123_subdomain(value);
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !messages.is_empty() {
        errors.push(FieldError::invalid(path, value, &messages.join(",")));
    } else if value.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, value, why));
    }
}

/// A DNS subdomain of at least two labels; a final dot is fine.
pub fn validate_fully_qualified_domain_name(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let value = value.strip_suffix('.').unwrap_or(value);
    let messages = is_dns1123_subdomain(value);
    if !messages.is_empty() {
        errors.push(FieldError::invalid(path, value, &messages.join(",")));
        return;
    }
    if value.split('.').count() < 2 {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, value, why));
        return;
    }
    let bad = value.split('.').map(|label| (label, is_dns1123_label(label))).find(|(_, messages)| !messages.is_empty());
    if let Some((label, messages)) = bad {
        errors.push(FieldError::invalid(path, label, &messages.join(",")));
    }
}
