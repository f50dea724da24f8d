//! Sets of indexes as text: `1,3-5,7`.

/// The lower and upper end of each part that can be read, in order; both below `completions`.
struct Interval {
    first: i64,
    last: i64,
}

/// How many indexes a text names.
///
/// # Errors
/// What is wrong with it, in upstream's words.
pub fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let (mut before, mut total) = (None, 0);
    for part in text.split(',') {
        let Interval { first, last } = interval(part, completions)?;
        if let Some(before) = before.filter(|before| *before >= first) {
            return Err(format!("non-increasing order, previous: {before}, current: {first}"));
        }
        total += last - first + 1;
        before = Some(last);
    }
    Ok(total)
}

/// The first index that is in both texts. Parts that cannot be read are passed over: [`count`] tells of them.
pub fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    if completed.is_empty() || failed.is_empty() {
        return None;
    }
    let read = |text: &'_ str| text.split(',').filter_map(|part| interval(part, completions).ok()).collect::<Vec<_>>();
    let (completed, failed) = (read(completed), read(failed));
    let (mut a, mut b) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some(done), Some(lost)) = (a.peek(), b.peek()) {
        if done.first <= lost.last && lost.first <= done.last {
            return Some(done.first.max(lost.first));
        }
        if done.first <= lost.first {
            a.next();
        } else {
            b.next();
        }
    }
    None
}

fn interval(part: &str, completions: i64) -> Result<Interval, String> {
    let mut ends = part.split('-');
    let (first, last) = (ends.next().unwrap_or(""), ends.next());
    if ends.next().is_some() {
        return Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let read = |text: &str| {
        let index: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if index >= completions { Err(format!("too large index: {text:?}")) } else { Ok(index) }
    };
    let first = read(first)?;
    let Some(last) = last.map(read).transpose()? else { return Ok(Interval { first, last: first }) };
    if first >= last {
        return Err(format!("non-increasing order, previous: {first}, current: {last}"));
    }
    Ok(Interval { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_or_refused_in_upstreams_words() {
        let say = |text| count(text, 10).unwrap_err();
        assert_eq!(count("", 10), Ok(0));
        assert_eq!(count("0,2-4,9", 10), Ok(5));
        assert_eq!(say("3,2"), "non-increasing order, previous: 3, current: 2");
        assert_eq!(say("4-4"), "non-increasing order, previous: 4, current: 4");
        assert_eq!(say("a"), "cannot convert string to integer for index: \"a\"");
        assert_eq!(say("10"), "too large index: \"10\"");
        assert!(say("1-2-3").starts_with("the fragment \"1-2-3\" violates"));
    }

    #[test]
    fn what_is_in_both_is_found_past_what_cannot_be_read() {
        assert_eq!(overlap("0-3", "3-5", 10), Some(3));
        assert_eq!(overlap("0,2,4", "1,3", 10), None);
        assert_eq!(overlap("x,2", "0,2", 10), Some(2));
        assert_eq!(overlap("", "0", 10), None);
    }
}
