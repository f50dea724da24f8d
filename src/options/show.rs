//! The effective configuration, printed: as TOML that can be fed back, or as JSON; with the place of every value when
//! asked. Secrets are masked, and the loader refuses the mask.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    problem::{KeyPath, Origin},
    validate::ValidatedOptions,
};

/// Sections with their keys, in the order of the reference.
fn sections(options: &ValidatedOptions) -> Map<String, Value> {
    match serde_json::to_value(options.raw()) {
        Ok(Value::Object(sections)) => sections,
        _ => Map::new(),
    }
}

/// TOML; with `origins`, each line ends in a comment that says where the value is from.
pub fn toml(options: &ValidatedOptions, origins: bool) -> String {
    let mut text = String::new();
    for (section, entries) in sections(options) {
        let Value::Object(entries) = entries else { continue };
        if entries.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "[{section}]");
        for (key, value) in entries {
            let _ = write!(text, "{key} = {}", inline(&value));
            if origins {
                let _ = write!(text, "  # {}", options.origin(&KeyPath(vec![section.clone(), key.clone()])));
            }
            text.push('\n');
        }
    }
    text
}

/// JSON: sections of keys; with `origins`, each key holds `value` and `origin`.
pub fn json(options: &ValidatedOptions, origins: bool) -> String {
    let mut all = sections(options);
    if origins {
        for (section, entries) in all.iter_mut() {
            for (key, value) in entries.as_object_mut().into_iter().flatten() {
                let origin = options.origin(&KeyPath(vec![section.clone(), key.clone()])).to_string();
                *value = serde_json::json!({ "value": value.take(), "origin": origin });
            }
        }
    }
    let mut text = serde_json::to_string_pretty(&all).unwrap_or_default();
    text.push('\n');
    text
}

/// Every option that was written somewhere: "section.key", its value, its place.
pub fn written(options: &ValidatedOptions) -> Vec<(String, String, Origin)> {
    let mut list = Vec::new();
    for (section, entries) in sections(options) {
        for (key, value) in entries.as_object().into_iter().flatten() {
            let path = KeyPath(vec![section.clone(), key.clone()]);
            match options.origin(&path) {
                Origin::Default => {}
                origin => list.push((path.to_string(), inline(value), origin)),
            }
        }
    }
    list
}

/// The flags that set something, with the value in force as kube-apiserver prints it; sorted by name.
pub fn flags(options: &ValidatedOptions) -> Vec<(String, String)> {
    let all = sections(options);
    let value_of = |flag: &super::flags::Flag| {
        let key = flag.key();
        let (section, key) = key.split_once('.')?;
        Some(flag_value(flag, all.get(section)?.get(key)?))
    };
    let mut list: Vec<(String, String)> =
        super::flags::all().filter_map(|flag| Some((flag.name.to_owned(), value_of(flag)?))).collect();
    list.sort();
    list
}

fn flag_value(flag: &super::flags::Flag, value: &Value) -> String {
    use super::flags::Kind;
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Null => String::new(),
        Value::Array(entries) => {
            let entries = entries.iter().map(plain).collect::<Vec<_>>().join(",");
            let bare = matches!(flag.kind, Kind::Text | Kind::Ip | Kind::CommaString);
            if bare { entries } else { format!("[{entries}]") }
        }
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(",")
        }
        value => plain(value),
    }
}

/// Any option's value as TOML would have it, secrets masked.
pub fn value(value: &impl Serialize) -> String {
    serde_json::to_value(value).map(|value| inline(&value)).unwrap_or_default()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        // TOML's basic strings escape as JSON's do, but for the delete character.
        Value::String(_) => value.to_string().replace('\u{7f}', "\\u007f"),
        Value::Array(entries) => format!("[{}]", entries.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Object(entries) => {
            let parts =
                entries.iter().map(|(key, value)| format!("{} = {}", KeyPath(vec![key.clone()]), inline(value)));
            format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
        }
    }
}
