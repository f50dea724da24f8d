//! Durations as Go writes and reads them (time.ParseDuration, Duration.String), in nanoseconds.

/// Reads Go's syntax. Errors are Go's texts.
pub fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if body == "0" {
        return Ok(0);
    }
    if body.is_empty() {
        return Err(invalid());
    }
    let mut nanos: u128 = 0;
    let mut rest = body;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        if number.is_empty() || number == "." {
            return Err(invalid());
        }
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let scale = unit_nanos(unit).ok_or_else(|| format!("time: unknown unit {unit:?} in duration {text:?}"))?;
        nanos = part(number, scale).and_then(|n| nanos.checked_add(n)).ok_or_else(invalid)?;
        rest = after;
    }
    let nanos = i64::try_from(nanos).map_err(|_| invalid())?;
    Ok(if negative { -nanos } else { nanos })
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Nanoseconds of a decimal number of units. Digits of the fraction beyond 18 no longer change a nanosecond.
fn part(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || whole.len() > 20 {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = &fraction[..fraction.len().min(18)];
    let part = match fraction {
        "" => 0,
        _ => fraction.parse::<u128>().ok()? * scale / 10u128.pow(fraction.len() as u32),
    };
    whole.checked_mul(scale)?.checked_add(part)
}

/// As Go's Duration.String: "1h0m0s", "1.5s", "50ms", "0s".
pub fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", magnitude(u128::from(nanos.unsigned_abs())))
}

fn magnitude(nanos: u128) -> String {
    if nanos == 0 {
        return "0s".into();
    }
    if nanos < 1_000 {
        return format!("{nanos}ns");
    }
    if nanos < 1_000_000 {
        return format!("{}µs", decimal(nanos, 1_000));
    }
    if nanos < 1_000_000_000 {
        return format!("{}ms", decimal(nanos, 1_000_000));
    }
    let minutes = nanos / 60_000_000_000;
    let seconds = decimal(nanos % 60_000_000_000, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, m) => format!("{m}m{seconds}s"),
        (h, m) => format!("{h}h{m}m{seconds}s"),
    }
}

fn decimal(value: u128, scale: u128) -> String {
    let (whole, fraction) = (value / scale, value % scale);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    format!("{whole}.{fraction:0width$}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_prints_is_read_back() {
        for text in
            ["0s", "1ns", "1.5µs", "50ms", "1.25ms", "1s", "1.5s", "1m0s", "5m0s", "1h0m0s", "2h3m4.5s", "-1m0s"]
        {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(parse("1h30m").unwrap(), 5400_000_000_000);
        assert_eq!(parse(".5s").unwrap(), 500_000_000);
        assert_eq!(parse("0").unwrap(), 0);
    }

    #[test]
    fn errors_are_those_of_go() {
        assert_eq!(parse("x").unwrap_err(), "time: invalid duration \"x\"");
        assert_eq!(parse("").unwrap_err(), "time: invalid duration \"\"");
        assert_eq!(parse("5").unwrap_err(), "time: missing unit in duration \"5\"");
        assert_eq!(parse("5d").unwrap_err(), "time: unknown unit \"d\" in duration \"5d\"");
        assert_eq!(parse("99999999999999h").unwrap_err(), "time: invalid duration \"99999999999999h\"");
    }
}
