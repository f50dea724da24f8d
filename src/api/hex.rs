//! Bytes as lower-case hexadecimal digits (Go's `encoding/hex`).

/// Two digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble });
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of such a text.
#[cfg(test)]
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let digit = |it: u8| (it as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_two_lower_case_digits() {
        assert_eq!(encode(&[0x00, 0x09, 0x0a, 0x9f, 0xf0, 0xff]), "00090a9ff0ff");
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), all);
    }
}
