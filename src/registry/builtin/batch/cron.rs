//! Schedules of cron jobs: what is wrong with one, in the words of the parser upstream uses (robfig/cron `parser.go`),
//! and the names of time zones.

use std::{collections::HashSet, sync::OnceLock};

use crate::api::duration::parse_duration;

/// The zones that Go embeds.
const ZONES: &str = include_str!("../../data/time-zones.txt");

/// Whether a time zone of that name is known. Names are case-sensitive.
pub fn is_zone(name: &str) -> bool {
    static KNOWN: OnceLock<HashSet<&'static str>> = OnceLock::new();
    name == "UTC" || KNOWN.get_or_init(|| ZONES.lines().collect()).contains(name)
}

struct Field {
    least: u64,
    most: u64,
    names: &'static [(&'static str, u64)],
}

const MONTHS: [(&str, u64); 12] = [
    ("jan", 1),
    ("feb", 2),
    ("mar", 3),
    ("apr", 4),
    ("may", 5),
    ("jun", 6),
    ("jul", 7),
    ("aug", 8),
    ("sep", 9),
    ("oct", 10),
    ("nov", 11),
    ("dec", 12),
];
const DAYS: [(&str, u64); 7] = [("sun", 0), ("mon", 1), ("tue", 2), ("wed", 3), ("thu", 4), ("fri", 5), ("sat", 6)];
/// Minute, hour, day of the month, month, day of the week.
const FIELDS: [Field; 5] = [
    Field { least: 0, most: 59, names: &[] },
    Field { least: 0, most: 23, names: &[] },
    Field { least: 1, most: 31, names: &[] },
    Field { least: 1, most: 12, names: &MONTHS },
    Field { least: 0, most: 6, names: &DAYS },
];
const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// What is wrong with a schedule.
pub fn problem(schedule: &str) -> Option<String> {
    judge(schedule).err()
}

fn judge(schedule: &str) -> Result<(), String> {
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let mut rest = schedule;
    if let Some(zoned) = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        let Some((zone, after)) = zoned.split_once(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
        };
        if !zone.is_empty() && zone != "Local" && !is_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return judge_descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            judge_range(range, field)?;
        }
    }
    Ok(())
}

fn judge_descriptor(text: &str) -> Result<(), String> {
    if let Some(duration) = text.strip_prefix("@every ") {
        let parsed = parse_duration(duration);
        return parsed.map(drop).map_err(|why| format!("failed to parse duration {text}: {why}"));
    }
    if DESCRIPTORS.contains(&text) { Ok(()) } else { Err(format!("unrecognized descriptor: {text}")) }
}

/// `number | number "-" number [ "/" number ]`
fn judge_range(text: &str, field: &Field) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts.first().map(|range| range.split('-').collect()).unwrap_or_default();
    let (first, mut last) = match ends.as_slice() {
        ["*" | "?", ..] => (field.least, field.most),
        [one] => {
            let one = number_or_name(one, field)?;
            (one, one)
        }
        [first, last] => (number_or_name(first, field)?, number_or_name(last, field)?),
        [first, ..] => {
            number_or_name(first, field)?;
            return Err(format!("too many hyphens: {text}"));
        }
        [] => (0, 0),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                last = field.most;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if first < field.least {
        return Err(format!("beginning of range ({first}) below minimum ({}): {text}", field.least));
    }
    if last > field.most {
        return Err(format!("end of range ({last}) above maximum ({}): {text}", field.most));
    }
    if first > last {
        return Err(format!("beginning of range ({first}) beyond end of range ({last}): {text}"));
    }
    if step == 0 { Err(format!("step of range should be a positive number: {text}")) } else { Ok(()) }
}

fn number_or_name(text: &str, field: &Field) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match field.names.iter().find(|(name, _)| *name == lower) {
        Some((_, number)) => Ok(*number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let Ok(number) = text.parse::<i64>() else {
        let why = if numeric { "value out of range" } else { "invalid syntax" };
        return Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}"));
    };
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_schedules_are_taken() {
        for good in
            ["* * * * *", "*/5 0-3,4 1 jan-Mar ?", "@hourly", "@every 1h30m", "TZ=UTC 0 0 * * *", "5/10 * * * *"]
        {
            assert_eq!(problem(good), None, "{good}");
        }
    }

    #[test]
    fn bad_ones_are_refused_in_the_parsers_words() {
        for (schedule, why) in [
            ("a b c", "expected exactly 5 fields, found 3: [a b c]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("10-5 * * * *", "beginning of range (10) beyond end of range (5): 10-5"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("0 0 1 foo *", "failed to parse int from foo: strconv.Atoi: parsing \"foo\": invalid syntax"),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("@sometimes", "unrecognized descriptor: @sometimes"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("TZ=Mars/Base 0 0 * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ] {
            assert_eq!(problem(schedule).as_deref(), Some(why), "{schedule}");
        }
    }

    #[test]
    fn zones_are_known_by_their_exact_name() {
        assert!(is_zone("Europe/Berlin") && is_zone("Etc/GMT+1") && is_zone("UTC"));
        assert!(!is_zone("europe/berlin") && !is_zone("Mars/Base") && !is_zone("Europe") && !is_zone(""));
    }
}
