//! Keys and bytes with revisions: the contract every back end keeps.
//!
//! A committed write has one revision, larger than all before it. A watch from revision `r` gives every
//! later change in order, once, or says that `r` is compacted. This module knows no kinds. Everything above
//! talks to [`cache`], which wraps a [`Storage`]; every back end passes the same suite (`suite.rs`).

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;

pub mod cache;
pub mod embedded;
#[cfg(test)]
pub(crate) mod suite;

/// A point in the history of the whole store; 0 is "before everything".
pub type Revision = u64;

pub type StorageFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StorageError>> + Send + 'a>>;

/// One key's state at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Arc<str>,
    pub value: Bytes,
    /// Revision of the write that made this value.
    pub mod_revision: Revision,
    /// Revision of the write that created the key (after its last deletion).
    pub create_revision: Revision,
    /// 1 for a fresh key, then one more with each write.
    pub version: u64,
}

/// What must hold for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Absent,
    /// The key exists and its last write was at this revision.
    ModRevision(Revision),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `ttl`: the store deletes the key by itself when this much time has passed since the write (whole
    /// seconds; a later Put without a ttl cancels it).
    Put {
        value: Bytes,
        ttl: Option<Duration>,
    },
    Delete,
}

#[derive(Clone, Debug)]
pub struct Write {
    pub key: Arc<str>,
    pub expect: Expect,
    pub op: Op,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Durable at this revision.
    Committed(Revision),
    /// The expectation did not hold; the key's newest revision, or `None` where it does not exist.
    Conflict(Option<Revision>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    Put,
    /// `value` of the event is empty.
    Delete,
}

/// One change. `kv.mod_revision` is the revision of the change, deletions included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    pub kv: KeyValue,
}

/// A page of a list, in key order.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub items: Vec<KeyValue>,
    /// Whether keys remain after the last item.
    pub more: bool,
    /// The revision the page was read at.
    pub revision: Revision,
}

/// Changes in order, in whole-revision batches. `Err(Compacted)` is the last item where the start is no longer
/// kept; `Err(Unavailable)` where the back end lost its place and the reader has to list again.
pub type EventStream = tokio::sync::mpsc::Receiver<Result<Arc<[Event]>, StorageError>>;

/// A back end. Object-safe, so that the cache can wrap it and the configuration can choose it.
pub trait Storage: Send + Sync + 'static {
    /// The value of `key` at `at` (the newest revision where `None`).
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> StorageFuture<'a, Option<KeyValue>>;

    /// Keys that start with `prefix`, from `start` on (inclusive; `""` is the beginning), at most `limit`
    /// (0 = no limit), as they were at `at` (the newest revision where `None`).
    fn list<'a>(
        &'a self,
        prefix: &'a str,
        start: &'a str,
        limit: usize,
        at: Option<Revision>,
    ) -> StorageFuture<'a, Page>;

    /// Writes one key if `expect` holds. The answer comes after the write is durable. Cancelling the future
    /// does not cancel the write.
    fn write<'a>(&'a self, write: Write) -> StorageFuture<'a, WriteOutcome>;

    /// All changes of keys under `prefix` with a revision above `after`. At most `buffer` batches wait for the
    /// reader; a reader that falls further behind is ended with `Unavailable`.
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision, buffer: usize) -> StorageFuture<'a, EventStream>;

    /// The newest durable revision. For a local back end this costs nothing.
    fn current_revision<'a>(&'a self) -> StorageFuture<'a, Revision>;

    /// Forgets what is superseded at or below `revision`.
    fn compact<'a>(&'a self, revision: Revision) -> StorageFuture<'a, ()>;

    /// What was superseded below it is forgotten. Costs nothing.
    fn compacted_revision(&self) -> Revision;

    /// Whether writes would work now: `Ok` or why not. Behind the health checks `etcd` and `etcd-readiness`.
    fn health<'a>(&'a self) -> StorageFuture<'a, ()>;
}

/// Why a call failed. The registry turns these into a Status in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageError {
    /// The asked revision is older than what is kept; holds the oldest revision that still is.
    Compacted(Revision),
    /// The asked revision is newer than the newest.
    Future { asked: Revision, current: Revision },
    /// No room on the disk; reads go on and writes work again as soon as there is room.
    Full(String),
    /// A stored row is damaged; names the key and revision.
    Corrupt { key: String, revision: Revision, reason: String },
    /// The back end cannot serve this now; the text says why. Trying again later helps.
    Unavailable(String),
}

impl std::fmt::Display for StorageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compacted(oldest) => {
                write!(f, "the requested revision has been compacted; the oldest kept is {oldest}")
            }
            Self::Future { asked, current } => {
                write!(f, "revision {asked} is newer than the current revision {current}")
            }
            Self::Full(why) => write!(f, "no room left for writes: {why}"),
            Self::Corrupt { key, revision, reason } => {
                write!(f, "stored object {key} at revision {revision} is damaged: {reason}")
            }
            Self::Unavailable(why) => write!(f, "storage unavailable: {why}"),
        }
    }
}

impl std::error::Error for StorageError {}
