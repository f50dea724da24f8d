//! A copy made while writers go on is a store that a daemon starts from.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_is_one_moments_whole_store() {
    let (dir, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let store = open(dir.path());
    fill(&store, 200, 3000).await;
    let least = store.revision();
    let writer = {
        let store = as_storage(&store);
        tokio::spawn(async move {
            for n in 0..300 {
                suite::create(&store, &format!("/registry/more/{n:05}"), "x").await;
            }
        })
    };
    let target = other.path().join("store.db");
    store.backup(target.clone()).await.expect("the backup works");
    writer.await.expect("the writer is done");
    let names: Vec<_> = std::fs::read_dir(other.path()).expect("it lists").flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["store.db"], "one file and nothing beside it");

    let copy = open(other.path());
    assert_eq!(copy.identity(), store.identity());
    assert!(copy.revision() >= least && copy.revision() <= store.revision());
    let page = store.list("", "", 0, Some(copy.revision())).await.expect("the original has that moment");
    let original: Vec<_> = page.items.into_iter().map(|kv| (kv.key.to_string(), kv.value, kv.mod_revision)).collect();
    assert_eq!(contents(&copy).await, original);
    assert!(store.stats().last_backup.load(std::sync::atomic::Ordering::Relaxed) > 0);
    suite::create(&as_storage(&copy), "/registry/next", "x").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_fails_leaves_the_older_one_in_place() {
    let (dir, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let store = open(dir.path());
    let target = other.path().join("copy.db");
    store.backup(target.clone()).await.expect("the backup works");
    let older = std::fs::read(&target).expect("it reads");
    // A directory in the way of the unfinished copy.
    std::fs::create_dir(other.path().join("copy.db.tmp")).expect("made");
    fill(&store, 5, 100).await;
    assert_unavailable(store.backup(target.clone()).await, "copy.db");
    assert_eq!(std::fs::read(&target).expect("it reads"), older);
    assert_unavailable(store.backup(other.path().join("no/such/place")).await, "cannot copy");
    assert_eq!(store.health().await, Ok(()));
}
