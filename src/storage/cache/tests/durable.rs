//! The cache over the embedded back end: what the two promise together.

use super::*;
use crate::storage::{
    Expect, Op, Write, WriteOutcome,
    embedded::{Embedded, EmbeddedOptions},
};

fn open(dir: &tempfile::TempDir) -> Arc<Embedded> {
    let options = EmbeddedOptions { reserve_bytes: 1 << 20, ..EmbeddedOptions::new(dir.path()) };
    Embedded::open(options).expect("the store opens")
}

async fn put(store: &Embedded, path: &str, expect: Expect, text: &str) -> Revision {
    let name = path.rsplit('/').next().unwrap_or_default();
    let op = Op::Put { value: pod(name, "", text).into(), ttl: None };
    match store.write(Write { key: format!("{PODS}{path}").into(), expect, op }).await {
        Ok(WriteOutcome::Committed(revision)) => revision,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_writer_reads_its_write_and_a_watch_replays_to_the_list() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir);
    let cache = Cache::start(store.clone(), CacheOptions::default()).expect("a thread");
    cache.ready().await;
    let first = cache.applied() + 1;
    let pods = cache.resource(PODS, Arc::new(PodAttributes));
    let (_, mut watcher) = pods.list_and_watch(everything(), 10_000).expect("starts");
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (store, pods) = (store.clone(), pods.clone());
            tokio::spawn(async move {
                let path = format!("ns/w{writer}");
                let mut revision = put(&store, &path, Expect::Absent, "0").await;
                for i in 1..20 {
                    revision = put(&store, &path, Expect::ModRevision(revision), &i.to_string()).await;
                    let list = pods.consistent().await.expect("served");
                    let read = list.find("ns", &format!("w{writer}")).expect("there");
                    assert_eq!(read.mod_revision(), revision);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    let list = pods.consistent().await.expect("served");
    assert_eq!((list.len(), list.revision()), (8, first + 159));
    let seen = seen_until(&mut watcher, list.revision()).await;
    assert_eq!(seen.len(), 160);
    assert!(seen.iter().zip(first..).all(|(line, revision)| line.ends_with(&format!("@{revision}"))));
    drop(cache);
    store.close();
    drop(store);

    let store = open(&dir);
    let cache = Cache::start(store.clone(), CacheOptions::default()).expect("a thread");
    cache.ready().await;
    let again = cache.resource(PODS, Arc::new(PodAttributes)).any().expect("served");
    let values = |list: &Snapshot| list.iter().map(|entry| entry.value()).collect::<Vec<_>>();
    assert_eq!(values(&again), values(&list), "byte for byte, revisions included");
}
