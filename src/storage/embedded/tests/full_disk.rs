//! A full disk fails writes and nothing else, and ends by itself.

use std::{process::Command, sync::atomic::Ordering::Relaxed};

use super::*;

fn big(n: usize) -> String {
    value(n, 200_000)
}

/// Writes until there is no room; adds what was acknowledged and returns the error.
async fn write_until_full(store: &Arc<Embedded>, acknowledged: &mut Vec<(String, Revision)>) -> StorageError {
    for n in acknowledged.len()..10_000 {
        let key = format!("/registry/big/{n:05}");
        match store.write(suite::write(&key, Expect::Absent, suite::put(big(n)))).await {
            Ok(WriteOutcome::Committed(revision)) => acknowledged.push((key, revision)),
            Ok(other) => panic!("{other:?}"),
            Err(why) => return why,
        }
    }
    panic!("the disk never filled");
}

/// Writes until there is no room, and none was made by emptying the WAL either.
async fn fill_up(store: &Arc<Embedded>) -> Vec<(String, Revision)> {
    let mut acknowledged = Vec::new();
    loop {
        let why = write_until_full(store, &mut acknowledged).await;
        assert!(matches!(why, StorageError::Full(_)), "{why}");
        let full = inspect(store, |writer| {
            writer.room.recover();
            writer.room.refusal().is_some()
        });
        if full.await {
            return acknowledged;
        }
    }
}

/// What holds while the disk is full: reads and watches work, everything acknowledged is there.
async fn assert_reads_go_on(store: &Arc<Embedded>, acknowledged: &[(String, Revision)]) {
    let found: Vec<_> = contents(store).await.into_iter().map(|(key, _, revision)| (key, revision)).collect();
    assert_eq!(found, acknowledged);
    let mut watch = store.watch("", 1, 64).await.expect("a watch");
    let last = acknowledged.last().expect("something fitted").1;
    assert_eq!(suite::events_until(&mut watch, last).await.len(), acknowledged.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_not_grow_fails_writes_alone_and_recovers_in_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    inspect(&store, |writer| writer.with_store(|store| store.limit_pages(1000)).expect("open").expect("limited")).await;
    let mut acknowledged = Vec::new();
    let why = write_until_full(&store, &mut acknowledged).await;
    let StorageError::Full(text) = &why else { panic!("{why}") };
    assert!(text.contains("full") && text.contains("store.db"), "{text}");
    assert_reads_go_on(&store, &acknowledged).await;
    inspect(&store, |writer| writer.with_store(|store| store.limit_pages(1 << 30)).expect("open").expect("unlimited"))
        .await;
    let next = until_committed(&store, "/registry/next", "x").await;
    assert_eq!(next, acknowledged.last().expect("some").1 + 1, "a failed write took no revision");
    assert_eq!(store.health().await, Ok(()));
    let before = contents(&store).await;
    drop(store);
    assert_eq!(contents(&open(dir.path())).await, before);
}

/// A small file system of its own.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new(megabytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(dir.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("SKIPPED: mounting a tmpfs needs root");
        }
        mounted.then_some(Self(dir))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_file_system_gives_up_the_reserve_and_recovers_when_something_else_is_removed() {
    let Some(disk) = Tmpfs::new(24) else { return };
    let dir = disk.0.path().join("data");
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![1u8; 8 << 20]).expect("written");
    let store =
        Embedded::open(EmbeddedOptions { reserve_bytes: 4 << 20, ..EmbeddedOptions::new(&dir) }).expect("opens");
    assert_eq!(std::fs::metadata(dir.join("reserve")).expect("it is kept").len(), 4 << 20);
    let acknowledged = fill_up(&store).await;
    assert!(!dir.join("reserve").exists(), "the reserve was given up");
    assert!(matches!(store.health().await, Err(StorageError::Full(_))));
    wait_for(|| store.stats().healthy.load(Relaxed) == 0).await;
    assert_reads_go_on(&store, &acknowledged).await;

    std::fs::remove_file(&ballast).expect("removed");
    until_committed(&store, "/registry/next", "x").await;
    assert!(dir.join("reserve").exists(), "the reserve is kept again");
    assert_eq!(store.health().await, Ok(()));
    let before = contents(&store).await;
    drop(store);
    assert_eq!(contents(&open(&dir)).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_compaction_make_room_on_a_full_file_system() {
    let Some(disk) = Tmpfs::new(24) else { return };
    let dir = disk.0.path().join("data");
    let store =
        Embedded::open(EmbeddedOptions { reserve_bytes: 4 << 20, ..EmbeddedOptions::new(&dir) }).expect("opens");
    let acknowledged = fill_up(&store).await;
    let storage = as_storage(&store);
    for (key, revision) in &acknowledged {
        suite::within(suite::delete(&storage, key, *revision)).await;
    }
    suite::within(storage.compact(store.revision())).await.expect("compaction works on a full disk");
    until_committed(&store, "/registry/next", &big(1)).await;
    assert_eq!(contents(&store).await.len(), 1);
}

/// Deletes everything and nothing else; nobody asks for compaction and the retention is the default.
async fn delete_all(store: &Arc<Embedded>, acknowledged: &[(String, Revision)]) {
    let storage = as_storage(store);
    for (key, revision) in acknowledged {
        suite::within(suite::delete(&storage, key, *revision)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_disk_that_was_full_serves_writes_and_has_its_reserve_again_once_everything_is_deleted() {
    let Some(disk) = Tmpfs::new(48) else { return };
    let dir = disk.0.path().join("data");
    let options = EmbeddedOptions { retention: Duration::from_secs(300), ..EmbeddedOptions::new(&dir) };
    let reserve = EmbeddedOptions::new(&dir).reserve_bytes.min(48 << 19);
    let store = Embedded::open(options).expect("opens");
    for _ in 0..3 {
        let acknowledged = fill_up(&store).await;
        assert!(acknowledged.len() > 50, "{} values fitted", acknowledged.len());
        delete_all(&store, &acknowledged).await;
        let next = until_committed(&store, "/registry/next", &big(1)).await;
        assert_eq!(store.health().await, Ok(()));
        wait_for(|| std::fs::metadata(dir.join("reserve")).is_ok_and(|meta| meta.len() + (1 << 20) >= reserve)).await;
        delete_all(&store, &[("/registry/next".to_owned(), next)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_smaller_than_the_reserve_recovers_too() {
    let Some(disk) = Tmpfs::new(20) else { return };
    let dir = disk.0.path().join("data");
    let store = Embedded::open(EmbeddedOptions::new(&dir)).expect("opens");
    let held = std::fs::metadata(dir.join("reserve")).expect("a part of it is kept").len();
    assert!((8 << 20..=10 << 20).contains(&held), "{held}");
    let acknowledged = fill_up(&store).await;
    delete_all(&store, &acknowledged).await;
    until_committed(&store, "/registry/next", &big(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_trouble_does_not_spin() {
    let dirs = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    let full = open(dirs[0].path());
    inspect(&full, |writer| writer.with_store(|store| store.limit_pages(100)).expect("open").expect("limited")).await;
    let why = write_until_full(&full, &mut Vec::new()).await;
    assert!(matches!(why, StorageError::Full(_)), "{why}");
    std::fs::create_dir(dirs[1].path().join("reserve")).expect("something is in the way of the reserve");
    let reserved = EmbeddedOptions { reserve_bytes: 1 << 20, ..options(dirs[1].path()) };
    let unreserved = Embedded::open(reserved).expect("a reserve that cannot be had is no reason not to start");

    // A key that lives for a second is the clock.
    let op = Op::Put { value: "x".into(), ttl: Some(Duration::from_secs(1)) };
    let put = suite::committed(unreserved.write(suite::write("/registry/a", Expect::Absent, op)).await);
    let mut watch = unreserved.watch("", put, 4).await.expect("a watch");
    suite::events_until(&mut watch, put + 1).await;
    for store in [&full, &unreserved] {
        let turns = store.stats().turns.load(Relaxed);
        assert!(turns < 200, "{turns} turns");
    }
}
