//! Protobuf to trees.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;

use super::{
    Envelope, ProtobufError,
    wire::{Reader, WireType},
};
use crate::{
    api::{duration, quantity::Quantity},
    object::{self, Key, Map, Value},
    schema::{OneOf, Scalar, Shape, Struct, Table, Type, TypeId, WireMember, zero},
};

/// Deepest nesting of messages.
const MAX_DEPTH: usize = 200;

/// Members and items a message may grow to. Two bytes can stand for a struct with several members, so the size of the
/// input alone is no bound; no real object comes near this.
const MAX_NODES: usize = 2_000_000;

/// The object in an envelope, with `apiVersion` and `kind` of the envelope where it has them.
///
/// # Errors
/// What gogo's generated code says of bytes that are no such message.
pub fn decode_object(table: &Table, ty: TypeId, envelope: &Envelope) -> Result<Value, ProtobufError> {
    let mut object = decode_body(table, ty, envelope.raw)?;
    if let Value::Object(map) = &mut object {
        for (name, text) in [("apiVersion", &envelope.api_version), ("kind", &envelope.kind)] {
            if !text.is_empty() {
                map.insert(Key::from_static(name), text.as_ref());
            }
        }
    }
    Ok(object)
}

/// A message alone.
///
/// # Errors
/// As [`decode_object`].
pub fn decode_body(table: &Table, ty: TypeId, raw: &[u8]) -> Result<Value, ProtobufError> {
    let ty = table.get(ty);
    let Shape::Struct(it) = &ty.shape else {
        return Err(ProtobufError::new(format!("{} is not a protobuf message", ty.go)));
    };
    Ok(Value::Object(Decoder { table, nodes: 0 }.message(it, message_name(ty), raw, 0)?))
}

/// The Go name of a message without its package.
fn message_name(ty: &Type) -> &str {
    ty.go.rsplit('.').next().unwrap_or("")
}

/// A message that is being read. It may come in pieces, and what was left out is known only at its end.
struct Open {
    /// One place for each field, in the order in which a map keeps them.
    values: Vec<Slot>,
    /// Messages whose members are those of the struct they are in.
    embedded: Vec<(TypeId, Open)>,
}

enum Slot {
    Value(Value),
    /// Entries of a map come in any order and are sorted once.
    Entries(Vec<(Key, Value)>),
    Message(Open),
}

impl Open {
    fn new(it: &Struct) -> Self {
        Self { values: it.fields.iter().map(|_| Slot::Value(Value::Null)).collect(), embedded: Vec::new() }
    }
}

impl Slot {
    /// The message in it; the first piece makes one.
    fn message(&mut self, it: &Struct) -> Option<&mut Open> {
        if let Self::Value(_) = self {
            *self = Self::Message(Open::new(it));
        }
        match self {
            Self::Message(open) => Some(open),
            Self::Value(_) | Self::Entries(_) => None,
        }
    }

    fn push(&mut self, entry: (Key, Value)) {
        match self {
            Self::Entries(entries) => entries.push(entry),
            Self::Value(_) | Self::Message(_) => *self = Self::Entries(vec![entry]),
        }
    }
}

struct Decoder<'t> {
    table: &'t Table,
    nodes: usize,
}

impl<'t> Decoder<'t> {
    fn count(&mut self, nodes: usize) -> Result<(), ProtobufError> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES { Err(ProtobufError::new("proto: message too large")) } else { Ok(()) }
    }

    /// The members, in Go's JSON form.
    fn message(&mut self, it: &'t Struct, name: &str, raw: &[u8], depth: usize) -> Result<Map, ProtobufError> {
        let mut open = Open::new(it);
        self.fill(it, name, raw, &mut open, depth)?;
        self.finish(it, open)
    }

    fn fill(
        &mut self,
        it: &'t Struct,
        name: &str,
        raw: &[u8],
        open: &mut Open,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        if depth > MAX_DEPTH {
            return Err(ProtobufError::new("proto: message nested too deep"));
        }
        self.count(1)?;
        let mut reader = Reader::new(raw);
        while let Some((tag, wire_type)) = reader.tag(name)? {
            let entry = it.wire.binary_search_by_key(&tag, |entry| entry.tag).ok().and_then(|at| it.wire.get(at));
            match entry.map(|entry| entry.member) {
                None => reader.skip(wire_type)?,
                Some(WireMember::Field(at)) => {
                    let (Some(field), Some(slot)) = (it.fields.get(at as usize), open.values.get_mut(at as usize))
                    else {
                        reader.skip(wire_type)?;
                        continue;
                    };
                    let ty = self.table.get(field.slot.ty);
                    match (&ty.shape, slot) {
                        (Shape::Struct(inner), slot) => {
                            let raw = reader.length_delimited(wire_type, &field.name)?;
                            if let Some(open) = slot.message(inner) {
                                self.fill(inner, message_name(ty), raw, open, depth + 1)?;
                            }
                        }
                        (Shape::Map(map_of), slot) => {
                            self.count(1)?;
                            let inner = self.table.get(map_of.value.ty);
                            let raw = reader.length_delimited(wire_type, &field.name)?;
                            slot.push(self.entry(inner, raw, &field.name, depth)?);
                        }
                        (_, Slot::Value(value)) => {
                            self.member(ty, value, &mut reader, wire_type, &field.name, depth)?;
                        }
                        (_, Slot::Message(_) | Slot::Entries(_)) => reader.skip(wire_type)?,
                    }
                }
                Some(WireMember::Embedded(id)) => {
                    let raw = reader.length_delimited(wire_type, "")?;
                    let ty = self.table.get(id);
                    let Shape::Struct(inner) = &ty.shape else { continue };
                    if !open.embedded.iter().any(|(known, _)| *known == id) {
                        open.embedded.push((id, Open::new(inner)));
                    }
                    if let Some((_, open)) = open.embedded.iter_mut().find(|(known, _)| *known == id) {
                        self.fill(inner, message_name(ty), raw, open, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, it: &'t Struct, open: Open) -> Result<Map, ProtobufError> {
        let mut values = open.values;
        for (id, inner) in open.embedded {
            let Shape::Struct(embedded) = &self.table.get(id).shape else { continue };
            for (name, value) in self.finish(embedded, inner)? {
                if let Ok(at) = it.fields.binary_search_by(|field| field.name.cmp(&name))
                    && let Some(place) = values.get_mut(at)
                {
                    *place = Slot::Value(value);
                }
            }
        }
        let mut members = Vec::with_capacity(values.len().min(16));
        for (field, slot) in it.fields.iter().zip(values) {
            let ty = self.table.get(field.slot.ty);
            let mut value = match (slot, &ty.shape) {
                (Slot::Message(open), Shape::Struct(inner)) => Value::Object(self.finish(inner, open)?),
                (Slot::Value(value), _) => value,
                (Slot::Entries(entries), _) => Value::Object(Map::from_members(entries, |_| {})),
                (Slot::Message(_), _) => Value::Null,
            };
            if value.is_null() && !field.slot.pointer {
                value = zero::of(self.table, ty);
            }
            if !zero::is_omitted(field, ty, &value) {
                members.push((field.name.clone(), value));
            }
        }
        self.count(members.len())?;
        Ok(Map::from_members(members, |_| {}))
    }

    /// One occurrence of a field that is no map; lists grow by it.
    fn member(
        &mut self,
        ty: &'t Type,
        value: &mut Value,
        reader: &mut Reader,
        wire_type: WireType,
        name: &str,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        match &ty.shape {
            Shape::List(list) if !list.message => {
                let item = self.table.get(list.item.ty);
                if !matches!(value, Value::Array(_)) {
                    *value = Value::Array(Vec::new());
                }
                let Value::Array(items) = value else { return Ok(()) };
                // Numbers may come packed.
                if wire_type == WireType::Length && is_varint(item) {
                    let mut packed = Reader::new(reader.length_delimited(wire_type, name)?);
                    while !packed.is_empty() {
                        self.count(1)?;
                        items.push(self.one(item, &mut packed, WireType::Varint, name, depth)?);
                    }
                    return Ok(());
                }
                self.count(1)?;
                items.push(self.one(item, reader, wire_type, name, depth)?);
                Ok(())
            }
            _ => {
                *value = self.one(ty, reader, wire_type, name, depth)?;
                Ok(())
            }
        }
    }

    fn entry(&mut self, ty: &'t Type, raw: &[u8], name: &str, depth: usize) -> Result<(Key, Value), ProtobufError> {
        let (mut key, mut value) = (Key::default(), None);
        let mut reader = Reader::new(raw);
        while let Some((tag, wire_type, _)) = reader.entry_tag()? {
            match tag {
                1 => key = Key::new(&reader.text(WireType::Length, name)?),
                2 => value = Some(self.one(ty, &mut reader, entry_wire_type(ty), name, depth)?),
                _ => reader.skip(wire_type)?,
            }
        }
        // What is missing is empty, not nil.
        let value = value.unwrap_or_else(|| match &ty.shape {
            Shape::Scalar(Scalar::Bytes) => Value::Str(String::new()),
            Shape::List(_) => Value::Array(Vec::new()),
            _ => zero::of(self.table, ty),
        });
        Ok((key, value))
    }

    /// A value that is no list or map (but perhaps a list in a message of its own).
    fn one(
        &mut self,
        ty: &'t Type,
        reader: &mut Reader,
        wire_type: WireType,
        name: &str,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        match &ty.shape {
            Shape::Scalar(scalar) => self.scalar(*scalar, reader, wire_type, name),
            Shape::Struct(it) => {
                let raw = reader.length_delimited(wire_type, name)?;
                Ok(Value::Object(self.message(it, message_name(ty), raw, depth + 1)?))
            }
            Shape::OneOf(it) => self.one_of(it, ty, reader.length_delimited(wire_type, name)?, name, depth + 1),
            Shape::List(list) => {
                let item = self.table.get(list.item.ty);
                let mut inner = Reader::new(reader.length_delimited(wire_type, name)?);
                let mut items = Vec::new();
                while let Some((tag, wire_type)) = inner.tag(message_name(ty))? {
                    match tag {
                        1 => {
                            self.count(1)?;
                            items.push(self.one(item, &mut inner, wire_type, name, depth + 1)?);
                        }
                        _ => inner.skip(wire_type)?,
                    }
                }
                Ok(Value::Array(items))
            }
            Shape::Any | Shape::Map(_) => reader.skip(wire_type).map(|()| Value::Null),
        }
    }

    /// The alternative that is set; a schema wins over the boolean beside it.
    fn one_of(
        &mut self,
        it: &'t OneOf,
        ty: &'t Type,
        raw: &[u8],
        name: &str,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        if depth > MAX_DEPTH {
            return Err(ProtobufError::new("proto: message nested too deep"));
        }
        let mut values = vec![Value::Null; it.variants.len()];
        let mut reader = Reader::new(raw);
        while let Some((tag, wire_type)) = reader.tag(message_name(ty))? {
            let at = it.variants.iter().position(|(_, own)| *own == tag);
            match at.and_then(|at| Some((it.variants.get(at)?.0, values.get_mut(at)?))) {
                Some((ty, value)) => self.member(self.table.get(ty), value, &mut reader, wire_type, name, depth)?,
                None => reader.skip(wire_type)?,
            }
        }
        Ok(values.into_iter().rev().find(|value| !value.is_null()).unwrap_or(Value::Null))
    }

    fn scalar(
        &mut self,
        scalar: Scalar,
        reader: &mut Reader,
        wire_type: WireType,
        name: &str,
    ) -> Result<Value, ProtobufError> {
        Ok(match scalar {
            Scalar::String => Value::Str(reader.text(wire_type, name)?.into_owned()),
            Scalar::Bool => Value::Bool(reader.number(wire_type, name)? != 0),
            // Go cuts to 32 bits.
            Scalar::Int32 => Value::Int((reader.number(wire_type, name)? as i32).into()),
            Scalar::Int64 => Value::Int(reader.number(wire_type, name)? as i64),
            Scalar::Double => match reader.double(wire_type, name)? {
                it if it.is_finite() => zero::canonical_double(it),
                it => return Err(ProtobufError::new(format!("json: unsupported value: {it}"))),
            },
            Scalar::Bytes => Value::Str(STANDARD.encode(reader.length_delimited(wire_type, name)?)),
            Scalar::Quantity => {
                let text = text_at_1(reader.length_delimited(wire_type, name)?, name)?;
                match text.as_str() {
                    "" => Value::Str("0".into()),
                    text => match Quantity::parse(text) {
                        Ok(quantity) => Value::Str(quantity.to_string()),
                        Err(error) => return Err(ProtobufError::new(error.to_string())),
                    },
                }
            }
            Scalar::Time | Scalar::MicroTime => time(scalar, reader.length_delimited(wire_type, name)?)?,
            Scalar::Duration => {
                let [nanos, _] = numbers(reader.length_delimited(wire_type, name)?)?;
                Value::Str(duration::format_duration(nanos))
            }
            Scalar::IntOrString => int_or_string(reader.length_delimited(wire_type, name)?, name)?,
            Scalar::RawExtension | Scalar::FieldsV1 | Scalar::Json => {
                match bytes_at(1, reader.length_delimited(wire_type, name)?, name)? {
                    [] => Value::Null,
                    text => object::parse(text).map_err(|error| ProtobufError::new(error.message))?,
                }
            }
            Scalar::Unknown => match bytes_at(2, reader.length_delimited(wire_type, name)?, name)? {
                [] => Value::Null,
                text => object::parse(text).map_err(|error| ProtobufError::new(error.message))?,
            },
        })
    }
}

/// The wire type of a map's values, which is not looked at.
fn entry_wire_type(ty: &Type) -> WireType {
    match ty.shape {
        Shape::Scalar(Scalar::Double) => WireType::Fixed64,
        _ if is_varint(ty) => WireType::Varint,
        _ => WireType::Length,
    }
}

fn is_varint(ty: &Type) -> bool {
    matches!(ty.shape, Shape::Scalar(Scalar::Bool | Scalar::Int32 | Scalar::Int64))
}

fn bytes_at<'a>(place: u32, raw: &'a [u8], name: &str) -> Result<&'a [u8], ProtobufError> {
    let mut reader = Reader::new(raw);
    let mut bytes = &[][..];
    while let Some((tag, wire_type)) = reader.tag("RawExtension")? {
        match tag {
            _ if tag == place => bytes = reader.length_delimited(wire_type, name)?,
            _ => reader.skip(wire_type)?,
        }
    }
    Ok(bytes)
}

fn text_at_1(raw: &[u8], name: &str) -> Result<String, ProtobufError> {
    Ok(String::from_utf8_lossy(bytes_at(1, raw, name)?).into_owned())
}

/// The numbers at tags 1 and 2.
fn numbers(raw: &[u8]) -> Result<[i64; 2], ProtobufError> {
    let mut reader = Reader::new(raw);
    let mut numbers = [0; 2];
    while let Some((tag, wire_type)) = reader.tag("Timestamp")? {
        match tag {
            1 => numbers[0] = reader.number(wire_type, "Seconds")? as i64,
            2 => numbers[1] = reader.number(wire_type, "Nanos")? as i64,
            _ => reader.skip(wire_type)?,
        }
    }
    Ok(numbers)
}

fn time(scalar: Scalar, raw: &[u8]) -> Result<Value, ProtobufError> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    let [seconds, nanos] = numbers(raw)?;
    let nanos = if scalar == Scalar::MicroTime { i32::try_from(nanos).unwrap_or(0) / 1000 * 1000 } else { 0 };
    let at = Timestamp::new(seconds, nanos).map_err(|error| ProtobufError::new(error.to_string()))?;
    Ok(match scalar {
        _ if duration::is_zero_time(at) => Value::Null,
        Scalar::MicroTime => Value::Str(duration::format_micro_time(at)),
        _ => Value::Str(duration::format_time(at)),
    })
}

fn int_or_string(raw: &[u8], name: &str) -> Result<Value, ProtobufError> {
    let mut reader = Reader::new(raw);
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    while let Some((tag, wire_type)) = reader.tag("IntOrString")? {
        match tag {
            1 => is_text = reader.number(wire_type, name)? != 0,
            2 => number = reader.number(wire_type, name)? as i32,
            3 => text = reader.text(wire_type, name)?.into_owned(),
            _ => reader.skip(wire_type)?,
        }
    }
    Ok(if is_text { Value::Str(text) } else { Value::Int(number.into()) })
}
