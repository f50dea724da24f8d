//! Fills the cache: lists the whole store, follows it, and lists again where the storage lost its place.
//!
//! The second and later lists are compared with what is known, and the differences are applied as changes in the order
//! of their revisions, so watchers see a gap as nothing but fewer intermediate states. Only where the store's history
//! itself was replaced (its revision went back, or a row we do not know has an old one) watches are ended.
//!
//! The thread has its own little runtime: dispatch must not wait behind requests that keep all workers busy.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    task::Waker,
    time::{Duration, Instant},
};

use tokio::{sync::mpsc::error::TryRecvError, time};

use super::Core;
use crate::storage::{Event, EventKind, EventStream, KeyValue, Revision, StorageError};

/// Changes applied as one batch where more are waiting.
const MERGED_EVENTS: usize = 256;
/// How often old events are looked for where none come.
const TRIM_EVERY: Duration = Duration::from_secs(15);
const AFTER_PANIC: Duration = Duration::from_millis(100);
/// Attributes are read out of objects of any depth, and reading recurses.
const READER_STACK: usize = 64 << 20;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) fn spawn(core: Arc<Core>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        // Reading attributes is code of others; a panic in it costs a fresh list, not the cache.
        while catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(&core)))).is_err() {
            tracing::error!("the watch cache's dispatcher panicked; listing the store again");
            std::thread::sleep(AFTER_PANIC);
        }
        core.close();
    };
    std::thread::Builder::new().name("watch-cache".into()).stack_size(READER_STACK).spawn(run)?;
    Ok(())
}

async fn run(core: &Core) {
    let mut stop = core.stop.subscribe();
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        () = feed(core) => {}
    }
}

/// Never ends by itself.
async fn feed(core: &Core) {
    let mut known = false;
    let mut pause = FIRST_PAUSE;
    loop {
        let begun = Instant::now();
        let failure = match begin(core, &mut known).await {
            Ok(stream) => follow(core, stream).await,
            Err(failure) => failure,
        };
        tracing::warn!(%failure, "the watch cache has no feed from the storage; listing the store again");
        // A feed that went on for a while is begun again at once, one that keeps failing more and more slowly.
        pause = if begun.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        time::sleep(pause).await;
    }
}

async fn begin(core: &Core, known: &mut bool) -> Result<EventStream, StorageError> {
    let revision = if *known { catch_up(core).await? } else { load(core).await? };
    *known = true;
    let shared = &core.shared;
    shared.storage.watch(&shared.options.prefix, revision, shared.options.feed).await
}

async fn load(core: &Core) -> Result<Revision, StorageError> {
    let mut entries = Vec::new();
    let revision = list(core, |rows| {
        let routes = core.routes.lock();
        entries.extend(rows.iter().map(|row| routes.entry(row)));
    })
    .await?;
    // Were it higher than what the resources show next, an old state would pass for a new one.
    core.shared.applied.store(0, Ordering::Release);
    let mut wakers = Vec::new();
    core.routes.lock().reset(entries, revision, &mut wakers);
    core.shared.advance(revision);
    wakers.into_iter().for_each(Waker::wake);
    Ok(revision)
}

async fn catch_up(core: &Core) -> Result<Revision, StorageError> {
    let before = core.shared.applied();
    let mut missing = core.routes.lock().all();
    let mut events = Vec::new();
    let revision = list(core, |rows| {
        for row in rows {
            let entry = missing.remove(&row.key);
            if entry.as_ref().is_some_and(|entry| entry.mod_revision() == row.mod_revision) {
                continue;
            }
            if let Some(entry) = entry
                && entry.create_revision() != row.create_revision
            {
                // Deleted and made again; the deletion came at the latest just before.
                events.push(deletion(entry.key(), row.create_revision.saturating_sub(1)));
            }
            events.push(Event { kind: EventKind::Put, kv: row });
        }
    })
    .await?;
    events.extend(missing.keys().map(|key| deletion(key, revision)));
    events.sort_by_key(|event| event.kv.mod_revision);
    if revision < before || events.first().is_some_and(|event| event.kv.mod_revision <= before) {
        tracing::warn!(before, revision, "the storage's history was replaced; watches are ended");
        return load(core).await;
    }
    core.routes.lock().add_hole(revision);
    core.apply(&[events.into()]);
    core.shared.advance(revision);
    Ok(revision)
}

fn deletion(key: &Arc<str>, revision: Revision) -> Event {
    let value = Default::default();
    let kv = KeyValue { key: Arc::clone(key), value, mod_revision: revision, create_revision: 0, version: 0 };
    Event { kind: EventKind::Delete, kv }
}

/// All rows as they were at one revision, page by page.
async fn list(core: &Core, mut visit: impl FnMut(Vec<KeyValue>)) -> Result<Revision, StorageError> {
    let shared = &core.shared;
    let (prefix, limit) = (&*shared.options.prefix, shared.options.page);
    shared.metrics.lists.add(1);
    let mut start = String::new();
    let mut at = None;
    loop {
        let page = shared.storage.list(prefix, &start, limit, at).await?;
        let last = page.items.last().map(|row| format!("{}\0", row.key));
        let revision = *at.get_or_insert(page.revision);
        visit(page.items);
        match last {
            Some(next) if page.more => start = next,
            _ => return Ok(revision),
        }
    }
}

/// Applies what comes until the stream ends; gives the reason.
async fn follow(core: &Core, mut stream: EventStream) -> StorageError {
    let ended = || StorageError::Unavailable("the feed ended".into());
    let mut trimmed = Instant::now();
    loop {
        let first = time::timeout(TRIM_EVERY, stream.recv()).await;
        if trimmed.elapsed() >= TRIM_EVERY {
            core.trim();
            trimmed = Instant::now();
        }
        let first = match first {
            Err(_) => continue,
            Ok(None) => return ended(),
            Ok(Some(Err(failure))) => return failure,
            Ok(Some(Ok(batch))) => batch,
        };
        let mut waiting = first.len();
        let mut batches = vec![first];
        let mut failure = None;
        while waiting < MERGED_EVENTS && failure.is_none() {
            match stream.try_recv() {
                Ok(Ok(batch)) => {
                    waiting += batch.len();
                    batches.push(batch);
                }
                Ok(Err(reason)) => failure = Some(reason),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => failure = Some(ended()),
            }
        }
        core.apply(&batches);
        if let Some(failure) = failure {
            return failure;
        }
    }
}
