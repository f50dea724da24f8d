//! The watch cache: every object of the store in memory, as the bytes that are served.
//!
//! One feed (a list of the whole store, then a watch) fills it. One dispatcher thread applies what comes in revision
//! order to the resources and queues it for the watchers concerned. Resources are views that are registered and dropped
//! while it runs (a custom resource); rows of no registered resource are kept until one claims them.
//!
//! Promises: never older than a caller demands; lists, pages and gets never lock and share unchangeable entries; a
//! watch gives every change after its start once and in order, or says why not; a watcher that does not keep up is
//! ended and delays nobody. It leans on the storage's promise that revisions come in order and whole. It knows bytes
//! and keys: what selectors need is read by a function that comes with the resource.
//!
//! Where to read next: [`ResourceCache`] for what can be asked, `feed.rs` for how it is filled.

mod attributes;
mod encodings;
mod entry;
mod error;
mod event;
mod feed;
mod metrics;
mod resource;
mod ring;
mod routes;
mod snapshot;
pub mod splice;
mod watcher;
mod watchers;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::watch;

pub use self::{
    attributes::{Attributes, Attrs, NoAttributes},
    encodings::EncodingKey,
    entry::{CLOSING, Entry, EventType, SharedAttrs},
    error::{CacheError, WatchEnd},
    event::WatchEvent,
    metrics::{Counter, Metrics, ResourceStats},
    resource::ResourceCache,
    ring::RingLimits,
    snapshot::Snapshot,
    splice::with_revision,
    watcher::{WatchScope, WatchStart, Watcher},
};
use self::{encodings::Encodings, routes::Routes};
use super::{Event, Revision, Storage};

/// Sizes and times. The defaults are for a cluster of up to some thousand nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// What of the store is cached; everything that is written to it should be below, since consistent reads wait for
    /// the store's newest revision. Default `/registry/`.
    pub prefix: Box<str>,
    /// How long a read waits for the cache to reach a revision. Default 3 s, as upstream.
    pub wait: Duration,
    /// Recent changes kept per resource.
    pub ring: RingLimits,
    /// Bytes of objects that may wait for one watcher; one event always may. Default 32 MiB.
    pub watch_bytes: usize,
    /// Bytes of all other encodings kept beside the entries. Default 64 MiB.
    pub encoding_bytes: usize,
    /// Rows asked for at once while listing the store. Default 500.
    pub page: usize,
    /// Batches that may wait between the storage and the dispatcher. Default 1024.
    pub feed: usize,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            prefix: "/registry/".into(),
            wait: Duration::from_secs(3),
            ring: RingLimits::default(),
            watch_bytes: 32 << 20,
            encoding_bytes: 64 << 20,
            page: 500,
            feed: 1024,
        }
    }
}

/// The watch cache over one storage. Dropping it ends its thread and all watches; reads of what it has go on.
pub struct Cache {
    core: Arc<Core>,
}

/// What the dispatcher works on.
struct Core {
    shared: Arc<Shared>,
    routes: Mutex<Routes>,
    stop: watch::Sender<bool>,
}

/// What resources and watchers need of the cache.
struct Shared {
    storage: Arc<dyn Storage>,
    options: CacheOptions,
    encodings: Arc<Encodings>,
    metrics: Metrics,
    started: Instant,
    /// Everything up to here is in the resources and in the queues of their watchers.
    applied: AtomicU64,
    /// The first list is in.
    ready: AtomicBool,
    /// Tells those who wait for either.
    progress: watch::Sender<Progress>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    applied: Revision,
    ready: bool,
    closed: bool,
}

impl Cache {
    /// Starts the dispatcher thread, which lists the storage and follows it. Fails only if no thread can be made.
    pub fn start(storage: Arc<dyn Storage>, options: CacheOptions) -> std::io::Result<Arc<Self>> {
        let encodings = Arc::new(Encodings::new(options.encoding_bytes));
        let routes = Mutex::new(Routes::new(&options.prefix, Arc::clone(&encodings)));
        let shared = Arc::new(Shared {
            storage,
            options,
            encodings,
            metrics: Metrics::default(),
            started: Instant::now(),
            applied: AtomicU64::new(0),
            ready: AtomicBool::new(false),
            progress: watch::Sender::new(Progress::default()),
        });
        let core = Arc::new(Core { shared, routes, stop: watch::Sender::new(false) });
        feed::spawn(Arc::clone(&core))?;
        Ok(Arc::new(Self { core }))
    }

    /// The cache of the resource whose keys begin with `prefix` (e.g. `/registry/pods/`). The first call registers it
    /// and claims the rows that are there; later ones give the same and replace the attributes' reader.
    pub fn resource(&self, prefix: &str, attributes: Arc<dyn Attributes>) -> Arc<ResourceCache> {
        self.core.routes.lock().register(&self.core.shared, prefix, attributes)
    }

    /// Ends the resource's watches and answers its readers with [`CacheError::Closed`]. Its rows stay in the cache for
    /// whoever registers the prefix next.
    pub fn drop_resource(&self, prefix: &str) {
        let mut wakers = Vec::new();
        self.core.routes.lock().unregister(prefix, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends the resource's watches as [`Self::drop_resource`] does, but keeps it: what its objects look like changed.
    pub fn end_watches(&self, prefix: &str) {
        let mut wakers = Vec::new();
        let resource = self.core.routes.lock().find(prefix);
        if let Some(resource) = resource {
            resource.end_watches(&mut wakers);
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until the first list is in. Returns at once ever after.
    pub async fn ready(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.core.shared.progress.subscribe().wait_for(|progress| progress.ready || progress.closed).await;
    }

    pub fn is_ready(&self) -> bool {
        self.core.shared.check_ready().is_ok()
    }

    /// The revision of the whole store up to which the cache is complete.
    pub fn applied(&self) -> Revision {
        self.core.shared.applied()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.core.shared.metrics
    }

    /// Bytes of other encodings kept now.
    pub fn encoding_bytes(&self) -> usize {
        self.core.shared.encodings.kept_bytes()
    }

    /// Each registered resource, by prefix.
    pub fn resources(&self) -> Vec<Arc<ResourceCache>> {
        self.core.routes.lock().resources()
    }

    /// Rows that belong to no registered resource.
    pub fn unclaimed(&self) -> usize {
        self.core.routes.lock().unclaimed()
    }

    /// Ends the feed: what the storage does from now on is not followed. For the end of the process, when the storage is
    /// closed while others still hold the cache.
    pub fn stop(&self) {
        self.core.stop.send_replace(true);
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Core {
    /// Applies batches of changes and wakes whom they concern.
    fn apply(&self, batches: &[Arc<[Event]>]) {
        let events = || batches.iter().flat_map(|batch| batch.iter());
        let Some(end) = events().map(|event| event.kv.mod_revision).max() else { return };
        let mut wakers = Vec::new();
        self.routes.lock().apply(events(), end, self.shared.second(), &mut wakers);
        self.shared.metrics.events.add(events().count() as u64);
        self.shared.advance(end);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn trim(&self) {
        let second = self.shared.second();
        for resource in self.routes.lock().resources() {
            resource.trim(second);
        }
    }

    fn close(&self) {
        let mut wakers = Vec::new();
        for resource in self.routes.lock().resources() {
            resource.end_watches(&mut wakers);
        }
        self.shared.progress.send_modify(|progress| progress.closed = true);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Shared {
    fn applied(&self) -> Revision {
        self.applied.load(Ordering::Acquire)
    }

    /// Only after everything up to `revision` is in its place.
    fn advance(&self, revision: Revision) {
        self.applied.store(revision, Ordering::Release);
        self.ready.store(true, Ordering::Release);
        self.progress.send_modify(|progress| {
            progress.applied = revision;
            progress.ready = true;
        });
    }

    fn second(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    fn check_ready(&self) -> Result<(), CacheError> {
        if self.ready.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(CacheError::NotReady { waiting: self.started.elapsed() })
    }

    /// Waits until `asked` is applied; the error is what is applied instead.
    async fn reach(&self, asked: Revision) -> Result<(), Revision> {
        if self.applied() >= asked {
            return Ok(());
        }
        self.metrics.waits.add(1);
        let mut progress = self.progress.subscribe();
        let reached = progress.wait_for(|progress| progress.applied >= asked || progress.closed);
        let _ = tokio::time::timeout(self.options.wait, reached).await;
        let applied = self.applied();
        if applied >= asked {
            return Ok(());
        }
        self.metrics.wait_timeouts.add(1);
        Err(applied)
    }
}
