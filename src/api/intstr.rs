//! A number or a text, as ports and percentages are written (apimachinery `pkg/util/intstr`).

use std::fmt;

use super::field::quote;
use crate::object::{Value, to_string};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrString<'a> {
    Int(i32),
    String(&'a str),
}

impl<'a> IntOrString<'a> {
    /// Reads a JSON value; null is 0. The error is encoding/json's, except that a number stands in it as the tree
    /// prints it (`100` for `1e2`).
    pub fn from_value(value: &'a Value) -> Result<Self, String> {
        let what = match value {
            Value::Str(text) => return Ok(Self::String(text)),
            Value::Null => return Ok(Self::Int(0)),
            Value::Int(number) => match i32::try_from(*number) {
                Ok(number) => return Ok(Self::Int(number)),
                Err(_) => format!("number {number}"),
            },
            Value::Float(_) => format!("number {}", to_string(value)),
            other => other.json_type().to_owned(),
        };
        Err(format!("json: cannot unmarshal {what} into Go value of type int32"))
    }

    /// The number, or the number a text holds; 0 where it holds none, and Go's bound where it is too large.
    pub fn int_value(self) -> i64 {
        match self {
            Self::Int(number) => number.into(),
            Self::String(text) => match text.parse::<i64>() {
                Ok(number) => number,
                Err(e) if *e.kind() == std::num::IntErrorKind::PosOverflow => i64::MAX,
                Err(e) if *e.kind() == std::num::IntErrorKind::NegOverflow => i64::MIN,
                Err(_) => 0,
            },
        }
    }

    /// The number, or that percentage of `total`, rounded as asked.
    pub fn scaled(self, total: i64, round_up: bool) -> Result<i64, String> {
        let text = match self {
            Self::Int(number) => return Ok(number.into()),
            Self::String(text) => text,
        };
        let Some(number) = text.strip_suffix('%') else {
            return Err("invalid value for IntOrString: invalid type: string is not a percentage".into());
        };
        let percent: i64 = number.parse().map_err(|e: std::num::ParseIntError| {
            let why = match e.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let (text, number) = (quote(text), quote(number));
            format!("invalid value for IntOrString: invalid value {text}: strconv.Atoi: parsing {number}: {why}")
        })?;
        let share = percent as f64 * total as f64 / 100.0;
        Ok(if round_up { share.ceil() } else { share.floor() } as i64)
    }

    pub fn to_value(self) -> Value {
        match self {
            Self::Int(number) => number.into(),
            Self::String(text) => text.into(),
        }
    }
}

impl fmt::Display for IntOrString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => f.write_str(text),
        }
    }
}
