//! Measurements that are taken when somebody looks: sizes of caches and store.

use super::Shared;
use crate::telemetry::Metrics;

/// Brings the gauges of caches and store up to date.
pub fn observe(shared: &Shared, metrics: &Metrics) {
    for ((group, resource), cache) in shared.reader.caches() {
        let entries = i64::try_from(cache.stats().entries).unwrap_or(i64::MAX);
        metrics.resource_objects.with([&group, &resource]).set(entries);
    }
    let (file, wal) = shared.embedded.file_sizes();
    let identity = format!("{:x}", shared.embedded.identity());
    metrics.storage_size_bytes.with([&identity]).set(i64::try_from(file + wal).unwrap_or(i64::MAX));
}
