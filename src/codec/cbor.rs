//! CBOR as Kubernetes uses it (feature gate CBORServingAndStorage): text and member names are byte strings, members are
//! in the order of RFC 8949's core deterministic encoding, floats as short as they can be, `[]byte` a byte string
//! that says it will be base64 (tag 22). Mirrors apimachinery `pkg/runtime/serializer/cbor`.
//!
//! Reading gives a tree; for built-in kinds [`crate::schema::decode()`] goes on from there. Input is bounded in depth, and
//! grows to no more nodes than it has bytes.

use std::{collections::HashSet, fmt};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};

use crate::{
    api::hex,
    object::{FieldPath, Key, MAX_DEPTH, Map, Step, Value},
    schema::{Scalar, Shape, Table, Type, TypeId, go_base64},
};

/// What every document begins with: the tag "this is CBOR".
pub const SELF_DESCRIBED: &[u8; 3] = &[0xd9, 0xd9, 0xf7];

/// Why bytes are no CBOR that Kubernetes takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CborError(String);

impl fmt::Display for CborError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for CborError {}

fn error<T>(message: impl Into<String>) -> Result<T, CborError> {
    Err(CborError(message.into()))
}

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const SIMPLE: u8 = 7;

const LATER_BASE64URL: u64 = 21;
const LATER_BASE64: u64 = 22;
const LATER_BASE16: u64 = 23;

/// A document, self-described. `ty` is the type of a built-in kind, or [`TypeId::ANY`] for custom resources: it tells
/// which texts are bytes and which numbers doubles.
pub fn encode(table: &Table, ty: TypeId, value: &Value) -> Vec<u8> {
    let mut out = SELF_DESCRIBED.to_vec();
    write(&mut out, table, table.get(ty), value);
    out
}

/// A watch event around an encoded object.
pub fn watch_event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + 32);
    out.extend_from_slice(SELF_DESCRIBED);
    head(&mut out, MAP, 2);
    write_bytes(&mut out, b"type");
    write_bytes(&mut out, kind.as_bytes());
    write_bytes(&mut out, b"object");
    out.extend_from_slice(object);
    out
}

fn write(out: &mut Vec<u8>, table: &Table, ty: &Type, value: &Value) {
    match value {
        Value::Null => out.push(SIMPLE << 5 | 22),
        Value::Bool(it) => out.push(SIMPLE << 5 | (20 + u8::from(*it))),
        Value::Int(it) if matches!(ty.shape, Shape::Scalar(Scalar::Double)) => write_float(out, *it as f64),
        Value::Int(it) if *it >= 0 => head(out, UNSIGNED, *it as u64),
        Value::Int(it) => head(out, NEGATIVE, !*it as u64),
        Value::Float(it) => write_float(out, *it),
        Value::Str(text) => match ty.shape {
            Shape::Scalar(Scalar::Bytes) if let Ok(bytes) = go_base64::decode(text) => {
                head(out, TAG, LATER_BASE64);
                write_bytes(out, &bytes);
            }
            _ => write_bytes(out, text.as_bytes()),
        },
        Value::Array(items) => {
            let ty = variant(table, ty, |shape| matches!(shape, Shape::List(_))).unwrap_or(ty);
            let item = match &ty.shape {
                Shape::List(it) => it.item.ty,
                _ => TypeId::ANY,
            };
            head(out, ARRAY, items.len() as u64);
            items.iter().for_each(|value| write(out, table, table.get(item), value));
        }
        Value::Object(map) => {
            let ty = variant(table, ty, |shape| matches!(shape, Shape::Struct(_))).unwrap_or(ty);
            let member = |name: &str| match &ty.shape {
                Shape::Struct(it) => it.field(name).map_or(TypeId::ANY, |field| field.slot.ty),
                Shape::Map(it) => it.value.ty,
                _ => TypeId::ANY,
            };
            // Shorter names first: their length is part of their encoding.
            let mut members: Vec<(&Key, &Value)> = map.iter().collect();
            members.sort_by_key(|(key, _)| (key.len(), key.as_str()));
            head(out, MAP, members.len() as u64);
            for (key, value) in members {
                write_bytes(out, key.as_bytes());
                write(out, table, table.get(member(key)), value);
            }
        }
    }
}

/// The alternative of a type that is one of several.
fn variant<'t>(table: &'t Table, ty: &Type, fits: impl Fn(&Shape) -> bool) -> Option<&'t Type> {
    match &ty.shape {
        Shape::OneOf(it) => it.variants.iter().map(|(id, _)| table.get(*id)).find(|ty| fits(&ty.shape)),
        _ => None,
    }
}

fn head(out: &mut Vec<u8>, major: u8, number: u64) {
    let major = major << 5;
    match number {
        0..24 => out.push(major | number as u8),
        24..0x100 => out.extend([major | 24, number as u8]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend((number as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend((number as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend(number.to_be_bytes());
        }
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, BYTES, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// In the fewest bytes that lose nothing.
fn write_float(out: &mut Vec<u8>, it: f64) {
    let single = it as f32;
    if f64::from(single).to_bits() != it.to_bits() {
        out.push(SIMPLE << 5 | 27);
        out.extend(it.to_be_bytes());
    } else if let Some(half) = to_half(single) {
        out.push(SIMPLE << 5 | 25);
        out.extend(half.to_be_bytes());
    } else {
        out.push(SIMPLE << 5 | 26);
        out.extend(single.to_be_bytes());
    }
}

/// The half-precision float with exactly this value.
fn to_half(it: f32) -> Option<u16> {
    let bits = it.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    let fraction = bits & 0x7f_ffff;
    let half = match exponent {
        -127 if fraction == 0 => sign,
        -14..=15 => sign | (((exponent + 15) as u16) << 10) | (fraction >> 13) as u16,
        -24..=-15 => {
            // Subnormal: the leading one becomes part of the fraction.
            let shift = 13 + (-14 - exponent) as u32;
            sign | ((fraction | 0x80_0000) >> shift) as u16
        }
        _ => return None,
    };
    (from_half(half).to_bits() == f64::from(it).to_bits()).then_some(half)
}

fn from_half(half: u16) -> f64 {
    let exponent = i32::from(half >> 10 & 0x1f);
    let fraction = f64::from(half & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 => f64::INFINITY,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if half & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// Reads one document, with the tag that describes it or without.
///
/// # Errors
/// Bytes that are not well-formed, repeated members, and what JSON has no word for.
pub fn decode(bytes: &[u8]) -> Result<Value, CborError> {
    if bytes.is_empty() {
        return error("EOF");
    }
    let mut reader = Reader { bytes, at: 0, search: None };
    let value = reader.value(0)?;
    match bytes.len() - reader.at {
        0 => Ok(value),
        rest => error(format!("cbor: {rest} bytes of extraneous data starting at index {}", reader.at)),
    }
}

/// Why the apiVersion and kind of a document cannot be read.
pub fn type_meta_error(value: &Value) -> Option<String> {
    let into = |what: &str, target: &str| format!("cbor: cannot unmarshal {what} into Go {target}");
    match value {
        Value::Null => None,
        Value::Object(map) => ["kind", "apiVersion"].iter().find_map(|name| match map.get(name) {
            None | Some(Value::Null | Value::Str(_)) => None,
            Some(other) => Some(into(kind_of(other), &format!("struct field v1.TypeMeta.{name} of type string"))),
        }),
        Value::Array(_) => {
            let why = "(cannot decode CBOR array to struct without toarray option)";
            Some(format!("{} {why}", into("array", "value of type v1.TypeMeta")))
        }
        other => Some(into(kind_of(other), "value of type v1.TypeMeta")),
    }
}

/// Why a document that is no map cannot be applied.
pub fn not_a_map(value: &Value) -> String {
    format!("cbor: cannot unmarshal {} into Go value of type map[string]interface {{}}", kind_of(value))
}

/// The strict error for the first of these unknown members. It is told by its place in its map only, and it is the only
/// one that is told.
pub fn unknown_field(bytes: &[u8], unknown: &[String]) -> Option<String> {
    let search =
        Search { path: FieldPath::default(), wanted: unknown.iter().map(String::as_str).collect(), found: None };
    let mut reader = Reader { bytes, at: 0, search: Some(search) };
    reader.value(0).ok()?;
    let at = reader.search?.found?;
    Some(format!("cbor: found unknown field at map element index {at}"))
}

/// A type that does not fit, in the words for CBOR.
pub fn mismatch(bytes: &[u8], ty: &Type, path: &FieldPath, wanted: &str) -> Option<String> {
    let document = decode(bytes).ok()?;
    let mut value = &document;
    for step in path.steps() {
        value = match (step, value) {
            (Step::Key(key), Value::Object(map)) => map.get(key)?,
            (Step::Index(index), Value::Array(items)) => items.get(*index)?,
            _ => return None,
        };
    }
    let target = match path.steps().first() {
        Some(Step::Key(name)) => format!("struct field {}.{name}", ty.go),
        _ => "value".to_owned(),
    };
    let overflow = match value {
        Value::Int(it) if matches!(wanted, "int32" | "int64") => format!(" ({it} overflows Go's {wanted})"),
        _ => String::new(),
    };
    Some(format!("cbor: cannot unmarshal {} into Go {target} of type {wanted}{overflow}", kind_of(value)))
}

fn kind_of(value: &Value) -> &'static str {
    name(match value {
        Value::Int(it) if *it >= 0 => UNSIGNED,
        Value::Int(_) => NEGATIVE,
        Value::Str(_) => TEXT,
        Value::Array(_) => ARRAY,
        Value::Object(_) => MAP,
        Value::Null | Value::Bool(_) | Value::Float(_) => SIMPLE,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    search: Option<Search<'a>>,
}

/// Looks for the first of some members.
struct Search<'a> {
    path: FieldPath,
    wanted: HashSet<&'a str>,
    /// Its place in its map.
    found: Option<usize>,
}

impl Search<'_> {
    fn enter(&mut self, key: &Key, at: usize) {
        self.path.push_key(key);
        if self.found.is_none() && self.wanted.contains(self.path.to_string().as_str()) {
            self.found = Some(at);
        }
    }
}

/// A count, or "until the break".
#[derive(Clone, Copy)]
enum Count {
    Known(u64),
    Open,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], CborError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => error("unexpected EOF"),
        }
    }

    fn unsigned(&mut self, bytes: u64) -> Result<u64, CborError> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Major type, what follows it in five bits, and the number these mean.
    fn head(&mut self) -> Result<(u8, u8, Count), CborError> {
        let first = self.unsigned(1)? as u8;
        let (major, info) = (first >> 5, first & 0x1f);
        let count = match info {
            0..24 => Count::Known(info.into()),
            24..28 => Count::Known(self.unsigned(1 << (info - 24))?),
            31 if matches!(major, BYTES | TEXT | ARRAY | MAP | SIMPLE) => Count::Open,
            _ => return error(format!("cbor: invalid additional information {info} for type {}", name(major))),
        };
        Ok((major, info, count))
    }

    fn value(&mut self, depth: usize) -> Result<Value, CborError> {
        if depth > MAX_DEPTH {
            return error(format!("cbor: exceeded max nested level {MAX_DEPTH}"));
        }
        let (major, info, count) = self.head()?;
        match (major, count) {
            (UNSIGNED, Count::Known(number)) => match i64::try_from(number) {
                Ok(number) => Ok(Value::Int(number)),
                Err(_) => error(format!(
                    "cbor: cannot unmarshal positive integer into Go value of type int64 ({number} overflows Go's int64)"
                )),
            },
            (NEGATIVE, Count::Known(number)) => match i64::try_from(number) {
                Ok(number) => Ok(Value::Int(!number)),
                Err(_) => error("cbor: cannot unmarshal negative integer into Go value of type int64"),
            },
            (BYTES | TEXT, count) => Ok(Value::Str(text(self.string(major, count)?, major)?)),
            (ARRAY, count) => self.array(count, depth),
            (MAP, count) => self.map(count, depth),
            (TAG, Count::Known(tag)) => self.tagged(tag, depth),
            (SIMPLE, Count::Known(number)) => simple(info, number),
            _ => error("cbor: unexpected \"break\" code"),
        }
    }

    /// The bytes of a string, which may come in pieces.
    fn string(&mut self, major: u8, count: Count) -> Result<Vec<u8>, CborError> {
        let Count::Open = count else {
            let Count::Known(length) = count else { return Ok(Vec::new()) };
            return Ok(self.take(length)?.to_vec());
        };
        let mut whole = Vec::new();
        while !self.at_break()? {
            match self.head()? {
                (own, _, Count::Known(length)) if own == major => whole.extend_from_slice(self.take(length)?),
                _ => return error(format!("cbor: wrong element type in indefinite-length {}", name(major))),
            }
        }
        Ok(whole)
    }

    /// Whether the next byte ends an open sequence; if so, it is read.
    fn at_break(&mut self) -> Result<bool, CborError> {
        match self.bytes.get(self.at) {
            None => error("unexpected EOF"),
            Some(0xff) => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }

    fn goes_on(&mut self, count: Count, done: usize) -> Result<bool, CborError> {
        match count {
            Count::Known(number) => Ok((done as u64) < number),
            Count::Open => Ok(!self.at_break()?),
        }
    }

    fn array(&mut self, count: Count, depth: usize) -> Result<Value, CborError> {
        let mut items = Vec::new();
        while self.goes_on(count, items.len())? {
            if let Some(search) = &mut self.search {
                search.path.push_index(items.len());
            }
            items.push(self.value(depth + 1)?);
            if let Some(search) = &mut self.search {
                search.path.pop();
            }
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, count: Count, depth: usize) -> Result<Value, CborError> {
        let mut members: Vec<(Key, Value)> = Vec::new();
        while self.goes_on(count, members.len())? {
            let (major, _, length) = self.head()?;
            if !matches!(major, BYTES | TEXT) {
                return error(format!("cbor: cannot unmarshal {} into Go value of type string", name(major)));
            }
            let key = Key::new(&text(self.string(major, length)?, major)?);
            if let Some(search) = &mut self.search {
                search.enter(&key, members.len());
            }
            members.push((key, self.value(depth + 1)?));
            if let Some(search) = &mut self.search {
                search.path.pop();
            }
        }
        let mut repeated = None;
        let map = Map::from_members(members, |key| repeated = Some(key.to_string()));
        match repeated {
            Some(key) => error(format!("cbor: found duplicate map key \"{key}\" at map element index {}", map.len())),
            None => Ok(Value::Object(map)),
        }
    }

    fn tagged(&mut self, tag: u64, depth: usize) -> Result<Value, CborError> {
        match tag {
            2 | 3 => error("cbor: cannot use a bignum here"),
            LATER_BASE64URL | LATER_BASE64 | LATER_BASE16 => {
                let start = self.at;
                let (major, _, count) = self.head()?;
                if major != BYTES {
                    self.at = start;
                    return self.value(depth + 1);
                }
                let bytes = self.string(major, count)?;
                Ok(Value::Str(match tag {
                    LATER_BASE64URL => URL_SAFE_NO_PAD.encode(bytes),
                    LATER_BASE64 => STANDARD.encode(bytes),
                    _ => hex::encode(&bytes),
                }))
            }
            _ => self.value(depth + 1),
        }
    }
}

fn simple(info: u8, number: u64) -> Result<Value, CborError> {
    let float = match info {
        20 => return Ok(Value::Bool(false)),
        21 => return Ok(Value::Bool(true)),
        22 => return Ok(Value::Null),
        25 => match number as u16 {
            it if it & 0x7c00 == 0x7c00 && it & 0x3ff != 0 => f64::NAN,
            it => from_half(it),
        },
        26 => f64::from(f32::from_bits(number as u32)),
        27 => f64::from_bits(number),
        _ => {
            return error(format!(
                "cbor: cannot unmarshal primitives into Go value: simple value {number} is not recognized"
            ));
        }
    };
    match float {
        it if it.is_nan() => error("cbor: floating-point NaN is not allowed"),
        it if it.is_infinite() => error("cbor: floating-point infinity is not allowed"),
        it => Ok(Value::Float(it)),
    }
}

/// A byte string may hold anything, and what is no text becomes one as in JSON; a text string may not.
fn text(bytes: Vec<u8>, major: u8) -> Result<String, CborError> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) if major == TEXT => error("cbor: invalid UTF-8 string"),
        Err(wrong) => Ok(String::from_utf8_lossy(wrong.as_bytes()).into_owned()),
    }
}

fn name(major: u8) -> &'static str {
    match major {
        UNSIGNED => "positive integer",
        NEGATIVE => "negative integer",
        BYTES => "byte string",
        TEXT => "UTF-8 text string",
        ARRAY => "array",
        MAP => "map",
        TAG => "tag",
        _ => "primitives",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        object::to_string,
        schema::{builtin, decode as decode_tree, vectors},
    };

    fn cases() -> Vec<(String, TypeId, Value)> {
        let cases = vectors::typed("vectors/cbor.json");
        assert!(cases.len() > 700);
        cases.into_iter().map(|(name, ty, case)| (name, ty.unwrap_or(TypeId::ANY), case)).collect()
    }

    #[test]
    fn trees_become_the_bytes_upstream_writes() {
        for (name, ty, case) in cases() {
            if name == "example.com/v1/Foo unstructured-floats" {
                // Whole numbers are integers in a tree; upstream was given them as floats.
                continue;
            }
            assert_eq!(hex::encode(&encode(builtin(), ty, case.get("json").unwrap())), case.str_at(&["hex"]), "{name}");
        }
    }

    #[test]
    fn bytes_become_the_tree_upstream_prints() {
        for (name, ty, case) in cases() {
            let mut value = decode(&hex::decode(case.str_at(&["hex"]))).unwrap();
            if ty != TypeId::ANY {
                assert_eq!(decode_tree(builtin(), ty, &mut value, None), Ok(Vec::new()), "{name}");
            }
            let expected = case.get("json_decoded").or(case.get("json")).unwrap();
            assert_eq!(to_string(&value), to_string(expected), "{name}");
        }
    }

    #[test]
    fn floats_keep_their_value_in_the_fewest_bytes() {
        for (it, bytes) in [
            (0.0, "f90000"),
            (-0.0, "f98000"),
            (1.5, "f93e00"),
            (65504.0, "f97bff"),
            (65505.0, "fa477fe100"),
            (5.960464477539063e-8, "f90001"),
            (0.00006103515625, "f90400"),
            (3.4028234663852886e38, "fa7f7fffff"),
            (1.1, "fb3ff199999999999a"),
        ] {
            let mut out = Vec::new();
            write_float(&mut out, it);
            assert_eq!(hex::encode(&out), bytes, "{it}");
            assert_eq!(decode(&out), Ok(Value::Float(it)), "{it}");
        }
    }

    #[test]
    fn what_json_has_no_word_for_is_refused() {
        let refused = |text: &str| decode(&hex::decode(text)).unwrap_err().to_string();
        assert_eq!(refused(""), "EOF");
        assert_eq!(refused("a1"), "unexpected EOF");
        assert_eq!(refused("0000"), "cbor: 1 bytes of extraneous data starting at index 1");
        assert_eq!(refused("f97e00"), "cbor: floating-point NaN is not allowed");
        assert_eq!(refused("f97c00"), "cbor: floating-point infinity is not allowed");
        assert!(refused("1bffffffffffffffff").contains("positive integer"));
        assert!(refused("a241610141610 2".replace(' ', "").as_str()).contains("duplicate map key"));
        assert!(refused("61ff").contains("UTF-8"));
        let deep = || decode(&[0x81].repeat(100_000)).unwrap_err().to_string();
        let deep = std::thread::Builder::new().stack_size(crate::object::DEEP_STACK).spawn(deep);
        assert!(deep.unwrap().join().unwrap().contains("max nested level"));
        assert!(refused("9bffffffffffffffff").contains("EOF"));
    }

    #[test]
    fn open_sequences_are_read() {
        // {_ (_ "a" "b"): [_ 1, (_ h'c3' h'a9')]}
        let value = decode(&hex::decode("bf7f61616162ff9f015f41c341a9ffffff")).unwrap();
        assert_eq!(to_string(&value), r#"{"ab":[1,"é"]}"#);
    }

    #[test]
    fn an_unknown_member_is_told_by_its_place_as_it_was_sent() {
        // {"b": {"y": 1, "x": 2}, "a": 3}
        let bytes = hex::decode("a26162a2617901617802616103");
        let told =
            |unknown: &[&str]| unknown_field(&bytes, &unknown.iter().map(|it| it.to_string()).collect::<Vec<_>>());
        assert_eq!(told(&["a"]).unwrap(), "cbor: found unknown field at map element index 1");
        assert_eq!(told(&["a", "b.x"]).unwrap(), "cbor: found unknown field at map element index 1");
        assert_eq!(told(&["a", "b"]).unwrap(), "cbor: found unknown field at map element index 0");
        assert_eq!(told(&[]), None);
    }
}
