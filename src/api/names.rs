//! What names, labels, keys and ports may look like, in upstream's words.
//!
//! Each function gives the list of what is wrong, empty where nothing is: the texts go into field errors as they
//! are. Matching is by hand over bytes, in one pass, so hostile input costs its length. Mirrors apimachinery
//! `pkg/util/validation/validation.go` and `pkg/api/validate/content`; the two differ in the unit they name for
//! lengths ("characters" and "bytes", both bytes), and so do the functions here.

use std::borrow::Cow;

/// What is wrong with a text; empty where it is fine.
pub type Messages = Vec<Cow<'static, str>>;

/// Longest DNS label, label value and name part of a label key.
pub const DNS_LABEL_MAX: usize = 63;
/// Longest DNS subdomain.
pub const DNS_SUBDOMAIN_MAX: usize = 253;

const LABEL_FMT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_MSG: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_FMT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_MSG: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN_CASELESS_MSG: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const UNDERSCORE_FMT: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const UNDERSCORE_MSG: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
const DNS1035_FMT: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const DNS1035_MSG: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const WILDCARD_FMT: &str = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const WILDCARD_MSG: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
const LABEL_KEY_FMT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_MSG: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_VALUE_FMT: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const LABEL_VALUE_MSG: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const CONDITION_REASON_FMT: &str = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
const CONDITION_REASON_MSG: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";

/// `<message> (e.g. 'a',  or 'b', regex used for validation is '<fmt>')`.
pub fn regex_error(message: &str, fmt: &str, examples: &[&str]) -> String {
    let mut out = String::from(message);
    if examples.is_empty() {
        out.push_str(" (");
    } else {
        out.push_str(" (e.g. ");
        for (at, example) in examples.iter().enumerate() {
            if at > 0 {
                out.push_str(" or ");
            }
            out.push('\'');
            out.push_str(example);
            out.push_str("', ");
        }
    }
    out.push_str("regex used for validation is '");
    out.push_str(fmt);
    out.push_str("')");
    out
}

/// `must be no more than <max> characters`.
pub fn max_len_error(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// `must be no more than <max> bytes`.
pub fn max_bytes_error(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// `must be between <low> and <high>, inclusive`.
pub fn inclusive_range_error(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// Not empty, ends fit `edge`, everything fits `inner`.
fn framed(text: &[u8], edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text {
        [] => false,
        [first, .., last] => edge(*first) && edge(*last) && text.iter().all(|b| inner(*b)),
        [only] => edge(*only),
    }
}

fn lower_or_digit(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn dns_label(text: &[u8]) -> bool {
    framed(text, lower_or_digit, |b| lower_or_digit(b) || b == b'-')
}

fn dns_subdomain(text: &[u8]) -> bool {
    text.split(|b| *b == b'.').all(dns_label)
}

fn label_key_name(text: &[u8]) -> bool {
    framed(text, |b| b.is_ascii_alphanumeric(), |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// A DNS label of at most 63 lower-case characters (`my-name`, `123-abc`).
pub fn is_dns1123_label(value: &str) -> Messages {
    label_with(value, max_len_error)
}

fn label_with(value: &str, too_long: fn(usize) -> String) -> Messages {
    let mut errors = Messages::new();
    if value.len() > DNS_LABEL_MAX {
        errors.push(too_long(DNS_LABEL_MAX).into());
    }
    if !dns_label(value.as_bytes()) {
        errors.push(if dns_subdomain(value.as_bytes()) {
            "must not contain dots".into()
        } else {
            regex_error(LABEL_MSG, LABEL_FMT, &["my-name", "123-abc"]).into()
        });
    }
    errors
}

/// The declarative format `k8s-short-name`: a DNS label, lengths told in bytes.
pub fn is_short_name(value: &str) -> Messages {
    label_with(value, max_bytes_error)
}

/// DNS labels joined by dots, at most 253 characters.
pub fn is_dns1123_subdomain(value: &str) -> Messages {
    subdomain_with(value, max_len_error)
}

fn subdomain_with(value: &str, too_long: fn(usize) -> String) -> Messages {
    let mut errors = Messages::new();
    if value.len() > DNS_SUBDOMAIN_MAX {
        errors.push(too_long(DNS_SUBDOMAIN_MAX).into());
    }
    if !dns_subdomain(value.as_bytes()) {
        errors.push(regex_error(SUBDOMAIN_MSG, SUBDOMAIN_FMT, &["example.com"]).into());
    }
    errors
}

/// The declarative format `k8s-long-name`: a DNS subdomain, lengths told in bytes.
pub fn is_long_name(value: &str) -> Messages {
    subdomain_with(value, max_bytes_error)
}

/// The declarative format `k8s-long-name-caseless`. ASCII only, where Go's case folding lets U+017F and U+212A pass.
pub fn is_long_name_caseless(value: &str) -> Messages {
    let mut errors = Messages::new();
    if value.len() > DNS_SUBDOMAIN_MAX {
        errors.push(max_bytes_error(DNS_SUBDOMAIN_MAX).into());
    }
    if !dns_subdomain(value.to_ascii_lowercase().as_bytes()) {
        errors.push(regex_error(SUBDOMAIN_CASELESS_MSG, SUBDOMAIN_FMT, &["Example.com"]).into());
    }
    errors
}

/// A DNS subdomain whose labels may hold `_` and start with one.
pub fn is_dns1123_subdomain_with_underscore(value: &str) -> Messages {
    fn label(text: &[u8]) -> bool {
        let text = text.strip_prefix(b"_").unwrap_or(text);
        framed(text, lower_or_digit, |b| lower_or_digit(b) || matches!(b, b'-' | b'_'))
    }
    let mut errors = Messages::new();
    if value.len() > DNS_SUBDOMAIN_MAX {
        errors.push(max_len_error(DNS_SUBDOMAIN_MAX).into());
    }
    if !value.as_bytes().split(|b| *b == b'.').all(label) {
        errors.push(regex_error(UNDERSCORE_MSG, UNDERSCORE_FMT, &["example.com"]).into());
    }
    errors
}

/// A DNS label that starts with a letter.
pub fn is_dns1035_label(value: &str) -> Messages {
    let mut errors = Messages::new();
    if value.len() > DNS_LABEL_MAX {
        errors.push(max_len_error(DNS_LABEL_MAX).into());
    }
    if !(dns_label(value.as_bytes()) && value.as_bytes().first().is_some_and(u8::is_ascii_lowercase)) {
        errors.push(regex_error(DNS1035_MSG, DNS1035_FMT, &["my-name", "abc-123"]).into());
    }
    errors
}

/// `*.` and a DNS subdomain.
pub fn is_wildcard_dns1123_subdomain(value: &str) -> Messages {
    let mut errors = Messages::new();
    if value.len() > DNS_SUBDOMAIN_MAX {
        errors.push(max_len_error(DNS_SUBDOMAIN_MAX).into());
    }
    if !value.strip_prefix("*.").is_some_and(|rest| dns_subdomain(rest.as_bytes())) {
        errors.push(regex_error(WILDCARD_MSG, WILDCARD_FMT, &["*.example.com"]).into());
    }
    errors
}

/// A label key, also called qualified name: an optional DNS subdomain and `/`, then a name of at most 63 bytes.
pub fn is_qualified_name(value: &str) -> Messages {
    let mut errors = Messages::new();
    let mut parts = value.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".into());
            } else {
                errors.extend(is_long_name(prefix).iter().map(|m| format!("prefix part {m}").into()));
            }
            name
        }
        _ => {
            let text = regex_error(LABEL_KEY_MSG, LABEL_KEY_FMT, &["MyName", "my.name", "123-abc"]);
            errors.push(
                format!(
                    "a valid label key {text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
                )
                .into(),
            );
            return errors;
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".into());
    } else if name.len() > DNS_LABEL_MAX {
        errors.push(format!("name part {}", max_bytes_error(DNS_LABEL_MAX)).into());
    }
    if !label_key_name(name.as_bytes()) {
        let text = regex_error(LABEL_KEY_MSG, LABEL_KEY_FMT, &["MyName", "my.name", "123-abc"]);
        errors.push(format!("name part {text}").into());
    }
    errors
}

/// A label key with a prefix: `example.com/key` but not `key`.
pub fn is_prefixed_label_key(value: &str) -> Messages {
    let errors = is_qualified_name(value);
    if errors.is_empty() && !value.contains('/') {
        return vec!["must include a prefix (e.g. 'example.com/key')".into()];
    }
    errors
}

/// Empty, or at most 63 bytes of alphanumerics with `-`, `_` and `.` inside.
pub fn is_valid_label_value(value: &str) -> Messages {
    let mut errors = Messages::new();
    if value.len() > DNS_LABEL_MAX {
        errors.push(max_bytes_error(DNS_LABEL_MAX).into());
    }
    if !value.is_empty() && !label_key_name(value.as_bytes()) {
        errors.push(regex_error(LABEL_VALUE_MSG, LABEL_VALUE_FMT, &["MyValue", "my_value", "12345"]).into());
    }
    errors
}

/// An identifier as in C.
pub fn is_c_identifier(value: &str) -> Messages {
    let bytes = value.as_bytes();
    let fine = bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    one_unless(fine, || {
        regex_error(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
            "[A-Za-z_][A-Za-z0-9_]*",
            &["my_name", "MY_NAME", "MyName"],
        )
    })
}

fn one_unless(fine: bool, message: impl FnOnce() -> String) -> Messages {
    if fine { Messages::new() } else { vec![message().into()] }
}

/// 1 to 65535.
pub fn is_valid_port_num(port: i64) -> Messages {
    is_in_range(port, 1, 65535)
}

pub fn is_in_range(value: i64, low: i64, high: i64) -> Messages {
    one_unless((low..=high).contains(&value), || inclusive_range_error(low, high))
}

/// 0 to 2147483647.
pub fn is_valid_user_id(id: i64) -> Messages {
    is_in_range(id, 0, i64::from(i32::MAX))
}

/// 0 to 2147483647.
pub fn is_valid_group_id(id: i64) -> Messages {
    is_in_range(id, 0, i64::from(i32::MAX))
}

/// An IANA service name: at most 15 of a-z, 0-9 and single hyphens inside, at least one letter.
pub fn is_valid_port_name(port: &str) -> Messages {
    let bytes = port.as_bytes();
    let mut errors = Messages::new();
    if port.len() > 15 {
        errors.push(max_len_error(15).into());
    }
    if bytes.is_empty() || !bytes.iter().all(|b| lower_or_digit(*b) || *b == b'-') {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !bytes.iter().any(u8::is_ascii_lowercase) {
        errors.push("must contain at least one letter (a-z)".into());
    }
    if port.contains("--") {
        errors.push("must not contain consecutive hyphens".into());
    }
    if port.starts_with('-') || port.ends_with('-') {
        errors.push("must not begin or end with a hyphen".into());
    }
    errors
}

/// Digits and `%`.
pub fn is_valid_percent(value: &str) -> Messages {
    let fine = value.strip_suffix('%').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    one_unless(fine, || {
        regex_error(
            "a valid percent string must be a numeric string followed by an ending '%'",
            "[0-9]+%",
            &["1%", "93%"],
        )
    })
}

pub fn is_http_header_name(value: &str) -> Messages {
    let fine = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    one_unless(fine, || {
        regex_error(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            "[-A-Za-z0-9]+",
            &["X-Header-Name"],
        )
    })
}

/// The strict rule, for gate RelaxedEnvironmentVariableValidation off.
pub fn is_env_var_name(value: &str) -> Messages {
    let bytes = value.as_bytes();
    let fine = bytes.first().is_some_and(|b| !b.is_ascii_digit()) && bytes.iter().all(|b| key_byte(*b));
    let mut errors = one_unless(fine, || {
        regex_error(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        )
    });
    errors.extend(parent_directory(value));
    errors
}

/// Printable ASCII except `=`.
pub fn is_relaxed_env_var_name(value: &str) -> Messages {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".into()];
    }
    if value.bytes().any(|b| !(0x20..0x7f).contains(&b) || b == b'=') {
        return vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='".into(),
        ];
    }
    Messages::new()
}

fn key_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')
}

/// A key of a ConfigMap or Secret.
pub fn is_config_map_key(value: &str) -> Messages {
    let mut errors = Messages::new();
    if value.len() > DNS_SUBDOMAIN_MAX {
        errors.push(max_len_error(DNS_SUBDOMAIN_MAX).into());
    }
    if value.is_empty() || !value.bytes().all(key_byte) {
        let message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        errors.push(regex_error(message, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]).into());
    }
    errors.extend(parent_directory(value));
    errors
}

fn parent_directory(value: &str) -> Option<Cow<'static, str>> {
    match value {
        "." => Some("must not be '.'".into()),
        ".." => Some("must not be '..'".into()),
        _ if value.starts_with("..") => Some("must not start with '..'".into()),
        _ => None,
    }
}

/// An integer without leading zeros or plus sign, of any length.
pub fn is_decimal_integer(value: &str) -> Messages {
    if value.is_empty() {
        return vec!["must be non-empty".into()];
    }
    let digits = value.strip_prefix('-').unwrap_or(value).as_bytes();
    let fine = value == "0" || (matches!(digits.first(), Some(b'1'..=b'9')) && digits.iter().all(u8::is_ascii_digit));
    one_unless(fine, || "must be a valid decimal integer in canonical form".into())
}

/// A name that is one segment of a URL path: not `.` or `..`, no `/` or `%`. Empty names pass.
pub fn is_path_segment_name(name: &str) -> Messages {
    match name {
        "." => vec!["may not be '.'".into()],
        ".." => vec!["may not be '..'".into()],
        _ => is_path_segment_prefix(name),
    }
}

/// The beginning of such a name.
pub fn is_path_segment_prefix(name: &str) -> Messages {
    let mut errors = Messages::new();
    if name.contains('/') {
        errors.push("may not contain '/'".into());
    }
    if name.contains('%') {
        errors.push("may not contain '%'".into());
    }
    errors
}

/// `reason` of a condition; its length is another rule.
pub fn is_valid_condition_reason(value: &str) -> Messages {
    let bytes = value.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let fine = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|b| word(*b))
        && bytes.iter().all(|b| word(*b) || matches!(b, b',' | b':'));
    one_unless(fine, || {
        regex_error(
            CONDITION_REASON_MSG,
            CONDITION_REASON_FMT,
            &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
        )
    })
}

/// What a URL path after a domain may hold (`[A-Za-z0-9/\-._~%!$&'()*+,;=:]+`).
pub fn is_http_path(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b))
}

/// Checks a name; the flag says that it is a `generateName`, to which a suffix will be added.
pub type NameFn = fn(&str, bool) -> Messages;

/// A prefix that ends in `-` is judged as if it ended in a letter: the suffix will follow it.
fn mask_trailing_dash(name: &str, prefix: bool) -> Cow<'_, str> {
    match name.strip_suffix('-') {
        // Upstream cuts the byte before the dash too; where that is half a character, no rule lets the name pass.
        Some(rest) if prefix && rest.ends_with(|c: char| c.is_ascii()) => {
            format!("{}a", &rest[..rest.len() - 1]).into()
        }
        _ => name.into(),
    }
}

pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Messages {
    is_dns1123_subdomain(&mask_trailing_dash(name, prefix))
}

pub fn name_is_dns_label(name: &str, prefix: bool) -> Messages {
    is_dns1123_label(&mask_trailing_dash(name, prefix))
}

pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Messages {
    is_dns1035_label(&mask_trailing_dash(name, prefix))
}

pub fn name_is_path_segment(name: &str, prefix: bool) -> Messages {
    if prefix { is_path_segment_prefix(name) } else { is_path_segment_name(name) }
}
