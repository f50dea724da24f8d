//! The watch cache's hot paths: a list out of a snapshot, and one change on its way to its watchers.
//!
//! `dispatch` measures from the storage's feed until every watcher's queue has the event (nobody is woken);
//! `fan_out` until a task per watcher has taken it.

#![allow(clippy::expect_used)]

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use kenter::storage::{
    Event, EventKind, EventStream, KeyValue, Page, Revision, Storage, StorageError, StorageFuture, Write, WriteOutcome,
    cache::{Cache, CacheOptions, NoAttributes, ResourceCache, WatchScope, WatchStart, Watcher},
};
use tokio::{runtime::Runtime, sync::mpsc};

const PREFIX: &str = "/registry/pods/";

/// A storage that has `rows` and a feed the bench writes to.
struct Feed {
    rows: Vec<KeyValue>,
    sender: mpsc::Sender<Result<Arc<[Event]>, StorageError>>,
    receiver: std::sync::Mutex<Option<EventStream>>,
    revision: AtomicU64,
}

fn row(i: usize, revision: Revision) -> KeyValue {
    let value = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{i}"}},"spec":{{"text":"{}"}}}}"#,
        "x".repeat(2000)
    );
    let key = format!("{PREFIX}ns-{}/pod-{i}", i % 100).into();
    KeyValue { key, value: value.into(), mod_revision: revision, create_revision: 1, version: revision }
}

impl Feed {
    fn new(rows: usize) -> Arc<Self> {
        let (sender, receiver) = mpsc::channel(1024);
        let mut rows: Vec<_> = (0..rows).map(|i| row(i, 1)).collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        Arc::new(Self { rows, sender, receiver: Some(receiver).into(), revision: AtomicU64::new(1) })
    }

    fn change(&self, count: u64) -> Revision {
        for _ in 0..count {
            let revision = self.revision.fetch_add(1, Ordering::Relaxed) + 1;
            let event = Event { kind: EventKind::Put, kv: row(revision as usize % self.rows.len(), revision) };
            self.sender.blocking_send(Ok([event].into())).expect("followed");
        }
        self.revision.load(Ordering::Relaxed)
    }
}

fn refuse<'a, T>() -> StorageFuture<'a, T> {
    Box::pin(async { Err(StorageError::Unavailable("only a feed".into())) })
}

impl Storage for Feed {
    fn get<'a>(&'a self, _: &'a str, _: Option<Revision>) -> StorageFuture<'a, Option<KeyValue>> {
        refuse()
    }

    fn list<'a>(&'a self, _: &'a str, start: &'a str, limit: usize, _: Option<Revision>) -> StorageFuture<'a, Page> {
        let from = self.rows.partition_point(|row| &*row.key < start);
        let items: Vec<_> = self.rows[from..].iter().take(limit).cloned().collect();
        let more = from + items.len() < self.rows.len();
        Box::pin(async move { Ok(Page { items, more, revision: 1 }) })
    }

    fn write<'a>(&'a self, _: Write) -> StorageFuture<'a, WriteOutcome> {
        refuse()
    }

    fn watch<'a>(&'a self, _: &'a str, _: Revision, _: usize) -> StorageFuture<'a, EventStream> {
        let receiver = self.receiver.lock().expect("one thread").take();
        Box::pin(async { receiver.ok_or_else(|| StorageError::Unavailable("one feed only".into())) })
    }

    fn current_revision<'a>(&'a self) -> StorageFuture<'a, Revision> {
        let revision = self.revision.load(Ordering::Relaxed);
        Box::pin(async move { Ok(revision) })
    }

    fn compact<'a>(&'a self, _: Revision) -> StorageFuture<'a, ()> {
        refuse()
    }

    fn compacted_revision(&self) -> Revision {
        0
    }

    fn health<'a>(&'a self) -> StorageFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

struct Setup {
    runtime: Runtime,
    feed: Arc<Feed>,
    cache: Arc<Cache>,
    pods: Arc<ResourceCache>,
}

fn setup(rows: usize) -> Setup {
    let runtime = Runtime::new().expect("a runtime");
    let feed = Feed::new(rows);
    let cache = Cache::start(feed.clone(), CacheOptions::default()).expect("a thread");
    runtime.block_on(cache.ready());
    let pods = cache.resource(PREFIX, Arc::new(NoAttributes));
    Setup { runtime, feed, cache, pods }
}

impl Setup {
    fn watchers(&self, count: usize, scope: &WatchScope) -> Vec<Watcher> {
        let start = |_| self.pods.watch(WatchStart::Now, scope.clone(), 1 << 20).expect("starts");
        (0..count).map(start).collect()
    }

    fn reach(&self, revision: Revision) {
        while self.cache.applied() < revision {
            std::hint::spin_loop();
        }
    }
}

fn lists(c: &mut Criterion) {
    let setup = setup(10_000);
    c.bench_function("list/snapshot", |b| b.iter(|| black_box(setup.pods.any().expect("served"))));
    c.bench_function("list/consistent", |b| {
        b.iter(|| black_box(setup.runtime.block_on(setup.pods.consistent()).expect("served")));
    });
    c.bench_function("list/find", |b| {
        let list = setup.pods.any().expect("served");
        let mut i = 0;
        b.iter(|| {
            i = (i + 7919) % 10_000;
            black_box(list.find(&format!("ns-{}", i % 100), &format!("pod-{i}")).expect("there").value())
        });
    });
    let mut group = c.benchmark_group("list/10000");
    group.throughput(Throughput::Elements(10_000));
    group.bench_function("all_values", |b| {
        b.iter(|| {
            let list = setup.pods.any().expect("served");
            list.iter().map(|entry| entry.value_bytes().len()).sum::<usize>()
        });
    });
    group.bench_function("joined", |b| {
        b.iter_batched(
            || Vec::with_capacity(32 << 20),
            |mut out: Vec<u8>| {
                let list = setup.pods.any().expect("served");
                for entry in list.iter() {
                    out.extend_from_slice(entry.value_bytes());
                    out.push(b',');
                }
                out
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// Events given to all watchers per measurement, so that they come as batches.
const EVENTS: u64 = 64;

fn dispatch(c: &mut Criterion) {
    for (name, watchers, scope) in [
        ("0", 0, WatchScope::default()),
        ("1", 1, WatchScope::default()),
        ("1000", 1000, WatchScope::default()),
        ("1000_of_others", 1000, WatchScope { namespace: Some("elsewhere".into()), ..WatchScope::default() }),
    ] {
        let setup = setup(10_000);
        let mut watchers = setup.watchers(watchers, &scope);
        let mut group = c.benchmark_group("dispatch");
        group.throughput(Throughput::Elements(EVENTS));
        group.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                for _ in 0..iterations {
                    let begun = Instant::now();
                    setup.reach(setup.feed.change(EVENTS));
                    spent += begun.elapsed();
                    drain(&setup.runtime, &mut watchers);
                }
                spent
            });
        });
        group.finish();
    }
}

fn drain(runtime: &Runtime, watchers: &mut [Watcher]) {
    runtime.block_on(async {
        let mut events = Vec::new();
        for watcher in watchers {
            tokio::select! {
                biased;
                _ = watcher.next(&mut events) => events.clear(),
                () = std::future::ready(()) => {}
            }
        }
    });
}

fn fan_out(c: &mut Criterion) {
    for count in [1, 1000] {
        let setup = setup(10_000);
        let taken = Arc::new(AtomicU64::new(0));
        for mut watcher in setup.watchers(count, &WatchScope::default()) {
            let taken = Arc::clone(&taken);
            setup.runtime.spawn(async move {
                let mut events = Vec::new();
                while watcher.next(&mut events).await.is_ok() {
                    for event in events.drain(..) {
                        black_box::<Option<Bytes>>(event.framed(event.kind()));
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let mut group = c.benchmark_group("fan_out");
        group.throughput(Throughput::Elements(EVENTS * count as u64));
        group.bench_function(count.to_string(), |b| {
            b.iter(|| {
                let target = taken.load(Ordering::Relaxed) + EVENTS * count as u64;
                setup.feed.change(EVENTS);
                while taken.load(Ordering::Relaxed) < target {
                    std::thread::yield_now();
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, lists, dispatch, fan_out);
criterion_main!(benches);
