//! The option reference, written out of the documentation of `raw/` and the table of flags; and the JSON Schema.

use std::fmt::Write as _;

use serde_json::Value;

use super::{
    flags::{self, Flag, Status},
    schema,
};

/// Markdown: every section with its options, then every flag of kube-apiserver that does something else here.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Options\n\n\
         Made by `kenter config reference`. Layers, weakest first: defaults, `/etc/kenter/kenter.toml` (or `--config`,\n\
         `$KENTER_CONFIG`), `kenter.d/*.toml` beside it in name order, variables `KENTER_SECTION__KEY`, flags. A list\n\
         of a stronger layer replaces a weaker one's; tables are joined. A relative path starts at the folder of the\n\
         file that names it, or at the working directory for variables and flags. Class says how a change comes in\n\
         while kenter runs: live, rebind (listeners are bound anew) or reopen (a handle is closed and opened).\n",
    );
    for (section, node) in schema::properties(schema::root()).into_iter().flatten() {
        let _ = write!(text, "\n## [{section}]\n\n{}\n", schema::description(node));
        for (key, field) in schema::properties(node).into_iter().flatten() {
            let _ = write!(text, "\n### {key}\n\n{}\n", usage_line(section, key, field));
            let _ = write!(text, "\n{}\n", schema::description(field));
            entry_fields(&mut text, field);
        }
    }
    text.push_str("\n## Flags and keys that do something else here\n");
    for (title, status) in [
        ("Refused: start would weaken security or lose records without them", refused as fn(&Flag) -> Option<&str>),
        ("Accepted, with a part still missing", partly),
        ("Without effect", ignored),
    ] {
        let _ = write!(text, "\n### {title}\n\n| flag | key | why |\n| --- | --- | --- |\n");
        for flag in flags::all() {
            if let Some(why) = status(flag) {
                let _ = writeln!(text, "| `--{}` | `{}` | {why} |", flag.name, flag.key());
            }
        }
    }
    text
}

fn refused(flag: &Flag) -> Option<&str> {
    match flag.status {
        Status::Refused(why) => Some(why),
        _ => None,
    }
}

fn partly(flag: &Flag) -> Option<&str> {
    match flag.status {
        Status::Partly(why) => Some(why),
        _ => None,
    }
}

fn ignored(flag: &Flag) -> Option<&str> {
    match flag.status {
        Status::Ignored(why) => Some(why),
        Status::NoOp => Some("upstream does nothing with it either"),
        _ => None,
    }
}

/// Type, flag and variable of an option.
fn usage_line(section: &str, key: &str, field: &Value) -> String {
    let mut line = format!("{} · `KENTER_{}__{}`", kind(field), section.to_uppercase(), key.to_uppercase());
    if let Some(flag) = flags::find_by_key(section, key) {
        let _ = write!(line, " · `--{}`", flag.name);
    }
    line
}

/// A word for the type of a value.
pub(super) fn kind(node: &Value) -> String {
    if let Some(map) = schema::map_value(node) {
        return format!("table of {}", kind(map));
    }
    if let Some(items) = schema::items(node) {
        return format!("list of {}", kind(items));
    }
    match schema::format(node) {
        Some(format @ ("file" | "path" | "duration" | "size" | "secret")) => return format.to_owned(),
        Some("ip" | "ipv4" | "ipv6") => return "address".to_owned(),
        _ => {}
    }
    let node = schema::resolve(node);
    let words = node.get("oneOf").or_else(|| node.get("enum")).and_then(Value::as_array);
    if let Some(words) = words {
        let word = |word: &Value| word.get("const").unwrap_or(word).as_str().unwrap_or("").to_owned();
        return words.iter().map(word).collect::<Vec<_>>().join(" or ");
    }
    match () {
        () if schema::properties(node).is_some() => "table",
        () if schema::is_type(node, "boolean") => "boolean",
        () if schema::is_type(node, "integer") => "integer",
        () if schema::is_type(node, "number") => "number",
        () => "text",
    }
    .to_owned()
}

/// The fields of a list's entries, where those are tables.
fn entry_fields(text: &mut String, field: &Value) {
    let Some(fields) = schema::items(field).and_then(schema::properties) else { return };
    text.push('\n');
    for (name, node) in fields {
        let doc = schema::description(node).split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "- `{name}` ({}): {doc}", kind(node));
    }
}

/// The JSON Schema of a configuration file, for editors.
pub fn json_schema() -> String {
    let mut text = serde_json::to_string_pretty(schema::root()).unwrap_or_default();
    text.push('\n');
    text
}
