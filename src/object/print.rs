//! A tree to JSON text, escaped and with numbers as Go's encoding/json writes them.

use super::{Key, Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Compact,
    /// Two spaces a level, as for a person with curl.
    Indented,
}

pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    write_json(&mut out, value, Style::Compact);
    out
}

pub fn to_string(value: &Value) -> String {
    String::from_utf8(to_vec(value)).unwrap_or_default()
}

pub fn write_json(out: &mut Vec<u8>, value: &Value, style: Style) {
    write_value(out, value, style, 0, &ByName);
}

/// The same with the members of objects in another order, for documents that clients print as they come. `rank` says
/// where a member of an object stands; those of one rank stay sorted by name.
pub fn write_json_ranked(out: &mut Vec<u8>, value: &Value, style: Style, rank: fn(&Map, &str) -> usize) {
    write_value(out, value, style, 0, &ByRank(rank));
}

/// In which order members are printed.
trait Order {
    fn members<'v>(&self, map: &'v Map) -> impl Iterator<Item = (&'v Key, &'v Value)>;
}

struct ByName;

impl Order for ByName {
    fn members<'v>(&self, map: &'v Map) -> impl Iterator<Item = (&'v Key, &'v Value)> {
        map.iter()
    }
}

struct ByRank(fn(&Map, &str) -> usize);

impl Order for ByRank {
    fn members<'v>(&self, map: &'v Map) -> impl Iterator<Item = (&'v Key, &'v Value)> {
        let mut members: Vec<(&Key, &Value)> = map.iter().collect();
        members.sort_by_key(|(key, _)| (self.0)(map, key));
        members.into_iter()
    }
}

/// What lies deeper is not indented: an item of two bytes would stand behind thousands of spaces.
const DEEPEST_INDENTED: usize = 64;

fn write_value(out: &mut Vec<u8>, value: &Value, style: Style, level: usize, order: &impl Order) {
    let style = if level < DEEPEST_INDENTED { style } else { Style::Compact };
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(it) => write_int(out, *it),
        Value::Float(it) => out.extend_from_slice(print_float(*it).as_bytes()),
        Value::Str(it) => escape_into(out, it),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                separate(out, at, style, level + 1);
                write_value(out, item, style, level + 1, order);
            }
            close(out, items.is_empty(), style, level);
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (at, (key, item)) in order.members(map).enumerate() {
                separate(out, at, style, level + 1);
                escape_into(out, key);
                out.push(b':');
                if style == Style::Indented {
                    out.push(b' ');
                }
                write_value(out, item, style, level + 1, order);
            }
            close(out, map.is_empty(), style, level);
            out.push(b'}');
        }
    }
}

fn separate(out: &mut Vec<u8>, at: usize, style: Style, level: usize) {
    if at > 0 {
        out.push(b',');
    }
    if style == Style::Indented {
        new_line(out, level);
    }
}

fn close(out: &mut Vec<u8>, empty: bool, style: Style, level: usize) {
    if style == Style::Indented && !empty {
        new_line(out, level);
    }
}

fn new_line(out: &mut Vec<u8>, level: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * level, b' ');
}

fn write_int(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Go's float64 encoding: shortest digits that give the value back, with an exponent below 1e-6 and from 1e21 on.
pub fn print_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        // Rust writes 1e21 and 1e-7, Go 1e+21 and 1e-07 cleaned to 1e-7.
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            _ => text,
        };
    }
    if value == 0.0 && value.is_sign_negative() {
        return "-0".into();
    }
    format!("{value}")
}

/// Writes a quoted string. `<`, `>`, `&`, U+2028 and U+2029 are escaped as Go does for HTML's sake.
pub fn escape_into(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'<' => b"\\u003c",
            b'>' => b"\\u003e",
            b'&' => b"\\u0026",
            0xe2 if bytes.get(at + 1) == Some(&0x80) && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9)) => {
                out.extend_from_slice(&bytes[done..at]);
                out.extend_from_slice(if bytes[at + 2] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                done = at + 3;
                continue;
            }
            0x00..0x20 => {
                out.extend_from_slice(&bytes[done..at]);
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                done = at + 1;
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(escaped);
        done = at + 1;
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::parse;

    #[test]
    fn numbers_print_as_gos() {
        for (value, text) in [
            (1.0, "1"),
            (0.5, "0.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-7, "1e-7"),
            (1.5e-9, "1.5e-9"),
        ] {
            assert_eq!(print_float(value), text);
        }
        assert_eq!(to_string(&Value::Int(i64::MIN)), "-9223372036854775808");
    }

    #[test]
    fn printing_what_was_parsed_gives_it_back() {
        let text = r#"{"a":[1,2.5,null,true,"x\u003cy\u2028\n\u0001"],"b":{},"c":[]}"#;
        assert_eq!(to_string(&parse(text.as_bytes()).unwrap()), text);
    }

    #[test]
    fn indented_text_is_gos_indent() {
        let value = parse(br#"{"a":[1,{}],"b":[]}"#).unwrap();
        let mut out = Vec::new();
        write_json(&mut out, &value, Style::Indented);
        assert_eq!(String::from_utf8(out).unwrap(), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    }
}
