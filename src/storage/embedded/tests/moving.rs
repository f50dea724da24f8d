//! The store moves to another directory while it is in use.

use super::super::RelocateError;
use super::*;

struct Ground {
    parent: tempfile::TempDir,
    store: Arc<Embedded>,
}

impl Ground {
    async fn new() -> Self {
        let parent = tempfile::tempdir().expect("a directory");
        let store = open(&parent.path().join("old"));
        fill(&store, 30, 2000).await;
        Self { parent, store }
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.parent.path().join(name)
    }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("it lists").flatten() {
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_is_copied_and_goes_on_there() {
    let ground = Ground::new().await;
    let store = &ground.store;
    let before = contents(store).await;
    let mut watch = store.watch("", store.revision(), 64).await.expect("a watch");
    let writer = {
        let store = as_storage(store);
        tokio::spawn(async move {
            for n in 0..50 {
                suite::create(&store, &format!("/registry/during/{n:05}"), "x").await;
            }
        })
    };
    store.relocate(ground.dir("new")).await.expect("it moves");
    writer.await.expect("no write failed");
    assert_eq!(store.directory(), ground.dir("new"));
    assert_eq!(contents(store).await.len(), before.len() + 50);
    assert_eq!(suite::events_until(&mut watch, store.revision()).await.len(), 50, "no watch was ended");
    assert!(ground.dir("new").join("reserve").exists() && !ground.dir("old").join("reserve").exists());
    assert!(!ground.dir("old").join("store.db").exists());

    // The old directory is free, but a daemon that starts there is told and makes no empty store.
    let why = refusal(&ground.dir("old"));
    assert!(matches!(why, OpenError::MovedAway { .. }), "{why}");
    let last = contents(store).await;
    store.close();
    assert_eq!(contents(&open(&ground.dir("new"))).await, last);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_can_move_back_to_where_it_was() {
    let ground = Ground::new().await;
    ground.store.relocate(ground.dir("new")).await.expect("it moves");
    suite::create(&as_storage(&ground.store), "/registry/between", "x").await;
    let before = contents(&ground.store).await;
    ground.store.relocate(ground.dir("old")).await.expect("it moves back");
    assert_eq!(contents(&ground.store).await, before);
    assert!(!ground.dir("old").join("store.db.moved").exists());
    ground.store.close();
    assert_eq!(contents(&open(&ground.dir("old"))).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_was_moved_stops_writes_until_it_is_named() {
    let ground = Ground::new().await;
    let store = &ground.store;
    std::fs::rename(ground.dir("old"), ground.dir("new")).expect("moved");
    let write = || suite::write("/registry/a", Expect::Absent, suite::put("x"));
    assert_unavailable(store.write(write()).await, "no longer there");
    assert_unavailable(store.health().await, "no longer there");
    assert_eq!(contents(store).await.len(), 30, "reads go on");
    store.relocate(ground.dir("new")).await.expect("it is adopted where it is");
    suite::committed(store.write(write()).await);
    assert_eq!(store.health().await, Ok(()));
    assert!(refuses_second_daemon(&ground.dir("new")), "the lock came along");
}

fn refuses_second_daemon(dir: &Path) -> bool {
    matches!(refusal(dir), OpenError::Locked { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_replaced_underneath_stops_writes_until_it_is_put_back() {
    let ground = Ground::new().await;
    let (there, aside) = (ground.dir("old").join("store.db"), ground.dir("aside.db"));
    std::fs::rename(&there, &aside).expect("moved");
    std::fs::write(&there, "something else").expect("written");
    let write = || suite::write("/registry/a", Expect::Absent, suite::put("x"));
    assert_unavailable(ground.store.write(write()).await, "replaced by another file");
    std::fs::rename(&aside, &there).expect("put back");
    suite::committed(ground.store.write(write()).await);
    assert_eq!(ground.store.health().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identical_copy_is_adopted() {
    let ground = Ground::new().await;
    let before = contents(&ground.store).await;
    copy_files(&ground.dir("old"), &ground.dir("new"));
    let copied = super::super::store::FileNode::of(&ground.dir("new").join("store.db")).expect("it exists");
    ground.store.relocate(ground.dir("new")).await.expect("it is adopted");
    assert_eq!(contents(&ground.store).await, before);
    let adopted = super::super::store::FileNode::of(&ground.dir("new").join("store.db")).expect("it exists");
    assert_eq!(copied, adopted, "nothing was copied over it");
}

async fn refused_and_unharmed(ground: &Ground, to: PathBuf) -> String {
    let before = contents(&ground.store).await;
    let why = ground.store.relocate(to).await.expect_err("it is refused");
    assert_eq!(contents(&ground.store).await, before);
    assert_eq!(ground.store.directory(), ground.dir("old"));
    let key = format!("/registry/after/{}", ground.store.revision());
    suite::create(&as_storage(&ground.store), &key, "x").await;
    why.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_behind_is_refused_and_the_old_one_goes_on() {
    let ground = Ground::new().await;
    copy_files(&ground.dir("old"), &ground.dir("new"));
    suite::create(&as_storage(&ground.store), "/registry/later", "x").await;
    let why = refused_and_unharmed(&ground, ground.dir("new")).await;
    assert!(why.contains("revision 31") && why.contains("revision 32"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_store_in_the_new_place_is_refused_and_left_alone() {
    let ground = Ground::new().await;
    let other = open(&ground.dir("new"));
    fill(&other, 3, 100).await;
    let theirs = contents(&other).await;
    let why = ground.store.relocate(ground.dir("new")).await.expect_err("it is in use");
    assert!(matches!(why, RelocateError::Target(OpenError::Locked { .. })), "{why}");
    drop(other);
    let why = refused_and_unharmed(&ground, ground.dir("new")).await;
    assert!(why.contains("another store"), "{why}");
    assert_eq!(contents(&open(&ground.dir("new"))).await, theirs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_cannot_be_written_is_refused() {
    let ground = Ground::new().await;
    std::fs::write(ground.dir("file"), "in the way").expect("written");
    let why = refused_and_unharmed(&ground, ground.dir("file/new")).await;
    assert!(why.contains("cannot create the directory"), "{why}");
}
