//! Continue tokens: where the next page starts and at which version (apiserver `pkg/storage/continue.go`).
//! They hold no state of the server and so survive its restart.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    api::ApiError,
    object::{Value, parse, to_vec},
    storage::Revision,
};

const VERSION: &str = "meta.k8s.io/v1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// `None`: the newest version, so that the list is not of one moment.
    pub revision: Option<Revision>,
    /// A path below the resource's prefix; the first key of the next page is not before it.
    pub start: String,
}

impl Token {
    /// The token of the page after `path`.
    pub fn after(path: &str, revision: Revision) -> String {
        encode(&format!("{path}\0"), revision as i64)
    }

    /// The token that goes on from `start` at whatever is newest then.
    pub fn inconsistent(start: &str) -> String {
        encode(start, -1)
    }

    pub fn decode(text: &str) -> Result<Self, ApiError> {
        decode(text).map_err(|cause| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {cause}"))
        })
    }
}

fn encode(start: &str, revision: i64) -> String {
    let value = Value::from([("v", Value::from(VERSION)), ("rv", revision.into()), ("start", start.into())]);
    URL_SAFE_NO_PAD.encode(to_vec(&value))
}

fn decode(text: &str) -> Result<Token, String> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| illegal_base64(text))?;
    let value = parse(&bytes).map_err(|error| error.message)?;
    let field = |name: &str, wanted: &str| {
        let got = value.get(name).map_or("null", Value::json_type);
        format!("json: cannot unmarshal {got} into Go struct field continueToken.{name} of type {wanted}")
    };
    let string = |name: &str| match value.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::Str(text)) => Ok(text.as_str()),
        Some(_) => Err(field(name, "string")),
    };
    if value.as_object().is_none() {
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type storage.continueToken",
            value.json_type()
        ));
    }
    let version = string("v")?;
    let revision = match value.get("rv") {
        None | Some(Value::Null) => 0,
        Some(Value::Int(revision)) => *revision,
        Some(_) => return Err(field("rv", "int64")),
    };
    let start = string("start")?;
    if version != VERSION {
        return Err(format!("server does not recognize this encoded version {version}"));
    }
    if revision == 0 {
        return Err(format!("incorrect encoded start resourceVersion (version {VERSION})"));
    }
    if start.is_empty() {
        return Err(format!("encoded start key empty (version {VERSION})"));
    }
    let climbs = start.split('/').any(|part| part == "." || part == "..") || start.contains("//");
    if climbs {
        return Err(start.to_owned());
    }
    let start = start.strip_prefix('/').unwrap_or(start).to_owned();
    Ok(Token { revision: u64::try_from(revision).ok(), start })
}

/// Go's words for text that is no base64: where its decoder stumbles.
fn illegal_base64(text: &str) -> String {
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let at = text.bytes().position(|byte| !legal(&byte)).unwrap_or(text.len() / 4 * 4);
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_back_what_it_was_made_of() {
        let token = Token::decode(&Token::after("ns/name", 7)).unwrap();
        assert_eq!(token, Token { revision: Some(7), start: "ns/name\0".into() });
        assert_eq!(Token::decode(&Token::inconsistent("x\0")).unwrap().revision, None);
    }

    #[test]
    fn bad_tokens_are_refused_in_upstreams_words() {
        for (token, cause) in [
            ("%%%", "illegal base64 data at input byte 0"),
            ("x", "illegal base64 data at input byte 0"),
            ("aGVsbG8", "invalid character 'h' looking for beginning of value"),
            ("eyJ2IjoidjEiLCJydiI6NSwic3RhcnQiOiJ4XHUwMDAwIn0", "server does not recognize this encoded version v1"),
        ] {
            let expected = format!("invalid continue token: continue key is not valid: {cause}");
            assert_eq!(Token::decode(token).unwrap_err().message, expected);
        }
        assert!(Token::decode(&encode("../../secrets/x\0", 5)).is_err());
    }
}
