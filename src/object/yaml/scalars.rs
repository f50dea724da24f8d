//! Scalars: plain, quoted and in blocks.

use super::scanner::{Kind, Scan, Scanner, Token};

/// What lies between two lines of a scalar.
#[derive(Default)]
struct Gap {
    blanks: Vec<u8>,
    first_break: Vec<u8>,
    more_breaks: Vec<u8>,
    /// A line has ended.
    broken: bool,
}

impl Gap {
    fn is_empty(&self) -> bool {
        !self.broken && self.blanks.is_empty()
    }

    /// Blanks stay, one break becomes a space, more lose the first.
    fn fold_into(&mut self, out: &mut Vec<u8>) {
        if !self.broken {
            out.append(&mut self.blanks);
            return;
        }
        match self.first_break.first() {
            Some(b'\n') if self.more_breaks.is_empty() => out.push(b' '),
            Some(b'\n') => {}
            _ => out.append(&mut self.first_break),
        }
        out.append(&mut self.more_breaks);
        self.first_break.clear();
        self.blanks.clear();
        self.broken = false;
    }
}

impl Scanner<'_> {
    fn gap_step(&mut self, gap: &mut Gap) {
        match (self.is_blank(0), gap.broken) {
            (true, false) => self.take(&mut gap.blanks),
            (true, true) => self.skip(),
            (false, false) => {
                gap.blanks.clear();
                self.take_line(&mut gap.first_break);
                gap.broken = true;
            }
            (false, true) => self.take_line(&mut gap.more_breaks),
        }
    }

    fn scalar(&self, value: Vec<u8>, plain: bool, start: super::scanner::Mark, end: super::scanner::Mark) -> Token {
        let value = String::from_utf8(value).unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
        Token { kind: Kind::Scalar { value, plain }, start, end }
    }

    pub(super) fn scan_plain_scalar(&mut self) -> Scan<Token> {
        let (start, mut end) = (self.mark, self.mark);
        let indent = self.indent + 1;
        let (mut value, mut gap) = (Vec::new(), Gap::default());
        loop {
            if self.is_document_indicator(b'-') || self.is_document_indicator(b'.') || self.byte(0) == b'#' {
                break;
            }
            while !self.is_blank_or_end(0) {
                let next = self.byte(0);
                let ends = next == b':' && self.is_blank_or_end(1)
                    || self.flow_level > 0 && matches!(next, b',' | b'?' | b'[' | b']' | b'{' | b'}');
                if ends {
                    break;
                }
                if !gap.is_empty() {
                    gap.fold_into(&mut value);
                }
                self.take(&mut value);
                end = self.mark;
            }
            if !self.is_blank(0) && !self.is_break(0) {
                break;
            }
            while self.is_blank(0) || self.is_break(0) {
                if gap.broken && (self.mark.column as isize) < indent && self.byte(0) == b'\t' {
                    return self.problem(start, "found a tab character that violates indentation");
                }
                self.gap_step(&mut gap);
            }
            if self.flow_level == 0 && (self.mark.column as isize) < indent {
                break;
            }
        }
        if gap.broken {
            self.simple_key_allowed = true;
        }
        Ok(self.scalar(value, true, start, end))
    }

    pub(super) fn scan_quoted_scalar(&mut self, quote: u8) -> Scan<Token> {
        let start = self.mark;
        self.skip();
        let (mut value, mut gap) = (Vec::new(), Gap::default());
        loop {
            if self.is_document_indicator(b'-') || self.is_document_indicator(b'.') {
                return self.problem(start, "found unexpected document indicator");
            }
            if self.is_end(0) {
                return self.problem(start, "found unexpected end of stream");
            }
            while !self.is_blank_or_end(0) {
                match self.byte(0) {
                    b'\'' if quote == b'\'' && self.byte(1) == b'\'' => {
                        value.push(b'\'');
                        self.skip();
                        self.skip();
                    }
                    it if it == quote => break,
                    b'\\' if quote == b'"' && self.is_break(1) => {
                        self.skip();
                        self.skip_line();
                        gap.broken = true;
                        break;
                    }
                    b'\\' if quote == b'"' => self.scan_escape(&mut value, start)?,
                    _ => self.take(&mut value),
                }
            }
            if self.byte(0) == quote {
                break;
            }
            while self.is_blank(0) || self.is_break(0) {
                self.gap_step(&mut gap);
            }
            gap.fold_into(&mut value);
        }
        self.skip();
        Ok(self.scalar(value, false, start, self.mark))
    }

    fn scan_escape(&mut self, value: &mut Vec<u8>, start: super::scanner::Mark) -> Scan<()> {
        let (text, digits) = match self.byte(1) {
            b'0' => ("\0", 0),
            b'a' => ("\u{7}", 0),
            b'b' => ("\u{8}", 0),
            b't' | b'\t' => ("\t", 0),
            b'n' => ("\n", 0),
            b'v' => ("\u{b}", 0),
            b'f' => ("\u{c}", 0),
            b'r' => ("\r", 0),
            b'e' => ("\u{1b}", 0),
            b' ' => (" ", 0),
            b'"' => ("\"", 0),
            b'\'' => ("'", 0),
            b'\\' => ("\\", 0),
            b'N' => ("\u{85}", 0),
            b'_' => ("\u{a0}", 0),
            b'L' => ("\u{2028}", 0),
            b'P' => ("\u{2029}", 0),
            b'x' => ("", 2),
            b'u' => ("", 4),
            b'U' => ("", 8),
            _ => return self.problem(start, "found unknown escape character"),
        };
        value.extend_from_slice(text.as_bytes());
        self.skip();
        self.skip();
        let mut code: u32 = 0;
        for ahead in 0..digits {
            let Some(digit) = char::from(self.byte(ahead)).to_digit(16) else {
                return self.problem(start, "did not find expected hexdecimal number");
            };
            code = code << 4 | digit;
        }
        if digits > 0 {
            let Some(it) = char::from_u32(code) else {
                return self.problem(start, "found invalid Unicode character escape code");
            };
            value.extend_from_slice(it.encode_utf8(&mut [0; 4]).as_bytes());
        }
        (0..digits).for_each(|_| self.skip());
        Ok(())
    }

    pub(super) fn scan_block_scalar(&mut self, literal: bool) -> Scan<Token> {
        let start = self.mark;
        self.skip();
        let (chomping, increment) = self.block_header(start)?;
        let mut indent = match increment {
            0 => 0,
            it => it + self.indent.max(0),
        };
        let mut end = self.mark;
        let (mut value, mut first_break, mut more_breaks) = (Vec::new(), Vec::new(), Vec::new());
        self.block_breaks(&mut indent, &mut more_breaks, start, &mut end)?;
        let mut leading_blank = false;
        while self.mark.column as isize == indent && !self.is_end(0) {
            let trailing_blank = self.is_blank(0);
            if !literal && !leading_blank && !trailing_blank && first_break.first() == Some(&b'\n') {
                if more_breaks.is_empty() {
                    value.push(b' ');
                }
            } else {
                value.extend_from_slice(&first_break);
            }
            first_break.clear();
            value.append(&mut more_breaks);
            leading_blank = trailing_blank;
            while !self.is_break_or_end(0) {
                self.take(&mut value);
            }
            if self.is_break(0) {
                self.take_line(&mut first_break);
            }
            self.block_breaks(&mut indent, &mut more_breaks, start, &mut end)?;
        }
        if chomping != b'-' {
            value.append(&mut first_break);
        }
        if chomping == b'+' {
            value.append(&mut more_breaks);
        }
        Ok(self.scalar(value, false, start, end))
    }

    /// `+`, `-` or neither, and how much further in the text is, in either order; then the rest of the line.
    fn block_header(&mut self, start: super::scanner::Mark) -> Scan<(u8, isize)> {
        let (mut chomping, mut increment) = (b' ', 0);
        for _ in 0..2 {
            match self.byte(0) {
                sign @ (b'+' | b'-') if chomping == b' ' => chomping = sign,
                b'0' if increment == 0 => {
                    return self.problem(start, "found an indentation indicator equal to 0");
                }
                digit @ b'1'..=b'9' if increment == 0 => increment = isize::from(digit - b'0'),
                _ => break,
            }
            self.skip();
        }
        self.end_of_line(start)?;
        Ok((chomping, increment))
    }

    /// Indentation and empty lines; the first line that has text decides how far in the block is.
    fn block_breaks(
        &mut self,
        indent: &mut isize,
        breaks: &mut Vec<u8>,
        start: super::scanner::Mark,
        end: &mut super::scanner::Mark,
    ) -> Scan<()> {
        *end = self.mark;
        let mut deepest = 0;
        let outside = |it: &Self, indent: isize| indent == 0 || (it.mark.column as isize) < indent;
        loop {
            while outside(self, *indent) && self.byte(0) == b' ' {
                self.skip();
            }
            deepest = deepest.max(self.mark.column as isize);
            if outside(self, *indent) && self.byte(0) == b'\t' {
                return self.problem(start, "found a tab character where an indentation space is expected");
            }
            if !self.is_break(0) {
                break;
            }
            self.take_line(breaks);
            *end = self.mark;
        }
        if *indent == 0 {
            *indent = deepest.max(self.indent + 1).max(1);
        }
        Ok(())
    }
}
