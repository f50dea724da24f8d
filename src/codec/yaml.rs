//! A tree to YAML text as sigs.k8s.io/yaml (go-yaml v2) writes it: block style, sorted keys, two spaces a level, lists
//! not indented below their key, text quoted only where it would read as something else.

use crate::object::{Value, print_float};

pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = String::with_capacity(1024);
    node(&mut out, value, 0);
    out.into_bytes()
}

/// Writes a node that begins at the start of a line (or after `- `) at this indentation, with its final newline.
fn node(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    spaces(out, indent);
                }
                scalar(out, key, indent);
                out.push(':');
                member(out, value, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    spaces(out, indent);
                }
                out.push_str("- ");
                node(out, item, indent + 2);
            }
        }
        other => {
            leaf(out, other, indent);
            out.push('\n');
        }
    }
}

fn member(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            spaces(out, indent + 2);
            node(out, value, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            spaces(out, indent);
            node(out, value, indent);
        }
        other => {
            out.push(' ');
            leaf(out, other, indent + 2);
            out.push('\n');
        }
    }
}

fn spaces(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n(' ', count));
}

fn leaf(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
        Value::Int(it) => out.push_str(&it.to_string()),
        Value::Float(it) => out.push_str(&print_float(*it)),
        Value::Str(text) => scalar(out, text, indent),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Text in the plainest style that reads back as the same text.
fn scalar(out: &mut String, text: &str, indent: usize) {
    if text.contains('\n') && text.chars().all(|c| c == '\n' || c == '\t' || is_printable(c)) && !text.starts_with([' ', '\n']) && !has_trailing_space(text) {
        return literal(out, text, indent);
    }
    if !text.chars().all(is_printable) {
        return double_quoted(out, text);
    }
    if resolves_to_other(text) {
        // A word that would read as another type is quoted with double quotes, as go-yaml does for strings.
        return double_quoted(out, text);
    }
    if is_plain(text) {
        out.push_str(text);
    } else {
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
    }
}

fn has_trailing_space(text: &str) -> bool {
    text.lines().any(|line| line.ends_with([' ', '\t']))
}

fn literal(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    let trimmed = text.trim_end_matches('\n');
    match text.len() - trimmed.len() {
        0 => out.push('-'),
        1 => {}
        _ => out.push('+'),
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            spaces(out, indent.max(2));
            out.push_str(line);
        }
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}') && c != '\u{feff}'
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\e"),
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02X}", c as u32)),
            c if (c as u32) < 0x10000 => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push_str(&format!("\\U{:08X}", c as u32)),
        }
    }
    out.push('"');
}

/// Words of YAML 1.1 that are no text: booleans, nulls, numbers, and the words older readers take for booleans.
fn resolves_to_other(text: &str) -> bool {
    const WORDS: [&str; 35] = [
        "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "y", "Y", "yes", "Yes", "YES",
        "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF", ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF",
        "<<", "=",
    ];
    WORDS.contains(&text) || is_number(text) || is_timestamp(text)
}

fn is_number(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let clean: String = body.chars().filter(|c| *c != '_').collect();
    if matches!(clean.as_str(), ".inf" | ".Inf" | ".INF") {
        return true;
    }
    if !clean.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(digits) = clean.strip_prefix(prefix) {
            return !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        }
    }
    clean.chars().any(|c| c.is_ascii_digit()) && clean.parse::<f64>().is_ok()
}

/// go-yaml quotes what its timestamp parser takes: a date, or a date with a time.
fn is_timestamp(text: &str) -> bool {
    let date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && (1..=2).contains(&month.len()) && (1..=2).contains(&day.len()))
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    match text.find(['T', 't', ' ']) {
        None => date(text),
        Some(at) => {
            let (day, rest) = text.split_at(at);
            let time = &rest[1..];
            date(day) && time.len() >= 7 && time.as_bytes()[0].is_ascii_digit() && time.matches(':').count() >= 2
        }
    }
}

/// Whether text may stand without quotes in block style.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    if text.starts_with(' ') || text.ends_with(' ') || text.starts_with("---") || text.starts_with("...") {
        return false;
    }
    let second_is_space = text.chars().nth(1).is_none_or(|c| c == ' ');
    let indicator = match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => true,
        '-' | '?' | ':' => second_is_space,
        _ => false,
    };
    !indicator && !text.contains(": ") && !text.contains(" #") && !text.ends_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::parse;

    #[test]
    fn text_is_gos_yaml() {
        let value = parse(br#"{"a":{"b":[1,{"c":"x","d":[]},"yes"]},"e":"1","f":"a: b","g":"l1\nl2\n","h":null,"i":"2020-01-01","j":"it's","k":"- x"}"#).unwrap();
        let expected = "a:\n  b:\n  - 1\n  - c: x\n    d: []\n  - \"yes\"\ne: \"1\"\nf: 'a: b'\ng: |\n  l1\n  l2\nh: null\ni: \"2020-01-01\"\nj: it's\nk: '- x'\n";
        assert_eq!(String::from_utf8(to_vec(&value)).unwrap(), expected);
    }

    #[test]
    fn what_is_written_reads_back() {
        let value = parse(br#"{"a":"","b":"no","c":"0x1F","d":" x","e":"a\tb","f":"\u0001","g":{},"h":[[1,[2]],{"x":{"y":"z"}}]}"#).unwrap();
        let text = String::from_utf8(to_vec(&value)).unwrap();
        assert_eq!(crate::object::yaml::parse(&text).unwrap().value, value, "{text}");
    }
}
