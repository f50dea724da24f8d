//! The formats of strings and numbers that custom resources can ask for (kube-openapi `pkg/validation/strfmt`).

use std::sync::OnceLock;

use regex::Regex;

use super::{go_regex, mail};
use crate::api::{duration::parse_duration, go_url, ip};

/// What a format says of a value.
#[derive(Clone, Copy)]
pub enum Format {
    /// Texts that the function takes.
    Text(fn(&str) -> bool),
    Int32,
    Int64,
    Float,
    Double,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "text",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
        })
    }
}

/// The format of that name for a value of this type (`""` where a schema has none, or more than one). `None`: unknown,
/// and so ignored.
pub fn of(value_type: &str, name: &str) -> Option<Format> {
    match (value_type, name) {
        (_, "") => None,
        ("integer", "int32") => Some(Format::Int32),
        ("integer", "int64") => Some(Format::Int64),
        ("number", "float") => Some(Format::Float),
        ("number", "double") => Some(Format::Double),
        ("" | "string", name) => text(&name.replace('-', "")).map(Format::Text),
        _ => None,
    }
}

fn text(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => go_url::is_request_uri,
        "email" => mail::is_address,
        "hostname" => is_hostname,
        "ipv4" => |text| text.contains('.') && ip::parse_ip(text).is_some(),
        "ipv6" => |text| text.contains(':') && ip::parse_ip_strict(text).is_some(),
        "cidr" => |text| ip::parse_cidr(text).is_some(),
        "mac" => is_mac,
        "uuid" => |text| is_uuid(text, None, b"0123456789abcdef"),
        "uuid3" => |text| is_uuid(text, Some(b'3'), b"0123456789abcdef"),
        "uuid4" => |text| is_uuid(text, Some(b'4'), b"89ab"),
        "uuid5" => |text| is_uuid(text, Some(b'5'), b"89ab"),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |text| text.len() == 11 && matches(text, &SSN, r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
        "hexcolor" => |text| matches(text, &HEX, r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "rgbcolor" => is_rgb_color,
        "byte" => |text| {
            matches(text, &BASE64, r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$")
        },
        "password" => |_| true,
        "date" => is_date,
        "datetime" => is_date_time,
        "duration" => is_duration,
        "k8sshortname" => |text| text.len() <= 63 && is_label(text),
        "k8slongname" => |text| text.len() <= 253 && text.split('.').all(is_label),
        _ => return None,
    })
}

type Once = OnceLock<Option<Regex>>;
static SSN: Once = OnceLock::new();
static HEX: Once = OnceLock::new();
static BASE64: Once = OnceLock::new();
static CARD: Once = OnceLock::new();
static RGB: Once = OnceLock::new();
static TIME: Once = OnceLock::new();
static STEPS: Once = OnceLock::new();

/// Matches a pattern that is compiled once.
fn matches(text: &str, once: &'static Once, pattern: &str) -> bool {
    once.get_or_init(|| Regex::new(pattern).ok()).as_ref().is_some_and(|regex| regex.is_match(text))
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edge = |byte: Option<u8>| byte.is_some_and(inner);
    edge(text.bytes().next()) && edge(text.bytes().last()) && text.bytes().all(|byte| inner(byte) || byte == b'-')
}

fn is_hostname(text: &str) -> bool {
    const PATTERN: &str = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && go_regex::compiled(PATTERN).is_ok_and(|regex| regex.is_match(text.as_bytes()))
}

/// Six, eight or twenty bytes, by colons, dashes or (in pairs) dots.
fn is_mac(text: &str) -> bool {
    let Some(separator) = text.chars().find(|c| !c.is_ascii_hexdigit()) else { return false };
    let digits = match separator {
        ':' | '-' => 2,
        '.' => 4,
        _ => return false,
    };
    let mut pieces = 0;
    for piece in text.split(separator) {
        if piece.len() != digits || !piece.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        pieces += 1;
    }
    matches!(pieces * digits / 2, 6 | 8 | 20)
}

/// Thirty-two digits with or without each of the four dashes; one digit for the version, one of some for the variant.
fn is_uuid(text: &str, version: Option<u8>, variants: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let mut rest = text.as_str();
    let mut digits = Vec::with_capacity(32);
    for length in [8, 4, 4, 4, 12] {
        if !digits.is_empty() {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((piece, tail)) = rest.split_at_checked(length) else { return false };
        digits.extend_from_slice(piece.as_bytes());
        rest = tail;
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| digits.get(12) == Some(&version))
        && digits.get(16).is_some_and(|digit| variants.contains(digit))
}

/// The digits of a text without dashes and white space.
fn bare(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !matches!(byte, b'-' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c)).collect()
}

fn value(digit: u8) -> u32 {
    u32::from(digit.wrapping_sub(b'0'))
}

fn is_isbn10(text: &str) -> bool {
    let digits = bare(text);
    let [first @ .., last] = digits.as_slice() else { return false };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let sum: u32 = first.iter().zip(1..).map(|(digit, weight)| weight * value(*digit)).sum();
    (sum + 10 * if *last == b'X' { 10 } else { value(*last) }).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = bare(text);
    let [first @ .., last] = digits.as_slice() else { return false };
    if first.len() != 12 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = first.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| weight * value(*digit)).sum();
    value(*last) == (10 - sum % 10) % 10
}

fn is_credit_card(text: &str) -> bool {
    const PATTERN: &str = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = |(at, digit): (usize, u8)| match value(digit) {
        doubled if at % 2 == 1 => doubled * 2 / 10 + doubled * 2 % 10,
        plain => plain,
    };
    matches(&digits, &CARD, PATTERN) && digits.bytes().rev().enumerate().map(luhn).sum::<u32>() % 10 == 0
}

fn is_rgb_color(text: &str) -> bool {
    const PATTERN: &str = r"^rgb\([\t\n\x0C\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0C\r ]*,[\t\n\x0C\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0C\r ]*,[\t\n\x0C\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\x0C\r ]*\)$";
    matches(text, &RGB, PATTERN)
}

/// `2006-01-02`, a day that there was.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut number = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()));
        part.and_then(|part| part.parse::<i16>().ok())
    };
    let (Some(year), Some(month), Some(day)) = (number(4), number(2), number(2)) else { return false };
    let (Ok(month), Ok(day)) = (i8::try_from(month), i8::try_from(day)) else { return false };
    jiff::civil::Date::new(year, month, day).is_ok()
}

fn is_date_time(text: &str) -> bool {
    const PATTERN: &str = r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$";
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && matches(time, &TIME, PATTERN)
}

/// Go's durations, or any text with a number and a unit in it.
fn is_duration(text: &str) -> bool {
    if parse_duration(text).is_ok() {
        return true;
    }
    const UNITS: [&str; 12] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "μs"];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let steps = STEPS.get_or_init(|| Regex::new(r"([0-9]+)[\t\n\x0C\r ]*([A-Za-zµ]+)").ok());
    let Some(steps) = steps else { return false };
    let mut found = false;
    for step in steps.captures_iter(text) {
        let part = |at: usize| step.get(at).map_or("", |part| part.as_str());
        if part(1).parse::<i64>().is_err() {
            return false;
        }
        let unit = part(2).to_lowercase();
        found |= UNITS.contains(&unit.as_str()) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(format: &str, value: &str) -> bool {
        match of("string", format) {
            Some(Format::Text(check)) => check(value),
            other => panic!("{format} is no text format: {other:?}"),
        }
    }

    #[test]
    fn each_format_takes_what_it_should_and_nothing_else() {
        let cases: [(&str, &[&str], &[&str]); 26] = [
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77bcf86cd79943901", "x07f1f77bcf86cd799439011"]),
            ("uri", &["http://a", "/a"], &["a b", ""]),
            ("email", &["a@b", "N <a@b>"], &["a"]),
            ("hostname", &["a", "a.bc", "ä.bc", "1.io"], &["-a", "a.b", "a_b.cd", ""]),
            ("ipv4", &["1.2.3.4", "01.2.3.4"], &["1.2.3", "::1"]),
            ("ipv6", &["::1"], &["1.2.3.4", "::1%eth0"]),
            ("cidr", &["10.0.0.1/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]),
            (
                "mac",
                &["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab-cd-ef"],
                &["01:23:45", "01:23-45:67:89:ab"],
            ),
            ("uuid", &["A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"], &["a0eebc99"]),
            ("uuid3", &["a0eebc99-9c0b-3ef8-0b6d-6bb9bd380a11"], &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
            ("uuid4", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], &["a0eebc99-9c0b-4ef8-0b6d-6bb9bd380a11"]),
            ("uuid5", &["a0eebc99-9c0b-5ef8-bb6d-6bb9bd380a11"], &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751042"]),
            ("isbn10", &["0321751043"], &["978-0321751041"]),
            ("isbn13", &["978-0321751041"], &["0321751043", "978-0321751042"]),
            ("creditcard", &["4111-1111-1111-1111"], &["4111-1111-1111-1112"]),
            ("ssn", &["111-11-1111", "111 11 1111"], &["111111111", "11-111-1111"]),
            ("hexcolor", &["#FFF", "a1b2c3"], &["#FFFF"]),
            ("rgbcolor", &["rgb(0, 255,1)"], &["rgb(256,0,0)", "rgb(0,0)"]),
            ("byte", &["YQ==", "YWJj"], &["", "YQ", "YQ=!"]),
            ("password", &["", "x"], &[]),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-2-9", "x"]),
            (
                "date-time",
                &["2024-02-29T23:59:59Z", "2024-01-01t00:00:00.5+99:99"],
                &["2024-01-01T24:00:00Z", "2024-01-01"],
            ),
            ("duration", &["1h", "1 day 2 hours", "3 weeks"], &["", "1", "x", "1 fortnight"]),
            ("k8s-short-name", &["a-1"], &["a.b", "A", "-a"]),
            ("k8s-long-name", &["a-1.b"], &["a..b", "A", "a."]),
        ];
        for (format, good, bad) in cases {
            good.iter().for_each(|value| assert!(takes(format, value), "{format} takes {value}"));
            bad.iter().for_each(|value| assert!(!takes(format, value), "{format} refuses {value}"));
        }
    }

    #[test]
    fn a_format_belongs_to_a_type() {
        assert!(of("string", "int32").is_none() && of("integer", "date").is_none() && of("", "klingon").is_none());
        assert!(
            matches!(of("integer", "int32"), Some(Format::Int32))
                && matches!(of("", "date-time"), Some(Format::Text(_)))
        );
    }
}
