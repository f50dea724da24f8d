//! A storage in memory that keeps the trait's contract, for the cache's tests. It never compacts by itself, time does
//! not pass in it (a ttl is ignored), and it can be made to fail in the ways a real one does.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::storage::{
    Event, EventKind, EventStream, Expect, KeyValue, Op, Page, Revision, Storage, StorageError, StorageFuture, Write,
    WriteOutcome,
};

#[derive(Default)]
pub(super) struct Memory(Mutex<State>);

#[derive(Default)]
struct State {
    current: BTreeMap<Arc<str>, KeyValue>,
    log: Vec<Event>,
    revision: Revision,
    compacted: Revision,
    feeds: Vec<Feed>,
    /// Changes are not given to feeds while this is set.
    held: bool,
    /// Every call fails while this is set.
    down: bool,
    watches_refused: bool,
}

struct Feed {
    prefix: String,
    sent: Revision,
    sender: mpsc::Sender<Result<Arc<[Event]>, StorageError>>,
}

fn down() -> StorageError {
    StorageError::Unavailable("down".into())
}

impl Memory {
    pub(super) fn put(&self, key: &str, value: &str) -> Revision {
        self.0.lock().change(key, Some(Bytes::copy_from_slice(value.as_bytes())))
    }

    pub(super) fn delete(&self, key: &str) -> Revision {
        self.0.lock().change(key, None)
    }

    /// Nothing reaches the feeds until they are released.
    pub(super) fn hold(&self) {
        self.0.lock().held = true;
    }

    pub(super) fn release(&self) {
        let mut state = self.0.lock();
        state.held = false;
        state.send();
    }

    pub(super) fn set_down(&self, down: bool) {
        self.0.lock().down = down;
    }

    pub(super) fn refuse_watches(&self, refuse: bool) {
        self.0.lock().watches_refused = refuse;
    }

    /// All feeds lose their place now; they see nothing of what comes after.
    pub(super) fn break_feeds(&self) {
        for feed in std::mem::take(&mut self.0.lock().feeds) {
            let _ = feed.sender.try_send(Err(StorageError::Unavailable("lost the place".into())));
        }
    }

    pub(super) fn feeds(&self) -> usize {
        self.0.lock().feeds.len()
    }

    /// The store becomes what it was at `revision`, as after restoring a backup.
    pub(super) fn restore(&self, revision: Revision) {
        let mut state = self.0.lock();
        state.log.retain(|event| event.kv.mod_revision <= revision);
        state.current = state.at(revision);
        state.revision = revision;
    }
}

impl State {
    fn change(&mut self, key: &str, value: Option<Bytes>) -> Revision {
        let before = self.current.get(key);
        if value.is_none() && before.is_none() {
            return self.revision;
        }
        self.revision += 1;
        let kind = if value.is_some() { EventKind::Put } else { EventKind::Delete };
        let kv = KeyValue {
            key: key.into(),
            value: value.unwrap_or_default(),
            mod_revision: self.revision,
            create_revision: before.map_or(self.revision, |before| before.create_revision),
            version: before.map_or(1, |before| before.version + 1),
        };
        match kind {
            EventKind::Put => self.current.insert(key.into(), kv.clone()),
            EventKind::Delete => self.current.remove(key),
        };
        self.log.push(Event { kind, kv });
        self.send();
        self.revision
    }

    fn send(&mut self) {
        if self.held {
            return;
        }
        let log = &self.log;
        self.feeds.retain_mut(|feed| {
            let news = log.iter().filter(|event| event.kv.mod_revision > feed.sent);
            let news: Vec<_> = news.filter(|event| event.kv.key.starts_with(&feed.prefix)).cloned().collect();
            let Some(last) = news.last() else { return true };
            feed.sent = last.kv.mod_revision;
            feed.sender.try_send(Ok(news.into())).is_ok()
        });
    }

    fn at(&self, revision: Revision) -> BTreeMap<Arc<str>, KeyValue> {
        let mut state = BTreeMap::new();
        for event in self.log.iter().take_while(|event| event.kv.mod_revision <= revision) {
            match event.kind {
                EventKind::Put => state.insert(event.kv.key.clone(), event.kv.clone()),
                EventKind::Delete => state.remove(&event.kv.key),
            };
        }
        state
    }

    fn check(&self, at: Option<Revision>) -> Result<Revision, StorageError> {
        if self.down {
            return Err(down());
        }
        match at {
            Some(at) if at < self.compacted => Err(StorageError::Compacted(self.compacted)),
            Some(at) if at > self.revision => Err(StorageError::Future { asked: at, current: self.revision }),
            Some(at) => Ok(at),
            None => Ok(self.revision),
        }
    }
}

impl Storage for Memory {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> StorageFuture<'a, Option<KeyValue>> {
        Box::pin(async move {
            let state = self.0.lock();
            let revision = state.check(at)?;
            Ok(state.at(revision).get(key).cloned())
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
        start: &'a str,
        limit: usize,
        at: Option<Revision>,
    ) -> StorageFuture<'a, Page> {
        Box::pin(async move {
            let state = self.0.lock();
            let revision = state.check(at)?;
            let rows = state.at(revision).into_values();
            let mut items: Vec<_> = rows.filter(|row| row.key.starts_with(prefix) && &*row.key >= start).collect();
            let more = limit > 0 && items.len() > limit;
            if more {
                items.truncate(limit);
            }
            Ok(Page { items, more, revision })
        })
    }

    fn write<'a>(&'a self, write: Write) -> StorageFuture<'a, WriteOutcome> {
        Box::pin(async move {
            let mut state = self.0.lock();
            state.check(None)?;
            let known = state.current.get(&write.key).map(|row| row.mod_revision);
            let expected = match write.expect {
                Expect::Absent => None,
                Expect::ModRevision(revision) => Some(revision),
            };
            if known != expected {
                return Ok(WriteOutcome::Conflict(known));
            }
            let value = match write.op {
                Op::Put { value, .. } => Some(value),
                Op::Delete => None,
            };
            Ok(WriteOutcome::Committed(state.change(&write.key, value)))
        })
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision, buffer: usize) -> StorageFuture<'a, EventStream> {
        Box::pin(async move {
            let mut state = self.0.lock();
            if state.down || state.watches_refused {
                return Err(down());
            }
            let (sender, receiver) = mpsc::channel(buffer.max(1));
            if after < state.compacted {
                let _ = sender.try_send(Err(StorageError::Compacted(state.compacted)));
                return Ok(receiver);
            }
            state.feeds.push(Feed { prefix: prefix.into(), sent: after, sender });
            state.send();
            Ok(receiver)
        })
    }

    fn current_revision<'a>(&'a self) -> StorageFuture<'a, Revision> {
        Box::pin(async move { self.0.lock().check(None) })
    }

    fn compact<'a>(&'a self, revision: Revision) -> StorageFuture<'a, ()> {
        Box::pin(async move {
            self.0.lock().compacted = revision;
            Ok(())
        })
    }

    fn compacted_revision(&self) -> Revision {
        self.0.lock().compacted
    }

    fn health<'a>(&'a self) -> StorageFuture<'a, ()> {
        Box::pin(async move { self.0.lock().check(None).map(drop) })
    }
}
