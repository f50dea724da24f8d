//! The embedded store: durable writes by how many wait at once, a full list, and a start.
//!
//! Everything is on the disk of `TMPDIR`, and most of `commit` is that disk's sync; compare only runs on one
//! machine in one state. Values are 6 KB, as a Pod's.

#![allow(clippy::expect_used)]

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kenter::storage::{
    Expect, Op, Storage, Write, WriteOutcome,
    embedded::{Embedded, EmbeddedOptions},
};
use tokio::runtime::Runtime;

const ROWS: u64 = 10_000;

static NEXT: AtomicU64 = AtomicU64::new(0);

fn open(dir: &Path) -> Arc<Embedded> {
    Embedded::open(EmbeddedOptions::new(dir)).expect("the store opens")
}

/// Creates `count` keys from `clients` tasks that wait for each answer.
async fn create(store: &Arc<Embedded>, clients: u64, count: u64) {
    let value = Bytes::from("0123456789abcdef".repeat(375));
    let left = Arc::new(AtomicU64::new(count));
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (store, value, left) = (store.clone(), value.clone(), left.clone());
            tokio::spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    let key = format!("/registry/pods/bench/{:08}", NEXT.fetch_add(1, Ordering::Relaxed)).into();
                    let op = Op::Put { value: value.clone(), ttl: None };
                    let outcome = store.write(Write { key, expect: Expect::Absent, op }).await;
                    assert!(matches!(outcome, Ok(WriteOutcome::Committed(_))), "{outcome:?}");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("the writer is done");
    }
}

fn commit(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("commit");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for clients in [1, 16, 64] {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(dir.path());
        group.bench_function(format!("{clients} waiting"), |bencher| {
            bencher.iter_custom(|count| {
                let begun = Instant::now();
                runtime.block_on(create(&store, clients, count));
                begun.elapsed()
            });
        });
    }
    group.finish();
}

fn read(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    runtime.block_on(create(&store, 64, ROWS));
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Elements(ROWS)).sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function("list all", |bencher| {
        bencher.iter(|| runtime.block_on(store.list("", "", 0, None)).expect("the list works").items.len());
    });
    drop(store);
    group.bench_function("open and check", |bencher| bencher.iter(|| open(dir.path()).revision()));
    group.finish();
}

criterion_group!(benches, commit, read);
criterion_main!(benches);
