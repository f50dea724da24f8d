//! Go's regular expressions (RE2): read by Go's rules, refused in Go's words, matched by the `regex` crate.
//!
//! The two differ in what they read and in what classes mean (`\d` is ASCII in Go, `a**` is refused there), so a
//! pattern is parsed as `regexp/syntax` parses it with Perl flags and written out anew. Compiled expressions take tens
//! of kilobytes each, so they are made on first use and kept in one bounded cache.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use regex::bytes::{Regex, RegexBuilder};

/// Compiled expressions of usual size kept at once.
const KEPT: usize = 512;
/// Most that one of usual size takes, in bytes.
const USUAL: usize = 256 << 10;
/// Larger ones kept at once.
const LARGE_KEPT: usize = 4;
/// Most a compiled expression may take, in bytes; Go's own limit is of the same order.
const LARGEST: usize = 32 << 20;
/// Go's limit of a repetition and of nested ones multiplied.
const MOST_REPEATS: i64 = 1000;
/// Go's limit of nesting.
const DEEPEST: usize = 1000;

/// The expression of a pattern.
///
/// # Errors
/// What Go says of a pattern it does not read.
pub fn compiled(pattern: &str) -> Result<Arc<Regex>, String> {
    static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
    let cache = CACHE.get_or_init(Mutex::default);
    if let Some(found) = cache.lock().find(pattern) {
        return Ok(found);
    }
    let text = translate(pattern)?;
    let build = |limit: usize| RegexBuilder::new(&text).size_limit(limit).nest_limit(4 * DEEPEST as u32).build();
    let (made, large) = match build(USUAL) {
        Ok(made) => (made, false),
        Err(_) => (build(LARGEST).map_err(|_| error("expression too large", pattern))?, true),
    };
    let made = Arc::new(made);
    cache.lock().keep(pattern, &made, large);
    Ok(made)
}

/// Bounded in number and in bytes: whoever writes schemas decides what is in it.
#[derive(Default)]
struct Cache {
    usual: HashMap<Box<str>, Arc<Regex>>,
    large: HashMap<Box<str>, Arc<Regex>>,
}

impl Cache {
    fn find(&self, pattern: &str) -> Option<Arc<Regex>> {
        self.usual.get(pattern).or_else(|| self.large.get(pattern)).cloned()
    }

    fn keep(&mut self, pattern: &str, made: &Arc<Regex>, large: bool) {
        let (kept, most) = if large { (&mut self.large, LARGE_KEPT) } else { (&mut self.usual, KEPT) };
        if kept.len() >= most {
            kept.clear();
        }
        kept.insert(pattern.into(), made.clone());
    }
}

/// Writes a pattern of Go's in the syntax of the `regex` crate.
///
/// # Errors
/// What Go says of a pattern it does not read.
pub fn translate(pattern: &str) -> Result<String, String> {
    Parser {
        whole: pattern,
        rest: pattern,
        flags: Flags::default(),
        groups: Vec::new(),
        branch: Vec::new(),
        branches: Vec::new(),
    }
    .run()
}

fn error(code: &str, expr: &str) -> String {
    format!("error parsing regexp: {code}: `{expr}`")
}

const INVALID_RANGE: &str = "invalid character class range";
const INVALID_ESCAPE: &str = "invalid escape sequence";

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    fold_case: bool,
    multi_line: bool,
    dot_newline: bool,
    non_greedy: bool,
}

/// Something that can be repeated, written out.
struct Atom {
    text: String,
    /// How often what is in it is repeated at most, by counted repetitions.
    repeats: i64,
}

/// An open parenthesis: what was before it.
struct Group {
    opening: &'static str,
    flags: Flags,
    branch: Vec<Atom>,
    branches: Vec<Vec<Atom>>,
}

struct Parser<'p> {
    whole: &'p str,
    rest: &'p str,
    flags: Flags,
    groups: Vec<Group>,
    branch: Vec<Atom>,
    branches: Vec<Vec<Atom>>,
}

impl<'p> Parser<'p> {
    fn run(mut self) -> Result<String, String> {
        let mut last_repeat: Option<&'p str> = None;
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            let repeated = last_repeat.take();
            match c {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.skip(1);
                    let branch = std::mem::take(&mut self.branch);
                    self.branches.push(branch);
                }
                '^' => self.take(1, if self.flags.multi_line { "(?m:^)" } else { "^" }),
                '$' => self.take(1, if self.flags.multi_line { "(?m:$)" } else { "$" }),
                '.' => self.take(1, if self.flags.dot_newline { "(?s:.)" } else { "." }),
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.repeat(&c.to_string(), None, before, repeated)?;
                    last_repeat = Some(before);
                }
                '{' => match counts(before) {
                    Some((min, max, length)) => {
                        self.skip(length);
                        let named = before.get(..length).unwrap_or_default();
                        if !(0..=MOST_REPEATS).contains(&min) || max > MOST_REPEATS || (max >= 0 && min > max) {
                            return Err(error("invalid repeat count", named));
                        }
                        self.repeat(named, Some((min, max)), before, repeated)?;
                        last_repeat = Some(before);
                    }
                    None => {
                        self.skip(1);
                        self.literal('{');
                    }
                },
                '\\' => self.backslash()?,
                other => {
                    self.skip(other.len_utf8());
                    self.literal(other);
                }
            }
        }
        if !self.groups.is_empty() {
            return Err(error("missing closing )", self.whole));
        }
        Ok(alternation(self.branches, self.branch))
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn take(&mut self, bytes: usize, text: &str) {
        self.skip(bytes);
        self.push(text.to_owned());
    }

    fn push(&mut self, text: String) {
        self.branch.push(Atom { text, repeats: 1 });
    }

    fn folded(&self, text: String) -> String {
        if self.flags.fold_case { format!("(?i:{text})") } else { text }
    }

    fn literal(&mut self, c: char) {
        let text = self.folded(regex::escape(c.encode_utf8(&mut [0; 4])));
        self.push(text);
    }

    /// What stands between `before` and where reading is now.
    fn read_since(&self, before: &'p str) -> &'p str {
        before.get(..before.len() - self.rest.len()).unwrap_or(before)
    }

    fn repeat(
        &mut self,
        operator: &str,
        counts: Option<(i64, i64)>,
        before: &'p str,
        last: Option<&'p str>,
    ) -> Result<(), String> {
        let mut lazy = self.flags.non_greedy;
        if self.rest.starts_with('?') {
            self.skip(1);
            lazy = !lazy;
        }
        if let Some(last) = last {
            return Err(error("invalid nested repetition operator", self.read_since(last)));
        }
        let read = self.read_since(before);
        let Some(mut atom) = self.branch.pop() else {
            return Err(error("missing argument to repetition operator", read));
        };
        if let Some((min, max)) = counts {
            let most = if max < 0 { min } else { max };
            atom.repeats = if most == 0 { 1 } else { atom.repeats.saturating_mul(most.max(1)) };
            if (min >= 2 || max >= 2) && atom.repeats > MOST_REPEATS {
                return Err(error("invalid repeat count", read));
            }
        }
        atom.text = format!("(?:{}){operator}{}", atom.text, if lazy { "?" } else { "" });
        self.branch.push(atom);
        Ok(())
    }

    fn open(&mut self) -> Result<(), String> {
        let mut opening = "(";
        let flags = self.flags;
        if self.rest.starts_with("(?") {
            match self.perl_group()? {
                Some(text) => opening = text,
                // Flags for the rest of the group.
                None => return Ok(()),
            }
        } else {
            self.skip(1);
        }
        if self.groups.len() >= DEEPEST {
            return Err("error parsing regexp: expression nests too deeply: `".to_owned() + self.whole + "`");
        }
        let (branch, branches) = (std::mem::take(&mut self.branch), std::mem::take(&mut self.branches));
        self.groups.push(Group { opening, flags, branch, branches });
        Ok(())
    }

    /// Reads `(?…`: the opening of a group, or `None` where only flags are set.
    fn perl_group(&mut self) -> Result<Option<&'static str>, String> {
        let all = self.rest;
        let name_at = match () {
            () if all.len() > 4 && all.starts_with("(?P<") => Some(4),
            () if all.len() > 3 && all.starts_with("(?<") => Some(3),
            () => None,
        };
        if let Some(at) = name_at {
            let Some(end) = all.find('>') else { return Err(error("invalid named capture", all)) };
            let name = all.get(at..end).unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(error("invalid named capture", all.get(..=end).unwrap_or(all)));
            }
            self.skip(end + 1);
            return Ok(Some("("));
        }
        self.skip(2);
        let mut flags = self.flags;
        let (mut on, mut saw) = (true, false);
        while let Some(c) = self.rest.chars().next() {
            self.skip(c.len_utf8());
            match c {
                'i' => flags.fold_case = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_newline = on,
                'U' => flags.non_greedy = on,
                '-' if on => {
                    (on, saw) = (false, false);
                    continue;
                }
                ':' | ')' if on || saw => {
                    if c == ')' {
                        self.flags = flags;
                        return Ok(None);
                    }
                    // The group ends with the flags it began with, which `open` has kept.
                    self.flags = flags;
                    return Ok(Some("(?:"));
                }
                _ => return Err(error("invalid or unsupported Perl syntax", self.read_since(all))),
            }
            saw = true;
        }
        Err(error("invalid or unsupported Perl syntax", all))
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(group) = self.groups.pop() else { return Err(error("unexpected )", self.whole)) };
        self.skip(1);
        let (branches, branch) = (std::mem::take(&mut self.branches), std::mem::take(&mut self.branch));
        let repeats = branches.iter().flatten().chain(&branch).map(|atom| atom.repeats).max().unwrap_or(1);
        let text = format!("{}{})", group.opening, alternation(branches, branch));
        (self.branch, self.branches, self.flags) = (group.branch, group.branches, group.flags);
        self.branch.push(Atom { text, repeats });
        Ok(())
    }

    fn backslash(&mut self) -> Result<(), String> {
        match self.rest.as_bytes().get(1) {
            Some(b'A') => self.take(2, r"\A"),
            Some(b'z') => self.take(2, r"\z"),
            Some(b'b') => self.take(2, r"(?-u:\b)"),
            Some(b'B') => self.take(2, r"(?-u:\B)"),
            Some(b'C') => return Err(error(INVALID_ESCAPE, self.rest.get(..2).unwrap_or_default())),
            Some(b'Q') => {
                self.skip(2);
                let (literal, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.rest = rest;
                literal.chars().for_each(|c| self.literal(c));
            }
            Some(b'p' | b'P') => {
                let text = self.unicode_class()?;
                self.push(self.folded(text));
            }
            Some(letter) if perl_class(*letter).is_some() => {
                let text =
                    perl_class(*letter).map(|(negated, set)| format!("[{}{set}]", if negated { "^" } else { "" }));
                self.skip(2);
                self.push(self.folded(text.unwrap_or_default()));
            }
            _ => {
                let c = self.escape()?;
                match char::from_u32(c) {
                    Some(c) => self.literal(c),
                    // A half of a pair of surrogates is in no text.
                    None => self.push(r"[^\s\S]".to_owned()),
                }
            }
        }
        Ok(())
    }

    /// A single escaped character; reading stands at its backslash.
    fn escape(&mut self) -> Result<u32, String> {
        let start = self.rest;
        self.skip(1);
        let Some(c) = self.rest.chars().next() else {
            return Err(error("trailing backslash at end of expression", ""));
        };
        self.skip(c.len_utf8());
        let octal = |rest: &str| rest.bytes().next().filter(|byte| (b'0'..=b'7').contains(byte));
        match c {
            '0'..='7' if c == '0' || octal(self.rest).is_some() => {
                let mut code = c as u32 - '0' as u32;
                for _ in 1..3 {
                    let Some(digit) = octal(self.rest) else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.skip(1);
                }
                return Ok(code);
            }
            'x' => {
                if let Some(code) = self.hexadecimal() {
                    return Ok(code);
                }
            }
            'a' => return Ok(7),
            'f' => return Ok(12),
            'n' => return Ok(10),
            'r' => return Ok(13),
            't' => return Ok(9),
            'v' => return Ok(11),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok(c as u32),
            _ => {}
        }
        Err(error(INVALID_ESCAPE, self.read_since(start)))
    }

    /// What follows `\x`; `None` where it is no number.
    fn hexadecimal(&mut self) -> Option<u32> {
        let next = |parser: &mut Self| {
            let c = parser.rest.chars().next()?;
            parser.skip(c.len_utf8());
            Some(c)
        };
        let first = next(self)?;
        if first != '{' {
            let high = first.to_digit(16)?;
            return Some(high * 16 + next(self)?.to_digit(16)?);
        }
        let (mut code, mut digits) = (0u32, 0);
        loop {
            match next(self)? {
                '}' => return (digits > 0).then_some(code),
                c => code = code * 16 + c.to_digit(16)?,
            }
            if code > 0x10FFFF {
                return None;
            }
            digits += 1;
        }
    }

    /// `\pN` or `\p{Name}`, written out as an item that may stand in brackets and alone.
    fn unicode_class(&mut self) -> Result<String, String> {
        let start = self.rest;
        let mut negated = start.as_bytes().get(1) == Some(&b'P');
        self.skip(2);
        let Some(c) = self.rest.chars().next() else {
            return Err(error(INVALID_RANGE, start));
        };
        let mut name = if c == '{' {
            let Some(end) = self.rest.find('}') else { return Err(error(INVALID_RANGE, start)) };
            let name = self.rest.get(1..end).unwrap_or_default();
            self.skip(end + 1);
            name
        } else {
            let name = self.rest.get(..c.len_utf8()).unwrap_or_default();
            self.skip(c.len_utf8());
            name
        };
        if let Some(bare) = name.strip_prefix('^') {
            negated = !negated;
            name = bare;
        }
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-'));
        let letter = if negated { 'P' } else { 'p' };
        // General categories and scripts, and no other properties.
        let known = ["gc", "sc"].iter().map(|kind| format!(r"\{letter}{{{kind}={name}}}"));
        let known = known.filter(|_| plain).find(|text| Regex::new(text).is_ok());
        match known {
            Some(text) => Ok(text),
            None if plain && name.eq_ignore_ascii_case("any") => Ok(format!(r"\{letter}{{any}}")),
            None if plain && name.eq_ignore_ascii_case("ascii") => Ok(format!(r"\{letter}{{ascii}}")),
            None if plain && name.eq_ignore_ascii_case("assigned") => Ok(format!(r"\{letter}{{assigned}}")),
            None => Err(error(INVALID_RANGE, self.read_since(start))),
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        self.skip(1);
        let mut text = String::from("[");
        if self.rest.starts_with('^') {
            text.push('^');
            self.skip(1);
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if self.rest.starts_with("[:") && self.rest.len() > 2 && self.named_class(&mut text)? {
                continue;
            }
            if self.rest.starts_with(r"\p") || self.rest.starts_with(r"\P") {
                text += &self.unicode_class()?;
                continue;
            }
            let letter = self.rest.strip_prefix('\\').and_then(|rest| rest.bytes().next());
            if let Some((negated, set)) = letter.and_then(perl_class) {
                self.skip(2);
                text += &if negated { format!("[^{set}]") } else { set.to_owned() };
                continue;
            }
            let range = self.rest;
            let low = self.class_char(whole)?;
            let mut high = low;
            if self.rest.starts_with('-') && self.rest.len() >= 2 && !self.rest.starts_with("-]") {
                self.skip(1);
                high = self.class_char(whole)?;
                if high < low {
                    return Err(error(INVALID_RANGE, self.read_since(range)));
                }
            }
            text += &format!(r"\x{{{low:X}}}");
            if high > low {
                text += &format!(r"-\x{{{high:X}}}");
            }
        }
        self.skip(1);
        text.push(']');
        self.push(self.folded(text));
        Ok(())
    }

    /// `[:alpha:]`; `false` where there is none.
    fn named_class(&mut self, text: &mut String) -> Result<bool, String> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        let Some(end) = self.rest.get(2..).and_then(|rest| rest.find(":]")) else { return Ok(false) };
        let named = self.rest.get(..end + 4).unwrap_or_default();
        let name = self.rest.get(2..end + 2).unwrap_or_default();
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(error(INVALID_RANGE, named));
        }
        *text += named;
        self.skip(end + 4);
        Ok(true)
    }

    fn class_char(&mut self, whole: &str) -> Result<u32, String> {
        let Some(c) = self.rest.chars().next() else { return Err(error("missing closing ]", whole)) };
        if c == '\\' {
            let code = self.escape()?;
            // A half of a pair of surrogates, which no text has, is left out of a set by its neighbour.
            return Ok(if (0xD800..0xE000).contains(&code) { 0xD7FF } else { code });
        }
        self.skip(c.len_utf8());
        Ok(c as u32)
    }
}

/// The set behind `\d` and its like, for use in brackets, and whether the letter means its opposite.
fn perl_class(letter: u8) -> Option<(bool, &'static str)> {
    let set = match letter.to_ascii_lowercase() {
        b'd' => "0-9",
        b's' => r"\t\n\x0C\r\x20",
        b'w' => "0-9A-Za-z_",
        _ => return None,
    };
    Some((letter.is_ascii_uppercase(), set))
}

fn alternation(branches: Vec<Vec<Atom>>, last: Vec<Atom>) -> String {
    let concatenated = |atoms: Vec<Atom>| atoms.into_iter().map(|atom| atom.text).collect::<String>();
    branches.into_iter().chain([last]).map(concatenated).collect::<Vec<_>>().join("|")
}

/// Reads `{n}`, `{n,}` or `{n,m}`: the two numbers (-1 for none, or for ones too large) and the length.
fn counts(text: &str) -> Option<(i64, i64, usize)> {
    let rest = text.strip_prefix('{')?;
    let (mut min, rest) = number(rest)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (min, rest),
        Some(rest) if rest.starts_with('}') => (-1, rest),
        Some(rest) => {
            let (max, rest) = number(rest)?;
            if max < 0 {
                min = -1;
            }
            (max, rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    Some((min, max, text.len() - rest.len()))
}

fn number(text: &str) -> Option<(i64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if number.is_empty() || (number.len() > 1 && number.starts_with('0')) {
        return None;
    }
    let value = number.parse::<i64>().ok().filter(|value| *value < 100_000_000);
    Some((value.unwrap_or(-1), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compiled(pattern).unwrap().is_match(text.as_bytes())
    }

    #[test]
    fn classes_are_ascii_as_in_go() {
        assert!(matches(r"^\d+$", "123") && !matches(r"^\d+$", "٣"));
        assert!(!matches(r"^\w$", "é") && matches(r"^\W$", "é"));
        assert!(!matches(r"^\s$", "\u{a0}") && matches(r"^[\s\d]+$", "1 \t2") && matches(r"^[^\D]$", "7"));
        assert!(matches(r"\bfoo\b", "a foo!") && matches(r"é\b?foo", "éfoo"));
    }

    #[test]
    fn what_only_rust_gives_a_meaning_is_plain_in_go() {
        assert!(matches(r"^[a&&b]$", "&") && matches(r"^[[a]$", "[") && matches(r"^[a~~b]$", "~"));
        assert!(matches(r"^a{,2}$", "a{,2}") && matches(r"^\<\>$", "<>") && matches(r"^x{$", "x{"));
        assert!(matches(r"^\Qa.b\E.$", "a.bc") && matches(r"^\101$", "A") && matches(r"^\x{41}\x41$", "AA"));
        assert!(matches("(?i)straße", "STRAßE") && matches("(?i:a)b", "Ab") && !matches("(?i:a)b", "AB"));
        assert!(matches("^a.c$", "abc") && !matches("^a.c$", "a\nc") && matches("(?s)^a.c$", "a\nc"));
        assert!(matches("^(?P<name>x)(?<other>y)$", "xy") && matches("a||b", "") && matches(r"^\pL\p{Greek}$", "aα"));
        assert!(matches("^[]a]+$", "]a") && matches("^[a-]+$", "a-") && matches("^[[:alpha:]]+$", "az"));
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        for (pattern, why) in [
            ("[a", "missing closing ]: `[a`"),
            ("[", "missing closing ]: `[`"),
            ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("(a{100}){100}", "invalid repeat count: `{100}`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a)", "unexpected ): `a)`"),
            ("(a", "missing closing ): `(a`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\Z", r"invalid escape sequence: `\Z`"),
            (r"\u0041", r"invalid escape sequence: `\u`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?<n", "invalid named capture: `(?<n`"),
            (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ] {
            assert_eq!(compiled(pattern).unwrap_err(), format!("error parsing regexp: {why}"), "{pattern}");
        }
    }
}
