//! Tags, varints and lengths.

use std::{borrow::Cow, fmt};

/// Why bytes are no message, in the words of gogo's generated code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtobufError(String);

impl ProtobufError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    fn end() -> Self {
        Self::new("unexpected EOF")
    }
}

impl fmt::Display for ProtobufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for ProtobufError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireType {
    Varint,
    Fixed64,
    Length,
    /// Nobody writes groups; they can be skipped.
    GroupStart,
    GroupEnd,
    /// Never written by anyone we know; kept so that it can be skipped.
    Fixed32,
    /// 6 or 7, which stand for nothing.
    Illegal(u8),
}

impl WireType {
    fn of(key: u64) -> Self {
        match key & 7 {
            0 => Self::Varint,
            1 => Self::Fixed64,
            2 => Self::Length,
            3 => Self::GroupStart,
            4 => Self::GroupEnd,
            5 => Self::Fixed32,
            other => Self::Illegal(other as u8),
        }
    }

    pub fn number(self) -> u64 {
        match self {
            Self::Varint => 0,
            Self::Fixed64 => 1,
            Self::Length => 2,
            Self::GroupStart => 3,
            Self::GroupEnd => 4,
            Self::Fixed32 => 5,
            Self::Illegal(other) => other.into(),
        }
    }
}

pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's tag, `None` at the end. `message` is the Go type that is read, for errors.
    pub fn tag(&mut self, message: &str) -> Result<Option<(u32, WireType)>, ProtobufError> {
        let Some((tag, wire_type, key)) = self.entry_tag()? else { return Ok(None) };
        if wire_type == WireType::GroupEnd {
            return Err(ProtobufError::new(format!("proto: {message}: wiretype end group for non-group")));
        }
        match u32::try_from(tag) {
            Ok(tag) if tag > 0 => Ok(Some((tag, wire_type))),
            _ => Err(ProtobufError::new(format!("proto: {message}: illegal tag {tag} (wire type {key})"))),
        }
    }

    /// A tag in the entry of a map, where nothing is checked; and the number that it is part of.
    pub fn entry_tag(&mut self) -> Result<Option<(i32, WireType, u64)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        // Go cuts to 32 bits.
        Ok(Some(((key >> 3) as i32, WireType::of(key), key)))
    }

    pub fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for at in 0..10 {
            let byte = self.rest.get(at).copied().ok_or_else(ProtobufError::end)?;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(at + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(ProtobufError::new("proto: integer overflow"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ProtobufError> {
        let length = i64::try_from(length)
            .map_err(|_| ProtobufError::new("proto: negative length found during unmarshaling"))?;
        let length = usize::try_from(length).map_err(|_| ProtobufError::end())?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(ProtobufError::end)?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn number(&mut self, wire_type: WireType, field: &str) -> Result<u64, ProtobufError> {
        match wire_type {
            WireType::Varint => self.varint(),
            _ => Err(wrong(wire_type, field)),
        }
    }

    pub fn double(&mut self, wire_type: WireType, field: &str) -> Result<f64, ProtobufError> {
        match wire_type {
            WireType::Fixed64 => {
                let bytes = self.take(8)?.try_into().map_err(|_| ProtobufError::end())?;
                Ok(f64::from_le_bytes(bytes))
            }
            _ => Err(wrong(wire_type, field)),
        }
    }

    pub fn length_delimited(&mut self, wire_type: WireType, field: &str) -> Result<&'a [u8], ProtobufError> {
        match wire_type {
            WireType::Length => {
                let length = self.varint()?;
                self.take(length)
            }
            _ => Err(wrong(wire_type, field)),
        }
    }

    pub fn text(&mut self, wire_type: WireType, field: &str) -> Result<Cow<'a, str>, ProtobufError> {
        Ok(String::from_utf8_lossy(self.length_delimited(wire_type, field)?))
    }

    /// Passes over a field nobody knows, with what is in it.
    pub fn skip(&mut self, wire_type: WireType) -> Result<(), ProtobufError> {
        let mut depth = 0;
        let mut wire_type = wire_type;
        loop {
            match wire_type {
                WireType::Varint => drop(self.varint()?),
                WireType::Fixed64 => drop(self.take(8)?),
                WireType::Fixed32 => drop(self.take(4)?),
                WireType::Length => drop(self.length_delimited(wire_type, "")?),
                WireType::GroupStart => depth += 1,
                WireType::GroupEnd if depth == 0 => return Err(ProtobufError::new("proto: unexpected end of group")),
                WireType::GroupEnd => depth -= 1,
                WireType::Illegal(other) => return Err(ProtobufError::new(format!("proto: illegal wireType {other}"))),
            }
            if depth == 0 {
                return Ok(());
            }
            wire_type = match self.rest {
                [] => return Err(ProtobufError::end()),
                _ => WireType::of(self.varint()?),
            };
        }
    }
}

/// Fields that Go names otherwise than with a large first letter.
const GO_NAMES: [(&str, &str); 26] = [
    ("apiGroup", "APIGroup"),
    ("apiGroups", "APIGroups"),
    ("apiVersion", "APIVersion"),
    ("apiVersions", "APIVersions"),
    ("caBundle", "CABundle"),
    ("csi", "CSI"),
    ("dnsConfig", "DNSConfig"),
    ("dnsPolicy", "DNSPolicy"),
    ("fsGroup", "FSGroup"),
    ("fsType", "FSType"),
    ("gid", "GID"),
    ("grpc", "GRPC"),
    ("http", "HTTP"),
    ("httpGet", "HTTPGet"),
    ("ip", "IP"),
    ("ipFamilies", "IPFamilies"),
    ("ipFamilyPolicy", "IPFamilyPolicy"),
    ("metadata", "ObjectMeta"),
    ("nfs", "NFS"),
    ("os", "OS"),
    ("seLinuxOptions", "SELinuxOptions"),
    ("tcpSocket", "TCPSocket"),
    ("tls", "TLS"),
    ("tty", "TTY"),
    ("uid", "UID"),
    ("url", "URL"),
];

/// Go names the field as its struct does: `Replicas`.
fn wrong(wire_type: WireType, field: &str) -> ProtobufError {
    let field = match GO_NAMES.iter().find(|(json, _)| *json == field) {
        Some((_, go)) => (*go).to_owned(),
        None => {
            let mut letters = field.chars();
            letters.next().map(|it| it.to_ascii_uppercase()).into_iter().chain(letters).collect()
        }
    };
    ProtobufError::new(format!("proto: wrong wireType = {} for field {field}", wire_type.number()))
}

/// Bytes written from the end to the beginning, as gogo does, so that a length is known when it is written.
#[derive(Default)]
pub struct Backward {
    reversed: Vec<u8>,
}

impl Backward {
    pub fn len(&self) -> usize {
        self.reversed.len()
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    pub fn varint(&mut self, mut value: u64) {
        let start = self.reversed.len();
        while value >= 0x80 {
            self.reversed.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.reversed.push(value as u8);
        self.reversed.get_mut(start..).unwrap_or_default().reverse();
    }

    pub fn tag(&mut self, tag: u32, wire_type: WireType) {
        self.varint(u64::from(tag) << 3 | wire_type.number());
    }

    pub fn number(&mut self, tag: u32, value: u64) {
        self.varint(value);
        self.tag(tag, WireType::Varint);
    }

    pub fn delimited(&mut self, tag: u32, bytes: &[u8]) {
        self.bytes(bytes);
        self.varint(bytes.len() as u64);
        self.tag(tag, WireType::Length);
    }

    /// Everything since `end` (a length taken before) becomes the body of a field.
    pub fn close(&mut self, tag: u32, end: usize) {
        self.varint((self.reversed.len() - end) as u64);
        self.tag(tag, WireType::Length);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }
}
