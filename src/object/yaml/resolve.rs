//! What a scalar's text means (go-yaml `resolve.go`): YAML 1.1 words for booleans, Go's numbers, dates that stay text.

/// A scalar as Go has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond 63 bits.
    Uint(u64),
    Float(f64),
    Str(String),
}

const LONG: &str = "tag:yaml.org,2002:";

fn short(tag: &str) -> String {
    tag.strip_prefix(LONG).map_or_else(|| tag.to_owned(), |name| format!("!!{name}"))
}

/// # Errors
/// A text that is not what its tag says.
pub fn resolve(tag: &str, text: &str) -> Result<Scalar, String> {
    let wanted = tag.strip_prefix(LONG);
    match wanted {
        _ if tag.is_empty() => {}
        Some("str") => return Ok(Scalar::Str(text.to_owned())),
        Some("binary") => return binary(text),
        Some("bool" | "int" | "float" | "null" | "timestamp") => {}
        _ => return Ok(Scalar::Str(text.to_owned())),
    }
    let (found, scalar) = if let Some(scalar) = word(text) {
        scalar
    } else if looks_like_time(text) && matches!(wanted, None | Some("timestamp")) {
        ("timestamp", Scalar::Str(text.to_owned()))
    } else if let Some(scalar) = number(text) {
        scalar
    } else {
        ("str", Scalar::Str(text.to_owned()))
    };
    match (wanted, &scalar) {
        (None, _) => Ok(scalar),
        (Some(wanted), _) if wanted == found => Ok(scalar),
        (Some("float"), Scalar::Int(it)) => Ok(Scalar::Float(*it as f64)),
        _ => Err(format!("cannot decode !!{found} `{text}` as a {}", short(tag))),
    }
}

fn binary(text: &str) -> Result<Scalar, String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    // Go's decoder passes over line breaks.
    let compact: String = text.chars().filter(|it| !matches!(it, '\r' | '\n')).collect();
    match STANDARD.decode(compact) {
        Ok(bytes) => Ok(Scalar::Str(String::from_utf8_lossy(&bytes).into_owned())),
        Err(_) => Err("!!binary value contains invalid base64 data".to_owned()),
    }
}

fn word(text: &str) -> Option<(&'static str, Scalar)> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            ("bool", Scalar::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ("bool", Scalar::Bool(false))
        }
        "" | "~" | "null" | "Null" | "NULL" => ("null", Scalar::Null),
        ".nan" | ".NaN" | ".NAN" => ("float", Scalar::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => ("float", Scalar::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => ("float", Scalar::Float(f64::NEG_INFINITY)),
        "<<" => ("merge", Scalar::Str("<<".to_owned())),
        _ => return None,
    })
}

fn number(text: &str) -> Option<(&'static str, Scalar)> {
    match text.bytes().next()? {
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            integer(&plain).map(|it| ("int", it)).or_else(|| float(&plain))
        }
        _ => None,
    }
}

/// Go's ParseInt and ParseUint with base 0.
fn integer(text: &str) -> Option<Scalar> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (false, true, text.get(1..)?),
        _ => (false, false, text),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (digits, radix) = match lower.as_deref() {
        Some("0x") => (digits.get(2..)?, 16),
        Some("0o") => (digits.get(2..)?, 8),
        Some("0b") => (digits.get(2..)?, 2),
        Some(_) if digits.starts_with('0') => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    let number = u64::from_str_radix(digits, radix).ok()?;
    match (i64::try_from(number), negative) {
        (Ok(it), false) => Some(Scalar::Int(it)),
        (Ok(it), true) => Some(Scalar::Int(-it)),
        (Err(_), true) => (number == 1 << 63).then_some(Scalar::Int(i64::MIN)),
        (Err(_), false) => (!signed).then_some(Scalar::Uint(number)),
    }
}

fn float(text: &str) -> Option<(&'static str, Scalar)> {
    if !is_float(text) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(("float", Scalar::Float(number)))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = digits(text);
    let mut rest = text.get(whole..).unwrap_or("");
    if let Some(after) = rest.strip_prefix('.') {
        let part = digits(after);
        if whole == 0 && part == 0 {
            return false;
        }
        rest = after.get(part..).unwrap_or("");
    } else if whole == 0 {
        return false;
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return rest.is_empty() };
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

/// Whether go-yaml reads a timestamp: a date, with or without a time of day.
fn looks_like_time(text: &str) -> bool {
    let Some((year, rest)) = text.split_at_checked(4) else { return false };
    if !year.bytes().all(|byte| byte.is_ascii_digit()) || !rest.starts_with('-') {
        return false;
    }
    let part = |text: &str, most: u32| text.len() <= 2 && text.parse().is_ok_and(|it: u32| it <= most);
    let mut pieces = rest.get(1..).unwrap_or("").splitn(2, '-');
    let (Some(month), Some(rest)) = (pieces.next(), pieces.next()) else { return false };
    let day = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (day, rest) = rest.split_at(day);
    if !part(month, 12) || !part(day, 31) || month == "0" || month == "00" || day.trim_start_matches('0').is_empty() {
        return false;
    }
    let zoned = match rest.chars().next() {
        None => return true,
        Some('T' | 't') => true,
        Some(' ') => false,
        Some(_) => return false,
    };
    let rest = rest.get(1..).unwrap_or("");
    let clock = rest.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.')).count();
    let (clock, zone) = rest.split_at(clock);
    let pieces: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = pieces.as_slice() else { return false };
    let second = second.split_once('.').map_or(*second, |(whole, _)| whole);
    let is_clock = part(hour, 23) && part(minute, 59) && part(second, 59);
    let is_zone = zone == "Z"
        || zone.strip_prefix(['+', '-']).and_then(|zone| zone.split_once(':')).is_some_and(|(hours, minutes)| {
            hours.len() == 2 && minutes.len() == 2 && part(hours, 24) && part(minutes, 59)
        });
    is_clock && if zoned { is_zone } else { zone.is_empty() }
}
