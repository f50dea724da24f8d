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
}

impl Format {
    /// In the order the server prefers them.
    pub const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The media type of a watch in this format; YAML has none.
    pub fn stream_media_type(self) -> Option<&'static str> {
        match self {
            Self::Json => Some("application/json"),
            Self::Yaml => None,
            Self::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
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
    }
}

/// A watch event as it stands in a stream: JSON ends with a newline, protobuf begins with its length.
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
    }
}

/// The tree of a protobuf body, by the kind in its envelope.
///
/// # Errors
/// Upstream's texts for what is no protobuf object or of an unknown kind.
pub fn decode_protobuf(bytes: &[u8]) -> Result<Value, String> {
    let envelope = protobuf::open(bytes).map_err(|error| error.to_string())?;
    let (table, ty) = type_of(&envelope.api_version, &envelope.kind)?;
    protobuf::decode_object(table, ty, &envelope).map_err(|error| error.to_string())
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
