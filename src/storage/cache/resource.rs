//! One resource of the cache: its entries, its recent changes, its watchers.
//!
//! Readers load the published map and never lock. The lock is for what has to be one moment: applying changes, and
//! starting a watch. It is held for a bounded piece of work, never across I/O.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{
    Shared,
    attributes::Attributes,
    entry::{Entry, EventType, Home},
    error::{CacheError, WatchEnd},
    event::WatchEvent,
    metrics::ResourceStats,
    ring::{Backlog, Ring},
    snapshot::{Entries, Snapshot},
    watcher::{Line, WatchScope, WatchStart, Watcher},
    watchers::Watchers,
};
use crate::storage::{Event, EventKind, Revision};

/// Events times watchers worked off under one hold of the lock.
const WORK_PER_HOLD: usize = 1 << 16;
/// Changes that are undone at most to show an older state; beyond, the storage has to answer.
const MOST_UNDONE: usize = 1 << 14;
/// Older states kept, so that the pages of a list do not compute theirs again.
const OLDER_STATES: usize = 16;

/// The cache of one resource; what the registry's store reads from.
pub struct ResourceCache {
    pub(super) home: Arc<Home>,
    shared: Arc<Shared>,
    published: ArcSwap<Published>,
    live: Mutex<Live>,
    /// By the revision of the newest change in them.
    older: Mutex<VecDeque<(Revision, Entries)>>,
}

struct Published {
    entries: Entries,
    /// `entries` is the state at this revision, and at any later one up to what the cache has applied.
    revision: Revision,
    /// From here on up to `revision` and what is applied, nothing changed. May be later than the newest change.
    changed: Revision,
    /// The resource was dropped. Published, so that readers need no lock to see it.
    closed: bool,
}

impl Published {
    /// A state whose past is unknown.
    fn fresh(entries: Entries, revision: Revision) -> Self {
        Self { entries, revision, changed: revision, closed: false }
    }
}

struct Live {
    ring: Ring,
    watchers: Watchers,
    next_id: u64,
}

/// One change on its way into a resource; the entry is made before the lock is taken.
pub(super) struct Change {
    revision: Revision,
    key: Arc<str>,
    entry: Option<Arc<Entry>>,
}

impl Change {
    pub(super) fn new(home: &Arc<Home>, event: &Event) -> Self {
        let born = if event.kv.version <= 1 { EventType::Added } else { EventType::Modified };
        let entry = match event.kind {
            EventKind::Put => Some(Entry::new(home, &event.kv, born)),
            EventKind::Delete => None,
        };
        Self { revision: event.kv.mod_revision, key: Arc::clone(&event.kv.key), entry }
    }

    /// Does it to a map; `None` where it is already done (a change that came twice).
    pub(super) fn apply_to(self, entries: &mut Entries, second: u32) -> Option<Arc<WatchEvent>> {
        let newer = |before: &Arc<Entry>| before.mod_revision() >= self.revision;
        if entries.get(&self.key).is_some_and(newer) {
            return None;
        }
        match self.entry {
            Some(entry) => {
                let previous = entries.insert(self.key, Arc::clone(&entry));
                Some(WatchEvent::put(entry, previous, second))
            }
            None => Some(WatchEvent::deletion(entries.remove(&self.key)?, self.revision, second)),
        }
    }
}

impl ResourceCache {
    pub(super) fn new(home: Arc<Home>, shared: Arc<Shared>, entries: Entries, revision: Revision) -> Arc<Self> {
        let live = Live { ring: Ring::new(revision), watchers: Watchers::default(), next_id: 0 };
        Arc::new(Self {
            home,
            shared,
            published: ArcSwap::from_pointee(Published::fresh(entries, revision)),
            live: Mutex::new(live),
            older: Mutex::default(),
        })
    }

    /// E.g. `/registry/pods/`.
    pub fn prefix(&self) -> &str {
        &self.home.prefix
    }

    pub(super) fn replace_attributes(&self, attributes: Arc<dyn Attributes>) {
        self.home.replace_attributes(attributes);
    }

    /// The state as new as the storage was when this was called. Waits for the cache to reach that revision (3 s at
    /// most, then [`CacheError::Behind`]); does not read from the storage.
    pub async fn consistent(&self) -> Result<Snapshot, CacheError> {
        let asked = self.shared.storage.current_revision().await.map_err(CacheError::Storage)?;
        self.shared.check_ready()?;
        match self.shared.reach(asked).await {
            Ok(()) => self.any(),
            Err(current) => Err(CacheError::Behind { asked, current }),
        }
    }

    /// A state at `revision` or later. Waits for the cache to reach it (3 s at most, then [`CacheError::TooLarge`]).
    pub async fn not_older_than(&self, revision: Revision) -> Result<Snapshot, CacheError> {
        self.shared.check_ready()?;
        match self.shared.reach(revision).await {
            Ok(()) => self.any(),
            Err(current) => Err(CacheError::TooLarge { asked: revision, current }),
        }
    }

    /// What the cache has now.
    pub fn any(&self) -> Result<Snapshot, CacheError> {
        self.shared.check_ready()?;
        self.snapshot()
    }

    /// The state at exactly `revision`, out of the recent changes; `None` where they do not reach back to it (or not
    /// yet forward to it): the storage has it, or knows that it is compacted.
    pub fn exact(&self, revision: Revision) -> Option<Snapshot> {
        let now = self.any().ok()?;
        if revision > now.revision {
            return None;
        }
        let published = self.published.load();
        if revision >= published.changed && !published.closed {
            return Some(Snapshot { entries: published.entries.clone(), revision, home: Arc::clone(&self.home) });
        }
        let (entries, newest, backlog) = {
            let live = self.live.lock();
            let backlog = live.ring.after(revision).ok()?;
            (self.published.load().entries.clone(), live.ring.last_change(revision), backlog)
        };
        let entries = self.older_state(newest, entries, &backlog)?;
        Some(Snapshot { entries, revision, home: Arc::clone(&self.home) })
    }

    fn older_state(&self, newest: Revision, now: Entries, undo: &Backlog) -> Option<Entries> {
        if let Some((_, entries)) = self.older.lock().iter().find(|(revision, _)| *revision == newest) {
            return Some(entries.clone());
        }
        if undo.remaining() > MOST_UNDONE {
            return None;
        }
        let mut before = HashMap::new();
        for event in undo.newest_first() {
            before.insert(event.subject()?.key(), event.previous());
        }
        let mut entries = now;
        for (key, previous) in before {
            match previous {
                Some(entry) => entries.insert(Arc::clone(key), Arc::clone(entry)),
                None => entries.remove(key),
            };
        }
        let mut older = self.older.lock();
        if older.len() >= OLDER_STATES {
            older.pop_front();
        }
        older.push_back((newest, entries.clone()));
        Some(entries)
    }

    /// An entry of a row read from the storage's history; not part of any snapshot.
    pub fn entry_of(&self, row: &crate::storage::KeyValue) -> Arc<Entry> {
        Entry::new(&self.home, row, EventType::Added)
    }

    /// Starts a watch. The reader's queue holds at most `buffer` events (and the configured bytes); a reader that
    /// leaves it full is ended.
    pub fn watch(self: &Arc<Self>, start: WatchStart, scope: WatchScope, buffer: usize) -> Result<Watcher, CacheError> {
        self.shared.check_ready()?;
        let mut live = self.live.lock();
        let now = self.snapshot()?.revision;
        let (after, backlog) = match start {
            WatchStart::Now => (now, None),
            WatchStart::After(asked) => {
                let too_old = |floor| CacheError::TooOld { asked, floor };
                let backlog = live.ring.after(asked).map_err(too_old)?;
                (asked, (backlog.remaining() > 0).then_some(backlog))
            }
        };
        Ok(self.join(&mut live, scope, after, backlog, buffer))
    }

    /// The state now and a watch that begins exactly after it.
    pub fn list_and_watch(
        self: &Arc<Self>,
        scope: WatchScope,
        buffer: usize,
    ) -> Result<(Snapshot, Watcher), CacheError> {
        self.shared.check_ready()?;
        let mut live = self.live.lock();
        let snapshot = self.snapshot()?;
        let watcher = self.join(&mut live, scope, snapshot.revision, None, buffer);
        Ok((snapshot, watcher))
    }

    fn join(
        self: &Arc<Self>,
        live: &mut Live,
        scope: WatchScope,
        after: Revision,
        backlog: Option<Backlog>,
        buffer: usize,
    ) -> Watcher {
        let line = Line::new(live.next_id, scope, after, buffer, self.shared.options.watch_bytes);
        live.next_id += 1;
        live.watchers.insert(Arc::clone(&line));
        self.shared.metrics.watchers.add(1);
        Watcher::new(line, Arc::clone(self), backlog)
    }

    pub(super) fn leave(&self, line: &Line) {
        let removed = self.live.lock().watchers.remove(line);
        // Dropped here and not under the lock: the waker in it may be the last hold on a task.
        if removed.is_some() {
            self.shared.metrics.watchers.sub(1);
        }
    }

    /// Lets all other encodings of the current entries go.
    pub fn forget_encodings(&self) {
        for entry in self.published.load().entries.values() {
            entry.forget_encodings();
        }
    }

    pub fn stats(&self) -> ResourceStats {
        let live = self.live.lock();
        ResourceStats {
            entries: self.published.load().entries.len(),
            watchers: live.watchers.len(),
            ring_events: live.ring.len(),
            ring_bytes: live.ring.held_bytes(),
            ring_floor: live.ring.floor(),
        }
    }

    /// The revision of the newest change of this resource; 0 where there was none since the start.
    pub fn last_change(&self) -> Revision {
        self.live.lock().ring.last_change(Revision::MAX)
    }

    /// The revision of the whole store up to which this cache is complete.
    pub fn applied(&self) -> Revision {
        self.shared.applied()
    }

    /// The revision is read first: a map loaded after it contains at least everything up to it.
    fn snapshot(&self) -> Result<Snapshot, CacheError> {
        let applied = self.shared.applied();
        let published = self.published.load();
        if published.closed {
            return Err(CacheError::Closed);
        }
        let revision = applied.max(published.revision);
        Ok(Snapshot { entries: published.entries.clone(), revision, home: Arc::clone(&self.home) })
    }

    /// Applies changes in order; `end` is the revision the store has with the last of them.
    pub(super) fn apply(&self, changes: Vec<Change>, end: Revision, second: u32, wakers: &mut Vec<Waker>) {
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let mut live = self.live.lock();
            let live = &mut *live;
            let piece = (WORK_PER_HOLD / (1 + live.watchers.len())).max(1);
            let before = self.published.load_full();
            let mut entries = before.entries.clone();
            let (mut done, mut last) = (0, 0);
            // A revision is never split: a reader in between would see a state that never was.
            while let Some(change) = changes.next_if(|next| done < piece || next.revision == last) {
                done += 1;
                last = change.revision;
                if let Some(event) = change.apply_to(&mut entries, second) {
                    let dispatched = live.watchers.dispatch(&event, wakers);
                    self.count(dispatched);
                    live.ring.push(event, &self.shared.options.ring);
                }
            }
            let revision = if changes.peek().is_some() { last } else { end };
            let changed = before.changed.max(last);
            self.published.store(Arc::new(Published { entries, revision, changed, closed: false }));
        }
    }

    fn count(&self, dispatched: super::watchers::Dispatched) {
        let metrics = &self.shared.metrics;
        metrics.touches.add(dispatched.touches as u64);
        if dispatched.slow > 0 {
            metrics.slow_watchers.add(dispatched.slow as u64);
            metrics.watchers.sub(dispatched.slow as u64);
        }
    }

    /// Lets go what is too old to be kept.
    pub(super) fn trim(&self, second: u32) {
        let floor = {
            let mut live = self.live.lock();
            live.ring.trim(&self.shared.options.ring, second);
            live.ring.floor()
        };
        self.older.lock().retain(|(revision, _)| *revision >= floor);
    }

    /// The feed was lost after `before`; what became of it until `end` is applied next.
    pub(super) fn add_hole(&self, before: Revision, end: Revision) {
        let mut live = self.live.lock();
        live.ring.add_hole(before, end);
        let now = self.published.load();
        let entries = now.entries.clone();
        self.published.store(Arc::new(Published { entries, changed: end, ..**now }));
    }

    /// Begins anew with another history: watchers are ended, nothing of the past is kept.
    pub(super) fn reset(&self, entries: Entries, revision: Revision, wakers: &mut Vec<Waker>) {
        let mut live = self.live.lock();
        self.end_watchers(&mut live, &WatchEnd::HistoryLost, wakers);
        live.ring = Ring::new(revision);
        self.older.lock().clear();
        self.published.store(Arc::new(Published::fresh(entries, revision)));
    }

    /// Ends all watchers and answers nothing any more; gives back the entries.
    pub(super) fn close(&self, wakers: &mut Vec<Waker>) -> Entries {
        let mut live = self.live.lock();
        let revision = self.published.load().revision;
        self.end_watchers(&mut live, &WatchEnd::Closed, wakers);
        live.ring = Ring::new(revision);
        self.older.lock().clear();
        let closed = Published { closed: true, ..Published::fresh(Entries::new(), revision) };
        self.published.swap(Arc::new(closed)).entries.clone()
    }

    /// The cache is shut down: nothing new will come.
    pub(super) fn end_watches(&self, wakers: &mut Vec<Waker>) {
        self.end_watchers(&mut self.live.lock(), &WatchEnd::Closed, wakers);
    }

    fn end_watchers(&self, live: &mut Live, end: &WatchEnd, wakers: &mut Vec<Waker>) {
        self.shared.metrics.watchers.sub(live.watchers.len() as u64);
        live.watchers.end_all(end, wakers);
    }

    pub(super) fn entries(&self) -> Entries {
        self.published.load().entries.clone()
    }
}
