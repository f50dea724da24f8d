//! Plain counters; whoever publishes them gives them names.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counted over the life of the cache, except for `watchers`.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Changes received from the storage and applied.
    pub events: Counter,
    /// Watchers open now.
    pub watchers: Counter,
    /// Times a watcher was looked at for an event; `events` times the watchers concerned, if dispatch does its duty.
    pub touches: Counter,
    /// Watchers ended because they did not keep up.
    pub slow_watchers: Counter,
    /// Reads that had to wait for the cache to reach a revision.
    pub waits: Counter,
    /// Of those, the ones that gave up.
    pub wait_timeouts: Counter,
    /// Times the whole store was listed, the first included.
    pub lists: Counter,
}

/// A number many may change.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }
}

/// One resource at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceStats {
    pub entries: usize,
    pub watchers: usize,
    /// Events a watch could begin from.
    pub ring_events: usize,
    /// Bytes kept only for them.
    pub ring_bytes: usize,
    /// A watch may begin at this revision or later.
    pub ring_floor: u64,
}
