//! Comma separated values as Go's encoding/csv reads them: the token file and pflag's slices are written so.

const BARE_QUOTE: &str = "bare \" in non-quoted-field";
const QUOTE: &str = "extraneous or missing \" in quoted-field";

/// The records of a text; empty lines are none. Errors are Go's texts.
pub fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut lines = text.split_inclusive('\n').enumerate().map(|(at, line)| (at + 1, line));
    let mut records = Vec::new();
    while let Some((number, line)) = lines.next() {
        if !without_end(line).is_empty() {
            records.push(record(number, line, &mut lines)?);
        }
    }
    Ok(records)
}

/// A line without its `\n` or `\r\n`.
fn without_end(line: &str) -> &str {
    line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')).unwrap_or(line)
}

/// One record, which goes on to further lines where a quoted field does.
fn record<'a>(
    start: usize,
    first: &'a str,
    more: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<Vec<String>, String> {
    let (mut number, mut line) = (start, first);
    let mut at = 0;
    let mut fields = Vec::new();
    let problem = |number: usize, column: usize, what: &str| {
        let record = if number == start { String::new() } else { format!("record on line {start}; ") };
        format!("{record}parse error on line {number}, column {column}: {what}")
    };
    loop {
        let rest = &line[at..];
        if !rest.starts_with('"') {
            let field = without_end(rest);
            let field = field.split_once(',').map_or(field, |(field, _)| field);
            if let Some(quote) = field.find('"') {
                return Err(problem(number, at + quote + 1, BARE_QUOTE));
            }
            fields.push(field.to_owned());
            at += field.len();
            if !line[at..].starts_with(',') {
                return Ok(fields);
            }
            at += 1;
            continue;
        }
        at += 1;
        let mut field = String::new();
        loop {
            let Some(quote) = line[at..].find('"') else {
                field.push_str(without_end(&line[at..]));
                let Some(next) = more.next() else {
                    return Err(problem(number, line.len() + 1, QUOTE));
                };
                field.push('\n');
                (number, line, at) = (next.0, next.1, 0);
                continue;
            };
            field.push_str(&line[at..at + quote]);
            at += quote + 1;
            match line[at..].chars().next() {
                Some('"') => {
                    field.push('"');
                    at += 1;
                }
                Some(',') => break,
                _ if without_end(&line[at..]).is_empty() => break,
                _ => return Err(problem(number, at, QUOTE)),
            }
        }
        fields.push(field);
        if !line[at..].starts_with(',') {
            return Ok(fields);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::records;

    #[test]
    fn quotes_hold_commas_and_doubled_quotes() {
        assert_eq!(records("a,\"b,c\",\"d\"\"e\",").unwrap(), [["a", "b,c", "d\"e", ""]]);
        assert!(records("").unwrap().is_empty());
    }

    #[test]
    fn stray_quotes_are_refused_as_go_does() {
        let error = |text: &str| records(text).unwrap_err();
        assert_eq!(error("a\"b"), "parse error on line 1, column 2: bare \" in non-quoted-field");
        assert!(error("\"a").contains("extraneous or missing"));
        assert!(error("\"a\"b").contains("extraneous or missing"));
    }
}
