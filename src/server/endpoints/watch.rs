//! watch: what changes in a collection, from a version on, until time, client or right ends it.

mod stream;
mod websocket;

use std::{sync::Arc, time::Duration};

use super::{Endpoints, Scope, encode, get::parse_revision, options::ListOptions, selectors::Selectors};
use crate::{
    api::ApiError,
    server::{
        context::Exchange,
        http::{Body, Response},
        respond,
    },
    storage::{
        Revision,
        cache::{CacheError, Snapshot, WatchScope, WatchStart, Watcher},
    },
};

use stream::WatchStream;

/// Events a watcher may leave waiting before it is ended (it resumes from its last version).
const BUFFER: usize = 1000;

impl Endpoints {
    pub(super) async fn watch(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let mut options = ListOptions::decode(&cx.query, true)?;
        // `/watch/…/<name>` is a watch of one object.
        let named = if scope.name.is_empty() { None } else { Some(scope.name) };
        if let Some(name) = named {
            options.field_selector = restrict(&options.field_selector, name)?;
        }
        let selectors = Selectors::parse(scope, &options.label_selector, &options.field_selector)?;
        let accepted = encode::accepted(cx, scope, true)?;
        if !matches!(options.resource_version.as_str(), "" | "0") {
            parse_revision(&options.resource_version).map_err(ApiError::unmapped)?;
        }
        let begun = begin(scope, &options, &selectors).await;
        let until = self.end_of(options.timeout_seconds);
        let listing = cx.query.first("sendInitialEvents").is_some_and(crate::server::query::is_true);
        let gzip = listing && respond::takes_gzip(cx);
        let stream = match begun {
            Ok((snapshot, watcher)) => {
                WatchStream::new(self, cx, scope, accepted, selectors, options, snapshot, watcher, until)?
            }
            // The head is 200 all the same; the reason is the first event.
            Err(error) if told_in_stream(&error) && websocket::is_wanted(cx) => {
                return Ok(websocket::answer(cx, accepted.format, stream::only(accepted, &error)));
            }
            Err(error) if told_in_stream(&error) => return stream::ended(accepted, &error),
            Err(error) => return Err(error),
        };
        if websocket::is_wanted(cx) {
            return Ok(websocket::answer(cx, accepted.format, stream.into_body(false)));
        }
        let content_type = accepted.format.stream_media_type().unwrap_or("application/json");
        let mut response = respond::response(200, content_type, Body::Stream(stream.into_body(gzip)));
        if gzip {
            respond::mark_gzip(&mut response);
        }
        Ok(response)
    }

    /// When the watch ends by itself: the client's time, or a random one so that not all come back at once.
    fn end_of(&self, asked: Option<i64>) -> tokio::time::Instant {
        let timeout = match asked.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0) {
            Some(seconds) => Duration::from_secs(seconds),
            None => self.min_request_timeout.mul_f64(1.0 + crate::api::unique::fraction()),
        };
        tokio::time::Instant::now() + timeout.min(Duration::from_secs(86_400 * 365))
    }
}

/// Errors that upstream finds after the answer's head is out.
fn told_in_stream(error: &ApiError) -> bool {
    matches!(error.code, 410 | 504)
}

/// Adds the path's name to a field selector.
fn restrict(selector: &str, name: &str) -> Result<String, ApiError> {
    let parsed =
        crate::api::fields::Selector::parse(selector).map_err(|error| ApiError::bad_request(error.to_string()))?;
    match parsed.requires_exact_match("metadata.name") {
        Some(other) if other != name => {
            Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"))
        }
        Some(_) => Ok(selector.to_owned()),
        None => {
            let own = format!("metadata.name={}", crate::api::fields::escape(name));
            Ok(if selector.is_empty() { own } else { format!("{own},{selector}") })
        }
    }
}

/// The state to begin with, if any, and what comes after it.
async fn begin(
    scope: &Scope<'_>,
    options: &ListOptions,
    selectors: &Selectors,
) -> Result<(Option<Snapshot>, Watcher), ApiError> {
    let store = scope.store()?;
    let failed = |error: CacheError| store.cache_error(error);
    let watched = scope_of(scope, selectors);
    let asked: Revision = match options.resource_version.as_str() {
        "" => 0,
        text => parse_revision(text).map_err(ApiError::unmapped)?,
    };
    match options.send_initial_events {
        Some(true) => {
            if options.resource_version.is_empty() {
                store.consistent().await?;
            } else if asked > 0 {
                store.cache.not_older_than(asked).await.map_err(failed)?;
            }
            let (snapshot, watcher) = store.cache.list_and_watch(watched, BUFFER).map_err(failed)?;
            Ok((Some(snapshot), watcher))
        }
        _ if asked > 0 => Ok((None, store.cache.watch(WatchStart::After(asked), watched, BUFFER).map_err(failed)?)),
        Some(false) => {
            store.consistent().await?;
            Ok((None, store.cache.watch(WatchStart::Now, watched, BUFFER).map_err(failed)?))
        }
        None => {
            let (snapshot, watcher) = store.cache.list_and_watch(watched, BUFFER).map_err(failed)?;
            Ok((Some(snapshot), watcher))
        }
    }
}

/// What the dispatcher can decide by itself. Nodes watch their own pods, so that field is worth an index.
fn scope_of(scope: &Scope<'_>, selectors: &Selectors) -> WatchScope {
    const INDEXED: [&str; 1] = ["spec.nodeName"];
    let index = INDEXED.iter().find_map(|field| {
        let known = scope.version.selectable.labels.iter().any(|label| label == field);
        let value = selectors.fields.requires_exact_match(field).filter(|_| known)?;
        Some((Box::from(*field), Box::from(value)))
    });
    WatchScope {
        namespace: Some(scope.namespace).filter(|it| !it.is_empty()).map(Box::from),
        name: selectors.name.clone(),
        index,
    }
}
