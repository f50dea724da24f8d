//! Counters of the back end, for the metrics page. Written by the writer thread, read by anyone.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// What the back end has done and how large it is. Plain numbers; a distribution is made by who is told of each
/// commit ([`super::EmbeddedOptions::on_commit`]).
#[derive(Debug, Default)]
pub struct Stats {
    /// Whether writes worked when the writer last looked: 1 or 0.
    pub healthy: AtomicU64,
    /// Durable commits and the rows in them.
    pub commits: AtomicU64,
    pub committed_rows: AtomicU64,
    /// Commits that failed.
    pub failed_commits: AtomicU64,
    /// Checkpoints and the microseconds they took.
    pub checkpoints: AtomicU64,
    pub checkpoint_micros: AtomicU64,
    /// Rows removed by compaction.
    pub compacted_rows: AtomicU64,
    /// Keys deleted because their time had come.
    pub expired_keys: AtomicU64,
    /// Watches ended because their reader was too slow.
    pub slow_watches: AtomicU64,
    /// Open watches.
    pub watches: AtomicU64,
    /// Existing keys.
    pub keys: AtomicU64,
    /// Pages of the file and free ones among them, of 4096 bytes, as of the last checkpoint or compaction.
    pub page_count: AtomicU64,
    pub freelist_count: AtomicU64,
    /// Seconds since 1970 of the last good backup; 0 = none by this process.
    pub last_backup: AtomicU64,
    /// Turns of the writer thread: one per commit at most under load, next to none when idle.
    pub turns: AtomicU64,
    /// Times that the store was closed after an I/O error and opened again.
    pub reopened: AtomicU64,
}

impl Stats {
    pub(super) fn checkpointed(&self, took: Duration) {
        add(&self.checkpoints, 1);
        add(&self.checkpoint_micros, took.as_micros() as u64);
    }
}

pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

pub(super) fn set(gauge: &AtomicU64, n: u64) {
    gauge.store(n, Relaxed);
}
