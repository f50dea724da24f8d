//! Go's reading of base64 (`base64.StdEncoding`): line breaks are skipped, bits after the end are ignored.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose},
};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

pub fn encode(bytes: &[u8]) -> String {
    general_purpose::STANDARD.encode(bytes)
}

/// The text as Go prints it again, `None` if it is that already.
///
/// # Errors
/// The byte at which Go finds fault.
pub fn canonical(text: &str) -> Result<Option<String>, usize> {
    let bytes = decode(text)?;
    let again = general_purpose::STANDARD.encode(bytes);
    Ok(if again == text { None } else { Some(again) })
}

/// # Errors
/// The byte at which Go finds fault.
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let decoded = if text.contains(['\r', '\n']) {
        LENIENT.decode(text.chars().filter(|it| !matches!(it, '\r' | '\n')).collect::<String>())
    } else {
        LENIENT.decode(text)
    };
    decoded.map_err(|_| fault(text.as_bytes()))
}

/// The offset that `CorruptInputError` of encoding/base64 carries for text that is known to be wrong.
fn fault(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let mut at = 0;
    let mut in_group = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        if is_break(&byte) {
            continue;
        }
        if is_digit(byte) {
            in_group = (in_group + 1) % 4;
            continue;
        }
        if byte != b'=' || in_group < 2 {
            return at - 1;
        }
        // Padding: one more sign after two digits, then nothing.
        let mut rest = text.iter().enumerate().skip(at).filter(|(_, byte)| !is_break(byte));
        if in_group == 2 {
            match rest.next() {
                Some((_, b'=')) => {}
                Some((at, _)) => return at - 1,
                None => return text.len(),
            }
        }
        return rest.next().map_or(text.len(), |(at, _)| at);
    }
    // A group was begun and not finished: Go names the byte where it began.
    text.len() - in_group
}
