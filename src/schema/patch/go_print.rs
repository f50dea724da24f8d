//! Values as Go's fmt prints the maps, slices and scalars that hold JSON; upstream's messages show them so.

use crate::{
    api::field::quote,
    object::{Map, Value},
};

/// `%v`: `map[a:1 b:[x <nil>]]`.
pub fn plain(value: &Value) -> String {
    let mut out = String::new();
    write_plain(&mut out, value);
    out
}

fn write_plain(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
        Value::Int(it) => out.push_str(&it.to_string()),
        Value::Float(it) => out.push_str(&float(*it)),
        Value::Str(it) => out.push_str(it),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write_plain(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => write_plain_map(out, map),
    }
}

fn write_plain_map(out: &mut String, map: &Map) {
    out.push_str("map[");
    for (at, (name, value)) in map.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        out.push_str(name);
        out.push(':');
        write_plain(out, value);
    }
    out.push(']');
}

/// `%v` of a map.
pub fn plain_map(map: &Map) -> String {
    let mut out = String::new();
    write_plain_map(&mut out, map);
    out
}

/// `%v` of a slice.
pub fn plain_list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
}

/// `%s`, which is at home with text only: `x`, `%!s(int64=5)`, `map[a:%!s(bool=true)]`.
pub fn text(value: &Value) -> String {
    match value {
        Value::Str(it) => it.clone(),
        Value::Null => "%!s(<nil>)".into(),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(name, value)| format!("{name}:{}", text(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        other => format!("%!s({}={})", type_name(other), plain(other)),
    }
}

/// `%#v`: `map[string]interface {}{"a":1}`.
pub fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Str(it) => quote(it),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let members: Vec<String> =
                map.iter().map(|(name, value)| format!("{}:{}", quote(name), source(value))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        other => plain(other),
    }
}

/// `%T`.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::Str(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `%v` of a float64: the shortest digits, with an exponent (of two digits at least) below 1e-4 and from 1e21 on.
fn float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    if value == 0.0 && value.is_sign_negative() { "-0".into() } else { format!("{value}") }
}
