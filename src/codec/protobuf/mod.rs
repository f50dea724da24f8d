//! Protobuf of built-in kinds, driven by the type table: a tree becomes the bytes that upstream's generated (gogo)
//! code would write, and such bytes become the tree that Go would print as JSON.
//!
//! Rules of gogo: fields in order of their tags; a number, boolean or text that is no pointer is written even when
//! zero; a pointer when it is set; lists repeat, maps repeat an entry message in order of the keys. Trees must be
//! decoded and normalised (see [`crate::schema::decode`]). Input is bounded in depth and in what it may grow to.

mod decode;
mod encode;
mod wire;

pub use decode::{decode_body, decode_object};
pub use encode::{
    ENVELOPE_END, append_list_item, encode_body, encode_list_start, encode_object, envelope_start, list_item_len,
    watch_event, wrap,
};
pub(crate) use wire::Backward;
pub use wire::ProtobufError;

use std::borrow::Cow;

use wire::Reader;

/// What stands before every object: four bytes, then `runtime.Unknown`.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// An object in its envelope, not yet decoded.
#[derive(Debug, Default)]
pub struct Envelope<'a> {
    pub api_version: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub raw: &'a [u8],
    pub content_encoding: Cow<'a, str>,
    /// Empty for protobuf.
    pub content_type: Cow<'a, str>,
}

/// Opens the envelope.
///
/// # Errors
/// Upstream's texts for what is no envelope.
pub fn open(data: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    let body = match data.strip_prefix(MAGIC) {
        _ if data.is_empty() => return Err(ProtobufError::new("empty data")),
        None => {
            let message = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
            return Err(ProtobufError::new(message));
        }
        Some([]) => return Err(ProtobufError::new("empty body")),
        Some(body) => body,
    };
    let mut envelope = Envelope::default();
    let mut reader = Reader::new(body);
    while let Some((tag, wire_type)) = reader.tag("Unknown")? {
        match tag {
            1 => {
                let mut inner = Reader::new(reader.length_delimited(wire_type, "TypeMeta")?);
                while let Some((tag, wire_type)) = inner.tag("TypeMeta")? {
                    match tag {
                        1 => envelope.api_version = inner.text(wire_type, "APIVersion")?,
                        2 => envelope.kind = inner.text(wire_type, "Kind")?,
                        _ => inner.skip(wire_type)?,
                    }
                }
            }
            2 => envelope.raw = reader.length_delimited(wire_type, "Raw")?,
            3 => envelope.content_encoding = reader.text(wire_type, "ContentEncoding")?,
            4 => envelope.content_type = reader.text(wire_type, "ContentType")?,
            _ => reader.skip(wire_type)?,
        }
    }
    Ok(envelope)
}

#[cfg(test)]
mod tests;
