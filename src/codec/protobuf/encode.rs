//! Trees to protobuf.

use super::{
    MAGIC, ProtobufError,
    wire::{Backward, WireType},
};
use crate::{
    api::duration,
    object::{Map, Value, to_vec},
    schema::{Scalar, Shape, Slot, Struct, Table, Type, TypeId, WireMember, go_base64},
};

/// An object in its envelope; its `apiVersion` and `kind` are those of the tree.
///
/// # Errors
/// Times, durations or base64 that are none, which a decoded tree does not have; or a type without a protobuf form.
pub fn encode_object(table: &Table, ty: TypeId, object: &Value) -> Result<Vec<u8>, ProtobufError> {
    let raw = encode_body(table, ty, object)?;
    Ok(wrap(object.str_at(&["apiVersion"]), object.str_at(&["kind"]), &raw))
}

/// The object's message alone, as it stands in an envelope or as an item of a list.
///
/// # Errors
/// As [`encode_object`].
pub fn encode_body(table: &Table, ty: TypeId, object: &Value) -> Result<Vec<u8>, ProtobufError> {
    let (Shape::Struct(it), Value::Object(map)) = (&table.get(ty).shape, object) else {
        return Err(ProtobufError::new(format!("{} is not a protobuf message", table.get(ty).go)));
    };
    let mut encoder = Encoder { table, out: Backward::default() };
    encoder.members(it, map)?;
    Ok(encoder.out.finish())
}

/// What stands in an envelope after its message: encoding and type of it, both empty.
pub const ENVELOPE_END: &[u8] = &[0x1a, 0, 0x22, 0];

/// Puts a message into its envelope.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = envelope_start(api_version, kind, raw.len());
    out.reserve_exact(raw.len() + ENVELOPE_END.len());
    out.extend_from_slice(raw);
    out.extend_from_slice(ENVELOPE_END);
    out
}

/// Begins an envelope whose message, of this length, follows, and then [`ENVELOPE_END`].
pub fn envelope_start(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut type_meta = Vec::with_capacity(api_version.len() + kind.len() + 8);
    append(&mut type_meta, 1, api_version.as_bytes());
    append(&mut type_meta, 2, kind.as_bytes());
    let mut out = Vec::with_capacity(type_meta.len() + 20);
    out.extend_from_slice(MAGIC);
    append(&mut out, 1, &type_meta);
    begin(&mut out, 2, length);
    out
}

/// Begins the body of a list with its metadata; [`append_list_item`] goes on and [`wrap`] ends it. The lists of all
/// built-in kinds have their metadata at tag 1 and their items at tag 2.
///
/// # Errors
/// As [`encode_object`].
pub fn encode_list_start(table: &Table, list_metadata: &Value) -> Result<Vec<u8>, ProtobufError> {
    let ty = table.named("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta").unwrap_or(TypeId::ANY);
    let metadata = encode_body(table, ty, list_metadata)?;
    let mut out = Vec::with_capacity(metadata.len() + 16);
    append(&mut out, 1, &metadata);
    Ok(out)
}

/// Adds an item (the body of an object) to the body of a list.
pub fn append_list_item(list: &mut Vec<u8>, item: &[u8]) {
    append(list, 2, item);
}

/// How many bytes [`append_list_item`] adds for an item of this length.
pub fn list_item_len(length: usize) -> usize {
    let bits = usize::BITS - (length | 1).leading_zeros();
    1 + bits.div_ceil(7) as usize + length
}

fn append(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    begin(out, tag, bytes.len());
    out.extend_from_slice(bytes);
}

/// Tag and length of a field whose bytes follow.
fn begin(out: &mut Vec<u8>, tag: u32, length: usize) {
    let mut head = Backward::default();
    head.varint(length as u64);
    head.tag(tag, WireType::Length);
    out.extend(head.finish());
}

/// A frame of a watch: four bytes of length (big endian), then a `WatchEvent` without envelope, whose object is in one.
pub fn watch_event(event: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(object.len() + 8);
    append(&mut raw, 1, object);
    let mut out = vec![0; 4];
    out.reserve_exact(raw.len() + event.len() + 16);
    append(&mut out, 1, event.as_bytes());
    append(&mut out, 2, &raw);
    let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX).to_be_bytes();
    out.splice(..4, length);
    out
}

struct Encoder<'t> {
    table: &'t Table,
    out: Backward,
}

type Encoded = Result<(), ProtobufError>;

impl<'t> Encoder<'t> {
    /// Members from the last tag to the first.
    fn members(&mut self, it: &'t Struct, map: &Map) -> Encoded {
        for entry in it.wire.iter().rev() {
            match entry.member {
                WireMember::Embedded(ty) => {
                    if let Shape::Struct(inner) = &self.table.get(ty).shape {
                        let end = self.out.len();
                        self.members(inner, map)?;
                        self.out.close(entry.tag, end);
                    }
                }
                WireMember::Field(at) => {
                    if let Some(field) = it.fields.get(at as usize) {
                        self.member(entry.tag, &field.slot, map.get(&field.name).unwrap_or(&Value::Null))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn member(&mut self, tag: u32, slot: &Slot, value: &Value) -> Encoded {
        let ty = self.table.get(slot.ty);
        if value.is_null() && (slot.pointer || is_nil_when_null(ty)) {
            return Ok(());
        }
        match (&ty.shape, value) {
            (Shape::List(list), Value::Array(items)) => {
                let end = self.out.len();
                let item = self.table.get(list.item.ty);
                let item_tag = if list.message { 1 } else { tag };
                for value in items.iter().rev() {
                    self.value(item_tag, item, value)?;
                }
                if list.message {
                    self.out.close(tag, end);
                }
                Ok(())
            }
            (Shape::Map(map_of), Value::Object(map)) => {
                let inner = self.table.get(map_of.value.ty);
                for (key, value) in map.iter().rev() {
                    let end = self.out.len();
                    if !value.is_null() || !matches!(inner.shape, Shape::Scalar(Scalar::Bytes)) {
                        self.value(2, inner, value)?;
                    }
                    self.out.delimited(1, key.as_bytes());
                    self.out.close(tag, end);
                }
                Ok(())
            }
            _ => self.value(tag, ty, value),
        }
    }

    /// One value with its tag; null is a zero value here.
    fn value(&mut self, tag: u32, ty: &'t Type, value: &Value) -> Encoded {
        match &ty.shape {
            Shape::Scalar(scalar) => self.scalar(tag, *scalar, value),
            Shape::Struct(it) => {
                let end = self.out.len();
                self.members(it, value.as_object().unwrap_or(&Map::new()))?;
                self.out.close(tag, end);
                Ok(())
            }
            Shape::OneOf(it) => {
                let end = self.out.len();
                for (id, tag) in it.variants.iter().rev() {
                    let slot = Slot { pointer: true, ..Slot::of(*id) };
                    match (&self.table.get(*id).shape, value) {
                        (Shape::Scalar(Scalar::Bool), value) => {
                            // A schema is allowed too.
                            let allows = value.as_bool().unwrap_or(value.as_object().is_some());
                            self.out.number(*tag, u64::from(allows));
                        }
                        (Shape::Struct(_), Value::Object(_)) | (Shape::List(_), Value::Array(_)) => {
                            self.member(*tag, &slot, value)?;
                        }
                        _ => {}
                    }
                }
                self.out.close(tag, end);
                Ok(())
            }
            // A list inside a map or a list is a message of its own; a null one is an empty one.
            Shape::List(list) => {
                let end = self.out.len();
                let item = self.table.get(list.item.ty);
                for value in value.as_array().unwrap_or_default().iter().rev() {
                    self.value(1, item, value)?;
                }
                self.out.close(tag, end);
                Ok(())
            }
            Shape::Any | Shape::Map(_) => Err(ProtobufError::new(format!("{} has no protobuf form", ty.go))),
        }
    }

    fn scalar(&mut self, tag: u32, scalar: Scalar, value: &Value) -> Encoded {
        match scalar {
            Scalar::String => self.out.delimited(tag, value.as_str().unwrap_or_default().as_bytes()),
            Scalar::Bool => self.out.number(tag, u64::from(value.as_bool().unwrap_or_default())),
            Scalar::Int32 | Scalar::Int64 => self.out.number(tag, value.as_i64().unwrap_or_default() as u64),
            Scalar::Double => {
                self.out.bytes(&value.as_f64().unwrap_or_default().to_le_bytes());
                self.out.tag(tag, WireType::Fixed64);
            }
            Scalar::Bytes => {
                let text = value.as_str().unwrap_or_default();
                let bytes = go_base64::decode(text)
                    .map_err(|at| ProtobufError::new(format!("illegal base64 data at input byte {at}")))?;
                self.out.delimited(tag, &bytes);
            }
            Scalar::Quantity => self.wrapped(tag, value.as_str().unwrap_or("0").as_bytes()),
            Scalar::RawExtension | Scalar::FieldsV1 | Scalar::Json => match value {
                Value::Null => self.out.delimited(tag, b""),
                _ => self.wrapped(tag, &to_vec(value)),
            },
            Scalar::Unknown => {
                let end = self.out.len();
                self.out.delimited(4, if value.is_null() { b"" } else { b"application/json" });
                self.out.delimited(3, b"");
                if !value.is_null() {
                    self.out.delimited(2, &to_vec(value));
                }
                let inner = self.out.len();
                self.out.delimited(2, b"");
                self.out.delimited(1, b"");
                self.out.close(1, inner);
                self.out.close(tag, end);
            }
            Scalar::Time | Scalar::MicroTime => return self.time(tag, scalar, value),
            Scalar::Duration => {
                let nanos = duration::parse_duration(value.as_str().unwrap_or("0s")).map_err(wrong_time)?;
                let end = self.out.len();
                self.out.number(1, nanos as u64);
                self.out.close(tag, end);
            }
            Scalar::IntOrString => {
                let end = self.out.len();
                self.out.delimited(3, value.as_str().unwrap_or_default().as_bytes());
                self.out.number(2, value.as_i64().unwrap_or_default() as u64);
                self.out.number(1, u64::from(value.as_str().is_some()));
                self.out.close(tag, end);
            }
        }
        Ok(())
    }

    /// A message whose only field, at tag 1, are these bytes.
    fn wrapped(&mut self, tag: u32, bytes: &[u8]) {
        let end = self.out.len();
        self.out.delimited(1, bytes);
        self.out.close(tag, end);
    }

    fn time(&mut self, tag: u32, scalar: Scalar, value: &Value) -> Encoded {
        let end = self.out.len();
        if let Value::Str(text) = value {
            let (at, nanos) = match scalar {
                Scalar::Time => (duration::parse_time(text).map_err(wrong_time)?, 0),
                _ => {
                    let at = duration::parse_micro_time(text).map_err(wrong_time)?;
                    let second = at.as_nanosecond().rem_euclid(1_000_000_000);
                    (at, second as u64)
                }
            };
            self.out.number(2, nanos);
            self.out.number(1, at.as_nanosecond().div_euclid(1_000_000_000) as i64 as u64);
        }
        self.out.close(tag, end);
        Ok(())
    }
}

/// Types whose null in JSON is a nil in Go, which is not written.
fn is_nil_when_null(ty: &Type) -> bool {
    matches!(ty.shape, Shape::List(_) | Shape::Map(_) | Shape::Scalar(Scalar::Bytes))
}

fn wrong_time(error: duration::TimeError) -> ProtobufError {
    ProtobufError::new(error.to_string())
}
