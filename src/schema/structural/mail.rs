//! Whether a text is a mail address as Go's `mail.ParseAddress` reads it (RFC 5322, display names and comments
//! included).

/// Whether the whole text is one address.
pub fn is_address(text: &str) -> bool {
    let mut reader = Reader(text);
    let Some(count) = reader.address(true) else { return false };
    reader.skip_comments() && reader.0.is_empty() && count == 1
}

struct Reader<'t>(&'t str);

impl Reader<'_> {
    /// An address, or a group of some; how many.
    fn address(&mut self, groups: bool) -> Option<usize> {
        self.skip_space();
        if self.0.is_empty() {
            return None;
        }
        if self.addr_spec() {
            self.skip_space();
            if self.take('(') && !self.comment() {
                return None;
            }
            return Some(1);
        }
        if !self.0.starts_with('<') && !self.phrase() {
            return None;
        }
        self.skip_space();
        if groups && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.addr_spec() && self.take('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.take(';') {
            return self.skip_comments().then_some(0);
        }
        let mut count = 0;
        loop {
            self.skip_space();
            count += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.take(';') {
                return self.skip_comments().then_some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// `local@domain`; reading does not move where there is none.
    fn addr_spec(&mut self) -> bool {
        let before = self.0;
        let found = self.local_part() && self.take('@') && self.domain();
        if !found {
            self.0 = before;
        }
        found
    }

    fn local_part(&mut self) -> bool {
        self.skip_space();
        if self.0.starts_with('"') { self.quoted().is_some_and(|length| length > 0) } else { self.atom(false) }
    }

    fn domain(&mut self) -> bool {
        self.skip_space();
        if !self.take('[') {
            return self.atom(false);
        }
        let Some((literal, rest)) = self.0.split_once(']') else { return false };
        self.0 = rest;
        crate::api::ip::parse_ip_strict(literal).is_some()
    }

    /// Words of a display name.
    fn phrase(&mut self) -> bool {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return false;
            }
            self.skip_space();
            let before = self.0;
            let found = match self.0.chars().next() {
                None => break,
                Some('"') => self.quoted().is_some(),
                Some(_) => self.atom(true),
            };
            if !found {
                self.0 = before;
                break;
            }
            words += 1;
        }
        words > 0
    }

    /// A quoted string; how many characters are in it.
    fn quoted(&mut self) -> Option<usize> {
        let (mut escaped, mut count) = (false, 0);
        for (at, c) in self.0.char_indices().skip(1) {
            let allowed = is_visible(c) || c == ' ' || c == '\t';
            match c {
                _ if escaped && allowed => (escaped, count) = (false, count + 1),
                _ if escaped => return None,
                '"' => {
                    self.0 = self.0.get(at + 1..).unwrap_or_default();
                    return Some(count);
                }
                '\\' => escaped = true,
                _ if allowed => count += 1,
                _ => return None,
            }
        }
        None
    }

    fn atom(&mut self, permissive: bool) -> bool {
        let end = self.0.find(|c| !is_atom(c)).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        if atom.is_empty() {
            return false;
        }
        self.0 = rest;
        permissive || !(atom.starts_with('.') || atom.contains("..") || atom.ends_with('.'))
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.take('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// The rest of a comment whose parenthesis is read; comments nest.
    fn comment(&mut self) -> bool {
        let (mut depth, mut escaped) = (1, false);
        for (at, c) in self.0.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.0 = self.0.get(at + 1..).unwrap_or_default();
                return true;
            }
        }
        false
    }

    fn take(&mut self, c: char) -> bool {
        match self.0.strip_prefix(c) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\"".contains(c)
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_and_what_looks_like_some() {
        for fine in [
            "a@b",
            "a.b@c.d",
            "Name <a@b>",
            "\"q d\"@b",
            "a@[127.0.0.1]",
            "a@b (note (nested))",
            "\"N, M\" <a@b>",
            "g: a@b;",
        ] {
            assert!(is_address(fine), "{fine}");
        }
        for bad in [
            "",
            "a",
            "a@",
            "@b",
            "a..b@c",
            ".a@b",
            "a@b.",
            "a b@c",
            "<a@b",
            "a@b, c@d",
            "\"\"@b",
            "g:;",
            "a@[x]",
            "a@b (open",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
