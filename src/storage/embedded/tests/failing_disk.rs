//! After an I/O error the store is closed, checked and opened again; nothing acknowledged is lost and no
//! watcher misses what was written.

use super::super::store::Fault;
use super::*;

async fn inject(store: &Arc<Embedded>, fault: Option<Fault>) {
    inspect(store, move |writer| drop(writer.with_store(|store| store.fault = fault))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_is_refused_with_the_reason_and_the_store_comes_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    fill(&store, 5, 100).await;
    let revision = store.revision();
    let mut watch = store.watch("", revision, 16).await.expect("a watch");
    inject(&store, Some(Fault::BeforeCommit)).await;
    let failed = store.write(suite::write("/registry/a", Expect::Absent, suite::put("x"))).await;
    assert_unavailable(failed, "injected before the commit");
    assert_eq!(until_committed(&store, "/registry/b", "x").await, revision + 1);
    let events = suite::events_until(&mut watch, revision + 1).await;
    assert_eq!(events.len(), 1);
    assert_eq!(&*events[0].kv.key, "/registry/b");
    assert_eq!(store.stats().reopened.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(store.health().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_end_was_not_seen_is_told_to_watchers_after_the_check() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    fill(&store, 5, 100).await;
    let revision = store.revision();
    let mut watch = store.watch("", revision, 16).await.expect("a watch");
    inject(&store, Some(Fault::AfterCommit)).await;
    let failed = store.write(suite::write("/registry/a", Expect::Absent, suite::put("x"))).await;
    assert_unavailable(failed, "injected after the commit");
    let events = suite::events_until(&mut watch, revision + 1).await;
    assert_eq!((&*events[0].kv.key, &events[0].kv.value[..]), ("/registry/a", &b"x"[..]));
    assert_eq!(store.revision(), revision + 1);
    assert_eq!(until_committed(&store, "/registry/b", "x").await, revision + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_lost_what_was_acknowledged_is_not_opened_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    fill(&store, 5, 100).await;
    let older = dir.path().join("older");
    store.backup(older.clone()).await.expect("a copy");
    fill_more(&store).await;
    inject(&store, Some(Fault::BeforeCommit)).await;
    let write = || suite::write("/registry/a", Expect::Absent, suite::put("x"));
    assert_unavailable(store.write(write()).await, "injected");
    for name in ["store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    std::fs::rename(older, file(dir.path())).expect("put in its place");
    suite::within(async {
        loop {
            match store.write(write()).await {
                Err(StorageError::Unavailable(why))
                    if why.contains("ends at revision 6, but revision 7 was acknowledged") =>
                {
                    break;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                Ok(outcome) => panic!("it went on with an older store: {outcome:?}"),
            }
        }
    })
    .await;
    assert_unavailable(store.get("/registry/pods/00001", None).await, "acknowledged");
    assert_unavailable(store.health().await, "acknowledged");
}

async fn fill_more(store: &Arc<Embedded>) {
    suite::create(&as_storage(store), "/registry/more", "x").await;
}

#[test]
fn a_real_write_error_is_survived_without_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = crash::child("write_error", dir.path()).output().expect("the child runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("survived"), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let store = open(dir.path());
    let found = tokio::runtime::Runtime::new().expect("a runtime").block_on(contents(&store));
    assert!(found.iter().any(|(key, ..)| key == "/registry/after"));
}
