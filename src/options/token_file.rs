//! The token file: bearer tokens and whom they name, in CSV with Go's rules for quotes
//! (apiserver `pkg/authentication/token/tokenfile`, Go's `encoding/csv`).

use super::completed::{TokenTable, TokenUser};
use super::types::SecretString;

/// Reads `token,user,uid[,"group1,group2"]` lines. The second value has what is odd and yet accepted: empty tokens
/// (skipped) and repeated ones (the last counts). `path` is for messages; no message shows a token.
pub fn parse(path: &str, text: &[u8]) -> Result<(TokenTable, Vec<String>), String> {
    let text = String::from_utf8_lossy(text);
    let mut tokens = TokenTable::new();
    let mut warnings = Vec::new();
    for (at, record) in records(&text)?.into_iter().enumerate() {
        let [token, name, uid, rest @ ..] = record.as_slice() else {
            return Err(format!(
                "token file '{path}' must have at least 3 columns (token, user name, user uid), found {}",
                record.len()
            ));
        };
        let number = at + 1;
        if token.is_empty() {
            warnings.push(format!("empty token has been found in token file '{path}', record number '{number}'"));
            continue;
        }
        let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect()).unwrap_or_default();
        let user = TokenUser { name: name.clone(), uid: uid.clone(), groups };
        if tokens.insert(SecretString::new(token), user).is_some() {
            warnings.push(format!("duplicate token has been found in token file '{path}', record number '{number}'"));
        }
    }
    Ok((tokens, warnings))
}

const BARE_QUOTE: &str = "bare \" in non-quoted-field";
const QUOTE: &str = "extraneous or missing \" in quoted-field";

fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
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
    use super::*;

    fn user<'a>(tokens: &'a TokenTable, token: &str) -> &'a TokenUser {
        &tokens[&SecretString::new(token)]
    }

    #[test]
    fn groups_stand_in_one_quoted_column() {
        let (tokens, warnings) =
            parse("t.csv", b"a,alice,1,\"dev,ops\"\r\n\nb,bob,2\n\"c\"\"x\",carol,\"3\",one,ignored").unwrap();
        assert_eq!(user(&tokens, "a").groups, ["dev", "ops"]);
        assert!(user(&tokens, "b").groups.is_empty());
        assert_eq!(user(&tokens, "c\"x").name, "carol");
        assert!(warnings.is_empty());
    }

    #[test]
    fn empty_and_repeated_tokens_are_told_and_the_last_counts() {
        let (tokens, warnings) = parse("t.csv", b"a,x,1\n,y,2\na,z,3\n").unwrap();
        assert_eq!(user(&tokens, "a").name, "z");
        assert_eq!(
            warnings,
            [
                "empty token has been found in token file 't.csv', record number '2'",
                "duplicate token has been found in token file 't.csv', record number '3'"
            ]
        );
    }

    #[test]
    fn what_is_wrong_reads_as_gos_csv_says_it() {
        let error = |text: &[u8]| parse("/etc/t.csv", text).unwrap_err();
        assert_eq!(
            error(b"a,b\n"),
            "token file '/etc/t.csv' must have at least 3 columns (token, user name, user uid), found 2"
        );
        assert_eq!(error(b"a,b\"c,d\n"), "parse error on line 1, column 4: bare \" in non-quoted-field");
        assert_eq!(error(b"a,\"b\"c,d\n"), "parse error on line 1, column 5: extraneous or missing \" in quoted-field");
        assert_eq!(
            error(b"a,\"b\nc"),
            "record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field"
        );
    }
}
