//! Measurements that are taken when somebody looks: sizes of caches and store.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Shared;
use crate::{storage::embedded::Embedded, telemetry::Metrics};

/// Brings the gauges of caches and store up to date.
pub fn observe(shared: &Shared, metrics: &Metrics) {
    for ((group, resource), cache) in shared.reader.caches() {
        let entries = i64::try_from(cache.stats().entries).unwrap_or(i64::MAX);
        metrics.resource_objects.with([&group, &resource]).set(entries);
    }
    metrics.config_generations_alive.set(i64::try_from(shared.generations_alive()).unwrap_or(i64::MAX));
    observe_store(&shared.embedded, metrics);
}

fn observe_store(store: &Embedded, metrics: &Metrics) {
    let (file, wal) = store.file_sizes();
    let stats = store.stats();
    let now = |number: &AtomicU64| number.load(Ordering::Relaxed);
    metrics.storage_size_bytes.with([&format!("{:x}", store.identity())]).set(gauge(file + wal));
    metrics.storage_wal_bytes.set(gauge(wal));
    metrics.storage_revision.set(gauge(store.revision()));
    metrics.storage_compacted_revision.set(gauge(store.compacted_revision()));
    metrics.storage_healthy.set(gauge(now(&stats.healthy)));
    metrics.storage_keys.set(gauge(now(&stats.keys)));
    let (pages, free) = (now(&stats.page_count), now(&stats.freelist_count));
    metrics.storage_pages.with(["used"]).set(gauge(pages.saturating_sub(free)));
    metrics.storage_pages.with(["free"]).set(gauge(free));
    metrics.storage_free_disk_bytes.set(gauge(store.free_disk().unwrap_or(0)));
    metrics.storage_last_backup_timestamp_seconds.set(gauge(now(&stats.last_backup)));
    for (counter, count) in [
        (&metrics.storage_commits_total, &stats.commits),
        (&metrics.storage_failed_commits_total, &stats.failed_commits),
        (&metrics.storage_reopened_total, &stats.reopened),
        (&metrics.storage_checkpoints_total, &stats.checkpoints),
    ] {
        counter.inner().store(now(count), Ordering::Relaxed);
    }
}

fn gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
