//! The token file: bearer tokens and whom they name, in CSV with Go's rules for quotes
//! (apiserver `pkg/authentication/token/tokenfile`, Go's `encoding/csv`).

use super::{
    completed::{TokenTable, TokenUser},
    csv,
    types::SecretString,
};

/// Reads `token,user,uid[,"group1,group2"]` lines. The second value has what is odd and yet accepted: empty tokens
/// (skipped) and repeated ones (the last counts). `path` is for messages; no message shows a token.
pub fn parse(path: &str, text: &[u8]) -> Result<(TokenTable, Vec<String>), String> {
    let text = String::from_utf8_lossy(text);
    let mut tokens = TokenTable::new();
    let mut warnings = Vec::new();
    for (at, record) in csv::records(&text)?.into_iter().enumerate() {
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
