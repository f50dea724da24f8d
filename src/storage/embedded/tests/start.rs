//! What a start finds again, and what it refuses.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    fill(&store, 50, 3000).await;
    let before = contents(&store).await;
    let (revision, identity) = (store.revision(), store.identity());
    drop(store);
    assert!(!dir.path().join("store.db-wal").exists(), "an orderly end leaves one file");

    let store = open(dir.path());
    assert_eq!(contents(&store).await, before);
    assert_eq!((store.revision(), store.identity()), (revision, identity));
    assert_eq!(suite::create(&as_storage(&store), "/registry/next", "x").await, revision + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revision_is_kept_though_the_newest_row_was_compacted_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = as_storage(&open(dir.path()));
    let created = suite::create(&store, "/registry/a", "x").await;
    let deleted = suite::delete(&store, "/registry/a", created).await;
    suite::within(store.compact(deleted)).await.expect("compaction works");
    drop(store);
    let rows: i64 = sqlite(dir.path()).query_row("SELECT count(*) FROM log", [], |row| row.get(0)).expect("a count");
    assert_eq!(rows, 0);

    let store = open(dir.path());
    assert_eq!((store.revision(), store.compacted_revision()), (deleted, deleted));
    let watch = store.watch("", created, 4).await.expect("the stream tells");
    assert_eq!(suite::end_of(&mut { watch }).await, StorageError::Compacted(deleted));
    assert_eq!(suite::create(&as_storage(&store), "/registry/b", "x").await, deleted + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_served_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = as_storage(&open(dir.path()));
    let first = suite::create(&store, "/registry/a", "1").await;
    let second = suite::update(&store, "/registry/a", first, "2").await;
    drop(store);
    let store = open(dir.path());
    let old = store.get("/registry/a", Some(first)).await.expect("kept").expect("it was there");
    assert_eq!((&old.value[..], old.version), (&b"1"[..], 1));
    let mut watch = store.watch("/registry/", 0, 4).await.expect("a watch");
    assert_eq!(suite::events_until(&mut watch, second).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_survives_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let op = Op::Put { value: "x".into(), ttl: Some(Duration::from_secs(1)) };
    let put = suite::committed(store.write(suite::write("/registry/events/1", Expect::Absent, op)).await);
    drop(store);
    let store = open(dir.path());
    let mut watch = store.watch("", put, 4).await.expect("a watch");
    let events = suite::events_until(&mut watch, put + 1).await;
    assert_eq!(&*events[0].kv.key, "/registry/events/1");
    assert_eq!(store.get("/registry/events/1", None).await, Ok(None));
    assert_eq!(store.stats().expired_keys.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn a_second_daemon_on_the_directory_is_refused_and_told_who_has_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let why = refusal(dir.path());
    assert!(matches!(why, OpenError::Locked { .. }), "{why}");
    let text = why.to_string();
    assert!(text.contains(&dir.path().display().to_string()), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    drop(store);
    open(dir.path());
}

#[test]
fn another_process_is_kept_out_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let said = crash::child("second_daemon", dir.path()).output().expect("the child runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(&format!("refused: data directory {} is in use", dir.path().display())), "{said}");
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    drop(store);
}

#[test]
fn only_the_owner_may_read_what_is_stored() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("state/data");
    let _store = open(&dir);
    let mode = |path: &Path| std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for name in ["store.db", "store.db-wal", "store.db-shm", "lock", "reserve"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(file(dir.path()), "not a database, but long enough to be looked at as one".repeat(100))
        .expect("written");
    let before = std::fs::read(file(dir.path())).expect("it reads");
    let why = refusal(dir.path()).to_string();
    assert!(why.contains("not a database"), "{why}");
    assert_eq!(std::fs::read(file(dir.path())).expect("it reads"), before);
}

#[test]
fn another_programs_database_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    sqlite(dir.path()).execute_batch("CREATE TABLE kine(id INTEGER)").expect("a table");
    let why = refusal(dir.path());
    assert!(matches!(why, OpenError::Foreign { .. }), "{why}");
}

#[test]
fn a_newer_layout_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(open(dir.path()));
    sqlite(dir.path()).execute_batch("PRAGMA user_version = 2").expect("set");
    let why = refusal(dir.path()).to_string();
    assert!(why.contains("version 2") && why.contains("version 1"), "{why}");
}

#[test]
fn a_first_start_that_was_cut_off_is_begun_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("store.db.new"), "half a store").expect("written");
    std::fs::write(dir.path().join("store.db.new-wal"), "half a log").expect("written");
    let store = open(dir.path());
    assert_eq!(store.revision(), super::super::FIRST_REVISION);
    assert!(!dir.path().join("store.db.new").exists() && !dir.path().join("store.db.new-wal").exists());
}

#[test]
fn an_emptied_or_missing_file_is_never_taken_for_a_new_store() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(file(dir.path()), "").expect("an empty file");
    let why = refusal(dir.path()).to_string();
    assert!(why.contains("store.db: it is empty"), "{why}");
    std::fs::rename(file(dir.path()), dir.path().join("store.db-wal")).expect("renamed");
    let why = refusal(dir.path()).to_string();
    assert!(why.contains("store.db: it is missing, but its WAL"), "{why}");
}

#[test]
fn an_administrator_reads_the_store_with_sqlite() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = open(dir.path());
    runtime.block_on(async {
        let storage = as_storage(&store);
        let held = suite::create(&storage, "/registry/a", r#"{"kind":"A"}"#).await;
        suite::update(&storage, "/registry/a", held, r#"{"kind":"B"}"#).await;
        let gone = suite::create(&storage, "/registry/b", "{}").await;
        suite::delete(&storage, "/registry/b", gone).await;
    });
    let rows: Vec<(String, String)> = sqlite(dir.path())
        .prepare("SELECT key, json_extract(value, '$.kind') FROM current")
        .expect("the view is there")
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("a query")
        .collect::<Result<_, _>>()
        .expect("rows");
    assert_eq!(rows, [("/registry/a".to_owned(), "B".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_store_says_so_to_everybody() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let mut watch = store.watch("", store.revision(), 4).await.expect("a watch");
    store.close();
    assert_unavailable(suite::end_of_watch(&mut watch).await, "closed");
    assert_unavailable(store.get("/a", None).await, "closed");
    assert_unavailable(store.write(suite::write("/a", Expect::Absent, suite::put("x"))).await, "closed");
    assert_unavailable(store.health().await, "closed");
}
