//! Where a request carries its bearer token: the Authorization header, or a subprotocol of a websocket, whose
//! client in a browser can set no headers (apiserver `pkg/authentication/request/{bearertoken,websocket}`).

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{
    HeaderMap, HeaderValue,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
};

use super::{Attempt, Outcome, TokenAuthenticator};
use crate::{auth::authz::aggregate, server::http::is_websocket_request};

pub(super) const INVALID: &str = "invalid bearer token";
const EXTRA_SPACE: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";
const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Asks one after the other; the first success wins.
async fn judge(authenticators: &[Arc<dyn TokenAuthenticator>], token: &str, audiences: &[String]) -> Outcome {
    let mut errors = Vec::new();
    for authenticator in authenticators {
        match authenticator.authenticate_token(token, audiences).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    aggregate(errors).map_or(Ok(None), Err)
}

/// A token that nobody knows is wrong, not absent.
fn known(outcome: Outcome) -> Outcome {
    outcome.and_then(|found| found.map(Some).ok_or_else(|| INVALID.to_owned()))
}

pub(super) async fn from_header(authenticators: &[Arc<dyn TokenAuthenticator>], attempt: &mut Attempt<'_>) -> Outcome {
    let Some(token) = header_token(attempt) else { return Ok(None) };
    known(judge(authenticators, &token, attempt.audiences).await)
}

fn header_token(attempt: &mut Attempt<'_>) -> Option<String> {
    let value = attempt.headers.get(AUTHORIZATION)?;
    let text = String::from_utf8_lossy(value.as_bytes());
    let mut parts = text.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    if token.is_empty() {
        if parts.next().is_some() {
            attempt.warn(EXTRA_SPACE);
        }
        return None;
    }
    Some(token.to_owned())
}

pub(super) async fn from_websocket(
    authenticators: &[Arc<dyn TokenAuthenticator>],
    attempt: &mut Attempt<'_>,
) -> Outcome {
    if !is_websocket_request(attempt.headers) {
        return Ok(None);
    }
    let Some((token, others)) = protocol_token(attempt.headers)? else { return Ok(None) };
    let outcome = known(judge(authenticators, &token, attempt.audiences).await);
    if let (Ok(_), Ok(others)) = (&outcome, HeaderValue::from_str(&others)) {
        attempt.headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
    outcome
}

/// The token among the subprotocols and the list of the others, of which there has to be one: the server must not
/// choose the one that is a secret.
fn protocol_token(headers: &HeaderMap) -> Result<Option<(String, String)>, String> {
    let mut token = None;
    let mut others: Vec<String> = Vec::new();
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        let text = String::from_utf8_lossy(value.as_bytes());
        for protocol in text.split(',').map(str::trim) {
            let Some(encoded) = protocol.strip_prefix(PROTOCOL_PREFIX) else {
                others.push(protocol.to_owned());
                continue;
            };
            if token.is_some() {
                return Err("multiple base64.bearer.authorization tokens specified".to_owned());
            }
            let bytes = URL_SAFE_NO_PAD
                .decode(encoded)
                .map_err(|_| "invalid base64.bearer.authorization token encoding".to_owned())?;
            let text = String::from_utf8(bytes).map_err(|_| "invalid base64.bearer.authorization token".to_owned())?;
            token = Some(text);
        }
    }
    match token {
        Some(token) if !token.is_empty() && others.is_empty() => {
            drop(token);
            Err("missing additional subprotocol".to_owned())
        }
        Some(token) if !token.is_empty() => Ok(Some((token, others.join(",")))),
        _ => Ok(None),
    }
}
