//! Field selectors: `metadata.name=a,status.phase!=Running`.
//!
//! Only equality is known; values are escaped with backslashes. Terms are kept in the order of their text, as
//! upstream sorts them. Mirrors apimachinery `pkg/fields/selector.go`.

use std::fmt;

use super::labels::SelectorError;

/// One term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    pub field: String,
    /// Unescaped.
    pub value: String,
    /// `!=` instead of `=`.
    pub negated: bool,
}

/// What an object's fields must be. The default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector(Vec<Term>);

impl Selector {
    pub fn everything() -> Self {
        Self::default()
    }

    /// `field=value`.
    pub fn equals(field: &str, value: &str) -> Self {
        Self(vec![Term { field: field.into(), value: value.into(), negated: false }])
    }

    /// Parses the text of `fieldSelector`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|part| !part.is_empty()).map(|part| {
            let (field, negated, value) = split_term(part)
                .ok_or_else(|| SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'")))?;
            let value = unescape(value)?;
            Ok(Term { field: field.into(), value, negated })
        });
        // A term of an empty field and an empty value says nothing and is dropped.
        let known = terms.filter(|term| !matches!(term, Ok(t) if t.field.is_empty() && t.value.is_empty()));
        known.collect::<Result<_, _>>().map(Self)
    }

    /// Renames fields and values (a kind's own names for its fields), or refuses them; a term that becomes
    /// empty is dropped.
    pub fn transform<E>(
        self,
        mut change: impl FnMut(String, String) -> Result<(String, String), E>,
    ) -> Result<Self, E> {
        let mut terms = Vec::with_capacity(self.0.len());
        for term in self.0 {
            let (field, value) = change(term.field, term.value)?;
            if !(field.is_empty() && value.is_empty()) {
                terms.push(Term { field, value, negated: term.negated });
            }
        }
        Ok(Self(terms))
    }

    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    pub fn terms(&self) -> &[Term] {
        &self.0
    }

    /// Matches an object whose fields `get` reads; what an object lacks is `""`.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> &'a str) -> bool {
        self.0.iter().all(|term| (get(&term.field) == term.value) != term.negated)
    }

    /// The value `field` must have, if a term says so.
    pub fn requires_exact_match(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|term| !term.negated && term.field == field).map(|term| term.value.as_str())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            let operator = if term.negated { "!=" } else { "=" };
            write!(f, "{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// Puts a backslash before `\`, `,` and `=`.
pub fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Undoes [`escape`]; refuses what it would not have written.
pub fn unescape(text: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let rest = other.map(String::from).unwrap_or_default();
                    return Err(SelectorError(format!("invalid field selector: invalid escape sequence: \\{rest}")));
                }
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(SelectorError(format!("invalid field selector: unescaped character in value: {code}")));
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// Cuts at commas that no backslash stands before.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Field, whether negated, value: at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let bytes = term.as_bytes();
    let at = (0..bytes.len()).find(|at| bytes[*at] == b'=' || bytes[*at..].starts_with(b"!="))?;
    let (field, rest) = term.split_at(at);
    match rest.strip_prefix("!=") {
        Some(value) => Some((field, true, value)),
        None => rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')).map(|value| (field, false, value)),
    }
}
