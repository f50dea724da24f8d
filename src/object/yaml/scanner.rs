//! Text to tokens, by libyaml's rules and in its words (go-yaml `scannerc.go`). Scalars are read in [`super::scalars`],
//! tags and directives in [`super::tags`].
//!
//! Linear in the text: keys that may be simple are looked up by token, and nesting is bounded.

use std::collections::{HashMap, VecDeque};

/// Deepest nesting of `[` and `{`, and of indented blocks.
const MAX_DEPTH: usize = 10_000;

/// Characters within which the `:` after a simple key has to come.
const MAX_SIMPLE_KEY: usize = 1_024;

/// A place in the text, in characters from 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    pub index: usize,
    pub line: usize,
    pub column: usize,
}

/// What is wrong.
#[derive(Debug)]
pub struct Problem {
    /// The line that is told, which is none for the first.
    pub line: Option<usize>,
    pub text: String,
    /// Not a problem of YAML, but of what is made of it.
    pub other: bool,
}

impl Problem {
    /// A scanner tells the line it is in, counted from 1.
    pub fn scanning(at: Mark, context: Mark, text: impl Into<String>) -> Self {
        let line = if at.line != 0 { at.line + 1 } else { context.line };
        Self { line: (line != 0).then_some(line), text: text.into(), other: false }
    }

    /// A parser counts from 0.
    pub fn parsing(at: Mark, context: Mark, text: &str) -> Self {
        let line = if at.line != 0 { at.line } else { context.line };
        Self { line: (line != 0).then_some(line), text: text.to_owned(), other: false }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self { line: None, text: text.into(), other: false }
    }

    pub fn other(text: impl Into<String>) -> Self {
        Self { line: None, text: text.into(), other: true }
    }
}

pub type Scan<T> = Result<T, Problem>;

#[derive(Debug, PartialEq)]
pub enum Kind {
    StreamStart,
    StreamEnd,
    Version(u8, u8),
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { value: String, plain: bool },
}

#[derive(Debug)]
pub struct Token {
    pub kind: Kind,
    pub start: Mark,
    pub end: Mark,
}

/// A place where a key without `?` may have begun.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    pub(super) mark: Mark,
    started: bool,
    tokens: VecDeque<Token>,
    /// Tokens that were taken.
    taken: usize,
    /// The first token is whole: no key has to be put before it any more.
    available: bool,
    pub(super) flow_level: usize,
    pub(super) indent: isize,
    indents: Vec<isize>,
    pub(super) simple_key_allowed: bool,
    simple_keys: Vec<SimpleKey>,
    by_token: HashMap<usize, usize>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
            mark: Mark::default(),
            started: false,
            tokens: VecDeque::new(),
            taken: 0,
            available: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: true,
            simple_keys: Vec::new(),
            by_token: HashMap::new(),
        }
    }

    /// Whether all of the text was looked at.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The next token, without taking it. After the end of the stream it stays there.
    pub fn peek(&mut self) -> Scan<&mut Token> {
        if !self.available {
            self.fetch_more()?;
            self.available = true;
        }
        let mark = self.mark;
        if self.tokens.is_empty() {
            self.tokens.push_back(Token { kind: Kind::StreamEnd, start: mark, end: mark });
        }
        self.tokens.front_mut().ok_or_else(|| Problem::plain("no more tokens"))
    }

    pub fn skip_token(&mut self) {
        self.available = false;
        self.taken += 1;
        self.tokens.pop_front();
    }

    // Characters.

    /// The byte so many bytes on; 0 after the end, which no text has.
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    pub(super) fn is_break(&self, ahead: usize) -> bool {
        match self.byte(ahead) {
            b'\r' | b'\n' => true,
            0xc2 => self.byte(ahead + 1) == 0x85,
            0xe2 => self.byte(ahead + 1) == 0x80 && matches!(self.byte(ahead + 2), 0xa8 | 0xa9),
            _ => false,
        }
    }

    pub(super) fn is_end(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0
    }

    pub(super) fn is_break_or_end(&self, ahead: usize) -> bool {
        self.is_end(ahead) || self.is_break(ahead)
    }

    pub(super) fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    fn width(&self) -> usize {
        match self.byte(0) {
            0 => 0,
            1..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        }
    }

    pub(super) fn skip(&mut self) {
        self.mark.index += 1;
        self.mark.column += 1;
        self.at += self.width();
    }

    /// Takes the character that is next.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        let width = self.width();
        out.extend_from_slice(self.text.get(self.at..self.at + width).unwrap_or_default());
        self.skip();
    }

    /// Takes a line break; the usual ones become `\n`.
    pub(super) fn take_line(&mut self, out: &mut Vec<u8>) {
        match self.byte(0) {
            b'\r' | b'\n' | 0xc2 => out.push(b'\n'),
            _ => out.extend_from_slice(self.text.get(self.at..self.at + 3).unwrap_or_default()),
        }
        self.skip_line();
    }

    pub(super) fn skip_line(&mut self) {
        if self.byte(0) == b'\r' && self.byte(1) == b'\n' {
            self.mark.index += 1;
            self.at += 1;
        }
        self.at += self.width();
        self.mark.index += 1;
        self.mark.line += 1;
        self.mark.column = 0;
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip();
        }
    }

    fn skip_comment(&mut self) {
        if self.byte(0) == b'#' {
            while !self.is_break_or_end(0) {
                self.skip();
            }
        }
    }

    /// What may follow the head of a block scalar or a directive: blanks, a comment, the end of the line.
    pub(super) fn end_of_line(&mut self, context: Mark) -> Scan<()> {
        self.skip_blanks();
        self.skip_comment();
        if !self.is_break_or_end(0) {
            return self.problem(context, "did not find expected comment or line break");
        }
        if self.is_break(0) {
            self.skip_line();
        }
        Ok(())
    }

    pub(super) fn problem<T>(&self, context: Mark, text: &str) -> Scan<T> {
        Err(Problem::scanning(self.mark, context, text))
    }

    /// Whether `---` or `...` stands here alone.
    pub(super) fn is_document_indicator(&self, mark: u8) -> bool {
        self.mark.column == 0 && (0..3).all(|ahead| self.byte(ahead) == mark) && self.is_blank_or_end(3)
    }

    // Tokens.

    fn fetch_more(&mut self) -> Scan<()> {
        loop {
            if !self.tokens.is_empty() {
                let Some(at) = self.by_token.get(&self.taken).copied() else { return Ok(()) };
                if !self.simple_key_is_valid(at)? {
                    return Ok(());
                }
            }
            if matches!(self.tokens.back(), Some(Token { kind: Kind::StreamEnd, .. })) {
                return Ok(());
            }
            self.fetch()?;
        }
    }

    fn push(&mut self, kind: Kind, start: Mark) {
        self.tokens.push_back(Token { kind, start, end: self.mark });
    }

    fn fetch(&mut self) -> Scan<()> {
        if !self.started {
            self.started = true;
            self.simple_keys.push(SimpleKey::default());
            self.push(Kind::StreamStart, self.mark);
            return Ok(());
        }
        self.skip_to_next_token();
        self.unroll_indent(self.mark.column as isize);
        let in_flow = self.flow_level > 0;
        match self.byte(0) {
            0 => self.fetch_stream_end(),
            b'%' if self.mark.column == 0 => self.fetch_directive(),
            b'-' if self.is_document_indicator(b'-') => self.fetch_document_indicator(Kind::DocumentStart),
            b'.' if self.is_document_indicator(b'.') => self.fetch_document_indicator(Kind::DocumentEnd),
            b'[' => self.fetch_flow_start(Kind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(Kind::FlowMappingStart),
            b']' => self.fetch_flow_end(Kind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(Kind::FlowMappingEnd),
            b',' => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.one_character(Kind::FlowEntry);
                Ok(())
            }
            b'-' if self.is_blank_or_end(1) => self.fetch_block_entry(),
            b'?' if in_flow || self.is_blank_or_end(1) => self.fetch_key(),
            b':' if in_flow || self.is_blank_or_end(1) => self.fetch_value(),
            b'*' | b'&' => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let token = self.scan_anchor()?;
                self.tokens.push_back(token);
                Ok(())
            }
            b'!' => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let token = self.scan_tag()?;
                self.tokens.push_back(token);
                Ok(())
            }
            style @ (b'|' | b'>') if !in_flow => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                let token = self.scan_block_scalar(style == b'|')?;
                self.tokens.push_back(token);
                Ok(())
            }
            quote @ (b'\'' | b'"') => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let token = self.scan_quoted_scalar(quote)?;
                self.tokens.push_back(token);
                Ok(())
            }
            _ if self.starts_plain_scalar() => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let token = self.scan_plain_scalar()?;
                self.tokens.push_back(token);
                Ok(())
            }
            _ => self.problem(self.mark, "found character that cannot start any token"),
        }
    }

    fn starts_plain_scalar(&self) -> bool {
        const INDICATORS: &[u8] = b"-?:,[]{}#&*!|>'\"%@`";
        let first = self.byte(0);
        if first == b'-' {
            return !self.is_blank(1);
        }
        if matches!(first, b'?' | b':') {
            return self.flow_level == 0 && !self.is_blank_or_end(1);
        }
        !self.is_blank_or_end(0) && !INDICATORS.contains(&first)
    }

    fn skip_to_next_token(&mut self) {
        loop {
            if self.at == 0 && (self.byte(0), self.byte(1), self.byte(2)) == (0xef, 0xbb, 0xbf) {
                self.skip();
            }
            // A tab is no indentation, so it is skipped only where none is meant.
            while self.byte(0) == b' ' || (self.byte(0) == b'\t' && (self.flow_level > 0 || !self.simple_key_allowed)) {
                self.skip();
            }
            self.skip_comment();
            if !self.is_break(0) {
                return;
            }
            self.skip_line();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    fn one_character(&mut self, kind: Kind) {
        let start = self.mark;
        self.skip();
        self.push(kind, start);
    }

    fn simple_key_is_valid(&mut self, at: usize) -> Scan<bool> {
        let now = self.mark;
        let Some(key) = self.simple_keys.get_mut(at) else { return Ok(false) };
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < now.line || key.mark.index + MAX_SIMPLE_KEY < now.index {
            if key.required {
                let context = key.mark;
                return self.problem(context, "could not find expected ':'");
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    fn save_simple_key(&mut self) -> Scan<()> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let key = SimpleKey {
            possible: true,
            required: self.flow_level == 0 && self.indent == self.mark.column as isize,
            token: self.taken + self.tokens.len(),
            mark: self.mark,
        };
        self.remove_simple_key()?;
        let at = self.simple_keys.len().saturating_sub(1);
        if let Some(last) = self.simple_keys.last_mut() {
            *last = key;
            self.by_token.insert(key.token, at);
        }
        Ok(())
    }

    fn remove_simple_key(&mut self) -> Scan<()> {
        let Some(key) = self.simple_keys.last_mut() else { return Ok(()) };
        if !key.possible {
            return Ok(());
        }
        let (token, context, required) = (key.token, key.mark, key.required);
        if required {
            return self.problem(context, "could not find expected ':'");
        }
        key.possible = false;
        self.by_token.remove(&token);
        Ok(())
    }

    fn too_deep<T>(&self, context: Mark) -> Scan<T> {
        self.problem(context, &format!("exceeded max depth of {MAX_DEPTH}"))
    }

    fn roll_indent(&mut self, column: usize, token: Option<usize>, kind: Kind, mark: Mark) -> Scan<()> {
        if self.flow_level > 0 || self.indent >= column as isize {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column as isize;
        if self.indents.len() > MAX_DEPTH {
            return self.too_deep(self.simple_keys.last().map(|key| key.mark).unwrap_or_default());
        }
        let token_at = token.map_or(self.tokens.len(), |token| token.saturating_sub(self.taken));
        self.tokens.insert(token_at.min(self.tokens.len()), Token { kind, start: mark, end: mark });
        Ok(())
    }

    fn unroll_indent(&mut self, column: isize) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(Kind::BlockEnd, self.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch_stream_end(&mut self) -> Scan<()> {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(Kind::StreamEnd, self.mark);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Scan<()> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let token = self.scan_directive()?;
        self.tokens.push_back(token);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, kind: Kind) -> Scan<()> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.mark;
        (0..3).for_each(|_| self.skip());
        self.push(kind, start);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: Kind) -> Scan<()> {
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey {
            token: self.taken + self.tokens.len(),
            mark: self.mark,
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        if self.flow_level > MAX_DEPTH {
            return self.too_deep(self.mark);
        }
        self.simple_key_allowed = true;
        self.one_character(kind);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: Kind) -> Scan<()> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            if let Some(key) = self.simple_keys.pop() {
                self.by_token.remove(&key.token);
            }
        }
        self.simple_key_allowed = false;
        self.one_character(kind);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Scan<()> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.problem(self.mark, "block sequence entries are not allowed in this context");
            }
            self.roll_indent(self.mark.column, None, Kind::BlockSequenceStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.one_character(Kind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Scan<()> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.problem(self.mark, "mapping keys are not allowed in this context");
            }
            self.roll_indent(self.mark.column, None, Kind::BlockMappingStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.one_character(Kind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Scan<()> {
        let last = self.simple_keys.len().saturating_sub(1);
        if self.simple_key_is_valid(last)? {
            let key = self.simple_keys.get(last).copied().unwrap_or_default();
            let token_at = key.token.saturating_sub(self.taken).min(self.tokens.len());
            self.tokens.insert(token_at, Token { kind: Kind::Key, start: key.mark, end: key.mark });
            self.roll_indent(key.mark.column, Some(key.token), Kind::BlockMappingStart, key.mark)?;
            if let Some(key) = self.simple_keys.last_mut() {
                key.possible = false;
            }
            self.by_token.remove(&key.token);
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return self.problem(self.mark, "mapping values are not allowed in this context");
                }
                self.roll_indent(self.mark.column, None, Kind::BlockMappingStart, self.mark)?;
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.one_character(Kind::Value);
        Ok(())
    }
}
