//! The embedded back end against the suite, and what only it promises.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{Ask, Embedded, EmbeddedOptions, OpenError, writer::Writer};
use crate::storage::{Expect, Op, Revision, Storage, StorageError, WriteOutcome, suite};

mod backup;
mod crash;
mod damage;
mod failing_disk;
mod full_disk;
mod history;
mod moving;
mod start;

fn options(dir: &Path) -> EmbeddedOptions {
    EmbeddedOptions { reserve_bytes: 1 << 20, ..EmbeddedOptions::new(dir) }
}

fn open(dir: &Path) -> Arc<Embedded> {
    Embedded::open(options(dir)).expect("the store opens")
}

fn refusal(dir: &Path) -> OpenError {
    match Embedded::open(options(dir)) {
        Ok(_) => panic!("the store opened"),
        Err(why) => why,
    }
}

fn file(dir: &Path) -> PathBuf {
    dir.join("store.db")
}

/// A connection of somebody else, as an administrator's.
fn sqlite(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(file(dir)).expect("the file opens")
}

fn as_storage(store: &Arc<Embedded>) -> Arc<dyn Storage> {
    Arc::clone(store) as _
}

/// Everything that exists: key, value, revision.
async fn contents(store: &Arc<Embedded>) -> Vec<(String, Bytes, Revision)> {
    let page = suite::within(store.list("", "", 0, None)).await.expect("the list works");
    page.items.into_iter().map(|kv| (kv.key.to_string(), kv.value, kv.mod_revision)).collect()
}

/// Runs `look` on the writer thread.
async fn inspect<T: Send + 'static>(store: &Arc<Embedded>, look: impl FnOnce(&mut Writer) -> T + Send + 'static) -> T {
    let (reply, answer) = oneshot::channel();
    let ask = Ask::Inspect(Box::new(move |writer: &mut Writer| drop(reply.send(look(writer)))));
    assert!(store.asks().expect("the store is open").send(ask).await.is_ok());
    suite::within(answer).await.expect("the writer answers")
}

/// Creates `count` keys with values of `size` bytes that tell their number.
async fn fill(store: &Arc<Embedded>, count: usize, size: usize) {
    let store = as_storage(store);
    for n in 0..count {
        suite::create(&store, &format!("/registry/pods/{n:05}"), &value(n, size)).await;
    }
}

fn value(n: usize, size: usize) -> String {
    format!("value {n:05} ").repeat(size / 12 + 1)[..size].to_owned()
}

/// Tries again until it works.
async fn until_committed(store: &Arc<Embedded>, key: &str, value: &str) -> Revision {
    let write = || suite::write(key, Expect::Absent, suite::put(value.to_owned()));
    suite::within(async {
        loop {
            match store.write(write()).await {
                Ok(WriteOutcome::Committed(revision)) => return revision,
                Ok(WriteOutcome::Conflict(_)) => panic!("{key} is there already"),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await
}

async fn wait_for(mut condition: impl FnMut() -> bool) {
    suite::within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn assert_unavailable<T: std::fmt::Debug>(result: Result<T, StorageError>, words: &str) {
    match result {
        Err(StorageError::Unavailable(why)) => assert!(why.contains(words), "{why:?} should say {words:?}"),
        other => panic!("expected to be refused, got {other:?}"),
    }
}

mod conformance {
    use super::*;

    async fn ground() -> (Arc<dyn Storage>, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        (open(dir.path()), dir)
    }

    suite::storage_suite!(ground());
}
