//! Bytes to objects and back, by format. Built-in kinds have a protobuf form through the type table.

pub mod protobuf;

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
