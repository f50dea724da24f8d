//! Small types of option values: secrets that mask themselves, paths that say what they are for, Go durations and
//! byte sizes.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::api::duration::{format_duration, parse_duration};

/// What a secret prints as. The loader refuses it as a value, so that a printed configuration is never mistaken
/// for a whole one.
pub const REDACTED: &str = "<redacted>";

/// Text that shows itself only when asked by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretString(Arc<str>);

impl SecretString {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for SecretString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for SecretString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == REDACTED {
            return Err(D::Error::custom("a secret that was printed redacted cannot be read back"));
        }
        Ok(Self(text.into()))
    }
}

impl JsonSchema for SecretString {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "secret"})
    }
}

/// Bytes of a private key or the like. Debug shows their length alone.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(Arc<[u8]>);

impl SecretBytes {
    pub fn new(bytes: Arc<[u8]>) -> Self {
        Self(bytes)
    }
    /// The secret itself.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} secret bytes>", self.0.len())
    }
}

/// A file whose contents are part of the configuration: read when the configuration is, watched for changes.
/// A relative path starts at the folder of the file that names it, or at the working directory for variables and
/// flags.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FilePath(pub PathBuf);

/// The path of something that kenter makes or opens itself. Relative as [`FilePath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnPath(pub PathBuf);

/// Schema formats that tell the loader what to do with a text.
pub const FORMAT_FILE: &str = "file";
pub const FORMAT_PATH: &str = "path";
pub const FORMAT_SECRET: &str = "secret";

macro_rules! path_schema {
    ($type:ty, $name:literal, $format:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "format": $format, "minLength": 1})
            }
        }
    };
}
path_schema!(FilePath, "File", FORMAT_FILE);
path_schema!(OwnPath, "Path", FORMAT_PATH);

/// A length of time in Go's syntax ("1m30s", "250ms"); nanoseconds. Whether it may be negative is judged later,
/// where upstream has its own text for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(pub i64);

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map(Self).map_err(|error| D::Error::custom(error.0))
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "duration", "pattern": "^[0-9]"})
    }
}

/// A number of bytes: an integer, or text with a unit ("32MiB", "3Mi", "64k").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// Reads "32MiB", "32Mi", "64k", "64kB", "100": binary units by 1024, decimal ones by 1000.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.trim().trim_end_matches('B') {
            "" => 1,
            "k" | "K" => 1000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            _ => return Err(format!("{text:?} is not a size: give bytes, or a unit such as KiB, MiB, GiB")),
        };
        number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(factor))
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not a size"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 != 0 && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(deserializer) {
            Ok(Either::Number(n)) => Ok(Self(n)),
            Ok(Either::Text(text)) => Self::parse(&text).map_err(D::Error::custom),
            Err(_) => Err(D::Error::custom("expected a size such as 3MiB, or a number of bytes")),
        }
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"], "format": "size", "minimum": 0})
    }
}
