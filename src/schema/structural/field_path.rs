//! Paths into a schema, as rules and selectable fields write them: `.spec.color`, `['with.dots']`
//! (apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `ValidFieldPath`).

use super::check::additional;
use crate::object::Value;

/// A place that a path leads to.
pub struct Found<'s> {
    pub schema: &'s Value,
    /// The way there as errors print it, which tells equal paths apart from others.
    pub path: String,
    /// The first member on the way.
    pub first: String,
}

/// Follows a path from the root of a schema.
///
/// # Errors
/// Upstream's words for what is wrong with the path.
pub fn resolve<'s>(path: &str, schema: &'s Value, brackets: bool) -> Result<Found<'s>, String> {
    let mut found = Found { schema, path: String::new(), first: String::new() };
    let mut tokens = Tokens(path);
    const END: &str = "unexpected end of JSON path";
    while let Some(token) = tokens.next() {
        match token {
            "[" if !brackets => return Err("array notation is not allowed".into()),
            "[" => {
                let token = tokens.next().ok_or(END)?;
                let inner = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.filter(|_| token.len() >= 2);
                let name = unescape(inner.ok_or_else(|| format!("expected single quoted string but got {token}"))?)?;
                found.step(&name)?;
                match tokens.next().ok_or(END)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => found.step(tokens.next().ok_or(END)?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl Found<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        const NOWHERE: &str = "does not refer to a valid field";
        let properties = self.schema.object_at(&["properties"]).filter(|it| !it.is_empty());
        let named = properties.is_some();
        let inner = match properties {
            Some(properties) => properties.get(name),
            None => additional(self.schema),
        };
        self.schema = inner.ok_or(NOWHERE)?;
        self.path += &match (named, self.path.is_empty()) {
            (true, true) => name.to_owned(),
            (true, false) => format!(".{name}"),
            (false, _) => format!("[{name}]"),
        };
        if self.first.is_empty() {
            self.first = name.to_owned();
        }
        Ok(())
    }
}

/// Delimiters one by one, and what stands between them; a quoted string is one piece.
struct Tokens<'p>(&'p str);

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let first = self.0.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = self.0.as_bytes();
                let closes = |at: &usize| bytes.get(*at) == Some(&b'\'') && bytes.get(*at - 1) != Some(&b'\\');
                (1..bytes.len()).find(closes).map_or(bytes.len(), |at| at + 1)
            }
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(c @ ('\'' | '"' | '\\')) => c,
            Some(other) => return Err(format!("invalid string literal: invalid escape char {other}")),
            None => return Err("invalid string literal: invalid escape char".into()),
        });
    }
    Ok(out)
}
