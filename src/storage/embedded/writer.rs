//! The thread that owns the store.
//!
//! Each turn: commit the writes that wait, answer questions, one slice of a read, one slice of compaction. When
//! there is nothing to do it checkpoints and waits. No delay gathers batches: while one commit is synced the
//! next one's writes come in.

use std::{
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::Receiver,
};
use tracing::warn;

use super::{
    Ask, EmbeddedOptions, OpenError, Request, Shared, batch,
    compaction::Compaction,
    expiry::{self, Expiry},
    guard::{self, DirectoryLock},
    inbox::Inbox,
    load::{self, Entry, Index},
    reads::Reads,
    reopen::{FIRST_BACKOFF, examine_wal, lost},
    room::Room,
    row::Row,
    stats,
    store::{self, Store},
    watchers::{self, Watchers},
};
use crate::storage::{Event, Op, Revision, StorageError, WriteOutcome};

/// Checkpoint when idle and this much went into the WAL since the last one.
pub(super) const CHECKPOINT_BYTES: u64 = 4 << 20;
/// Whether there is a handle.
pub(super) enum State {
    Open(Store),
    /// Closed after an I/O error; opened again at `next`.
    Lost {
        reason: String,
        next: Instant,
        backoff: Duration,
    },
}

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    inbox: Inbox,
    pub(super) state: State,
    pub(super) lock: DirectoryLock,
    pub(super) room: Room,
    pub(super) index: Index,
    pub(super) expiry: Expiry,
    pub(super) current: Revision,
    pub(super) compacted: Revision,
    pub(super) watchers: Watchers,
    pub(super) reads: Reads,
    pub(super) compaction: Compaction,
    /// Bytes in the WAL that no checkpoint has moved, roughly.
    pub(super) dirty: u64,
    /// After a failure: expiry and checkpoints not before this.
    pub(super) pause: Option<Instant>,
    pub(super) accept_damaged_wal: bool,
    on_commit: fn(usize, Duration),
}

/// Opens the store and starts its thread.
pub(super) fn start(
    options: EmbeddedOptions,
    writes: Receiver<Request>,
    asks: Receiver<Ask>,
) -> Result<(Arc<Shared>, JoinHandle<()>), OpenError> {
    let dir = &options.path;
    guard::make_directory(dir)?;
    let lock = DirectoryLock::take(dir)?;
    let file = dir.join(store::FILE);
    let left = store::companion(&file, store::MOVED_SUFFIX);
    if left.exists() && !file.exists() {
        return Err(OpenError::MovedAway { left });
    }
    examine_wal(&file, options.accept_damaged_wal)?;
    let store = Store::open_or_create(&file)?;
    let loaded = load::load(&store)?;
    let room = Room::new(dir, options.reserve_bytes);
    let shared = Arc::new(Shared {
        current: loaded.current.into(),
        compacted: loaded.compacted.into(),
        stats: Default::default(),
        directory: RwLock::new(dir.clone()),
        identity: store.identity(),
        files: Arc::default(),
    });
    let mut writer = Writer {
        shared: Arc::clone(&shared),
        inbox: Inbox::new(writes, asks),
        state: State::Open(store),
        lock,
        room,
        compaction: Compaction::new(options.retention, loaded.current),
        index: loaded.index,
        expiry: loaded.expiry,
        current: loaded.current,
        compacted: loaded.compacted,
        watchers: Watchers::default(),
        reads: Reads::default(),
        dirty: 0,
        pause: None,
        accept_damaged_wal: options.accept_damaged_wal,
        on_commit: options.on_commit,
    };
    writer.limit_wal();
    writer.measure();
    stats::set(&shared.stats.healthy, 1);
    let runtime = Builder::new_current_thread().enable_time().build().map_err(OpenError::Thread)?;
    let thread = std::thread::Builder::new()
        .name("storage-writer".to_owned())
        .spawn(move || writer.run(&runtime))
        .map_err(OpenError::Thread)?;
    Ok((shared, thread))
}

impl Writer {
    fn run(&mut self, runtime: &Runtime) {
        loop {
            let now = Instant::now();
            if !self.has_work(now) && !self.idle_work(now) {
                let deadline = self.deadline();
                if !runtime.block_on(self.inbox.wait(deadline)) {
                    break;
                }
            }
            self.turn();
        }
        self.finish();
    }

    fn has_work(&self, now: Instant) -> bool {
        !self.inbox.is_empty() || !self.reads.is_empty() || self.compaction_due(now).is_some()
    }

    fn turn(&mut self) {
        stats::add(&self.shared.stats.turns, 1);
        self.reopen_if_due();
        self.recover_room();
        let requests = self.inbox.writes();
        self.write(requests);
        self.expire();
        while self.reads.has_room() {
            match self.inbox.ask() {
                Some(ask) => self.answer(ask),
                None => break,
            }
        }
        self.read();
        self.compact();
        let healthy = self.write_refusal().is_ok() && self.room.refusal().is_none();
        stats::set(&self.shared.stats.healthy, u64::from(healthy));
    }

    /// When something is to be done though nobody asks.
    fn deadline(&self) -> Option<Instant> {
        let now = Instant::now();
        let State::Open(_) = self.state else {
            return self.next_attempt();
        };
        let resume = self.pause.filter(|until| *until > now);
        let expiry = self.expiry.next().map(|at| (now + expiry::wait_for(at)).max(resume.unwrap_or(now)));
        let compaction = self.compaction.next(self.current);
        let retry = self.compaction.pause().filter(|until| *until > now);
        [expiry, compaction, retry, resume, self.room.next_attempt()].into_iter().flatten().min()
    }

    fn next_attempt(&self) -> Option<Instant> {
        match &self.state {
            State::Open(_) => None,
            State::Lost { next, .. } => Some(*next),
        }
    }

    /// The handle, or why there is none.
    pub(super) fn store(&mut self) -> Result<&mut Store, StorageError> {
        match &mut self.state {
            State::Open(store) => Ok(store),
            State::Lost { reason, .. } => Err(lost(reason)),
        }
    }

    /// Why nothing at all can be written now.
    pub(super) fn write_refusal(&mut self) -> Result<(), StorageError> {
        self.store()?.in_place().map_err(|why| {
            StorageError::Unavailable(format!("{why}; put it back, or name its new directory in the configuration"))
        })
    }

    pub(super) fn write(&mut self, requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        if let Err(why) = self.write_refusal() {
            return refuse(requests, &why);
        }
        let requests = self.without_refused_puts(requests);
        let batch = batch::decide(&self.index, self.current, requests.iter().map(|request| &request.write));
        if !batch.rows.is_empty() {
            if let Err(why) = self.commit(&batch.rows) {
                return refuse(requests, &why);
            }
            self.publish(&batch.rows);
            if self.room.refusal().is_some() {
                // What was deleted makes room only once it is forgotten.
                self.compaction.hurry(self.current);
            }
        }
        for (request, outcome) in requests.into_iter().zip(batch.outcomes) {
            if let Some(reply) = request.reply {
                let _ = reply.send(Ok(outcome));
            }
        }
    }

    /// While the disk is full only deletions are tried: they need little, and the reserve was given up for them.
    fn without_refused_puts(&mut self, requests: Vec<Request>) -> Vec<Request> {
        let Some(why) = self.room.refusal() else {
            return requests;
        };
        let (deletions, puts) = requests.into_iter().partition(|request| request.write.op == Op::Delete);
        refuse(puts, &why);
        deletions
    }

    fn commit(&mut self, rows: &[Row]) -> Result<(), StorageError> {
        let started = Instant::now();
        match self.store()?.commit(rows) {
            Ok(()) => {
                let stats = &self.shared.stats;
                stats::add(&stats.commits, 1);
                stats::add(&stats.committed_rows, rows.len() as u64);
                (self.on_commit)(rows.len(), started.elapsed());
                self.dirty += rows.iter().map(|row| store::disk_cost(&row.value)).sum::<u64>();
                Ok(())
            }
            Err(trouble) => {
                stats::add(&self.shared.stats.failed_commits, 1);
                Err(self.failed(trouble))
            }
        }
    }

    /// Memory first, then watchers; the callers are answered after this.
    fn publish(&mut self, rows: &[Row]) {
        for row in rows {
            if row.deleted {
                self.index.remove(&*row.key);
                self.expiry.forget(&row.key);
            } else {
                let entry = Entry { mod_rev: row.rev, create_rev: row.create_rev, version: row.version };
                self.index.insert(Arc::clone(&row.key), entry);
                self.expiry.set(&row.key, row.expires);
            }
        }
        let events: Arc<[Event]> = rows.iter().map(watchers::committed).collect();
        if let Some(last) = rows.last() {
            self.set_current(last.rev);
        }
        self.watchers.publish(&events, &self.shared.stats);
    }

    pub(super) fn set_current(&mut self, revision: Revision) {
        self.current = revision;
        self.shared.current.store(revision, Ordering::Release);
        stats::set(&self.shared.stats.keys, self.index.len() as u64);
    }

    pub(super) fn set_compacted(&mut self, revision: Revision) {
        self.compacted = revision;
        self.shared.compacted.store(revision, Ordering::Release);
    }

    /// Empties the WAL into the file, so that a test can look at the file's size.
    #[cfg(test)]
    pub(super) fn checkpoint_now(&mut self) {
        if let State::Open(store) = &self.state {
            store.checkpoint_all().expect("the checkpoint works");
        }
    }

    #[cfg(test)]
    pub(super) fn with_store<T>(&mut self, use_it: impl FnOnce(&mut Store) -> T) -> Result<T, StorageError> {
        self.store().map(use_it)
    }

    fn finish(&mut self) {
        self.watchers.end(&super::closed(), &self.shared.stats);
        let state = State::Lost { reason: "closed".to_owned(), next: Instant::now(), backoff: FIRST_BACKOFF };
        if let State::Open(store) = std::mem::replace(&mut self.state, state) {
            if store.in_place().is_err() {
                store.abandon();
            } else if let Err(trouble) = store.close() {
                warn!(reason = %trouble, "the store did not close in order; the next start will check it");
            }
        }
    }
}

fn refuse(requests: Vec<Request>, why: &StorageError) {
    for reply in requests.into_iter().filter_map(|request| request.reply) {
        let _: Result<(), Result<WriteOutcome, StorageError>> = reply.send(Err(why.clone()));
    }
}
