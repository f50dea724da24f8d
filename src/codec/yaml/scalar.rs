//! Text in the plainest style that keeps it (go-yaml v2 `emitterc.go`).

use super::{Writer, words::reads_as_other};

/// Where text stands.
#[derive(Clone, Copy)]
pub enum Place {
    /// Before a colon: on one line.
    Key,
    /// Anywhere else: it may go on at this indentation.
    Value { indent: usize },
}

/// Lines fold at the first space beyond this column.
const WIDTH: usize = 80;

enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Whether the text has more than one line, in YAML's sense.
pub fn is_multiline(text: &str) -> bool {
    text.chars().any(is_break)
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What go-yaml writes as it is. Tabs are not, nor is anything beyond the basic plane.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

fn style(text: &str, place: Place) -> Style {
    let found = Analysis::of(text);
    let wanted = match () {
        () if text.contains('\n') => Style::Literal,
        () if reads_as_other(text) => Style::Double,
        () => Style::Plain,
    };
    match wanted {
        Style::Plain if found.plain => Style::Plain,
        Style::Plain if found.single => Style::Single,
        Style::Literal if found.block && !matches!(place, Place::Key) => Style::Literal,
        _ => Style::Double,
    }
}

/// The styles that keep a text.
struct Analysis {
    plain: bool,
    single: bool,
    block: bool,
}

impl Analysis {
    fn of(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut breaks, mut break_space, mut space_break) = (false, false, false, false);
        let mut before: Option<char> = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let blank_next = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            let blank_before = before.is_none_or(|it| matches!(it, ' ' | '\t' | '\0') || is_break(it));
            indicators |= match c {
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
                    before.is_none()
                }
                '?' | '-' => before.is_none() && blank_next,
                ':' => blank_next,
                '#' => blank_before,
                _ => false,
            };
            special |= !is_printable(c);
            breaks |= is_break(c);
            break_space |= c == ' ' && before.is_some_and(is_break);
            space_break |= is_break(c) && before == Some(' ');
            before = Some(c);
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let edges = edge(text.chars().next()) || edge(before);
        let kept = !special && !space_break;
        Self {
            plain: kept && !indicators && !breaks && !break_space && !edges,
            single: kept && !break_space,
            block: kept && before != Some(' ') && !text.is_empty(),
        }
    }
}

impl Writer {
    pub(super) fn scalar(&mut self, text: &str, place: Place) {
        let (indent, folds) = match place {
            Place::Key => (0, false),
            Place::Value { indent } => (indent, true),
        };
        match style(text, place) {
            Style::Plain => self.folded(text, indent, folds, false),
            Style::Single => {
                self.put('\'');
                self.folded(text, indent, folds, true);
                self.put('\'');
            }
            Style::Double => self.double_quoted(text, indent, folds),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Plain text, or what stands between apostrophes, with its own in pairs.
    fn folded(&mut self, text: &str, indent: usize, folds: bool, quoted: bool) {
        let mut spaces = false;
        let mut breaks = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c == ' ' {
                let next = chars.peek().map(|(_, next)| *next);
                let inside = !quoted || (at > 0 && next.is_some());
                if folds && !spaces && self.column > WIDTH && inside && next != Some(' ') {
                    self.newline(indent);
                } else {
                    self.put(' ');
                }
                spaces = true;
                continue;
            }
            if is_break(c) {
                self.out.push(c);
                self.column = 0;
                breaks = true;
                continue;
            }
            if std::mem::take(&mut breaks) {
                self.pad(indent);
            }
            if c == '\'' && quoted {
                self.put('\'');
            }
            self.put(c);
            spaces = false;
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, folds: bool) {
        self.put('"');
        let mut spaces = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            match c {
                ' ' if folds && !spaces && self.column > WIDTH && at > 0 && next.is_some() => {
                    self.newline(indent);
                    if next == Some(' ') {
                        self.put('\\');
                    }
                }
                '"' | '\\' => self.put_text(if c == '"' { "\\\"" } else { "\\\\" }),
                c if is_printable(c) && !is_break(c) => self.put(c),
                c => self.escaped(c),
            }
            spaces = c == ' ';
        }
        self.put('"');
    }

    fn escaped(&mut self, c: char) {
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            c => {
                let code = u32::from(c);
                let text = match code {
                    0..0x100 => format!("\\x{code:02X}"),
                    0x100..0x10000 => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                return self.put_text(&text);
            }
        };
        self.put('\\');
        self.put(short);
    }

    /// Lines as they are, behind an indentation; the next thing after it begins on a line of its own.
    fn literal(&mut self, text: &str, indent: usize) {
        self.put('|');
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.put('2');
        }
        let mut ends = text.chars().rev().map(is_break);
        match (ends.next(), ends.next()) {
            (Some(true), Some(false)) => {}
            (Some(true), _) => self.put('+'),
            _ => self.put('-'),
        }
        self.newline(0);
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.out.push(c);
                self.column = 0;
                breaks = true;
            } else {
                if std::mem::take(&mut breaks) {
                    self.pad(indent);
                }
                self.put(c);
            }
        }
    }
}
