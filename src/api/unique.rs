//! Names that no one has yet: UIDs and the suffixes of generated names.

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

/// Characters of generated suffixes: no vowels, so no words; nothing that looks like another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of a generated suffix.
pub const SUFFIX_LENGTH: usize = 5;

/// Longest base a generated name keeps: 63 less the suffix.
pub const MAX_BASE: usize = 58;

fn fill(bytes: &mut [u8]) {
    // Fails only where the system has no entropy source at all; such a process must not hand out identities.
    #[allow(clippy::expect_used)]
    SystemRandom::new().fill(bytes).expect("the system's random source works");
}

/// A random UUID (version 4), lower case.
pub fn uuid() -> String {
    let mut bytes = [0u8; 16];
    fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut out = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        for nibble in [byte >> 4, byte & 15] {
            out.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
        }
    }
    out
}

/// A random number in 0..1, for spreading things over time.
pub fn fraction() -> f64 {
    let mut bytes = [0u8; 4];
    fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

/// A random number below `limit`, which is at least 1. Numbers are as good as equally likely: a spread over time or
/// space, never a secret.
pub fn below(limit: u64) -> u64 {
    let mut bytes = [0u8; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes) % limit.max(1)
}

/// `length` characters, each equally likely.
pub fn suffix(length: usize) -> String {
    // 243 = 9 * 27: larger bytes are drawn again, so that no character is favoured.
    let mut out = String::with_capacity(length);
    let mut bytes = [0u8; 16];
    while out.len() < length {
        fill(&mut bytes);
        let drawn = bytes.iter().filter(|b| **b < 243).map(|b| char::from(ALPHABET[usize::from(b % 27)]));
        let missing = length - out.len();
        out.extend(drawn.take(missing));
    }
    out
}

/// `base` cut to 58 bytes (at a character) and a suffix; mirrors apiserver `pkg/storage/names/generate.go`.
pub fn generate_name(base: &str) -> String {
    let mut end = base.len().min(MAX_BASE);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{}", &base[..end], suffix(SUFFIX_LENGTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_version_4_and_differ() {
        let (a, b) = (uuid(), uuid());
        assert_ne!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(a.as_bytes()[14], b'4');
        assert!(matches!(a.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert!(a.bytes().enumerate().all(|(at, b)| (b == b'-') == matches!(at, 8 | 13 | 18 | 23)));
    }

    #[test]
    fn generated_names_keep_58_bytes_of_the_base() {
        let name = generate_name(&"a".repeat(100));
        assert_eq!(name.len(), 63);
        assert!(name[58..].bytes().all(|b| ALPHABET.contains(&b)));
        assert_eq!(generate_name(&"é".repeat(40)).len(), 58 + 5);
        assert_eq!(generate_name(&format!("a{}", "é".repeat(40))).len(), 57 + 5);
    }
}
