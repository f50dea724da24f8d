//! Times and durations in Go's notation.
//!
//! Durations are whole nanoseconds in an `i64`, as Go has them (292 years either way). Times are
//! [`jiff::Timestamp`]s; [`parse_time`] and [`parse_micro_time`] take what Go's `time.Parse` takes for the two
//! layouts of metav1 and give its error texts; printing is UTC, to the second or the microsecond. A timestamp ends
//! 26 hours before the year 9999 does; later times saturate there, but keep their text ([`canonical_time`]). Mirrors Go's
//! `time/format.go`, apimachinery `pkg/apis/meta/v1/{time,micro_time,duration}.go` and `pkg/util/duration`.

use std::fmt;

use jiff::{
    SignedDuration, Timestamp,
    civil::{self, DateTime},
    tz::Offset,
};

use crate::object::Value;

/// Layout of `metav1.Time`.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
/// Layout of `metav1.MicroTime`.
const MICROSECONDS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Why a text is no time or duration, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeError(pub String);

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimeError {}

/// Package time's own quoting: everything that is not ASCII is shown byte by byte.
fn quote(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            0x20..0x80 => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// The text in a JSON value, or the error encoding/json gives for another type.
fn text_of(value: &Value) -> Result<&str, TimeError> {
    value
        .as_str()
        .ok_or_else(|| TimeError(format!("json: cannot unmarshal {} into Go value of type string", value.json_type())))
}

/// Parses a Go duration (`1h30m`, `-1.5s`, `0`) to nanoseconds.
pub fn parse_duration(text: &str) -> Result<i64, TimeError> {
    let invalid = || TimeError(format!("time: invalid duration {}", quote(text.as_bytes())));
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest == b"0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    const LIMIT: u64 = 1 << 63;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = leading_int(rest).ok_or_else(invalid)?;
        let mut digits = rest.len() - after.len();
        rest = after;
        let (mut fraction, mut scale) = (0, 1.0);
        if let [b'.', after @ ..] = rest {
            let left;
            (fraction, scale, left) = leading_fraction(after);
            digits += after.len() - left.len();
            rest = left;
        }
        if digits == 0 {
            return Err(invalid());
        }
        let length = rest.iter().position(|b| *b == b'.' || b.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(length);
        rest = after;
        if unit.is_empty() {
            return Err(TimeError(format!("time: missing unit in duration {}", quote(text.as_bytes()))));
        }
        let nanos: u64 = match unit {
            b"ns" => 1,
            b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
            b"ms" => 1_000_000,
            b"s" => 1_000_000_000,
            b"m" => 60_000_000_000,
            b"h" => 3_600_000_000_000,
            _ => {
                let (unit, text) = (quote(unit), quote(text.as_bytes()));
                return Err(TimeError(format!("time: unknown unit {unit} in duration {text}")));
            }
        };
        if whole > LIMIT / nanos {
            return Err(invalid());
        }
        let part = whole * nanos + (fraction as f64 * (nanos as f64 / scale)) as u64;
        total = total.checked_add(part).filter(|t| *t <= LIMIT && part <= LIMIT).ok_or_else(invalid)?;
    }
    if negative {
        return Ok((total as i64).wrapping_neg());
    }
    i64::try_from(total).map_err(|_| invalid())
}

/// Digits at the beginning; none is 0, more than 63 bits an error.
fn leading_int(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(length);
    let mut value: u64 = 0;
    for digit in digits {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0')).filter(|v| *v <= 1 << 63)?;
    }
    Some((value, rest))
}

/// Digits after a point and the power of ten to divide them by; what does not fit is dropped.
fn leading_fraction(text: &[u8]) -> (u64, f64, &[u8]) {
    let length = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(length);
    let (mut value, mut scale): (u64, f64) = (0, 1.0);
    for digit in digits {
        if value > i64::MAX as u64 / 10 {
            break;
        }
        value = value * 10 + u64::from(digit - b'0');
        scale *= 10.0;
    }
    (value, scale, rest)
}

/// A `metav1.Duration` in JSON; null is no duration, as upstream.
pub fn duration_from_value(value: &Value) -> Result<i64, TimeError> {
    parse_duration(if value.is_null() { "" } else { text_of(value)? })
}

/// Go's `Duration.String`: `1h0m1.5s`, `20ms`, `0s`.
pub fn format_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    if total == 0 {
        return "0s".into();
    }
    if total < 1_000_000_000 {
        let (unit, size) = match total {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{}{unit}", total / size, fraction(total % size, size));
    }
    let seconds = total / 1_000_000_000;
    let fraction = fraction(total % 1_000_000_000, 1_000_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let seconds = seconds % 60;
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}{fraction}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}{fraction}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

/// `.5` for 5 of 10; nothing for 0.
fn fraction(part: u64, whole: u64) -> String {
    if part == 0 {
        return String::new();
    }
    let width = whole.ilog10() as usize;
    format!(".{part:0width$}").trim_end_matches('0').to_owned()
}

/// An age to two or three figures, as in tables: `119s`, `2m5s`, `3h`, `2d1h`, `7y12d`.
pub fn human_duration(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |a: i64, a_unit: &str, b: i64, b_unit: &str| {
        if b == 0 { format!("{a}{a_unit}") } else { format!("{a}{a_unit}{b}{b_unit}") }
    };
    match (seconds, minutes, hours) {
        (..-1, ..) => "<invalid>".into(),
        (..0, ..) => "0s".into(),
        (..120, ..) => format!("{seconds}s"),
        (_, ..10, _) => pair(minutes, "m", seconds % 60, "s"),
        (_, ..180, _) => format!("{minutes}m"),
        (.., ..8) => pair(hours, "h", minutes % 60, "m"),
        (.., ..48) => format!("{hours}h"),
        (.., ..192) => pair(days, "d", hours % 24, "h"),
        (.., ..17_520) => format!("{days}d"),
        (.., ..70_080) => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

/// An age to one figure: `59s`, `2m`, `3h`, `364d`, `1y`.
pub fn short_human_duration(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match (seconds, minutes, hours) {
        (..-1, ..) => "<invalid>".into(),
        (..0, ..) => "0s".into(),
        (..60, ..) => format!("{seconds}s"),
        (_, ..60, _) => format!("{minutes}m"),
        (.., ..24) => format!("{hours}h"),
        (.., ..8_760) => format!("{}d", hours / 24),
        _ => format!("{}y", hours / 24 / 365),
    }
}

/// The age of something at `now`, for tables; saturates at Go's range.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let nanos = now.as_nanosecond() - since.as_nanosecond();
    human_duration(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX }))
}

/// Parses a `metav1.Time`. A fraction of a second is taken and lost when printed.
pub fn parse_time(text: &str) -> Result<Timestamp, TimeError> {
    Reader::new(text, SECONDS).time().map(timestamp)
}

/// Parses a `metav1.MicroTime`: exactly six digits after the point.
pub fn parse_micro_time(text: &str) -> Result<Timestamp, TimeError> {
    Reader::new(text, MICROSECONDS).time().map(timestamp)
}

fn timestamp(utc: DateTime) -> Timestamp {
    // Only the last hours of 9999 are beyond it: years begin at 0 in both layouts, and an offset takes a day at most.
    Offset::UTC.to_timestamp(utc).unwrap_or(Timestamp::MAX)
}

/// `2024-01-02T03:04:05Z`.
pub fn format_time(at: Timestamp) -> String {
    print_seconds(Offset::UTC.to_datetime(at))
}

/// `2024-01-02T03:04:05.000006Z`.
pub fn format_micro_time(at: Timestamp) -> String {
    print_microseconds(Offset::UTC.to_datetime(at))
}

fn print_seconds(t: DateTime) -> String {
    format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", t.year(), t.month(), t.day(), t.hour(), t.minute(), t.second())
}

fn print_microseconds(t: DateTime) -> String {
    let mut text = print_seconds(t);
    text.pop();
    text.push_str(&format!(".{:06}Z", t.subsec_nanosecond() / 1000));
    text
}

/// Go's zero time, which stands for "not set" and is printed as null.
const ZERO: DateTime = civil::date(1, 1, 1).at(0, 0, 0, 0);

/// Whether this is Go's zero time.
pub fn is_zero_time(at: Timestamp) -> bool {
    Offset::UTC.to_datetime(at) == ZERO
}

/// A `metav1.Time` in JSON as it is stored: UTC, whole seconds, null for the zero time.
pub fn canonical_time(value: &Value) -> Result<Value, TimeError> {
    canonical(value, SECONDS, print_seconds)
}

/// The same for a `metav1.MicroTime`.
pub fn canonical_micro_time(value: &Value) -> Result<Value, TimeError> {
    canonical(value, MICROSECONDS, print_microseconds)
}

fn canonical(value: &Value, layout: &'static str, print: fn(DateTime) -> String) -> Result<Value, TimeError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let at = Reader::new(text_of(value)?, layout).time()?;
    Ok(if at == ZERO { Value::Null } else { print(at).into() })
}

/// Go's `time.Parse` for the two layouts.
struct Reader<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    layout: &'static str,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, layout: &'static str) -> Self {
        Self { text: text.as_bytes(), rest: text.as_bytes(), layout }
    }

    fn cannot(&self, from: &[u8], as_what: &str) -> TimeError {
        let (text, from) = (quote(self.text), quote(from));
        TimeError(format!("parsing time {text} as \"{}\": cannot parse {from} as \"{as_what}\"", self.layout))
    }

    fn range(&self, what: &str) -> TimeError {
        TimeError(format!("parsing time {}: {what} out of range", quote(self.text)))
    }

    /// The time in UTC.
    fn time(&mut self) -> Result<DateTime, TimeError> {
        let year = self.year()?;
        let month = self.number(b'-', "01", true)?;
        if !(1..=12).contains(&month) {
            return Err(self.range("month"));
        }
        let day = self.number(b'-', "02", true)?;
        let hour = self.number(b'T', "15", false)?;
        if hour > 23 {
            return Err(self.range("hour"));
        }
        let minute = self.number(b':', "04", true)?;
        if minute > 59 {
            return Err(self.range("minute"));
        }
        let second = self.number(b':', "05", true)?;
        if second > 59 {
            return Err(self.range("second"));
        }
        let nanosecond = if self.layout == MICROSECONDS { self.six_digits()? } else { self.any_fraction() };
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            let (text, extra) = (quote(self.text), quote(self.rest));
            return Err(TimeError(format!("parsing time {text}: extra text: {extra}")));
        }
        let date = civil::Date::new(year, month, day).map_err(|_| self.range("day"))?;
        let local = date.at(hour, minute, second, nanosecond);
        // What an offset pushes out of the years -9999 to 9999 is the one thing Go takes and this refuses.
        local.checked_sub(SignedDuration::from_secs(offset)).map_err(|_| self.range("year"))
    }

    fn year(&mut self) -> Result<i16, TimeError> {
        match self.rest {
            [a, b, c, d, rest @ ..] if [a, b, c, d].iter().all(|x| x.is_ascii_digit()) => {
                self.rest = rest;
                Ok([a, b, c, d].iter().fold(0, |year, x| year * 10 + i16::from(*x - b'0')))
            }
            _ => Err(self.cannot(self.rest, "2006")),
        }
    }

    /// A separator and one or two digits (two where `fixed`).
    fn number(&mut self, separator: u8, what: &str, fixed: bool) -> Result<i8, TimeError> {
        match self.rest {
            [first, rest @ ..] if *first == separator => self.rest = rest,
            _ => return Err(self.cannot(self.rest, char::from(separator).encode_utf8(&mut [0; 4]))),
        }
        let (number, rest) = two_digits(self.rest, fixed).ok_or_else(|| self.cannot(self.rest, what))?;
        self.rest = rest;
        Ok(number)
    }

    /// A fraction the layout does not ask for: a point or comma and digits, of which nine count.
    fn any_fraction(&mut self) -> i32 {
        let [b'.' | b',', after @ ..] = self.rest else { return 0 };
        let length = after.iter().position(|b| !b.is_ascii_digit()).unwrap_or(after.len());
        if length == 0 {
            return 0;
        }
        let (digits, rest) = after.split_at(length);
        self.rest = rest;
        (0..9).fold(0, |n, at| n * 10 + digits.get(at).map_or(0, |b| i32::from(b - b'0')))
    }

    fn six_digits(&mut self) -> Result<i32, TimeError> {
        let bad = self.cannot(self.rest, ".000000");
        let (Some([b'.' | b',', digits @ ..]), Some(rest)) = (self.rest.get(..7), self.rest.get(7..)) else {
            return Err(bad);
        };
        // As Go's atoi, a sign may stand before five digits.
        let micros: i32 = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()).ok_or(bad)?;
        if micros < 0 {
            return Err(self.range("fractional second"));
        }
        self.rest = rest;
        Ok(micros * 1000)
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i64, TimeError> {
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.cannot(self.rest, "Z07:00");
        let [sign, h1, h2, b':', m1, m2, rest @ ..] = self.rest else { return Err(bad) };
        let hour = two_digits(&[*h1, *h2], true).map(|n| n.0);
        let minute = hour.and_then(|_| two_digits(&[*m1, *m2], true).map(|n| n.0));
        if hour.is_some_and(|h| h > 24) {
            return Err(self.range("time zone offset hour"));
        }
        if minute.is_some_and(|m| m > 60) {
            return Err(self.range("time zone offset minute"));
        }
        let (Some(hour), Some(minute)) = (hour, minute) else { return Err(bad) };
        self.rest = rest;
        let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60;
        match sign {
            b'+' => Ok(seconds),
            b'-' => Ok(-seconds),
            _ => Err(bad),
        }
    }
}

fn two_digits(text: &[u8], fixed: bool) -> Option<(i8, &[u8])> {
    match text {
        [a, b, rest @ ..] if a.is_ascii_digit() && b.is_ascii_digit() => {
            Some(((a - b'0') as i8 * 10 + (b - b'0') as i8, rest))
        }
        [a, rest @ ..] if a.is_ascii_digit() && !fixed => Some(((a - b'0') as i8, rest)),
        _ => None,
    }
}
