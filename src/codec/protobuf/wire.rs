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
    /// Never written by anyone we know; kept so that it can be skipped.
    Fixed32,
}

impl WireType {
    pub fn number(self) -> u64 {
        match self {
            Self::Varint => 0,
            Self::Fixed64 => 1,
            Self::Length => 2,
            Self::Fixed32 => 5,
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

    /// The next field's tag, `None` at the end.
    pub fn tag(&mut self) -> Result<Option<(u32, WireType)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let wire_type = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Length,
            5 => WireType::Fixed32,
            other => return Err(ProtobufError::new(format!("proto: illegal wireType {other}"))),
        };
        match u32::try_from(key >> 3) {
            Ok(tag) if tag > 0 && tag <= i32::MAX as u32 => Ok(Some((tag, wire_type))),
            _ => Err(ProtobufError::new(format!("proto: illegal tag {} (wire type {key})", (key >> 3) as i32))),
        }
    }

    pub fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().enumerate() {
            if at >= 10 {
                return Err(ProtobufError::new("proto: integer overflow"));
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(at + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(ProtobufError::end())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], ProtobufError> {
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

    pub fn skip(&mut self, wire_type: WireType) -> Result<(), ProtobufError> {
        match wire_type {
            WireType::Varint => self.varint().map(drop),
            WireType::Fixed64 => self.take(8).map(drop),
            WireType::Fixed32 => self.take(4).map(drop),
            WireType::Length => self.length_delimited(wire_type, "").map(drop),
        }
    }
}

/// Go names the field as its struct does: `Replicas`.
fn wrong(wire_type: WireType, field: &str) -> ProtobufError {
    let mut letters = field.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase()).into_iter();
    let field: String = first.chain(letters).collect();
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
