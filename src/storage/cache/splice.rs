//! Puts a revision into a stored object's text without parsing it.
//!
//! A stored object is `{"apiVersion":…,"kind":…,"metadata":{…` without `metadata.resourceVersion`, because the
//! revision is only known once the write is committed. Every reader sees it as the first member of `metadata`. The
//! scanner below finds that place from the front, so its cost does not grow with the object: for texts our encoder
//! wrote it looks at some sixty bytes. It tolerates white space, either order of the two type members, and members in
//! between. What does not look like an object of the API (bookkeeping rows, foreign encodings) is left as it is.

use std::ops::Range;

use crate::storage::Revision;

const MEMBER: &str = r#""resourceVersion":""#;

/// Where the parts of a stored object are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Just after the `{` of `metadata`.
    pub insert_at: usize,
    /// `metadata` has no members, so the spliced one takes no comma.
    pub metadata_is_empty: bool,
    /// Where `"metadata"` begins, if only the type stands before it: a list item without its type is `{` and the text
    /// from here on. `None` where other members come first.
    pub typeless_at: Option<usize>,
}

/// Finds the place for the revision; `None` where `value` is no object with a `metadata` object in it.
pub fn scan(value: &[u8]) -> Option<Head> {
    let mut at = skip_space(value, 0);
    if *value.get(at)? != b'{' {
        return None;
    }
    at += 1;
    let mut only_type_before = true;
    loop {
        let name_at = skip_space(value, at);
        let name_end = skip_string(value, name_at)?;
        let colon = skip_space(value, name_end);
        if *value.get(colon)? != b':' {
            return None;
        }
        let item = skip_space(value, colon + 1);
        match value.get(name_at..name_end)? {
            b"\"metadata\"" => return metadata(value, name_at, item, only_type_before),
            b"\"apiVersion\"" | b"\"kind\"" => {}
            _ => only_type_before = false,
        }
        let next = skip_space(value, skip_value(value, item)?);
        if *value.get(next)? != b',' {
            return None;
        }
        at = next + 1;
    }
}

/// Where the `metadata` object of an object's text is; `None` as for [`scan`]. Costs as much as the metadata is long.
pub fn metadata_range(value: &[u8]) -> Option<Range<usize>> {
    let start = scan(value)?.insert_at - 1;
    Some(start..skip_value(value, start)?)
}

fn metadata(value: &[u8], name_at: usize, item: usize, only_type_before: bool) -> Option<Head> {
    if *value.get(item)? != b'{' {
        return None;
    }
    let insert_at = item + 1;
    let metadata_is_empty = *value.get(skip_space(value, insert_at))? == b'}';
    Some(Head { insert_at, metadata_is_empty, typeless_at: only_type_before.then_some(name_at) })
}

fn skip_space(value: &[u8], mut at: usize) -> usize {
    while matches!(value.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// The end of the string that begins at `at`.
fn skip_string(value: &[u8], at: usize) -> Option<usize> {
    if *value.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        match *value.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of the value that begins at `at`; nesting is counted, not recursed into.
fn skip_value(value: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match *value.get(at)? {
            b'"' => at = skip_string(value, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' if depth == 0 => return None,
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => at = skip_word(value, at),
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn skip_word(value: &[u8], mut at: usize) -> usize {
    while !matches!(value.get(at), None | Some(b',' | b':' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// A value with its revision in it, and whatever was asked to stand around it, in one allocation of exactly its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spliced {
    pub bytes: Vec<u8>,
    /// Where the value is in `bytes`.
    pub value: Range<usize>,
    /// Where in the value the member `"resourceVersion":"…"` (with its comma, if it has one) stands.
    pub member: Option<Range<usize>>,
    /// As in [`Head`], in the spliced value.
    pub typeless_at: Option<usize>,
}

/// Splices `revision` into `value`, between `before` and `after` (both may be empty).
pub fn splice(value: &[u8], revision: Revision, before: &[u8], after: &[u8]) -> Spliced {
    let Some(head) = scan(value) else {
        let bytes = [before, value, after].concat();
        return Spliced { bytes, value: before.len()..before.len() + value.len(), member: None, typeless_at: None };
    };
    let mut digits = Digits::new();
    let digits = digits.of(revision);
    let tail: &[u8] = if head.metadata_is_empty { b"\"" } else { b"\"," };
    let (head_part, rest) = value.split_at(head.insert_at);
    let bytes = [before, head_part, MEMBER.as_bytes(), digits, tail, rest, after].concat();
    let member_len = MEMBER.len() + digits.len() + tail.len();
    Spliced {
        bytes,
        value: before.len()..before.len() + value.len() + member_len,
        member: Some(head.insert_at..head.insert_at + member_len),
        typeless_at: head.typeless_at,
    }
}

/// `value` with `revision` in it: what a reader sees of a stored object.
pub fn with_revision(value: &[u8], revision: Revision) -> Vec<u8> {
    splice(value, revision, b"", b"").bytes
}

/// The decimal digits of a revision, without an allocation.
pub(super) struct Digits([u8; 20]);

impl Digits {
    pub(super) fn new() -> Self {
        Self([0; 20])
    }

    pub(super) fn of(&mut self, mut revision: Revision) -> &[u8] {
        let mut at = self.0.len();
        for slot in self.0.iter_mut().rev() {
            *slot = b'0' + (revision % 10) as u8;
            revision /= 10;
            at -= 1;
            if revision == 0 {
                break;
            }
        }
        self.0.get(at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spliced(value: &str) -> String {
        String::from_utf8(with_revision(value.as_bytes(), 1234)).expect("still text")
    }

    #[test]
    fn the_revision_becomes_the_first_member_of_metadata() {
        assert_eq!(
            spliced(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}"#),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"1234","name":"a"},"spec":{}}"#
        );
        assert_eq!(
            spliced(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#),
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1234","name":"a"}}"#
        );
    }

    #[test]
    fn an_empty_metadata_gets_no_comma() {
        assert_eq!(spliced(r#"{"kind":"A","metadata":{}}"#), r#"{"kind":"A","metadata":{"resourceVersion":"1234"}}"#);
        assert_eq!(spliced(r#"{"kind":"A","metadata":{ }}"#), r#"{"kind":"A","metadata":{"resourceVersion":"1234" }}"#);
    }

    #[test]
    fn white_space_and_members_before_metadata_are_tolerated() {
        assert_eq!(
            spliced(" { \"apiVersion\" : \"v1\" ,\n\"metadata\" : { \"name\":\"a\"}}"),
            " { \"apiVersion\" : \"v1\" ,\n\"metadata\" : {\"resourceVersion\":\"1234\", \"name\":\"a\"}}"
        );
        let value = r#"{"apiVersion":"v1","data":{"metadata":"{","x":[1,{"y":"\"}"}],"n":null,"b":true},"immutable":false,"kind":"ConfigMap","metadata":{"name":"a"}}"#;
        let expected = value.replace(r#""metadata":{"name""#, r#""metadata":{"resourceVersion":"1234","name""#);
        assert_eq!(spliced(value), expected);
        assert_eq!(scan(value.as_bytes()).and_then(|head| head.typeless_at), None);
    }

    #[test]
    fn the_text_from_typeless_at_on_is_the_object_without_its_type() {
        let value = br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#;
        let out = splice(value, 7, b"<", b">");
        let inner = &out.bytes[out.value.clone()];
        let typeless = &inner[out.typeless_at.expect("type first")..];
        assert_eq!(typeless, br#""metadata":{"resourceVersion":"7","name":"a"}}"#);
        assert_eq!(out.bytes.first(), Some(&b'<'));
        assert_eq!(out.bytes.last(), Some(&b'>'));
    }

    #[test]
    fn the_member_range_covers_exactly_what_was_added() {
        for value in [&br#"{"kind":"A","metadata":{}}"#[..], br#"{"kind":"A","metadata":{"name":"a"},"spec":1}"#] {
            let out = splice(value, 99, b"", b"");
            let mut bytes = out.bytes;
            bytes.drain(out.member.expect("spliced"));
            assert_eq!(bytes, value);
        }
    }

    #[test]
    fn what_is_no_object_of_the_api_stays_as_it_is() {
        let cases: [&[u8]; 14] = [
            b"",
            b"{",
            b"{}",
            b"[]",
            b"123",
            b"k8s\0\n\x0c",
            br#"{"metadata":null}"#,
            br#"{"metadata":"#,
            br#"{"metadata":{"#,
            br#"{"kind":"A"}"#,
            br#"{"kind":}"#,
            br#"{"a":]]]],"metadata":{}}"#,
            br#"{"a":"unclosed"#,
            br#"{"a":"\"#,
        ];
        for value in cases {
            let out = splice(value, 5, b"(", b")");
            assert_eq!(&out.bytes[out.value], value);
            assert_eq!(out.member, None);
        }
    }

    #[test]
    fn one_allocation_of_exactly_the_size_is_made() {
        let out = splice(br#"{"kind":"A","metadata":{"name":"a"}}"#, u64::MAX, b"before", b"after");
        assert_eq!(out.bytes.capacity(), out.bytes.len());
    }

    #[test]
    fn every_revision_prints_as_its_decimal_digits() {
        for revision in [0, 1, 9, 10, 12_345, u64::MAX] {
            assert_eq!(Digits::new().of(revision), revision.to_string().as_bytes());
        }
    }
}
