//! Amounts of resources: `500m`, `1.5Gi`, `12e6` (apimachinery `pkg/api/resource`).
//!
//! A quantity keeps how it was written as long as that is canonical, and the family of its suffix for when it is
//! printed anew. Values are exact: 64 bits where that is enough, else a big integer and a power of ten. What
//! upstream does is kept bit for bit, overflows of [`Quantity::value`] included, because quota and validation show
//! these numbers; three things differ on purpose:
//!
//! - Nothing costs more than its text. Upstream spends minutes on `1e1000000000`; here exponents are compared
//!   before digits are made, and a sum of numbers more than [`MAX_SPAN`] powers of ten apart is the larger one.
//! - Texts longer than [`MAX_TEXT`] are refused.
//! - A decimal number beyond exa (`1000E`) keeps `E`; upstream prints `1` and loses the value.

use std::{cmp::Ordering, fmt};

use num_bigint::BigInt;

use crate::object::{Value, to_string};

/// Longest text taken, in bytes.
pub const MAX_TEXT: usize = 1024;

/// Most powers of ten that digits are written out for.
const MAX_SPAN: i64 = 4096;

const NANO: i32 = -9;

/// How a quantity is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySI,
    /// `12M`
    #[default]
    DecimalSI,
}

impl Format {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DecimalExponent => "DecimalExponent",
            Self::BinarySI => "BinarySI",
            Self::DecimalSI => "DecimalSI",
        }
    }
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    Format,
    Numeric,
    Suffix,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Format => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Numeric => "unable to parse numeric part of quantity",
            Self::Suffix => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for QuantityError {}

/// `value * 10^exponent`.
#[derive(Clone, Debug)]
enum Amount {
    Small(i64, i32),
    Big(BigInt, i32),
}

/// Compares by value: `1` equals `1000m`.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text as written, where that is canonical.
    text: Option<Box<str>>,
}

/// The pieces of a text. `digits` are those before and after the point.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    /// Whether a digit was written, leading zeros included.
    any_digit: bool,
    suffix: &'a str,
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let stripped = rest.trim_start_matches('0');
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest_after) = stripped.split_at(digits(stripped));
    let (fraction, suffix) = match rest_after.strip_prefix('.') {
        Some(after) => after.split_at(digits(after)),
        None => ("", rest_after),
    };
    let letters = suffix.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
    let exponent = &suffix[letters..];
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    let any_digit = stripped.len() < rest.len() || !whole.is_empty() || !fraction.is_empty();
    Ok(Parts { negative, whole, fraction, any_digit, suffix })
}

/// Base, exponent and family of a suffix.
fn interpret(suffix: &str) -> Option<(u32, i32, Format)> {
    use Format::{BinarySI, DecimalExponent, DecimalSI};
    Some(match suffix {
        "" => (10, 0, DecimalSI),
        "n" => (10, -9, DecimalSI),
        "u" => (10, -6, DecimalSI),
        "m" => (10, -3, DecimalSI),
        "k" => (10, 3, DecimalSI),
        "M" => (10, 6, DecimalSI),
        "G" => (10, 9, DecimalSI),
        "T" => (10, 12, DecimalSI),
        "P" => (10, 15, DecimalSI),
        "E" => (10, 18, DecimalSI),
        "Ki" => (2, 10, BinarySI),
        "Mi" => (2, 20, BinarySI),
        "Gi" => (2, 30, BinarySI),
        "Ti" => (2, 40, BinarySI),
        "Pi" => (2, 50, BinarySI),
        "Ei" => (2, 60, BinarySI),
        // Cut to 32 bits, as upstream.
        _ => (10, suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()? as i32, DecimalExponent),
    })
}

impl Quantity {
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        if text.len() > MAX_TEXT {
            return Err(QuantityError::Numeric);
        }
        let parts = split(text)?;
        let (base, exponent, format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
        match Self::parse_small(text, &parts, exponent, format) {
            Some(quantity) => Ok(quantity),
            None => Self::parse_big(&parts, base, exponent, format),
        }
    }

    /// What surely fits 64 bits and is no finer than nano.
    fn parse_small(text: &str, parts: &Parts<'_>, exponent: i32, format: Format) -> Option<Self> {
        let (whole, fraction) = (if parts.whole.is_empty() { "0" } else { parts.whole }, parts.fraction);
        let (precision, mantissa, scale) = match format {
            // 1Mi has about 6 decimal digits, so three tenths of the exponent are roughly what it takes.
            Format::BinarySI if fraction.is_empty() => {
                (15 - whole.len() as i64 - i64::from(exponent * 3 / 10) - 1, 1i64 << exponent, 0)
            }
            Format::BinarySI => return None,
            _ => (18 - (whole.len() + fraction.len()) as i64, 1, exponent),
        };
        let scale = scale.checked_sub(fraction.len() as i32)?;
        if precision < 0 || scale < NANO {
            return None;
        }
        let digits = [whole, fraction].concat();
        let value: i64 = digits.parse().ok()?;
        let result = value.checked_mul(mantissa)?;
        let canonical = match format {
            Format::BinarySI => value & 7 != 0,
            _ => scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
        };
        let amount = Amount::Small(if parts.negative { -result } else { result }, scale);
        Some(Self { amount, format, text: canonical.then(|| text.into()) })
    }

    fn parse_big(parts: &Parts<'_>, base: u32, exponent: i32, mut format: Format) -> Result<Self, QuantityError> {
        if !parts.any_digit {
            return Err(QuantityError::Numeric);
        }
        let digits = [parts.whole, parts.fraction].concat();
        let mut value: BigInt =
            if digits.is_empty() { BigInt::ZERO } else { digits.parse().map_err(|_| QuantityError::Numeric)? };
        let mut scale = -(parts.fraction.len() as i32);
        if base == 10 {
            scale = scale.saturating_add(exponent);
        } else {
            value <<= exponent;
        }
        // Something that is too small to say is still something.
        if value != BigInt::ZERO {
            (value, scale) = rounded(&value, scale, NANO);
        }
        if format == Format::BinarySI {
            let limit = BigInt::from(i64::MAX);
            if compare(&value, scale, &limit, 0) == Ordering::Greater {
                (value, scale) = (limit, 0);
            }
            if value != BigInt::ZERO && compare(&value, scale, &BigInt::from(1), 0) == Ordering::Less {
                format = Format::DecimalSI;
            }
        }
        if parts.negative {
            value = -value;
        }
        Ok(Self { amount: Amount::Big(value, scale), format, text: None })
    }

    /// Reads JSON text: a string (space around it is ignored), a number, or null, which is zero.
    pub fn from_json(text: &str) -> Result<Self, QuantityError> {
        if text == "null" {
            return Ok(Self::zero());
        }
        let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        Self::parse(inner.trim())
    }

    /// Reads a value of the tree. A float is read as the tree prints it (`1000` for `1e3`).
    pub fn from_value(value: &Value) -> Result<Self, QuantityError> {
        match value {
            Value::Str(text) => Self::parse(text.trim()),
            Value::Array(_) | Value::Object(_) | Value::Bool(_) => Err(QuantityError::Format),
            other => Self::from_json(&to_string(other)),
        }
    }

    pub fn zero() -> Self {
        Self::new(0, Format::DecimalSI)
    }

    pub fn new(value: i64, format: Format) -> Self {
        Self { amount: Amount::Small(value, 0), format, text: None }
    }

    /// `value` thousandths.
    pub fn milli(value: i64, format: Format) -> Self {
        Self { amount: Amount::Small(value, -3), format, text: None }
    }

    /// `value * 10^scale`, decimal.
    pub fn scaled(value: i64, scale: i32) -> Self {
        Self { amount: Amount::Small(value, scale), format: Format::DecimalSI, text: None }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        match &self.amount {
            Amount::Small(value, _) => value.signum() as i32,
            Amount::Big(value, _) => match value.sign() {
                num_bigint::Sign::Minus => -1,
                num_bigint::Sign::NoSign => 0,
                num_bigint::Sign::Plus => 1,
            },
        }
    }

    pub fn is_negative(&self) -> bool {
        self.sign() < 0
    }

    /// Rounded up to whole units. Wraps or is 0 where that needs more than 64 bits, as upstream; compare first
    /// where it matters.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Rounded up to thousandths; overflows as [`Quantity::value`].
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    /// Rounded up to units of `10^scale`; overflows as [`Quantity::value`].
    pub fn scaled_value(&self, scale: i32) -> i64 {
        match &self.amount {
            Amount::Small(value, own) if *own < scale => divide_up(*value, i64::from(scale) - i64::from(*own)).0,
            Amount::Small(value, own) => multiply(*value, i64::from(*own) - i64::from(scale)).unwrap_or(0),
            Amount::Big(value, own) => scaled_big(value, i64::from(scale) - i64::from(*own)),
        }
    }

    /// The exact value, if it is held in 64 bits and whole.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.amount {
            Amount::Small(value, scale) if *scale >= 0 => multiply(*value, i64::from(*scale)),
            _ => None,
        }
    }

    /// Close to the value; infinite where that is too large.
    pub fn approximate_f64(&self) -> f64 {
        let (base, scale) = match &self.amount {
            Amount::Small(value, scale) => (*value as f64, *scale),
            // Decimal text is read back to the nearest double.
            Amount::Big(value, scale) => (value.to_string().parse().unwrap_or(f64::NAN), *scale),
        };
        if scale == 0 || base == 0.0 { base } else { base * pow10(scale) }
    }

    /// Rounds away from zero to units of `10^scale`; says whether nothing was lost.
    pub fn round_up(&mut self, scale: i32) -> bool {
        match &mut self.amount {
            Amount::Small(_, own) if *own >= scale => true,
            Amount::Small(value, own) => {
                self.text = None;
                let (result, exact) = divide_up(*value, i64::from(scale) - i64::from(*own));
                (*value, *own) = (result, scale);
                exact
            }
            Amount::Big(value, own) => {
                self.text = None;
                let (result, new) = rounded(value, *own, scale);
                let exact = compare(&result, new, value, *own) == Ordering::Equal;
                (*value, *own) = (result, new);
                exact
            }
        }
    }

    fn big(&self) -> (BigInt, i32) {
        match &self.amount {
            Amount::Small(value, scale) => (BigInt::from(*value), *scale),
            Amount::Big(value, scale) => (value.clone(), *scale),
        }
    }

    /// Adds; zero takes the other's format.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, false);
    }

    /// Subtracts; zero takes the other's format.
    pub fn sub(&mut self, other: &Self) {
        self.combine(other, true);
    }

    fn combine(&mut self, other: &Self, negated: bool) {
        self.text = None;
        if self.is_zero() {
            self.format = other.format;
        }
        if let (Amount::Small(a, a_scale), Amount::Small(b, b_scale)) = (&self.amount, &other.amount) {
            let b = if negated { b.wrapping_neg() } else { *b };
            if let Some((value, scale)) = add_small(*a, *a_scale, b, *b_scale) {
                self.amount = Amount::Small(value, scale);
                return;
            }
        }
        let ((a, a_scale), (mut b, b_scale)) = (self.big(), other.big());
        if negated {
            b = -b;
        }
        let (value, scale) = add_big(a, a_scale, b, b_scale);
        self.amount = Amount::Big(value, scale);
    }

    pub fn neg(&mut self) {
        self.text = None;
        match &mut self.amount {
            Amount::Small(value, _) => *value = value.wrapping_neg(),
            Amount::Big(value, _) => *value = -std::mem::take(value),
        }
    }

    /// The canonical text made from the value, whatever was written.
    fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".into();
        }
        if self.format == Format::BinarySI {
            if let Some(text) = self.binary() {
                return text;
            }
            return self.decimal(Format::DecimalSI);
        }
        self.decimal(self.format)
    }

    /// `None` for what is better said in decimal: fractions, less than 1024, and exponents no one means.
    fn binary(&self) -> Option<String> {
        let (value, scale) = self.big();
        let kilo = BigInt::from(1024);
        if compare(&BigInt::from(value.magnitude().clone()), scale, &kilo, 0) == Ordering::Less
            || i64::from(scale) > MAX_SPAN
        {
            return None;
        }
        let (mut value, whole) = match scale {
            0.. => (value * power(i64::from(scale)), true),
            _ => {
                let (result, _) = rounded(&value, scale, 0);
                let exact = compare(&result, 0, &value, scale) == Ordering::Equal;
                (result, exact)
            }
        };
        if !whole {
            return None;
        }
        let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].into_iter();
        let mut suffix = suffixes.next().unwrap_or("");
        while (&value % &kilo) == BigInt::ZERO {
            match suffixes.next() {
                Some(next) => suffix = next,
                None => break,
            }
            value /= &kilo;
        }
        Some(format!("{value}{suffix}"))
    }

    fn decimal(&self, format: Format) -> String {
        let (mut digits, scale) = match &self.amount {
            Amount::Small(value, scale) => (value.to_string(), *scale),
            Amount::Big(value, scale) => (value.to_string(), *scale),
        };
        let kept = digits.trim_end_matches('0').len();
        let mut exponent = i64::from(scale) + (digits.len() - kept) as i64;
        digits.truncate(kept);
        let mut zeros = exponent.rem_euclid(3);
        if format == Format::DecimalSI && exponent > 18 && exponent - 18 <= MAX_SPAN {
            zeros = exponent - 18;
        }
        exponent -= zeros;
        digits.extend(std::iter::repeat_n('0', zeros as usize));
        let suffix = match (format, exponent) {
            (_, 0) => "",
            (Format::DecimalSI, -9) => "n",
            (Format::DecimalSI, -6) => "u",
            (Format::DecimalSI, -3) => "m",
            (Format::DecimalSI, 3) => "k",
            (Format::DecimalSI, 6) => "M",
            (Format::DecimalSI, 9) => "G",
            (Format::DecimalSI, 12) => "T",
            (Format::DecimalSI, 15) => "P",
            (Format::DecimalSI, 18) => "E",
            _ => return format!("{digits}e{exponent}"),
        };
        digits.push_str(suffix);
        digits
    }
}

/// Canonical, as it is stored.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.amount, &other.amount) {
            (Amount::Small(a, a_scale), Amount::Small(b, b_scale)) => compare_small(*a, *a_scale, *b, *b_scale),
            _ => {
                let ((a, a_scale), (b, b_scale)) = (self.big(), other.big());
                compare(&a, a_scale, &b, b_scale)
            }
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

fn power(exponent: i64) -> BigInt {
    BigInt::from(10).pow(exponent.clamp(0, MAX_SPAN + MAX_TEXT as i64) as u32)
}

/// Go's math.Pow10: one table look-up for each 32, so that the last bits are the same.
fn pow10(exponent: i32) -> f64 {
    let exact = |e: i32| format!("1e{e}").parse::<f64>().unwrap_or(f64::NAN);
    match exponent {
        309.. => f64::INFINITY,
        0.. => exact(exponent / 32 * 32) * exact(exponent % 32),
        -323.. => exact(exponent / 32 * 32) / exact(-(exponent % 32)),
        _ => 0.0,
    }
}

/// `value * 10^places`, if it fits.
fn multiply(value: i64, places: i64) -> Option<i64> {
    match (value, u32::try_from(places)) {
        (0, _) => Some(0),
        (_, Ok(places)) => 10i64.checked_pow(places)?.checked_mul(value),
        _ => None,
    }
}

/// `value / 10^places` rounded away from zero, and whether that was exact.
fn divide_up(value: i64, places: i64) -> (i64, bool) {
    match u32::try_from(places).ok().and_then(|places| 10i64.checked_pow(places)) {
        Some(divisor) if value % divisor == 0 => (value / divisor, true),
        Some(divisor) => (value / divisor + value.signum(), false),
        None => (value.signum(), value == 0),
    }
}

/// Go's scaledValue: `value / 10^places` rounded up, in 64 bits that wrap.
fn scaled_big(value: &BigInt, places: i64) -> i64 {
    let low = |v: &BigInt| {
        let bits = v.iter_u64_digits().next().unwrap_or(0);
        let signed = bits as i64;
        if v.sign() == num_bigint::Sign::Minus { signed.wrapping_neg() } else { signed }
    };
    match places {
        0 => low(value),
        // A power beyond 64 bits becomes the smallest integer when Go converts it.
        ..0 => low(value).wrapping_mul(multiply(1, -places).unwrap_or(i64::MIN)),
        1..19 if *value < BigInt::from(i64::MAX) => {
            let divisor = multiply(1, places).unwrap_or(i64::MAX);
            let low = low(value);
            low / divisor + i64::from(low % divisor != 0)
        }
        _ => {
            let divisor = power(places);
            let floor = value.clone() / &divisor;
            let exact = &floor * &divisor == *value;
            let floor = if exact || value.sign() != num_bigint::Sign::Minus { floor } else { floor - 1 };
            low(&floor).wrapping_add(i64::from(!exact))
        }
    }
}

/// Decimal digits of a number that is not 0.
fn digits(value: &BigInt) -> i64 {
    value.magnitude().to_string().len() as i64
}

/// Rounds away from zero to exponent `to` and writes digits out down to it, where those are not too many.
fn rounded(value: &BigInt, scale: i32, to: i32) -> (BigInt, i32) {
    let places = i64::from(scale) - i64::from(to);
    if places >= 0 {
        return if places > MAX_SPAN { (value.clone(), scale) } else { (value * power(places), to) };
    }
    let one = match value.sign() {
        num_bigint::Sign::Minus => BigInt::from(-1),
        num_bigint::Sign::NoSign => return (BigInt::ZERO, to),
        num_bigint::Sign::Plus => BigInt::from(1),
    };
    if -places > digits(value) {
        return (one, to);
    }
    let divisor = power(-places);
    let quotient = value / &divisor;
    let exact = &quotient * &divisor == *value;
    (if exact { quotient } else { quotient + one }, to)
}

fn compare(a: &BigInt, a_scale: i32, b: &BigInt, b_scale: i32) -> Ordering {
    if a.sign() != b.sign() || a_scale == b_scale {
        return if a.sign() == b.sign() { a.cmp(b) } else { a.sign().cmp(&b.sign()) };
    }
    if a.sign() == num_bigint::Sign::NoSign {
        return Ordering::Equal;
    }
    // The place of the first digit decides unless it is the same.
    let place = |v: &BigInt, scale: i32| digits(v) + i64::from(scale);
    let by_place = place(a, a_scale).cmp(&place(b, b_scale));
    let by_magnitude = by_place.then_with(|| {
        let (a, b) = (a.magnitude(), b.magnitude());
        let places = i64::from(a_scale) - i64::from(b_scale);
        let factor = power(places.abs());
        if places > 0 { (a * factor.magnitude()).cmp(b) } else { a.cmp(&(b * factor.magnitude())) }
    });
    if a.sign() == num_bigint::Sign::Minus { by_magnitude.reverse() } else { by_magnitude }
}

fn compare_small(a: i64, a_scale: i32, b: i64, b_scale: i32) -> Ordering {
    let places = i64::from(a_scale) - i64::from(b_scale);
    if places.abs() > 18 {
        return compare(&BigInt::from(a), a_scale, &BigInt::from(b), b_scale);
    }
    let factor = 10i128.pow(places.unsigned_abs() as u32);
    if places > 0 { (i128::from(a) * factor).cmp(&i128::from(b)) } else { i128::from(a).cmp(&(i128::from(b) * factor)) }
}

fn add_small(a: i64, a_scale: i32, b: i64, b_scale: i32) -> Option<(i64, i32)> {
    if b == 0 {
        return Some((a, a_scale));
    }
    if a == 0 {
        return Some((b, b_scale));
    }
    let scale = a_scale.min(b_scale);
    let a = multiply(a, i64::from(a_scale) - i64::from(scale))?;
    let b = multiply(b, i64::from(b_scale) - i64::from(scale))?;
    Some((a.checked_add(b)?, scale))
}

fn add_big(a: BigInt, a_scale: i32, b: BigInt, b_scale: i32) -> (BigInt, i32) {
    let scale = a_scale.min(b_scale);
    let (a_places, b_places) = (i64::from(a_scale) - i64::from(scale), i64::from(b_scale) - i64::from(scale));
    if a_places.max(b_places) > MAX_SPAN {
        let (a_size, b_size) = (BigInt::from(a.magnitude().clone()), BigInt::from(b.magnitude().clone()));
        let larger = compare(&a_size, a_scale, &b_size, b_scale) != Ordering::Less;
        return if larger { (a, a_scale) } else { (b, b_scale) };
    }
    (a * power(a_places) + b * power(b_places), scale)
}
