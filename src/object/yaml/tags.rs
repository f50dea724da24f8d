//! Tags, anchors and directives.

use super::scanner::{Kind, Mark, Scan, Scanner, Token};

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_uri(byte: u8) -> bool {
    is_word(byte) || b";/?:@&=+$,.!~*'()[]%".contains(&byte)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned())
}

impl Scanner<'_> {
    fn take_word(&mut self) -> Vec<u8> {
        let mut word = Vec::new();
        while is_word(self.byte(0)) {
            self.take(&mut word);
        }
        word
    }

    /// `&name` or `*name`.
    pub(super) fn scan_anchor(&mut self) -> Scan<Token> {
        let start = self.mark;
        let is_alias = self.byte(0) == b'*';
        self.skip();
        let name = self.take_word();
        let ends =
            self.is_blank_or_end(0) || matches!(self.byte(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            return self.problem(start, "did not find expected alphabetic or numeric character");
        }
        let name = text(name);
        let kind = if is_alias { Kind::Alias(name) } else { Kind::Anchor(name) };
        Ok(Token { kind, start, end: self.mark })
    }

    pub(super) fn scan_tag(&mut self) -> Scan<Token> {
        let start = self.mark;
        let (mut handle, mut suffix);
        if self.byte(1) == b'<' {
            self.skip();
            self.skip();
            handle = Vec::new();
            suffix = self.scan_uri(&[], start)?;
            if self.byte(0) != b'>' {
                return self.problem(start, "did not find the expected '>'");
            }
            self.skip();
        } else {
            handle = self.scan_handle(false, start)?;
            if handle.len() > 1 && handle.last() == Some(&b'!') {
                suffix = self.scan_uri(&[], start)?;
            } else {
                suffix = self.scan_uri(&handle, start)?;
                handle = vec![b'!'];
                if suffix.is_empty() {
                    std::mem::swap(&mut handle, &mut suffix);
                }
            }
        }
        if !self.is_blank_or_end(0) {
            return self.problem(start, "did not find expected whitespace or line break");
        }
        Ok(Token { kind: Kind::Tag { handle: text(handle), suffix: text(suffix) }, start, end: self.mark })
    }

    /// `!`, `!!` or `!word!`; as part of a tag also `!word`, which is then no handle.
    fn scan_handle(&mut self, directive: bool, start: Mark) -> Scan<Vec<u8>> {
        if self.byte(0) != b'!' {
            return self.problem(start, "did not find expected '!'");
        }
        let mut handle = Vec::new();
        self.take(&mut handle);
        handle.append(&mut self.take_word());
        if self.byte(0) == b'!' {
            self.take(&mut handle);
        } else if directive && handle != b"!" {
            return self.problem(start, "did not find expected '!'");
        }
        Ok(handle)
    }

    /// A URI; `head` is a handle that turned out to be part of it.
    fn scan_uri(&mut self, head: &[u8], start: Mark) -> Scan<Vec<u8>> {
        let mut uri = head.get(1..).unwrap_or_default().to_vec();
        let mut any = !head.is_empty();
        while is_uri(self.byte(0)) {
            match self.byte(0) {
                b'%' => self.scan_uri_escapes(start, &mut uri)?,
                _ => self.take(&mut uri),
            }
            any = true;
        }
        if any { Ok(uri) } else { self.problem(start, "did not find expected tag URI") }
    }

    /// One character written as `%xx` for each byte.
    fn scan_uri_escapes(&mut self, start: Mark, uri: &mut Vec<u8>) -> Scan<()> {
        let mut left = None;
        while left != Some(0) {
            let digit = |ahead: usize| char::from(self.byte(ahead)).to_digit(16);
            let octet = match (self.byte(0), digit(1), digit(2)) {
                (b'%', Some(high), Some(low)) => (high << 4 | low) as u8,
                _ => return self.problem(start, "did not find URI escaped octet"),
            };
            left = Some(match left {
                None => match octet {
                    0..0x80 => 0,
                    0xc0..0xe0 => 1,
                    0xe0..0xf0 => 2,
                    0xf0..0xf8 => 3,
                    _ => return self.problem(start, "found an incorrect leading UTF-8 octet"),
                },
                Some(_) if octet & 0xc0 != 0x80 => {
                    return self.problem(start, "found an incorrect trailing UTF-8 octet");
                }
                Some(left) => left - 1,
            });
            uri.push(octet);
            (0..3).for_each(|_| self.skip());
        }
        Ok(())
    }

    /// `%YAML 1.1` or `%TAG !handle! prefix`.
    pub(super) fn scan_directive(&mut self) -> Scan<Token> {
        let start = self.mark;
        self.skip();
        let name = self.take_word();
        if name.is_empty() {
            return self.problem(start, "could not find expected directive name");
        }
        if !self.is_blank_or_end(0) {
            return self.problem(start, "found unexpected non-alphabetical character");
        }
        let kind = match name.as_slice() {
            b"YAML" => self.scan_version(start)?,
            b"TAG" => self.scan_tag_directive(start)?,
            _ => return self.problem(start, "found unknown directive name"),
        };
        let end = self.mark;
        self.end_of_line(start)?;
        Ok(Token { kind, start, end })
    }

    fn scan_version(&mut self, start: Mark) -> Scan<Kind> {
        self.skip_blanks();
        let major = self.scan_version_number(start)?;
        if self.byte(0) != b'.' {
            return self.problem(start, "did not find expected digit or '.' character");
        }
        self.skip();
        Ok(Kind::Version(major, self.scan_version_number(start)?))
    }

    fn scan_version_number(&mut self, start: Mark) -> Scan<u8> {
        let (mut number, mut digits) = (0, 0);
        while self.byte(0).is_ascii_digit() {
            digits += 1;
            if digits > 2 {
                return self.problem(start, "found extremely long version number");
            }
            number = number * 10 + (self.byte(0) - b'0');
            self.skip();
        }
        if digits == 0 { self.problem(start, "did not find expected version number") } else { Ok(number) }
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Scan<Kind> {
        self.skip_blanks();
        let handle = self.scan_handle(true, start)?;
        if !self.is_blank(0) {
            return self.problem(start, "did not find expected whitespace");
        }
        self.skip_blanks();
        let prefix = self.scan_uri(&[], start)?;
        if !self.is_blank_or_end(0) {
            return self.problem(start, "did not find expected whitespace or line break");
        }
        Ok(Kind::TagDirective { handle: text(handle), prefix: text(prefix) })
    }
}
