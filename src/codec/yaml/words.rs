//! Text that would read as something else than text when it stands plain (go-yaml v2 `resolve.go`).

/// Whether the text is a boolean, null, number or time of YAML 1.1, or a number to the base of sixty.
pub fn reads_as_other(text: &str) -> bool {
    let Some(first) = text.bytes().next() else { return true };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => is_word(text),
        b'.' => matches!(text, ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF") || is_go_float(text),
        b'+' | b'-' | b'0'..=b'9' => {
            let unsigned = text.trim_start_matches(['+', '-']);
            (unsigned.len() + 1 == text.len() && matches!(unsigned, ".inf" | ".Inf" | ".INF"))
                || is_time(text)
                || is_number(&text.replace('_', ""))
                || is_sexagesimal(text)
        }
        _ => false,
    }
}

fn is_word(text: &str) -> bool {
    const WORDS: [&str; 26] = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO", "false",
        "False", "FALSE", "off", "Off", "OFF", "~", "null", "Null", "NULL",
    ];
    WORDS.contains(&text)
}

/// Digits, at least one where `some`.
fn digits(text: &str, some: bool, radix: u32) -> bool {
    (!some || !text.is_empty()) && text.chars().all(|c| c.is_digit(radix))
}

fn is_number(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    is_integer(text, body) || is_yaml_float(body) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// What Go's `ParseInt` takes with base 0, or `ParseUint`.
fn is_integer(text: &str, body: &str) -> bool {
    let lower = body.to_ascii_lowercase();
    let (radix, figures) = match lower.as_bytes() {
        [b'0', b'x', rest @ ..] => (16, rest),
        [b'0', b'o', rest @ ..] => (8, rest),
        [b'0', b'b', rest @ ..] => (2, rest),
        [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
        all => (10, all),
    };
    let figures = std::str::from_utf8(figures).unwrap_or("");
    if !digits(figures, true, radix) {
        return false;
    }
    match (text.strip_prefix('-'), u64::from_str_radix(figures, radix)) {
        (_, Err(_)) => false,
        (Some(_), Ok(size)) => size <= 1 << 63,
        // Without a sign there is room for one bit more.
        (None, Ok(size)) => i64::try_from(size).is_ok() || !text.starts_with('+'),
    }
}

/// `^(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`, behind its sign.
fn is_yaml_float(body: &str) -> bool {
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction, true, 10),
        Some((whole, fraction)) => digits(whole, true, 10) && digits(fraction, false, 10),
        None => digits(mantissa, true, 10),
    };
    mantissa && exponent.is_none_or(|it| digits(it.strip_prefix(['+', '-']).unwrap_or(it), true, 10))
}

/// What Go's `ParseFloat` takes of text that begins with a point.
fn is_go_float(text: &str) -> bool {
    is_yaml_float(text) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`
fn is_sexagesimal(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = body.split(':');
    let figures = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let Some(head) = parts.next().filter(|it| it.starts_with(|c: char| c.is_ascii_digit()) && figures(it)) else {
        return false;
    };
    let rest = body.get(head.len() + 1..).unwrap_or("");
    let (rest, fraction) = rest.split_once('.').map_or((rest, ""), |(rest, fraction)| (rest, fraction));
    let sixtieth = |it: &str| match it.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    !rest.is_empty() && rest.split(':').all(sixtieth) && figures(fraction)
}

/// A date, or a date with a time in one of the notations that go-yaml takes.
fn is_time(text: &str) -> bool {
    let Some((year, rest)) = text.split_at_checked(4).filter(|(year, _)| digits(year, true, 10)) else { return false };
    let Some(rest) = rest.strip_prefix('-') else { return false };
    let Some((month, rest)) = figure(rest, 1..=12) else { return false };
    let Some((day, rest)) = rest.strip_prefix('-').and_then(|rest| figure(rest, 1..=31)) else { return false };
    let date = || jiff::civil::Date::new(year.parse().ok()?, month, day).ok();
    if date().is_none() {
        return false;
    }
    match rest.as_bytes() {
        [] => true,
        [b'T' | b't', ..] => clock(&rest[1..]).is_some_and(is_zone),
        [b' ', ..] => clock(&rest[1..]).is_some_and(str::is_empty),
        _ => false,
    }
}

/// One or two digits in a range.
fn figure(text: &str, range: std::ops::RangeInclusive<i8>) -> Option<(i8, &str)> {
    let length = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (figure, rest) = text.split_at_checked(length)?;
    let figure = figure.parse().ok()?;
    range.contains(&figure).then_some((figure, rest))
}

/// What follows hours, minutes, seconds and their fraction.
fn clock(text: &str) -> Option<&str> {
    let (_, rest) = figure(text, 0..=23)?;
    let (_, rest) = figure(rest.strip_prefix(':')?, 0..=59)?;
    let (_, rest) = figure(rest.strip_prefix(':')?, 0..=59)?;
    let Some(fraction) = rest.strip_prefix(['.', ',']) else { return Some(rest) };
    let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 { Some(rest) } else { fraction.get(length..) }
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => {
            [a, b, c, d].iter().all(|it| it.is_ascii_digit()) && (*a, *b) <= (b'2', b'4')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yaml_1_1_reads_as_something_else_is_told_apart() {
        for other in [
            "",
            "~",
            "null",
            "yes",
            "N",
            "on",
            "0x1F",
            "-0b11",
            "0o17",
            "017",
            "08",
            "1_000",
            "1e3",
            "1.",
            ".5",
            "-.inf",
            "+1",
            "18446744073709551615",
            "2026-01-02",
            "2026-1-2T3:4:5Z",
            "2026-01-02 03:04:05",
            "1:30",
            "190:20:30.15",
            "99999999999999999999",
        ] {
            assert!(reads_as_other(other), "{other}");
        }
        for text in [
            "a",
            "nullable",
            "yEs",
            "<<",
            "=",
            ".",
            "..",
            "-",
            "1a",
            "0x",
            "1e",
            "1.2.3",
            "2026-02-30",
            "2026-13-01",
            "1:60",
            "v1",
            "10.0.0.1",
            "1Gi",
            "100m",
            "1e999",
            "2026-01-02T03:04:05",
        ] {
            assert!(!reads_as_other(text), "{text}");
        }
    }
}
