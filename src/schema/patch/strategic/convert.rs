//! The step after a strategic merge: values become Go's (apimachinery `runtime/converter.go`, `fromUnstructured`).
//!
//! It has words of its own for values of the wrong JSON type, and it converts where JSON decoding would refuse: whole
//! doubles become integers, and integers that are too large for a field wrap around.

use crate::{
    object::Value,
    schema::{Scalar, Shape, Table, Type, TypeId, patch::go_print},
};

/// Converts the scalars of a patched object of type `ty` in place; decoding follows.
///
/// Errors: the first value of a type that cannot be converted, in upstream's words. Members are visited by name,
/// upstream visits them in the order of its source.
pub fn convert_types(table: &Table, ty: TypeId, value: &mut Value) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let ty = table.get(ty);
    match (&ty.shape, value) {
        // These read themselves.
        (Shape::Any | Shape::OneOf(_), _) => Ok(()),
        (Shape::Scalar(scalar), value) => convert_scalar(*scalar, ty, value),
        (Shape::Struct(fields), Value::Object(members)) => members.iter_mut().try_for_each(|(name, member)| {
            fields.field(name).map_or(Ok(()), |field| convert_types(table, field.slot.ty, member))
        }),
        (Shape::Struct(_), other) => Err(format!("cannot restore struct from: {}", kind(other))),
        (Shape::List(list), Value::Array(items)) => {
            items.iter_mut().try_for_each(|item| convert_types(table, list.item.ty, item))
        }
        (Shape::List(_), other) => Err(format!("cannot restore slice from {}", kind(other))),
        (Shape::Map(map), Value::Object(members)) => {
            members.values_mut().try_for_each(|member| convert_types(table, map.value.ty, member))
        }
        (Shape::Map(_), other) => Err(format!("cannot restore map from {}", kind(other))),
    }
}

/// `reflect.Kind` of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        scalar => go_print::type_name(scalar),
    }
}

fn convert_scalar(scalar: Scalar, ty: &Type, value: &mut Value) -> Result<(), String> {
    let go = if ty.go.is_empty() { base(scalar) } else { ty.go.as_str() };
    // Go could convert these, but not without changing what they say.
    let refused = |value: &Value| Err(format!("cannot convert {} to {go}", go_print::type_name(value)));
    match (scalar, &*value) {
        (Scalar::String, Value::Str(_)) | (Scalar::Bool, Value::Bool(_)) => Ok(()),
        (Scalar::String, Value::Int(_)) => refused(value),
        (Scalar::Int64, Value::Int(_)) | (Scalar::Double, Value::Int(_) | Value::Float(_)) => Ok(()),
        (Scalar::Int32, Value::Int(number)) => {
            *value = Value::Int(i64::from(*number as i32));
            Ok(())
        }
        (Scalar::Int32 | Scalar::Int64, Value::Float(number)) if number.fract() == 0.0 => {
            let whole = *number as i64;
            *value = Value::Int(if scalar == Scalar::Int32 { i64::from(whole as i32) } else { whole });
            Ok(())
        }
        (Scalar::Int32 | Scalar::Int64, Value::Float(_)) => refused(value),
        (Scalar::String | Scalar::Bool | Scalar::Int32 | Scalar::Int64 | Scalar::Double, _) => {
            Err(format!("unrecognized type: {}", base(scalar)))
        }
        (Scalar::Bytes, Value::Str(_)) => Ok(()),
        (Scalar::Bytes, other) => Err(format!("cannot restore slice from {}", kind(other))),
        _ => Ok(()),
    }
}

fn base(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::Int32 => "int32",
        Scalar::Int64 => "int64",
        Scalar::Double => "float64",
        _ => "string",
    }
}
