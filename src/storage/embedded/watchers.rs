//! Who is told of commits.
//!
//! A watch begins with a replay from the log and goes live on the writer thread in the same step that finds
//! nothing more to replay, so no commit can fall between. Nobody is waited for: a live reader whose buffer is
//! full is ended. One slot of each channel beyond the reader's buffer is kept for the word that ends it.

use std::sync::Arc;

use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};

use super::{
    Ask,
    row::RowRef,
    stats::{self, Stats},
    store::{Store, Trouble},
};
use crate::storage::{Event, EventKind, KeyValue, Revision, StorageError};

/// Rows and bytes that one replay step reads.
const REPLAY_ROWS: usize = 256;
const REPLAY_BYTES: usize = 1 << 20;

pub(super) type Item = Result<Arc<[Event]>, StorageError>;

/// One step of a watch's beginning.
pub(super) struct WatchAsk {
    pub prefix: Arc<str>,
    pub after: Revision,
    pub events: mpsc::Sender<Item>,
    pub reply: oneshot::Sender<Result<Replayed, StorageError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replayed {
    /// Nothing more to replay; commits are sent from here on.
    Live,
    /// Replayed up to this revision, more is there.
    More(Revision),
}

struct Watcher {
    prefix: Arc<str>,
    events: mpsc::Sender<Item>,
}

/// The live watches.
#[derive(Default)]
pub(super) struct Watchers {
    live: Vec<Watcher>,
}

impl Watchers {
    pub fn add(&mut self, prefix: Arc<str>, events: mpsc::Sender<Item>, stats: &Stats) {
        // Those who left while nothing was written are noticed here, so that the list cannot grow by them.
        self.live.retain(|watcher| !watcher.events.is_closed());
        self.live.push(Watcher { prefix, events });
        self.count(stats);
    }

    /// Tells everybody concerned. A batch that concerns a watcher wholly is shared, not copied.
    pub fn publish(&mut self, batch: &Arc<[Event]>, stats: &Stats) {
        let before = self.live.len();
        self.live.retain(|watcher| {
            let concerned = batch.iter().filter(|event| event.kv.key.starts_with(&*watcher.prefix)).count();
            if concerned == 0 {
                return true;
            }
            if watcher.events.capacity() < 2 {
                stats::add(&stats.slow_watches, 1);
                let why = "the reader of this watch fell behind; list again".to_owned();
                let _ = watcher.events.try_send(Err(StorageError::Unavailable(why)));
                return false;
            }
            let part = if concerned == batch.len() {
                Arc::clone(batch)
            } else {
                batch.iter().filter(|event| event.kv.key.starts_with(&*watcher.prefix)).cloned().collect()
            };
            !matches!(watcher.events.try_send(Ok(part)), Err(TrySendError::Closed(_)))
        });
        if self.live.len() != before {
            self.count(stats);
        }
    }

    /// Ends all watches.
    pub fn end(&mut self, why: &StorageError, stats: &Stats) {
        for watcher in self.live.drain(..) {
            let _ = watcher.events.try_send(Err(why.clone()));
        }
        self.count(stats);
    }

    fn count(&self, stats: &Stats) {
        stats::set(&stats.watches, self.live.len() as u64);
    }
}

/// The event that a row means.
pub(super) fn event(row: &RowRef<'_>, key: Arc<str>) -> Event {
    let kind = if row.deleted { EventKind::Delete } else { EventKind::Put };
    Event { kind, kv: row.key_value(key) }
}

/// Sends up to one batch of what lies above `after`; returns up to which revision everything was seen.
/// Reads nothing while the reader's buffer is full.
pub(super) fn replay(ask: &WatchAsk, store: &Store, current: Revision) -> Result<Revision, Trouble> {
    if ask.events.capacity() < 2 {
        return Ok(ask.after);
    }
    let mut batch = Vec::new();
    let (mut seen, mut rows, mut bytes) = (ask.after, 0, 0);
    store.scan(ask.after, current, |row| {
        if row.key.starts_with(&*ask.prefix) {
            bytes += row.value.len();
            batch.push(event(&row, row.key.into()));
        }
        seen = row.rev;
        rows += 1;
        rows < REPLAY_ROWS && bytes < REPLAY_BYTES
    })?;
    if !batch.is_empty() {
        let _ = ask.events.try_send(Ok(batch.into()));
    }
    Ok(seen)
}

/// Drives a replay that takes more than one step, at the reader's pace, until the watch is live.
pub(super) async fn pump(
    asks: mpsc::WeakSender<Ask>,
    prefix: Arc<str>,
    mut after: Revision,
    events: mpsc::Sender<Item>,
) {
    loop {
        // Two: the batch, and the slot that stays free for the word that ends the watch.
        if events.reserve_many(2).await.is_err() {
            return;
        }
        let step = match asks.upgrade() {
            Some(asks) => ask(&asks, &prefix, after, &events).await,
            None => Err(StorageError::Unavailable("the store was closed".to_owned())),
        };
        match step {
            Ok(Replayed::Live) => return,
            Ok(Replayed::More(seen)) => after = seen,
            Err(why) => {
                let _ = events.send(Err(why)).await;
                return;
            }
        }
    }
}

/// Asks the writer for one step.
pub(super) async fn ask(
    asks: &mpsc::Sender<Ask>,
    prefix: &Arc<str>,
    after: Revision,
    events: &mpsc::Sender<Item>,
) -> Result<Replayed, StorageError> {
    let (reply, answer) = oneshot::channel();
    let ask = WatchAsk { prefix: Arc::clone(prefix), after, events: events.clone(), reply };
    asks.send(Ask::Watch(ask)).await.map_err(|_| super::closed())?;
    answer.await.map_err(|_| super::closed())?
}

/// An event of a committed row, sharing the row's bytes.
pub(super) fn committed(row: &super::row::Row) -> Event {
    let kind = if row.deleted { EventKind::Delete } else { EventKind::Put };
    let kv = KeyValue {
        key: Arc::clone(&row.key),
        value: row.value.clone(),
        mod_revision: row.rev,
        create_revision: row.create_rev,
        version: row.version,
    };
    Event { kind, kv }
}
