//! The embedded back end: one SQLite file, one writer thread, every acknowledged write on the disk.
//!
//! The log is keyed by a global revision without gaps. One thread owns the only connection; it commits
//! together what waits, publishes to watchers after the commit and before anybody is answered, and does reads
//! and compaction in slices between commits. In memory is only where each key stands; values are the cache's.
//!
//! What is promised: after an answer of `Committed` the write survives `kill -9` and a power cut. A damaged
//! row or WAL is refused at start, or reported by the read that meets it, with its revision and key; nothing is
//! skipped silently. A full disk fails writes alone and ends by itself. After any other I/O error the file is
//! closed, checked and opened again before anything more is written.
//!
//! Must not know: kinds, namespaces, JSON.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};

use self::{
    reads::{ReadAsk, Scope},
    stats::Stats,
    watchers::{Replayed, WatchAsk},
};
use super::{EventStream, KeyValue, Page, Revision, Storage, StorageError, StorageFuture, Write, WriteOutcome};

mod answers;
mod backup;
mod batch;
mod compaction;
mod error;
mod expiry;
mod guard;
mod inbox;
mod layout;
mod load;
mod moving;
mod reads;
mod reopen;
mod room;
mod row;
pub mod stats;
mod store;
mod system;
mod upkeep;
mod wal;
mod watchers;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{OpenError, RelocateError};

/// The revision of a store that nothing was written to; the first write has the next one. As in etcd.
pub(crate) const FIRST_REVISION: Revision = 1;

/// Writes that wait for the writer; callers beyond wait for a place.
const WRITE_QUEUE: usize = 1024;
/// Reads and other questions that wait.
const ASK_QUEUE: usize = 256;

/// What may be set. All but `path` can change while the store is open ([`Embedded::tune`], [`Embedded::relocate`]).
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The data directory; made if it is missing, with mode 0700.
    pub path: PathBuf,
    /// Bytes kept back for the day the disk is full; 0 = none. Default 32 MiB.
    pub reserve_bytes: u64,
    /// How long superseded revisions stay readable. Default 5 minutes, as kube-apiserver compacts etcd.
    pub retention: Duration,
    /// Open the store though its WAL is damaged, and lose the commits from the damage on. Default false.
    pub accept_damaged_wal: bool,
    /// Told of each durable commit on the writer's thread: rows in it, and time from its beginning until it was
    /// on the disk. Default: nothing.
    pub on_commit: fn(usize, Duration),
}

impl EmbeddedOptions {
    /// The defaults, in `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            reserve_bytes: 32 << 20,
            retention: Duration::from_secs(300),
            accept_damaged_wal: false,
            on_commit: |_, _| (),
        }
    }
}

/// What the writer thread and its callers both see.
struct Shared {
    current: AtomicU64,
    compacted: AtomicU64,
    stats: Stats,
    /// The data directory as of now.
    directory: RwLock<PathBuf>,
    identity: i64,
    /// Held while something other than the writer's connection has the store's files open, since closing any
    /// descriptor of theirs would drop SQLite's locks.
    files: Arc<tokio::sync::Mutex<()>>,
}

/// A write that waits.
struct Request {
    write: Write,
    /// `None` where the store itself deletes what has expired.
    reply: Option<oneshot::Sender<Result<WriteOutcome, StorageError>>>,
}

/// Anything else that is asked of the writer.
enum Ask {
    Read(ReadAsk),
    Watch(WatchAsk),
    Compact(Revision, oneshot::Sender<Result<(), StorageError>>),
    Health(oneshot::Sender<Result<(), StorageError>>),
    Tune {
        reserve_bytes: u64,
        retention: Duration,
        reply: oneshot::Sender<()>,
    },
    Relocate {
        directory: PathBuf,
        files: OwnedMutexGuard<()>,
        reply: oneshot::Sender<Result<(), RelocateError>>,
    },
    #[cfg(test)]
    Inspect(Box<dyn FnOnce(&mut writer::Writer) + Send>),
}

struct Channels {
    writes: mpsc::Sender<Request>,
    asks: mpsc::Sender<Ask>,
}

/// The store. Closed when dropped, after what was sent to it is done.
pub struct Embedded {
    shared: Arc<Shared>,
    /// `None` once closed.
    channels: RwLock<Option<Channels>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Embedded {
    /// Opens the store in `options.path`, making an empty one where there is none, and checks all of it:
    /// about 3 s per GB. Blocks.
    pub fn open(options: EmbeddedOptions) -> Result<Arc<Self>, OpenError> {
        let (write_sender, writes) = mpsc::channel(WRITE_QUEUE);
        let (ask_sender, asks) = mpsc::channel(ASK_QUEUE);
        let (shared, thread) = writer::start(options, writes, asks)?;
        Ok(Arc::new(Self {
            shared,
            channels: RwLock::new(Some(Channels { writes: write_sender, asks: ask_sender })),
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// Does what was already asked, then closes the file; later calls fail. Blocks; idempotent.
    pub fn close(&self) {
        self.channels.write().take();
        if let Some(thread) = self.thread.lock().take() {
            // A writer that panicked has already failed everybody's calls.
            let _ = thread.join();
        }
    }

    /// Counters and sizes.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// The newest durable revision.
    pub fn revision(&self) -> Revision {
        self.shared.current.load(Ordering::Acquire)
    }

    /// Up to which revision superseded values are forgotten.
    pub fn compacted_revision(&self) -> Revision {
        self.shared.compacted.load(Ordering::Acquire)
    }

    /// The data directory as of now.
    pub fn directory(&self) -> PathBuf {
        self.shared.directory.read().clone()
    }

    /// Random number made with the store, which stays with it wherever it is moved.
    pub fn identity(&self) -> i64 {
        self.shared.identity
    }

    /// Bytes of the store's file and of its WAL on the disk.
    pub fn file_sizes(&self) -> (u64, u64) {
        let file = self.directory().join(store::FILE);
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        (size(&file), size(&store::companion(&file, "-wal")))
    }

    /// Bytes that may still be written to the disk of the store; `None` where it does not say.
    pub fn free_disk(&self) -> Option<u64> {
        system::free_bytes(&self.directory()).ok()
    }

    /// Changes what may change without opening again.
    pub async fn tune(&self, reserve_bytes: u64, retention: Duration) -> Result<(), StorageError> {
        self.ask(|reply| Ask::Tune { reserve_bytes, retention, reply }).await
    }

    /// Moves the store to another directory: adopts an identical store that is already there (the directory
    /// was moved or copied while nothing was written), else copies it. Writes and reads wait meanwhile. Where
    /// it fails the store goes on where it was. The old file is kept as `store.db.moved`.
    pub async fn relocate(&self, directory: PathBuf) -> Result<(), RelocateError> {
        let files = Arc::clone(&self.shared.files).lock_owned().await;
        let asks = self.asks().map_err(|_| RelocateError::Closed)?;
        let (reply, answer) = oneshot::channel();
        asks.send(Ask::Relocate { directory, files, reply }).await.map_err(|_| RelocateError::Closed)?;
        answer.await.map_err(|_| RelocateError::Closed)?
    }

    /// Writes one moment's state to `file`, which is replaced only when the copy is complete and on the disk.
    /// A daemon can start from it under the name `store.db`.
    pub async fn backup(&self, file: PathBuf) -> Result<(), StorageError> {
        backup::backup(Arc::clone(&self.shared), file).await
    }

    fn asks(&self) -> Result<mpsc::Sender<Ask>, StorageError> {
        self.channels.read().as_ref().map(|channels| channels.asks.clone()).ok_or_else(closed)
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, StorageError> {
        let asks = self.asks()?;
        let (reply, answer) = oneshot::channel();
        asks.send(ask(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())
    }

    async fn read(&self, scope: Scope, at: Option<Revision>) -> Result<Page, StorageError> {
        self.ask(|reply| Ask::Read(ReadAsk { scope, at, reply })).await?
    }

    async fn write_one(&self, write: Write) -> Result<WriteOutcome, StorageError> {
        let writes = self.channels.read().as_ref().map(|channels| channels.writes.clone()).ok_or_else(closed)?;
        let (reply, answer) = oneshot::channel();
        writes.send(Request { write, reply: Some(reply) }).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    async fn watch_from(&self, prefix: &str, after: Revision, buffer: usize) -> Result<EventStream, StorageError> {
        let prefix: Arc<str> = prefix.into();
        let (events, stream) = mpsc::channel(buffer.max(1) + 1);
        let asks = self.asks()?;
        match watchers::ask(&asks, &prefix, after, &events).await {
            Ok(Replayed::Live) => {}
            Ok(Replayed::More(seen)) => {
                tokio::spawn(watchers::pump(asks.downgrade(), prefix, seen, events));
            }
            Err(gone @ StorageError::Compacted(_)) => {
                let _ = events.try_send(Err(gone));
            }
            Err(why) => return Err(why),
        }
        Ok(stream)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}

impl Storage for Embedded {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> StorageFuture<'a, Option<KeyValue>> {
        Box::pin(async move { Ok(self.read(Scope::Key(key.into()), at).await?.items.pop()) })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
        start: &'a str,
        limit: usize,
        at: Option<Revision>,
    ) -> StorageFuture<'a, Page> {
        Box::pin(self.read(Scope::Prefix { prefix: prefix.into(), start: start.into(), limit }, at))
    }

    fn write<'a>(&'a self, write: Write) -> StorageFuture<'a, WriteOutcome> {
        Box::pin(self.write_one(write))
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision, buffer: usize) -> StorageFuture<'a, EventStream> {
        Box::pin(self.watch_from(prefix, after, buffer))
    }

    fn current_revision<'a>(&'a self) -> StorageFuture<'a, Revision> {
        Box::pin(async { Ok(self.revision()) })
    }

    fn compact<'a>(&'a self, revision: Revision) -> StorageFuture<'a, ()> {
        Box::pin(async move { self.ask(|reply| Ask::Compact(revision, reply)).await? })
    }

    fn compacted_revision(&self) -> Revision {
        self.shared.compacted.load(Ordering::Acquire)
    }

    fn health<'a>(&'a self) -> StorageFuture<'a, ()> {
        Box::pin(async { self.ask(Ask::Health).await? })
    }
}

/// The answer to everything after the store was closed.
fn closed() -> StorageError {
    StorageError::Unavailable("the store is closed".to_owned())
}
