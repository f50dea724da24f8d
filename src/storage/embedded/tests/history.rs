//! Compaction by itself, reads beside it, and what it gives back.

use std::sync::atomic::Ordering::Relaxed;

use super::*;

fn open_with(dir: &Path, retention: Duration) -> Arc<Embedded> {
    Embedded::open(EmbeddedOptions { retention, ..options(dir) }).expect("the store opens")
}

#[tokio::test(flavor = "multi_thread")]
async fn superseded_revisions_are_forgotten_after_the_retention() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open_with(dir.path(), Duration::from_millis(300));
    let storage = as_storage(&store);
    let mut held = suite::create(&storage, "/registry/a", "0").await;
    for n in 1..1000 {
        held = suite::update(&storage, "/registry/a", held, &n.to_string()).await;
    }
    wait_for(|| store.compacted_revision() == held).await;
    assert_eq!(store.get("/registry/a", Some(held - 1)).await, Err(StorageError::Compacted(held)));
    assert_eq!(store.get("/registry/a", None).await.map(|kv| kv.map(|kv| kv.value)), Ok(Some("999".into())));
    assert_eq!(store.stats().compacted_rows.load(Relaxed), 999);
    let rows = inspect(&store, |writer| writer.index.len()).await;
    assert_eq!(rows, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_retention_holds_from_the_moment_it_is_set() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open_with(dir.path(), Duration::from_millis(50));
    store.tune(1 << 20, Duration::from_secs(3600)).await.expect("tuned");
    let storage = as_storage(&store);
    let first = suite::create(&storage, "/registry/a", "1").await;
    suite::update(&storage, "/registry/a", first, "2").await;
    // A second store with the short retention shows when compaction would have come.
    let other_dir = tempfile::tempdir().expect("a directory");
    let other = open_with(other_dir.path(), Duration::from_millis(50));
    let held = suite::create(&as_storage(&other), "/registry/a", "1").await;
    let held = suite::update(&as_storage(&other), "/registry/a", held, "2").await;
    wait_for(|| other.compacted_revision() == held).await;
    assert!(store.get("/registry/a", Some(first)).await.expect("kept").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_began_is_not_cut_off_by_compaction() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let storage = as_storage(&store);
    // More than one slice of a read, by bytes.
    fill(&store, 100, 50_000).await;
    let at = store.revision();
    let lists: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&storage);
            tokio::spawn(async move { store.list("/registry/", "", 0, Some(at)).await })
        })
        .collect();
    // All under way before anything changes: the writer takes questions in order.
    let busy = inspect(&store, |writer| !writer.reads.is_empty()).await;
    for item in contents(&store).await {
        suite::update(&storage, &item.0, item.2, "new").await;
    }
    let compaction = tokio::spawn(async move { storage.compact(storage.current_revision().await?).await });
    for list in lists {
        match list.await.expect("the list ends") {
            Ok(page) => assert!(page.items.len() == 100 && page.items.iter().all(|kv| kv.value.len() == 50_000)),
            Err(why) => assert!(!busy && matches!(why, StorageError::Compacted(_)), "{why}"),
        }
    }
    suite::within(compaction).await.expect("it ends").expect("compaction works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_overwritten_again_and_again_does_not_grow() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open_with(dir.path(), Duration::from_millis(20));
    let storage = as_storage(&store);
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let store = Arc::clone(&storage);
            tokio::spawn(async move {
                let key = format!("/registry/{n}");
                let mut held = suite::create(&store, &key, &value(0, 6000)).await;
                for round in 0..400 {
                    held = suite::update(&store, &key, held, &value(round, 6000)).await;
                    if round % 40 == 39 {
                        suite::within(store.compact(held)).await.expect("compaction works");
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("the writer is done");
    }
    // 3,208 versions of 8 KB were written; some hundreds were kept at a time.
    inspect(&store, |writer| writer.checkpoint_now()).await;
    let (size, _) = store.file_sizes();
    assert!(size < 9 << 20, "{size} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn free_pages_are_given_back_when_most_of_the_file_is_free() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let storage = as_storage(&store);
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let store = Arc::clone(&storage);
            tokio::spawn(async move {
                for n in 0..16 {
                    let key = format!("/registry/{writer}/{n}");
                    let held = suite::create(&store, &key, &value(n, 200_000)).await;
                    suite::delete(&store, &key, held).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("the writer is done");
    }
    inspect(&store, |writer| writer.checkpoint_now()).await;
    let (large, _) = store.file_sizes();
    assert!(large > 48 << 20, "{large} bytes");
    suite::within(storage.compact(store.revision())).await.expect("compaction works");
    wait_for(|| store.file_sizes().0 < large / 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_and_their_rows_are_counted_and_told() {
    let dir = tempfile::tempdir().expect("a directory");
    static TOLD: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let on_commit = |rows: usize, took: Duration| {
        assert!(took > Duration::ZERO);
        TOLD.fetch_add(rows, Relaxed);
    };
    let store = Embedded::open(EmbeddedOptions { on_commit, ..options(dir.path()) }).expect("opens");
    fill(&store, 10, 100).await;
    let stats = store.stats();
    assert_eq!((stats.commits.load(Relaxed), stats.committed_rows.load(Relaxed)), (10, 10));
    assert_eq!(TOLD.load(Relaxed), 10);
    assert_eq!((stats.keys.load(Relaxed), stats.healthy.load(Relaxed)), (10, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_writers_share_a_commit() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let (entered, busy) = tokio::sync::oneshot::channel();
    let ask = Ask::Inspect(Box::new(move |_| {
        let _ = entered.send(());
        assert!(held.recv().is_err());
    }));
    assert!(store.asks().expect("open").send(ask).await.is_ok());
    suite::within(busy).await.expect("the writer is held");
    let writers: Vec<_> = (0..64)
        .map(|n| {
            let store = as_storage(&store);
            tokio::spawn(async move { suite::create(&store, &format!("/registry/{n}"), "x").await })
        })
        .collect();
    wait_for(|| store.channels.read().as_ref().is_some_and(|c| c.writes.capacity() == super::super::WRITE_QUEUE - 64))
        .await;
    drop(hold);
    for writer in writers {
        writer.await.expect("the writer is done");
    }
    assert_eq!(store.stats().commits.load(Relaxed), 1, "64 writes, one sync");
}
