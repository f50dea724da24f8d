//! Bytes to objects and back, by format. Built-in kinds have a protobuf form through the type table.

pub mod cbor;
pub mod protobuf;
mod yaml;

use crate::{
    object::{Style, Value, write_json},
    schema::{self, Table, TypeId},
};

/// A form documents take on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Json,
    Yaml,
    Protobuf,
    Cbor,
}

impl Format {
    /// What is served, in the order the server prefers it.
    pub const USUAL: &[Self] = &[Self::Json, Self::Yaml, Self::Protobuf];
    /// The same under the feature gate CBORServingAndStorage.
    pub const WITH_CBOR: &[Self] = &[Self::Json, Self::Yaml, Self::Protobuf, Self::Cbor];

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::Cbor => "application/cbor",
        }
    }

    /// How the media type of a watch is told in errors.
    pub fn told_stream_media_type(self) -> Option<&'static str> {
        match self {
            Self::Json => Some("application/json;stream=watch"),
            other => other.stream_media_type(),
        }
    }

    /// The media type of a watch in this format; YAML has none.
    pub fn stream_media_type(self) -> Option<&'static str> {
        match self {
            Self::Json => Some("application/json"),
            Self::Yaml => None,
            Self::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
            Self::Cbor => Some("application/cbor-seq"),
        }
    }
}

/// A document in a format. Compact or indented matters for JSON alone; compact JSON ends with a newline.
///
/// # Errors
/// What cannot be encoded: a kind without a protobuf form.
pub fn encode(format: Format, value: &Value, style: Style) -> Result<Vec<u8>, String> {
    match format {
        Format::Json => {
            let mut out = Vec::with_capacity(1024);
            write_json(&mut out, value, style);
            if style == Style::Compact {
                out.push(b'\n');
            }
            Ok(out)
        }
        Format::Yaml => Ok(yaml::to_vec(value)),
        Format::Protobuf => encode_protobuf(value),
        Format::Cbor => Ok(encode_cbor(value)),
    }
}

/// A kind that is not built in is written as it is.
fn encode_cbor(value: &Value) -> Vec<u8> {
    let ty = type_of(value.str_at(&["apiVersion"]), value.str_at(&["kind"])).map_or(TypeId::ANY, |(_, ty)| ty);
    cbor::encode(schema::builtin(), ty, value)
}

/// A watch event as it stands in a stream: JSON ends with a newline, protobuf begins with its length,
/// CBOR is one document after the other.
///
/// # Errors
/// As [`encode`]; also for formats that do not stream.
pub fn frame(format: Format, kind: &str, object: &Value) -> Result<Vec<u8>, String> {
    match format {
        Format::Json => {
            let mut out = format!(r#"{{"type":"{kind}","object":"#).into_bytes();
            write_json(&mut out, object, Style::Compact);
            out.extend_from_slice(b"}\n");
            Ok(out)
        }
        Format::Yaml => Err("YAML does not stream".to_owned()),
        Format::Protobuf => Ok(protobuf::watch_event(kind, &encode_protobuf(object)?)),
        Format::Cbor => Ok(cbor::watch_event(kind, &encode_cbor(object))),
    }
}

/// What a protobuf body says that it is, and its message.
pub use protobuf::{Envelope, open as open_protobuf};

/// The tree of a protobuf body, by the kind in its envelope.
///
/// # Errors
/// Upstream's texts for what is no protobuf object, or of an unknown kind.
pub fn decode_protobuf(bytes: &[u8]) -> Result<Value, String> {
    decode_envelope(&open_protobuf(bytes).map_err(|error| error.to_string())?)
}

/// The tree of the message in an envelope, of the kind that the envelope names.
///
/// # Errors
/// Upstream's texts for what is no such message, or of an unknown kind.
pub fn decode_envelope(envelope: &Envelope<'_>) -> Result<Value, String> {
    let (table, ty) = type_of(&envelope.api_version, &envelope.kind)
        .map_err(|error| format!("{error} in scheme \"pkg/runtime/scheme.go:111\""))?;
    protobuf::decode_object(table, ty, envelope).map_err(|error| error.to_string())
}

/// The message of an object without its envelope, by the kind the tree says.
///
/// # Errors
/// As [`encode`].
pub fn protobuf_body(value: &Value) -> Result<Vec<u8>, String> {
    let (table, ty) = type_of(value.str_at(&["apiVersion"]), value.str_at(&["kind"]))?;
    protobuf::encode_body(table, ty, value).map_err(|error| error.to_string())
}

fn encode_protobuf(value: &Value) -> Result<Vec<u8>, String> {
    let (table, ty) = type_of(value.str_at(&["apiVersion"]), value.str_at(&["kind"]))?;
    protobuf::encode_object(table, ty, value).map_err(|error| error.to_string())
}

fn type_of(api_version: &str, kind: &str) -> Result<(&'static Table, TypeId), String> {
    let table = schema::builtin();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = table.kind(group, version, kind);
    Ok((table, found.ok_or_else(|| format!("no kind \"{kind}\" is registered for version \"{api_version}\""))?))
}
