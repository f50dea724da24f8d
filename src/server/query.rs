//! Query parameters: decoded once, looked up by name.

/// The parameters in the order they were sent. A name without `=` has the value "".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Go's url.ParseQuery: pairs that cannot be decoded or contain a semicolon are dropped.
    pub fn parse(raw: &str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        Self(
            pairs
                .filter_map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    Some((unescape(name)?, unescape(value)?))
                })
                .collect(),
        )
    }

    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|pair| pair.0 == name).map(|pair| pair.1.as_str())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |pair| pair.0 == name).map(|pair| pair.1.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How a boolean parameter that is present reads: only `false` and `0` are false.
pub fn is_true(value: &str) -> bool {
    !(value.eq_ignore_ascii_case("false") || value == "0")
}

/// `+` is a space, `%xx` a byte; `None` where an escape is cut.
fn unescape(text: &str) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let hex = |at: usize| bytes.get(at).and_then(|b| (*b as char).to_digit(16));
                out.push((hex(at + 1)? * 16 + hex(at + 2)?) as u8);
                at += 2;
            }
            other => out.push(*other),
        }
        at += 1;
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_kept_in_order() {
        let query = Query::parse("a=1&b=x%2Cy+z&a=2&c&bad=%zz&semi;colon=1");
        assert_eq!(query.first("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.first("b"), Some("x,y z"));
        assert_eq!(query.first("c"), Some(""));
        assert_eq!(query.first("bad"), None);
    }
}
