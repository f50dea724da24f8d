//! A watch's body: frames of events in order, bookmarks, and the reason of its end.
//!
//! It holds shared handles only (the cache's watcher, the row's encoder), never a generation: at every commit it asks
//! whatever serves then for its right, and ends with a Status where that is gone.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use tokio::time::Instant;

use super::super::{
    Endpoints, Scope, encode,
    options::ListOptions,
    selectors::Selectors,
    table::{CLOSING, Rows, list_metadata},
};
use crate::{
    api::ApiError,
    auth::user::User,
    codec::{self, Format, protobuf},
    object::{Key, Map, Value},
    registry::catalog::Row,
    server::{
        context::Exchange,
        http::{Body, BodyError, BodyStream, Response, unsynced},
        lifecycle::Lifecycle,
        negotiate::{Accepted, Transform},
        request_info::RequestInfo,
        respond,
        rights::Rights,
    },
    storage::{
        Revision,
        cache::{Entry, EventType, Snapshot, WatchEnd, WatchEvent, Watcher},
    },
};

/// Bookmarks come about this often, and once more this long before the end.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Bytes of events joined into one piece; more wait for the next.
const PIECE: usize = 64 * 1024;

const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

pub(super) struct WatchStream {
    row: Arc<Row>,
    info: Arc<RequestInfo>,
    user: User,
    rights: Arc<Rights>,
    lifecycle: Arc<Lifecycle>,
    accepted: Accepted,
    table: Option<Rows>,
    /// The columns' definitions stand in the first event only.
    columns_due: bool,
    selectors: Selectors,
    bookmarks: bool,
    initial: std::vec::IntoIter<Arc<Entry>>,
    /// The bookmark that closes the initial events is still to be sent.
    announce_end: bool,
    started_at: Revision,
    watcher: Watcher,
    waiting: Vec<Arc<WatchEvent>>,
    commits: tokio::sync::watch::Receiver<u64>,
    until: Instant,
    next_bookmark: Instant,
    ended: bool,
}

impl WatchStream {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn new(
        endpoints: &Endpoints,
        cx: &Exchange,
        scope: &Scope<'_>,
        accepted: Accepted,
        selectors: Selectors,
        options: ListOptions,
        snapshot: Option<Snapshot>,
        watcher: Watcher,
        until: Instant,
    ) -> Result<Self, ApiError> {
        let table = match accepted.transform {
            Transform::Table(version) => Some(Rows::new(cx, version)?),
            _ => None,
        };
        let namespace = Some(scope.namespace).filter(|it| !it.is_empty());
        let started_at = snapshot.as_ref().map_or(0, Snapshot::revision);
        let initial: Vec<Arc<Entry>> = snapshot
            .iter()
            .flat_map(|snapshot| snapshot.range(namespace, ""))
            .filter(|entry| selectors.matches(entry))
            .cloned()
            .collect();
        let user = cx.user.clone().ok_or_else(|| ApiError::internal("no user found for request"))?;
        Ok(Self {
            row: scope.row.clone(),
            info: Arc::new(scope.info.clone()),
            user,
            rights: endpoints.rights.clone(),
            lifecycle: endpoints.lifecycle.clone(),
            accepted,
            table,
            columns_due: true,
            selectors,
            bookmarks: options.allow_bookmarks,
            initial: initial.into_iter(),
            announce_end: options.send_initial_events == Some(true) && options.allow_bookmarks,
            started_at,
            watcher,
            waiting: Vec::new(),
            commits: endpoints.current.commits(),
            until,
            next_bookmark: Instant::now() + BOOKMARK_EVERY,
            ended: false,
        })
    }

    /// The frames as a body; `gzip`: every piece as a member of its own, so that no compressor is held while nothing
    /// happens.
    pub(super) fn into_body(self, gzip: bool) -> BodyStream {
        unsynced(stream::unfold(self, move |mut state| async move {
            let piece = state.next().await?;
            let piece = match gzip.then(|| respond::gzip_piece(&piece)) {
                None => Ok(piece),
                Some(small) => small.map(Bytes::from).map_err(|error| BodyError(error.to_string())),
            };
            Some((piece, state))
        }))
    }

    /// The next piece; `None` ends the watch.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let mut out = Vec::new();
            let written = self.fill(&mut out).await;
            if let Err(error) = written {
                self.ended = true;
                out.extend_from_slice(&frame_of_error(self.accepted.format, &error));
            }
            if !out.is_empty() {
                return Some(out.into());
            }
        }
        None
    }

    async fn fill(&mut self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        while out.len() < PIECE {
            match self.initial.next() {
                Some(entry) => self.event(out, EventType::Added, &entry, None)?,
                None => break,
            }
        }
        if !out.is_empty() && self.initial.len() > 0 {
            return Ok(());
        }
        if std::mem::take(&mut self.announce_end) {
            self.bookmark(out, self.started_at, true)?;
        }
        if !out.is_empty() {
            return Ok(());
        }
        self.live(out).await
    }

    /// Waits for what comes first: an event, a bookmark's time, a commit, the end.
    async fn live(&mut self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        let bookmark = self.next_bookmark.min(self.until.checked_sub(BOOKMARK_BEFORE_END).unwrap_or(self.until));
        let bookmark_due = self.bookmarks && (bookmark > Instant::now() || self.next_bookmark <= bookmark);
        let mut events = std::mem::take(&mut self.waiting);
        let lifecycle = self.lifecycle.clone();
        tokio::select! {
            biased;
            () = lifecycle.not_accepting_new_request.wait() => self.ended = true,
            changed = self.commits.changed() => match changed {
                Ok(()) => self.still_allowed().await?,
                Err(_) => self.ended = true,
            },
            result = self.watcher.next(&mut events) => {
                if let Err(end) = result {
                    return self.end(end);
                }
                self.events(out, &events)?;
            }
            () = tokio::time::sleep_until(self.until) => self.ended = true,
            () = tokio::time::sleep_until(bookmark), if bookmark_due => {
                self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                let revision = self.watcher.progress();
                self.bookmark(out, revision, false)?;
            }
        }
        events.clear();
        self.waiting = events;
        Ok(())
    }

    fn end(&mut self, end: WatchEnd) -> Result<(), ApiError> {
        self.ended = true;
        match end {
            // The client resumes from the last version it has; upstream ends such a watch without a word.
            WatchEnd::SlowConsumer { .. } | WatchEnd::Closed => Ok(()),
            WatchEnd::HistoryLost => Err(ApiError::expired("The resourceVersion for the provided watch is too old.")),
        }
    }

    async fn still_allowed(&self) -> Result<(), ApiError> {
        self.rights.check(&self.user, &self.info).await
    }

    fn events(&mut self, out: &mut Vec<u8>, events: &[Arc<WatchEvent>]) -> Result<(), ApiError> {
        for event in events {
            let everything = self.selectors.is_everything();
            let shown =
                if everything { Some(event.kind()) } else { event.shown(|entry| self.selectors.matches(entry)) };
            let Some(shown) = shown else { continue };
            if let Some(object) = event.object(shown) {
                self.event(out, shown, &object.clone(), Some(event))?;
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        out: &mut Vec<u8>,
        shown: EventType,
        entry: &Arc<Entry>,
        event: Option<&WatchEvent>,
    ) -> Result<(), ApiError> {
        let scope = self.scope()?;
        let before = event.filter(|_| shown == EventType::Deleted).and_then(WatchEvent::previous);
        let written = before.unwrap_or(entry).mod_revision();
        match (self.accepted.transform, self.accepted.format) {
            (Transform::None, Format::Json) if encode::shows_stored(&scope, written) => {
                match event.and_then(|event| event.framed(shown)) {
                    Some(frame) => out.extend_from_slice(&frame),
                    None => entry.frame(shown).iter().for_each(|part| out.extend_from_slice(part)),
                }
            }
            (Transform::None, Format::Json) => {
                let object = encode::json_of(&scope, entry, written)?;
                framed(out, shown, |out| out.extend_from_slice(&object));
            }
            (Transform::None, Format::Protobuf) => {
                out.extend_from_slice(&protobuf::watch_event(shown.name(), &encode::protobuf(&scope, entry)?));
            }
            (Transform::Table(_), Format::Json) => {
                let Some(rows) = self.table.map(Rows::now) else { return Ok(()) };
                let (cells, object) = (encode::row(&scope, entry)?, rows.object(&scope, entry, written)?);
                let metadata = list_metadata(&entry.mod_revision().to_string());
                framed(out, shown, |out| {
                    rows.open(out, &scope, metadata, self.columns_due);
                    rows.write(out, &cells, &object);
                    out.extend_from_slice(CLOSING);
                });
            }
            (
                Transform::PartialObjectMetadata(version) | Transform::PartialObjectMetadataList(version),
                Format::Json,
            ) => {
                let metadata = encode::metadata_json(&scope, entry, written)?;
                framed(out, shown, |out| encode::write_partial_metadata(out, version, &metadata));
            }
            (transform, Format::Cbor) => {
                let object = encode::object(&scope, entry)?;
                let object = match transform {
                    Transform::PartialObjectMetadata(version) | Transform::PartialObjectMetadataList(version) => {
                        encode::partial_metadata(&object, version)
                    }
                    Transform::None | Transform::Table(_) => object,
                };
                let frame = codec::frame(Format::Cbor, shown.name(), &object).map_err(ApiError::internal)?;
                out.extend_from_slice(&frame);
            }
            (Transform::PartialObjectMetadata(version) | Transform::PartialObjectMetadataList(version), _) => {
                let body = encode::metadata_protobuf_body(&scope, entry)?;
                let object = protobuf::wrap(version.group_version(), "PartialObjectMetadata", &body);
                out.extend_from_slice(&protobuf::watch_event(shown.name(), &object));
            }
            // Neither YAML nor tables in protobuf stream.
            _ => return Ok(()),
        }
        self.columns_due = false;
        Ok(())
    }

    fn scope(&self) -> Result<Scope<'_>, ApiError> {
        let version = self.row.resource.version(&self.info.version).ok_or_else(super::super::unknown_resource)?;
        Scope::new(&self.info, &self.row, version)
    }

    fn bookmark(&mut self, out: &mut Vec<u8>, revision: Revision, initial_events_end: bool) -> Result<(), ApiError> {
        let columns_due = std::mem::take(&mut self.columns_due);
        let scope = self.scope()?;
        let mut metadata = Map::from([("resourceVersion", Value::from(revision.to_string()))]);
        if initial_events_end {
            metadata.insert("annotations", Map::from([(Key::from_static(INITIAL_EVENTS_END), "true")]));
        }
        let mut object = Value::from([
            ("kind", Value::from(&*scope.resource.kind)),
            ("apiVersion", scope.group_version().into()),
            ("metadata", metadata.into()),
        ]);
        scope.version.schema.blank(&mut object);
        let object = match (self.accepted.transform, self.table) {
            (Transform::PartialObjectMetadata(version) | Transform::PartialObjectMetadataList(version), _) => {
                encode::partial_metadata(&object, version)
            }
            (_, Some(rows)) => {
                let rows = if initial_events_end { rows.with_metadata() } else { rows };
                rows.table_of(&scope, columns_due, object)?
            }
            _ => object,
        };
        let frame = codec::frame(self.accepted.format, "BOOKMARK", &object).map_err(ApiError::internal)?;
        out.extend_from_slice(&frame);
        Ok(())
    }
}

/// Writes an event in JSON around its object.
fn framed(out: &mut Vec<u8>, shown: EventType, object: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(shown.opening());
    object(out);
    out.extend_from_slice(b"}\n");
}

/// An ERROR event with its Status.
fn frame_of_error(format: Format, error: &ApiError) -> Vec<u8> {
    codec::frame(format, "ERROR", &error.to_value()).unwrap_or_default()
}

/// A watch that is over before it began.
pub(super) fn ended(accepted: Accepted, error: &ApiError) -> Result<Response, ApiError> {
    let content_type = accepted.format.stream_media_type().unwrap_or("application/json");
    Ok(respond::response(200, content_type, Body::Full(frame_of_error(accepted.format, error).into())))
}

/// The same as the pieces of a stream.
pub(super) fn only(accepted: Accepted, error: &ApiError) -> BodyStream {
    let frame = Bytes::from(frame_of_error(accepted.format, error));
    Box::pin(stream::once(std::future::ready(Ok(frame))))
}
