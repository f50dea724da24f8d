//! Go's zero values: what a missing member prints as, and which values `omitempty` leaves out.

use super::table::{Field, Omit, Scalar, Shape, Struct, Table, Type};
use crate::object::{Map, Value};

/// What Go prints for a value of this type that was never set (and is no pointer).
pub fn of(table: &Table, ty: &Type) -> Value {
    match &ty.shape {
        Shape::Any | Shape::List(_) | Shape::Map(_) => Value::Null,
        Shape::Scalar(scalar) => of_scalar(*scalar),
        Shape::Struct(it) => Value::Object(of_struct(table, it)),
        Shape::OneOf(it) => match it.variants.first().map(|(id, _)| &table.get(*id).shape) {
            Some(Shape::Scalar(Scalar::Bool)) => Value::Bool(false),
            _ => Value::Null,
        },
    }
}

fn of_struct(table: &Table, it: &Struct) -> Map {
    it.present().map(|field| (field.name.clone(), of_field(table, field))).collect()
}

/// What Go prints for a member that was never set.
pub fn of_field(table: &Table, field: &Field) -> Value {
    if field.slot.pointer { Value::Null } else { of(table, table.get(field.slot.ty)) }
}

pub fn of_scalar(scalar: Scalar) -> Value {
    match scalar {
        Scalar::String => Value::Str(String::new()),
        Scalar::Bool => Value::Bool(false),
        Scalar::Int32 | Scalar::Int64 | Scalar::Double | Scalar::IntOrString => Value::Int(0),
        Scalar::Quantity => Value::Str("0".into()),
        Scalar::Duration => Value::Str("0s".into()),
        Scalar::Bytes | Scalar::Time | Scalar::MicroTime => Value::Null,
        Scalar::RawExtension | Scalar::Unknown | Scalar::FieldsV1 | Scalar::Json => Value::Null,
    }
}

/// A double as Go prints it, read again: whole numbers become integers.
pub fn canonical_double(it: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if it.fract() == 0.0 && it.abs() < EXACT { Value::Int(it as i64) } else { Value::Float(it) }
}

/// Whether Go leaves out a member with this value.
pub fn is_omitted(field: &Field, ty: &Type, value: &Value) -> bool {
    match field.omit {
        Omit::Never => false,
        _ if field.slot.pointer => value.is_null(),
        Omit::Zero if matches!(ty.shape, Shape::Struct(_)) => value.as_object().is_some_and(Map::is_empty),
        Omit::Zero if is_go_struct(ty) => value.is_null(),
        _ => !is_go_struct(ty) && is_empty(value),
    }
}

/// Whether Go always prints the member, set or not.
pub(super) fn is_always_printed(field: &Field, ty: &Type) -> bool {
    match field.omit {
        Omit::Never => true,
        Omit::Empty => !field.slot.pointer && is_go_struct(ty),
        Omit::Zero => false,
    }
}

/// Types that Go holds in structs, for which `omitempty` does nothing.
fn is_go_struct(ty: &Type) -> bool {
    match &ty.shape {
        Shape::Struct(_) | Shape::OneOf(_) => true,
        Shape::Any | Shape::List(_) | Shape::Map(_) => false,
        Shape::Scalar(scalar) => match scalar {
            Scalar::String | Scalar::Bool | Scalar::Int32 | Scalar::Int64 | Scalar::Double | Scalar::Bytes => false,
            Scalar::Quantity | Scalar::Time | Scalar::MicroTime | Scalar::Duration | Scalar::IntOrString => true,
            Scalar::RawExtension | Scalar::Unknown | Scalar::FieldsV1 => true,
            // `interface{}` where it is a member; apiextensions' struct is a pointer or an item wherever it stands.
            Scalar::Json => false,
        },
    }
}

/// `omitempty` of a value that is neither pointer nor struct.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Int(it) => *it == 0,
        Value::Float(it) => *it == 0.0,
        Value::Str(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    }
}
