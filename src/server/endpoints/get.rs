//! get: one object, as new as the request's resourceVersion demands.

use std::sync::Arc;

use super::{Endpoints, Scope, encode, scale};
use crate::{
    api::{ApiError, field::quote},
    server::{context::Exchange, http::Response},
    storage::{Revision, cache::Snapshot},
};

impl Endpoints {
    pub(super) async fn get(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let accepted = encode::accepted(cx, scope, false)?;
        if cx.query.first("export").is_some_and(crate::server::query::is_true) {
            return Err(ApiError::bad_request("the export parameter, deprecated since v1.14, is no longer supported"));
        }
        let key = scope.store()?.key_of(scope.namespace, scope.name)?;
        let snapshot = snapshot(scope, cx.query.first("resourceVersion").unwrap_or("")).await?;
        let entry = snapshot.get(&key).ok_or_else(|| ApiError::not_found(scope.gr(), scope.name))?;
        if scope.is_scale() {
            let object = scope.store()?.object(entry)?;
            return encode::object_response(cx, scope, accepted, 200, scale::of(scope, &object)?);
        }
        encode::entry_response(cx, scope, accepted, entry)
    }
}

/// What a get may be answered from.
async fn snapshot(scope: &Scope<'_>, version: &str) -> Result<Snapshot, ApiError> {
    let store = scope.store()?;
    match version {
        "" => store.consistent().await,
        "0" => store.cache.any().map_err(|error| store.cache_error(error)),
        text => {
            let revision = parse_revision(text).map_err(ApiError::unmapped)?;
            store.cache.not_older_than(revision).await.map_err(|error| store.cache_error(error))
        }
    }
}

/// A revision as clients write it.
///
/// # Errors
/// Upstream's text, which list and watch wrap differently.
pub fn parse_revision(text: &str) -> Result<Revision, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(revision) if digits => Ok(revision),
        _ => {
            let why = if digits { "value out of range" } else { "invalid syntax" };
            Err(format!(
                "resourceVersion: Invalid value: {}: strconv.ParseUint: parsing {}: {why}",
                quote(text),
                quote(text)
            ))
        }
    }
}
