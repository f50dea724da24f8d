//! Bytes to the characters YAML allows, in libyaml's words where they are none (go-yaml `readerc.go`).

use std::borrow::Cow;

/// How much the reader takes at once. What is wrong with a character is told when its piece is read, which decides
/// whether it or something else is told first.
const PIECE: usize = 512;

/// The text to scan, and what is wrong with the piece after it.
pub struct Input<'a> {
    pub text: Cow<'a, str>,
    pub problem: Option<&'static str>,
}

pub fn read(bytes: &[u8]) -> Input<'_> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => read_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => read_utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => read_utf8(rest, PIECE - 3),
        _ => read_utf8(bytes, PIECE),
    }
}

fn read_utf8(bytes: &[u8], first_piece: usize) -> Input<'_> {
    let (whole, mut end) = (bytes.len(), first_piece);
    let (mut at, mut good) = (0, 0);
    let problem = loop {
        if at >= whole {
            break None;
        }
        match character(bytes.get(at..).unwrap_or_default()) {
            Ok(width) if at + width <= end => at += width,
            Err(problem) if at < end => break Some(problem),
            // The next piece begins with what is left of this one.
            _ => {
                good = at;
                end = at + PIECE;
            }
        }
    };
    let good = if problem.is_some() { good } else { whole };
    let text = bytes.get(..good).map(String::from_utf8_lossy).unwrap_or_default();
    Input { text, problem }
}

/// How many bytes the first character has.
fn character(bytes: &[u8]) -> Result<usize, &'static str> {
    let first = bytes.first().copied().unwrap_or(0);
    let (width, mut code) = match first {
        0..0x80 => (1, u32::from(first)),
        _ if first & 0xe0 == 0xc0 => (2, u32::from(first & 0x1f)),
        _ if first & 0xf0 == 0xe0 => (3, u32::from(first & 0x0f)),
        _ if first & 0xf8 == 0xf0 => (4, u32::from(first & 0x07)),
        _ => return Err("invalid leading UTF-8 octet"),
    };
    let Some(rest) = bytes.get(1..width) else { return Err("incomplete UTF-8 octet sequence") };
    for byte in rest {
        if byte & 0xc0 != 0x80 {
            return Err("invalid trailing UTF-8 octet");
        }
        code = code << 6 | u32::from(byte & 0x3f);
    }
    if [0, 0x80, 0x800, 0x1_0000].get(width - 1).is_some_and(|least| code < *least) {
        return Err("invalid length of a UTF-8 sequence");
    }
    match char::from_u32(code) {
        None => Err("invalid Unicode character"),
        Some(it) if is_allowed(it) => Ok(width),
        Some(_) => Err("control characters are not allowed"),
    }
}

fn is_allowed(it: char) -> bool {
    matches!(it, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

fn read_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Input<'static> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut problem = None;
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        problem = match decoded {
            Ok(it) if is_allowed(it) => {
                text.push(it);
                continue;
            }
            Ok(_) => Some("control characters are not allowed"),
            Err(error) if error.unpaired_surrogate() >= 0xdc00 => Some("unexpected low surrogate area"),
            Err(_) => Some("expected low surrogate area"),
        };
        break;
    }
    if problem.is_none() && !rest.is_empty() {
        problem = Some("incomplete UTF-16 character");
    }
    Input { text: Cow::Owned(text), problem }
}
