//! JSON text to a tree, with Go's error texts (encoding/json's scanner, as sigs.k8s.io/json carries it).

use super::{
    Key, Map, Value,
    path::{FieldPath, Room},
};

/// Deepest nesting of arrays and objects, the same as Go's. Walks over the tree recurse, so that whoever handles such a tree
/// needs [`DEEP_STACK`].
pub const MAX_DEPTH: usize = 10_000;

/// The stack of threads that handle trees of any depth, in bytes. Only what is used of it costs memory.
pub const DEEP_STACK: usize = 64 << 20;

/// Why text is no JSON: the message Go gives and where (bytes from the start).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub message: String,
    pub offset: usize,
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for JsonError {}

/// A tree and the paths of members that were written more than once (`spec.ports[0].name`), at most 100.
#[derive(Debug, Default)]
pub struct Parsed {
    pub value: Value,
    pub duplicates: Vec<String>,
    /// What members had before they were written again: to whoever knows their types, several are one.
    pub replaced: Vec<(FieldPath, Value)>,
}

const MAX_DUPLICATES: usize = 100;

/// Steps that the paths of replaced values may have together; what is beyond is replaced like anything else.
const MAX_REPLACED_STEPS: usize = 1 << 20;

/// Parses one document; the last of several members with one name wins silently.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    Parser::new(text).document()
}

/// Parses one document that was printed here, without one member of its root: a small part of a large object costs
/// little more than finding it. What is left out is not judged.
///
/// # Errors
/// As [`parse`], as far as it looks.
pub fn parse_without(text: &[u8], member: &'static str) -> Result<Value, JsonError> {
    Parser { left_out: Some(member), ..Parser::new(text) }.document()
}

/// Parses one document and reports repeated members.
pub fn parse_reporting_duplicates(text: &[u8]) -> Result<Parsed, JsonError> {
    let mut parser = Parser { path: Some(FieldPath::default()), ..Parser::new(text) };
    let value = parser.document()?;
    Ok(Parsed { value, duplicates: parser.duplicates, replaced: parser.replaced })
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    /// Where the parser is; kept only when duplicates are asked for.
    path: Option<FieldPath>,
    duplicates: Vec<String>,
    room: Room,
    /// A member of the root that nobody wants to see.
    left_out: Option<&'static str>,
    replaced: Vec<(FieldPath, Value)>,
    replaced_steps: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            path: None,
            duplicates: Vec::new(),
            room: Room::default(),
            left_out: None,
            replaced: Vec::new(),
            replaced_steps: 0,
        }
    }

    fn document(&mut self) -> Result<Value, JsonError> {
        self.space();
        let value = self.value()?;
        self.space();
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.unexpected("after top-level value")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn error(&self, message: String) -> JsonError {
        JsonError { message, offset: self.at }
    }

    /// Go's `invalid character 'x' <context>`, or its end-of-input text.
    fn unexpected(&self, context: &str) -> JsonError {
        match self.peek() {
            None => self.error("unexpected end of JSON input".into()),
            Some(byte) => {
                let quoted = self.wide_character().unwrap_or_else(|| quote_byte(byte));
                self.error(format!("invalid character {quoted} {context}"))
            }
        }
    }

    /// A character beyond ASCII, quoted as Go quotes a rune.
    fn wide_character(&self) -> Option<String> {
        let rest = &self.text[self.at..];
        let head = rest.get(..rest.len().min(4))?;
        let valid = match std::str::from_utf8(head) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
        };
        let c = valid.chars().next().filter(|c| !c.is_ascii())?;
        let printable = !c.is_control() && !matches!(c, '\u{ad}' | '\u{feff}' | '\u{2028}' | '\u{2029}');
        Some(if printable { format!("'{c}'") } else { format!("'\\u{:04x}'", c as u32) })
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        match self.peek() {
            Some(b'{') => self.nested(Self::members),
            Some(b'[') => self.nested(Self::items),
            Some(b'"') => Ok(Value::Str(self.string()?)),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<Value, JsonError>) -> Result<Value, JsonError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("exceeded max depth".into()));
        }
        self.depth += 1;
        self.at += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        for (index, expected) in word.bytes().enumerate() {
            if self.peek() != Some(expected) {
                let context = format!("in literal {word} (expecting {})", quote_byte(expected));
                debug_assert!(index > 0, "called on the word's first letter");
                return Err(self.unexpected(&context));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn items(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            if let Some(path) = &mut self.path {
                path.push_index(items.len());
            }
            self.space();
            items.push(self.value()?);
            if let Some(path) = &mut self.path {
                path.pop();
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    fn members(&mut self) -> Result<Value, JsonError> {
        let mut members: Vec<(Key, Value)> = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::object());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let key = self.key()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            self.space();
            if self.depth == 1 && self.left_out == Some(key.as_str()) {
                self.skip();
            } else {
                if let Some(path) = &mut self.path {
                    path.push_key(&key);
                }
                let value = self.value()?;
                if let Some(path) = &mut self.path {
                    path.pop();
                }
                members.push((key, value));
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(self.close(members)));
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    /// Goes to the end of the value that begins here.
    fn skip(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' if depth == 0 => return,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Goes from the first quote of a string to its last.
    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => return,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    fn close(&mut self, members: Vec<(Key, Value)>) -> Map {
        let Self { path, duplicates, room, replaced: all, replaced_steps: steps, .. } = self;
        let mut last: Option<Key> = None;
        Map::from_members_replacing(members, |key, replaced| {
            let Some(path) = path else { return };
            path.push_key(key);
            if replaced.is_object() && *steps < MAX_REPLACED_STEPS {
                *steps += path.steps().len();
                all.push((path.clone(), replaced));
            }
            // Go reports each repeated name once per object.
            if last.as_ref() != Some(key) && duplicates.len() < MAX_DUPLICATES {
                duplicates.extend(path.text_within(room));
            }
            path.pop();
            last = Some(key.clone());
        })
    }

    fn key(&mut self) -> Result<Key, JsonError> {
        let start = self.at + 1;
        let end = self.plain_end(start);
        if self.text.get(end) == Some(&b'"')
            && let Ok(text) = std::str::from_utf8(&self.text[start..end])
        {
            self.at = end + 1;
            return Ok(Key::new(text));
        }
        Ok(Key::new(&self.string()?))
    }

    /// The first byte from `start` on that ends a run of plain string content.
    fn plain_end(&self, start: usize) -> usize {
        let rest = &self.text[start..];
        start + rest.iter().position(|b| *b == b'"' || *b == b'\\' || *b < 0x20).unwrap_or(rest.len())
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let end = self.plain_end(self.at);
            // Go replaces bytes that are no UTF-8 by U+FFFD.
            out.push_str(&String::from_utf8_lossy(&self.text[self.at..end]));
            self.at = end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                _ => return Err(self.unexpected("in string")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let plain = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                out.push(self.unicode()?);
                return Ok(());
            }
            None => return Err(self.unexpected("in string")),
            Some(byte) => return Err(self.error(format!("invalid escape sequence `\\{}` in string", char::from(byte)))),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.hex4()?;
        if let Some(it) = char::from_u32(first) {
            return Ok(it);
        }
        // A surrogate: half of a pair, or replaced as Go does.
        if (0xD800..0xDC00).contains(&first) && self.text.get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or('\u{FFFD}'));
            }
            self.at = back;
        }
        Ok('\u{FFFD}')
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            match self.peek().and_then(|b| (b as char).to_digit(16)) {
                Some(digit) => code = code * 16 + digit,
                None => return Err(self.unexpected("in \\u hexadecimal character escape")),
            }
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
            self.digits();
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("");
        if whole && let Ok(it) = text.parse::<i64>() {
            return Ok(Value::Int(it));
        }
        match text.parse::<f64>() {
            Ok(it) if it.is_finite() => Ok(Value::Float(it)),
            _ => Err(JsonError {
                message: format!("json: cannot unmarshal number {text} into Go value of type float64"),
                offset: start,
            }),
        }
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }
}

/// Go's quoteChar.
fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        b'\\' => r"'\\'".into(),
        b'\n' => r"'\n'".into(),
        b'\r' => r"'\r'".into(),
        b'\t' => r"'\t'".into(),
        0x07 => r"'\a'".into(),
        0x08 => r"'\b'".into(),
        0x0b => r"'\v'".into(),
        0x0c => r"'\f'".into(),
        0x00..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        // Go quotes the byte as a string, so a high byte is shown as the code point of the same number.
        0x80..=0x9f | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", byte as char),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().message
    }

    #[test]
    fn errors_read_as_gos() {
        assert_eq!(message("{"), "unexpected end of JSON input");
        assert_eq!(message(""), "unexpected end of JSON input");
        assert_eq!(message("{a"), "invalid character 'a' looking for beginning of object key string");
        assert_eq!(message("nul"), "unexpected end of JSON input");
        assert_eq!(message("nulx"), "invalid character 'x' in literal null (expecting 'l')");
        assert_eq!(message("{\"a\":1]"), "invalid character ']' after object key:value pair");
        assert_eq!(message("[1 2]"), "invalid character '2' after array element");
        assert_eq!(message("1 2"), "invalid character '2' after top-level value");
        assert_eq!(message("\"\n\""), r"invalid character '\n' in string");
        assert_eq!(message("01"), "invalid character '1' after top-level value");
    }

    #[test]
    fn integers_stay_exact_and_larger_ones_become_doubles() {
        assert_eq!(parse(b"9223372036854775807"), Ok(Value::Int(i64::MAX)));
        assert_eq!(parse(b"9223372036854775808"), Ok(Value::Float(9223372036854775808.0)));
        assert_eq!(parse(b"-0"), Ok(Value::Int(0)));
        assert_eq!(parse(b"1.0"), Ok(Value::Float(1.0)));
        assert!(parse(b"1e400").is_err());
    }

    #[test]
    fn repeated_members_are_named_by_path_and_the_last_wins() {
        let parsed =
            parse_reporting_duplicates(br#"{"spec":{"x":1,"l":[{"k":1,"k":2}],"x":2},"a":1,"a":2,"a":3}"#).unwrap();
        assert_eq!(parsed.duplicates, ["spec.l[0].k", "spec.x", "a"]);
        assert_eq!(parsed.value.i64_at(&["spec", "x"]), Some(2));
        assert_eq!(parsed.value.i64_at(&["a"]), Some(3));
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow() {
        let deep = || {
            assert_eq!(message(&"[".repeat(200_000)), "exceeded max depth");
            let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
            let value = parse(deep.as_bytes()).unwrap();
            assert_eq!(crate::object::to_string(&value), deep);
            assert!(value.clone() == value);
        };
        std::thread::Builder::new().stack_size(DEEP_STACK).spawn(deep).unwrap().join().unwrap();
    }

    #[test]
    fn escapes_and_surrogates_are_read_as_go_reads_them() {
        assert_eq!(parse(br#""\u00e9\ud83d\ude00\ud800x""#), Ok(Value::Str("é😀\u{FFFD}x".into())));
        assert_eq!(parse(b"\"\xff\""), Ok(Value::Str("\u{FFFD}".into())));
    }

    #[test]
    fn what_is_left_out_is_a_member_of_the_root_alone() {
        let text = br#"{"a":{"spec":1},"spec":{"x":["}\\\"]",{"y":-1.5e3}],"z":null} ,"b":[true],"spec":"]" }"#;
        assert_eq!(parse_without(text, "spec"), parse(br#"{"a":{"spec":1},"b":[true]}"#));
        assert_eq!(parse_without(text, "c"), parse(text));
        for broken in [&br#"{"spec":"#[..], br#"{"spec":"\"#, br#"{"spec":{"a":1"#, br#"{"spec":1]"#] {
            assert!(parse_without(broken, "spec").is_err(), "{}", String::from_utf8_lossy(broken));
        }
    }

    #[test]
    fn a_million_members_are_sorted_once() {
        let text = format!("{{{}}}", (0..1_000_000).rev().map(|n| format!("\"{n}\":1")).collect::<Vec<_>>().join(","));
        assert_eq!(parse(text.as_bytes()).unwrap().as_object().unwrap().len(), 1_000_000);
    }
}
