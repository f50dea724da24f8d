//! Why the cache did not answer.

use std::time::Duration;

use crate::storage::{Revision, StorageError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheError {
    /// The first list is not in yet. Lists with a limit and gets go to the storage, others are 429 with
    /// `Retry-After: min(30, max(1, exp(0.06 · seconds waiting)))`.
    NotReady { waiting: Duration },
    /// A watch from a revision that is no longer kept: 410 Expired with this text.
    TooOld { asked: Revision, floor: Revision },
    /// The asked revision did not come within the time to wait: 504 with cause `ResourceVersionTooLarge`.
    TooLarge { asked: Revision, current: Revision },
    /// The cache did not reach the storage's newest revision in time; reading from the storage helps.
    Behind { asked: Revision, current: Revision },
    /// The resource was dropped (its definition is gone), or the cache was shut down.
    Closed,
    /// The storage could not say its newest revision.
    Storage(StorageError),
}

impl std::fmt::Display for CacheError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotReady { .. } => write!(f, "storage is (re)initializing"),
            Self::TooOld { asked, floor } => write!(f, "too old resource version: {asked} ({floor})"),
            Self::TooLarge { asked, current } => write!(f, "Too large resource version: {asked}, current: {current}"),
            Self::Behind { asked, current } => write!(f, "the cache is at revision {current}, the storage at {asked}"),
            Self::Closed => write!(f, "the resource is no longer served"),
            Self::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CacheError {}

/// Why a watch ended. Everything before it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// The reader left its queue full. A watch after `resume_after` goes on without a gap, as long as that is kept.
    SlowConsumer { resume_after: Revision },
    /// The storage's history was replaced (a restored backup); the reader has to list again.
    HistoryLost,
    /// The resource was dropped, or the cache was shut down.
    Closed,
}
