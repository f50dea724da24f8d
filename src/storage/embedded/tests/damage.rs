//! Damage is found and named, wherever it is.

use super::*;

/// A closed store of `count` rows.
fn closed_store(count: usize, size: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = open(dir.path());
    runtime.block_on(fill(&store, count, size));
    drop(store);
    dir
}

/// The files of a store as a `kill -9` after `count` commits would leave them.
fn killed_store(count: usize, size: usize) -> tempfile::TempDir {
    let (live, dir) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = open(live.path());
    runtime.block_on(fill(&store, count, size));
    for name in ["store.db", "store.db-wal"] {
        std::fs::copy(live.path().join(name), dir.path().join(name)).expect("copied");
    }
    dir
}

fn flip(path: &Path, at: usize, bit: u8) {
    let mut bytes = std::fs::read(path).expect("it reads");
    bytes[at] ^= 1 << bit;
    std::fs::write(path, bytes).expect("written");
}

/// What the store at `dir` holds, or why it does not open.
fn outcome(dir: &Path) -> Result<Vec<(String, Bytes, Revision)>, OpenError> {
    let store = Embedded::open(options(dir))?;
    Ok(tokio::runtime::Runtime::new().expect("a runtime").block_on(contents(&store)))
}

/// Numbers that are the same in every run, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit
    }
}

#[test]
fn a_flipped_bit_of_a_value_is_refused_with_its_revision_and_key() {
    let dir = closed_store(40, 5000);
    let path = file(dir.path());
    let bytes = std::fs::read(&path).expect("it reads");
    let marker = value(17, 5000);
    let at = bytes.windows(60).position(|w| w == &marker.as_bytes()[..60]).expect("the value is in the file");
    flip(&path, at + 30, 3);
    match refusal(dir.path()) {
        OpenError::Damaged { revision, key, .. } => assert_eq!((revision, &*key), (19, "/registry/pods/00017")),
        other => panic!("{other}"),
    }
    let text = refusal(dir.path()).to_string();
    assert!(text.contains("revision 19 of /registry/pods/00017") && text.contains("backup"), "{text}");
}

#[test]
fn no_flipped_bit_of_the_file_ever_changes_what_is_served() {
    let good = closed_store(60, 3000);
    let expected = outcome(good.path()).expect("it opens");
    let bytes = std::fs::read(file(good.path())).expect("it reads");
    let mut dice = Dice(1);
    let mut refused = 0;
    for _ in 0..80 {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(file(dir.path()), &bytes).expect("written");
        let (at, bit) = (dice.below(bytes.len()), dice.below(8) as u8);
        flip(&file(dir.path()), at, bit);
        match outcome(dir.path()) {
            Ok(found) => assert!(found == expected, "bit {bit} of byte {at} changed what is served"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 40, "most flips hit a row: {refused}");
}

#[test]
fn a_wal_damaged_in_the_middle_is_refused_and_can_be_accepted_expressly() {
    let dir = killed_store(30, 3000);
    let wal = dir.path().join("store.db-wal");
    let length = std::fs::metadata(&wal).expect("it exists").len() as usize;
    flip(&wal, length / 2, 0);
    match refusal(dir.path()) {
        OpenError::DamagedWal { path, frame, commits } => {
            assert_eq!(path, wal);
            assert!(frame > 1 && commits >= 2, "frame {frame}, {commits} commits");
        }
        other => panic!("{other}"),
    }
    let accepting = EmbeddedOptions { accept_damaged_wal: true, ..options(dir.path()) };
    let store = Embedded::open(accepting).expect("it opens, with what is before the damage");
    let kept = tokio::runtime::Runtime::new().expect("a runtime").block_on(contents(&store));
    assert!(!kept.is_empty() && kept.len() < 30);
}

#[test]
fn a_torn_end_of_the_wal_loses_nothing_before_it() {
    let whole = killed_store(30, 3000);
    let length = std::fs::metadata(whole.path().join("store.db-wal")).expect("it exists").len();
    for cut in [1, 100, 4000, 4120] {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["store.db", "store.db-wal"] {
            std::fs::copy(whole.path().join(name), dir.path().join(name)).expect("copied");
        }
        let wal = std::fs::OpenOptions::new().write(true).open(dir.path().join("store.db-wal")).expect("it opens");
        wal.set_len(length - cut).expect("cut");
        let found = outcome(dir.path()).expect("a torn end is no damage");
        assert_eq!(found.len(), 29, "only the last commit was torn by cutting {cut} bytes");
    }
}

#[test]
fn no_flipped_bit_of_the_wal_silently_drops_more_than_the_last_commit() {
    let good = killed_store(30, 3000);
    let database = std::fs::read(file(good.path())).expect("it reads");
    let bytes = std::fs::read(good.path().join("store.db-wal")).expect("it reads");
    let expected = outcome(good.path()).expect("it opens");
    let mut dice = Dice(2);
    let mut alarms = 0;
    // The header's bytes are few, and each of them matters.
    let places: Vec<usize> = (0..32).chain((0..80).map(|_| dice.below(bytes.len()))).collect();
    for at in places {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(file(dir.path()), &database).expect("written");
        std::fs::write(dir.path().join("store.db-wal"), &bytes).expect("written");
        let bit = dice.below(8) as u8;
        flip(&dir.path().join("store.db-wal"), at, bit);
        match outcome(dir.path()) {
            Ok(found) => {
                assert!(
                    found.len() + 1 >= expected.len(),
                    "bit {bit} of byte {at} lost {}",
                    expected.len() - found.len()
                );
                assert!(expected.starts_with(&found), "bit {bit} of byte {at} changed what is served");
            }
            Err(_) => alarms += 1,
        }
    }
    assert!(alarms > 60, "most flips would lose commits: {alarms}");
}

/// Changes a closed store as damage below SQLite's notice would, and returns the refusal.
fn after(change: &str) -> String {
    let dir = closed_store(20, 100);
    sqlite(dir.path()).execute_batch(change).expect("the change is made");
    refusal(dir.path()).to_string()
}

#[test]
fn a_missing_row_is_refused() {
    let why = after("DELETE FROM log WHERE rev = 9");
    assert!(why.contains("revision 10 of /registry/pods/00008") && why.contains("revision 9 is missing"), "{why}");
}

#[test]
fn a_row_moved_to_another_key_or_revision_is_refused() {
    assert!(after("UPDATE log SET key = '/registry/pods/other' WHERE rev = 9").contains("checksum"));
    assert!(after("UPDATE log SET rev = 100 WHERE rev = 21").contains("checksum"));
}

#[test]
fn an_older_row_put_back_in_place_of_a_newer_one_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = open(dir.path());
    runtime.block_on(async {
        let store = as_storage(&store);
        let held = suite::create(&store, "/registry/a", "1").await;
        suite::update(&store, "/registry/a", held, "2").await;
    });
    drop(store);
    sqlite(dir.path())
        .execute_batch(
            "CREATE TEMP TABLE t AS SELECT * FROM log WHERE rev = 2; DELETE FROM log WHERE rev = 2; UPDATE t SET rev = 3;
             DELETE FROM log WHERE rev = 3; INSERT INTO log SELECT * FROM t;",
        )
        .expect("the change is made");
    let why = refusal(dir.path()).to_string();
    assert!(why.contains("revision 3 of /registry/a"), "{why}");
}

#[test]
fn a_compaction_point_that_was_changed_is_refused() {
    let why = after("UPDATE meta SET n = 5 WHERE name = 'compacted'");
    assert!(why.contains("compacted") && why.contains("checksum"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_damaged_while_the_store_is_open_fails_its_own_read_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    fill(&store, 10, 100).await;
    sqlite(dir.path()).execute_batch("UPDATE log SET value = x'00' WHERE rev = 5").expect("the change is made");
    match store.get("/registry/pods/00003", None).await {
        Err(StorageError::Corrupt { key, revision, .. }) => assert_eq!((&*key, revision), ("/registry/pods/00003", 5)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(store.list("/registry/", "", 0, None).await, Err(StorageError::Corrupt { revision: 5, .. })));
    let mut watch = store.watch("/registry/", 1, 16).await;
    if let Ok(stream) = &mut watch {
        assert!(matches!(suite::end_of(stream).await, StorageError::Corrupt { revision: 5, .. }));
    } else {
        assert!(matches!(watch, Err(StorageError::Corrupt { revision: 5, .. })));
    }
    assert!(store.get("/registry/pods/00004", None).await.expect("the others are fine").is_some());
    assert_eq!(store.health().await, Ok(()));
    suite::create(&as_storage(&store), "/registry/next", "x").await;
}
