//! YAML text to a tree, as Kubernetes reads it: go-yaml (v2), then sigs.k8s.io/yaml's way to JSON. The rules are those of
//! YAML 1.1 (`yes` is true, `010` is eight), the words of errors are libyaml's.
//!
//! Layers, each knowing only the one before: `reader` (characters), `scanner` with `scalars` and `tags` (tokens), `events`,
//! `nodes` (a graph, since aliases are references), `resolve` (what a text means), `decode` (the tree). Only the first
//! document of a stream is read. Everything is linear in the text, nesting and what aliases multiply are bounded.

mod decode;
mod events;
mod nodes;
mod reader;
mod resolve;
mod scalars;
mod scanner;
mod tags;

use std::fmt;

use self::{decode::Decoder, events::Parser, scanner::Problem};
use super::{Value, parse_reporting_duplicates};

/// A tree, and what a strict reader would refuse the text for.
#[derive(Debug, Default)]
pub struct Document {
    pub value: Value,
    /// `line 5: key "k" already set in map`, in the order of the text.
    pub repeated: Vec<String>,
}

impl Document {
    /// The repeated names as the one error that they are to a strict reader.
    pub fn strict_error(&self) -> Option<String> {
        let list = self.repeated.join("\n  ");
        (!self.repeated.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {list}"))
    }
}

/// Why text is no YAML, as go-yaml says it: `yaml: line 2: did not find expected key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError(String);

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for YamlError {}

impl From<Problem> for YamlError {
    fn from(problem: Problem) -> Self {
        Self(match problem {
            Problem { other: true, text, .. } => text,
            Problem { line: Some(line), text, .. } => format!("yaml: line {line}: {text}"),
            Problem { line: None, text, .. } => format!("yaml: {text}"),
        })
    }
}

/// Reads the first document; an empty stream is null.
///
/// # Errors
/// What go-yaml or the making of JSON refuses.
pub fn parse(bytes: &[u8]) -> Result<Document, YamlError> {
    if let Some(value) = plain_json(bytes) {
        return Ok(Document { value, repeated: Vec::new() });
    }
    let input = reader::read(bytes);
    let mut parser = Parser::new(&input.text);
    let composed = nodes::compose(&mut parser);
    // The reader is always a little ahead: what it stumbles on is told before what comes of the end of the text.
    if let Some(problem) = input.problem
        && parser.scanner.is_at_end()
    {
        return Err(Problem::plain(problem).into());
    }
    let (nodes, root) = composed?;
    let Some(root) = root else { return Ok(Document::default()) };
    let mut decoder = Decoder::new(&nodes);
    let value = decoder.document(root)?;
    Ok(Document { value, repeated: decoder.repeated })
}

/// The tree of a text that is JSON of the kind that YAML reads in the same way. That is what clients send as YAML, and it
/// is read ten times quicker.
fn plain_json(bytes: &[u8]) -> Option<Value> {
    let text = bytes.trim_ascii_end();
    let is_plain = |(at, byte): (usize, &u8)| match byte {
        // YAML knows other escapes, and pairs of surrogates are none of its.
        b'\\' => !matches!(text.get(at + 1), Some(b'/' | b'u')),
        b' '..=b'~' => true,
        _ => false,
    };
    if text.first() != Some(&b'{') || !text.iter().enumerate().all(is_plain) {
        return None;
    }
    let parsed = parse_reporting_duplicates(text).ok()?;
    (parsed.duplicates.is_empty() && keys_are_short(&parsed.value)).then_some(parsed.value)
}

/// Whether all names are short enough to be keys without a mark.
fn keys_are_short(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().all(|(key, value)| key.len() < 500 && keys_are_short(value)),
        Value::Array(items) => items.iter().all(keys_are_short),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
