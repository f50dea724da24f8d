//! How upstream shows structs in errors: Kubernetes' internal types have no JSON tags, so that members carry the
//! names and the order they have in Go, and what is not set is shown too.
//!
//! The types are a data file, made by `tools/gen-internal` out of upstream's own.

use std::{collections::HashMap, sync::OnceLock};

use super::core::pod::quantities::{quantity, same_member};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Map, Value, escape_into, to_vec},
    registry::validation::declarative::is_zero,
};

const DATA: &str = include_str!("../data/internal.txt");

struct Member {
    go: &'static str,
    /// From the struct that holds it.
    path: Vec<&'static str>,
    form: &'static str,
}

fn types() -> &'static HashMap<&'static str, Vec<Member>> {
    static TYPES: OnceLock<HashMap<&'static str, Vec<Member>>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let member = |text: &'static str| {
            let mut words = text.split(' ');
            let (go, path, form) = (words.next()?, words.next()?, words.next()?);
            Some(Member { go, path: path.split('.').collect(), form })
        };
        let lines = DATA.lines().filter_map(|line| line.split_once(": "));
        lines.map(|(name, members)| (name, members.split(", ").filter_map(member).collect())).collect()
    })
}

/// A value as Go's encoding/json prints the internal type: `SecurityContext`, or `[PodIP` for a list.
pub fn shown(value: &Value, form: &str) -> String {
    print(value, form, None)
}

/// The same with one member or item a line, one blank a level.
pub fn indented(value: &Value, form: &str) -> String {
    print(value, form, Some(0))
}

/// A part that may not become another one. Amounts are compared by value.
pub fn validate_immutable(
    new: Option<&Value>,
    old: Option<&Value>,
    form: &str,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if !same_member(new, old) {
        let shown = new.filter(|it| !it.is_null()).map_or("null".to_owned(), |new| shown(new, form));
        errors.push(FieldError::invalid_shown(path, shown, "field is immutable"));
    }
}

fn print(value: &Value, form: &str, level: Option<usize>) -> String {
    let mut out = Vec::with_capacity(4096);
    write(&mut out, Some(value), form, level);
    String::from_utf8(out).unwrap_or_default()
}

fn write(out: &mut Vec<u8>, value: Option<&Value>, form: &str, level: Option<usize>) {
    let value = value.filter(|it| !it.is_null());
    match (form.as_bytes().first(), value) {
        (Some(b'*'), Some(value)) => write(out, Some(value), form.get(1..).unwrap_or(""), level),
        (Some(b'*' | b'['), None) => out.extend_from_slice(b"null"),
        (Some(b'['), Some(value)) => {
            let items = value.as_array().unwrap_or(&[]);
            let item = form.get(1..).unwrap_or("");
            enclose(out, b"[]", items.iter(), level, |out, it, level| write(out, Some(it), item, level));
        }
        _ => write_plain(out, value, form, level),
    }
}

fn write_plain(out: &mut Vec<u8>, value: Option<&Value>, form: &str, level: Option<usize>) {
    match (form, value) {
        ("s", value) => escape_into(out, value.and_then(Value::as_str).unwrap_or("")),
        ("q", value) => escape_into(out, &value.map_or_else(|| "0".to_owned(), |value| quantity(value).to_string())),
        ("t", value) if is_zero(value) => out.extend_from_slice(b"null"),
        ("t", Some(value)) => out.extend_from_slice(&to_vec(value)),
        ("b", None) => out.extend_from_slice(b"false"),
        ("i" | "p", None) => out.push(b'0'),
        ("m", None) => out.extend_from_slice(b"null"),
        ("m", Some(value)) => {
            let none = Map::new();
            let members = value.as_object().unwrap_or(&none);
            enclose(out, b"{}", members.iter(), level, |out, (key, value), level| {
                write_key(out, key, level);
                out.extend_from_slice(&to_vec(value));
            });
        }
        ("b" | "i" | "p", Some(value)) => out.extend_from_slice(&to_vec(value)),
        (name, value) => {
            let empty = Value::object();
            let value = value.unwrap_or(&empty);
            let members = types().get(name).map_or(&[][..], Vec::as_slice).iter();
            let members = members.map(|member| (member, value.at(&member.path)));
            let shown = members.filter(|(member, value)| !(member.form.starts_with('?') && is_zero(*value)));
            enclose(out, b"{}", shown, level, |out, (member, value), level| {
                write_key(out, member.go, level);
                write(out, value, member.form.trim_start_matches('?'), level);
            });
        }
    }
}

fn write_key(out: &mut Vec<u8>, key: &str, level: Option<usize>) {
    escape_into(out, key);
    out.extend_from_slice(if level.is_some() { b": " } else { b":" });
}

/// Brackets around items, nothing between them where there are none.
fn enclose<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    items: impl Iterator<Item = T>,
    level: Option<usize>,
    mut write_item: impl FnMut(&mut Vec<u8>, T, Option<usize>),
) {
    let inner = level.map(|level| level + 1);
    let new_line = |out: &mut Vec<u8>, level: Option<usize>| {
        if let Some(level) = level {
            out.push(b'\n');
            out.resize(out.len() + level, b' ');
        }
    };
    out.push(brackets[0]);
    let mut any = false;
    for item in items {
        if any {
            out.push(b',');
        }
        any = true;
        new_line(out, inner);
        write_item(out, item, inner);
    }
    if any {
        new_line(out, level);
    }
    out.push(brackets[1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn members_carry_their_go_names_whether_set_or_not() {
        let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["CAP_SYS_ADMIN"]}});
        assert_eq!(
            shown(&context, "SecurityContext"),
            r#"{"Capabilities":{"Add":["CAP_SYS_ADMIN"],"Drop":null},"Privileged":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}"#
        );
        assert_eq!(shown(&json!([{"ip": "10.0.0.1"}]), "[PodIP"), r#"[{"IP":"10.0.0.1"}]"#);
    }

    #[test]
    fn types_with_tags_leave_out_what_is_empty() {
        let constraint = json!({"maxSkew": 1, "topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}});
        let shown = shown(&constraint, "TopologySpreadConstraint");
        assert!(shown.contains(r#""LabelSelector":{"matchLabels":{"a":"b"}}"#), "{shown}");
    }

    #[test]
    fn every_struct_that_is_named_is_there() {
        for (name, members) in types() {
            assert!(!members.is_empty(), "{name}");
            for member in members {
                let inner = member.form.trim_start_matches(['*', '[', '?']);
                assert!(
                    matches!(inner, "s" | "t" | "b" | "i" | "q" | "p" | "m") || types().contains_key(inner),
                    "{name}.{}",
                    member.go
                );
            }
        }
    }
}
