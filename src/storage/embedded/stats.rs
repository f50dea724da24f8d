//! Counters of the back end, for the metrics page. Written by the writer thread, read by anyone.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Upper bounds of [`Stats::commit_seconds`], in seconds; the last bucket has none.
pub const COMMIT_BOUNDS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
/// Upper bounds of [`Stats::batch_rows`], in rows.
pub const BATCH_BOUNDS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// A histogram with fixed bounds.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: &'static [f64; N],
    buckets: [AtomicU64; N],
    count: AtomicU64,
    /// In millionths, so that seconds keep their microseconds.
    sum_micro: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    const fn new(bounds: &'static [f64; N]) -> Self {
        Self {
            bounds,
            buckets: [const { AtomicU64::new(0) }; N],
            count: AtomicU64::new(0),
            sum_micro: AtomicU64::new(0),
        }
    }

    fn observe(&self, value: f64) {
        if let Some((_, bucket)) = self.bounds.iter().zip(&self.buckets).find(|(bound, _)| value <= **bound) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_micro.fetch_add((value * 1e6) as u64, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub fn sum(&self) -> f64 {
        self.sum_micro.load(Relaxed) as f64 / 1e6
    }

    /// Bounds with the number of observations at or below each (cumulative, as Prometheus wants them).
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let buckets = self.bounds.iter().zip(&self.buckets);
        buckets.scan(0, |sum, (bound, bucket)| {
            *sum += bucket.load(Relaxed);
            Some((*bound, *sum))
        })
    }
}

/// What the back end has done and how large it is.
#[derive(Debug)]
pub struct Stats {
    /// Seconds from `BEGIN` until the commit was on the disk.
    pub commit_seconds: Histogram<13>,
    /// Rows in each commit.
    pub batch_rows: Histogram<8>,
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

impl Default for Stats {
    fn default() -> Self {
        Self {
            commit_seconds: Histogram::new(&COMMIT_BOUNDS),
            batch_rows: Histogram::new(&BATCH_BOUNDS),
            failed_commits: AtomicU64::default(),
            checkpoints: AtomicU64::default(),
            checkpoint_micros: AtomicU64::default(),
            compacted_rows: AtomicU64::default(),
            expired_keys: AtomicU64::default(),
            slow_watches: AtomicU64::default(),
            watches: AtomicU64::default(),
            keys: AtomicU64::default(),
            page_count: AtomicU64::default(),
            freelist_count: AtomicU64::default(),
            last_backup: AtomicU64::default(),
            turns: AtomicU64::default(),
            reopened: AtomicU64::default(),
        }
    }
}

impl Stats {
    pub(super) fn committed(&self, rows: usize, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.batch_rows.observe(rows as f64);
    }

    pub(super) fn checkpointed(&self, took: Duration) {
        self.checkpoints.fetch_add(1, Relaxed);
        self.checkpoint_micros.fetch_add(took.as_micros() as u64, Relaxed);
    }
}

pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

pub(super) fn set(gauge: &AtomicU64, n: u64) {
    gauge.store(n, Relaxed);
}
