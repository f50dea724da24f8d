//! The changes of one resource without an end: where a watch ends, it is begun anew.

use std::{collections::BTreeSet, sync::Arc};

use crate::storage::cache::{Entry, ResourceCache, WatchEvent, WatchScope, Watcher};

/// Changes that may wait.
const BUFFER: usize = 4096;

/// What became of an object.
pub enum Change {
    /// It is there, in this state. After a watch began anew the state may be known already.
    Put(Arc<Entry>),
    /// It is gone; its key.
    Gone(Arc<str>),
}

/// Follows one resource; the first answer is everything there is.
pub struct Feed {
    cache: Arc<ResourceCache>,
    watcher: Option<Watcher>,
    keys: BTreeSet<Arc<str>>,
    events: Vec<Arc<WatchEvent>>,
}

impl Feed {
    pub fn new(cache: Arc<ResourceCache>) -> Self {
        Self { cache, watcher: None, keys: BTreeSet::new(), events: Vec::new() }
    }

    /// Waits for changes, at least one after the first answer. `None`: nothing will come any more. Cancelling loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Vec<Change>> {
        loop {
            let Some(watcher) = &mut self.watcher else { return self.begin() };
            match watcher.next(&mut self.events).await {
                Ok(()) => return Some(self.take()),
                // Whatever the reason: what there is now is told, and followed from there.
                Err(_) => self.watcher = None,
            }
        }
    }

    /// What there is now, at once, with what is gone since the last answer; `None` where the cache is closed or not
    /// filled yet.
    pub fn begin(&mut self) -> Option<Vec<Change>> {
        let (snapshot, watcher) = self.cache.list_and_watch(WatchScope::default(), BUFFER).ok()?;
        self.watcher = Some(watcher);
        self.events.clear();
        let keys: BTreeSet<Arc<str>> = snapshot.iter().map(|entry| entry.key().clone()).collect();
        let gone = self.keys.difference(&keys).cloned().map(Change::Gone);
        let changes = gone.chain(snapshot.iter().cloned().map(Change::Put)).collect();
        self.keys = keys;
        Some(changes)
    }

    fn take(&mut self) -> Vec<Change> {
        let mut changes = Vec::with_capacity(self.events.len());
        for event in self.events.drain(..) {
            match (event.current(), event.previous()) {
                (Some(entry), _) => {
                    self.keys.insert(entry.key().clone());
                    changes.push(Change::Put(entry.clone()));
                }
                (None, Some(entry)) => {
                    self.keys.remove(entry.key());
                    changes.push(Change::Gone(entry.key().clone()));
                }
                (None, None) => {}
            }
        }
        changes
    }
}
