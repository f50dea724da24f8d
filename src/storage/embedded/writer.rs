//! The thread that owns the store.
//!
//! Each turn: commit the writes that wait, answer questions, one slice of a read, one slice of compaction. When
//! there is nothing to do it checkpoints and waits. No delay gathers batches: while one commit is synced the
//! next one's writes come in.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc::Receiver, oneshot},
};
use tracing::{error, info, warn};

use super::{
    Ask, EmbeddedOptions, OpenError, Request, Shared, batch,
    compaction::Compaction,
    expiry::{self, Expiry},
    guard::{self, DirectoryLock},
    inbox::Inbox,
    load::{self, Entry, Index, Loaded},
    reads::Reads,
    room::Room,
    row::Row,
    stats,
    store::{self, Pages, Store, Trouble},
    wal,
    watchers::{self, Replayed, WatchAsk, Watchers},
};
use crate::storage::{Event, Expect, Op, Revision, StorageError, Write, WriteOutcome};

/// Checkpoint when idle and this much went into the WAL since the last one.
const CHECKPOINT_BYTES: u64 = 4 << 20;
/// Free pages are given back only in a file of some size: below, keeping them costs nothing.
const SHRINK_PAGES: u64 = 4096;
/// Keys deleted in one commit because their time has come.
const EXPIRE: usize = 64;
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LAST_BACKOFF: Duration = Duration::from_secs(30);

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
    watchers: Watchers,
    pub(super) reads: Reads,
    compaction: Compaction,
    /// Bytes in the WAL that no checkpoint has moved, roughly.
    dirty: u64,
    /// After a failure: expiry and checkpoints not before this.
    pause: Option<Instant>,
    accept_damaged_wal: bool,
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

/// Refuses a WAL whose damage would silently drop commits. No connection may be open.
pub(super) fn examine_wal(file: &Path, accept_damage: bool) -> Result<(), OpenError> {
    let path = store::companion(file, "-wal");
    match wal::examine(&path) {
        Ok(None) => Ok(()),
        Ok(Some(damage)) if accept_damage => {
            warn!(path = %path.display(), frame = damage.frame, commits = damage.commits, "going on with a damaged WAL");
            Ok(())
        }
        Ok(Some(damage)) => Err(OpenError::DamagedWal { path, frame: damage.frame, commits: damage.commits }),
        Err(source) => Err(OpenError::Io { what: "read", path, source }),
    }
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
    fn store(&mut self) -> Result<&mut Store, StorageError> {
        match &mut self.state {
            State::Open(store) => Ok(store),
            State::Lost { reason, .. } => Err(lost(reason)),
        }
    }

    /// Why nothing at all can be written now.
    fn write_refusal(&mut self) -> Result<(), StorageError> {
        self.store()?.in_place().map_err(|why| {
            StorageError::Unavailable(format!("{why}; put it back, or name its new directory in the configuration"))
        })
    }

    fn write(&mut self, requests: Vec<Request>) {
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

    fn set_current(&mut self, revision: Revision) {
        self.current = revision;
        self.shared.current.store(revision, Ordering::Release);
        stats::set(&self.shared.stats.keys, self.index.len() as u64);
    }

    fn set_compacted(&mut self, revision: Revision) {
        self.compacted = revision;
        self.shared.compacted.store(revision, Ordering::Release);
    }

    /// What the failure of a statement means for the store and for who asked.
    fn failed(&mut self, trouble: Trouble) -> StorageError {
        match trouble {
            Trouble::Full(text) => {
                if let State::Open(store) = &self.state {
                    self.room.ran_out(&text, store);
                }
                self.room.refusal().unwrap_or(StorageError::Full(text))
            }
            Trouble::Busy(text) => {
                StorageError::Unavailable(format!("another process holds a lock on the store: {text}"))
            }
            Trouble::Lost(_) | Trouble::Damaged(_) => {
                let reason = trouble.to_string();
                // Some calls of SQLite report a full disk as any other I/O error.
                let full = self.room.is_exhausted();
                let why = if full { StorageError::Full(reason.clone()) } else { lost(&reason) };
                self.lose(reason, FIRST_BACKOFF);
                why
            }
        }
    }

    /// Gives the handle up: after an I/O error nobody knows what is on the disk.
    fn lose(&mut self, reason: String, backoff: Duration) {
        error!(reason, "the store failed and is closed; it will be checked and opened again");
        let why = lost(&reason);
        self.reads.fail(&why);
        self.compaction.failed(Instant::now(), &why);
        let state = State::Lost { reason, next: Instant::now() + backoff, backoff };
        if let State::Open(store) = std::mem::replace(&mut self.state, state) {
            store.abandon();
        }
    }

    fn reopen_if_due(&mut self) {
        let State::Lost { next, backoff, .. } = &self.state else {
            return;
        };
        let backoff = *backoff;
        if Instant::now() < *next {
            return;
        }
        // A backup has the files open: examining the WAL now would take its locks away.
        let files = Arc::clone(&self.shared.files);
        let Ok(_guard) = files.try_lock() else {
            self.lose("a backup or a move has to end before the store can be opened again".to_owned(), backoff);
            return;
        };
        let file = self.shared.directory.read().join(store::FILE);
        match self.open_again(&file).and_then(|(store, loaded)| self.adopt(store, loaded)) {
            Ok(()) => {
                stats::add(&self.shared.stats.reopened, 1);
                info!(revision = self.current, "the store is open again");
            }
            Err(reason) => self.lose(reason, (backoff * 2).min(LAST_BACKOFF)),
        }
    }

    /// Opens and checks `file`; no connection may be open.
    pub(super) fn open_again(&mut self, file: &Path) -> Result<(Store, Loaded), String> {
        self.room.make_way();
        examine_wal(file, self.accept_damaged_wal).map_err(|e| e.to_string())?;
        let store = Store::open(file).map_err(|e| e.to_string())?;
        match load::load(&store) {
            Ok(loaded) => Ok((store, loaded)),
            Err(e) => {
                store.abandon();
                Err(e.to_string())
            }
        }
    }

    /// Goes on with a store that holds everything that was acknowledged. What it holds beyond was written by a
    /// commit whose end was not seen; watchers are told of it now.
    pub(super) fn adopt(&mut self, store: Store, loaded: Loaded) -> Result<(), String> {
        if let Err(reason) = self.continues(&store, &loaded) {
            store.abandon();
            return Err(reason);
        }
        let mut unseen = Vec::new();
        let read = store.scan(self.current, loaded.current, |row| {
            unseen.push(watchers::event(&row, row.key.into()));
            true
        });
        if let Err(trouble) = read {
            store.abandon();
            return Err(trouble.to_string());
        }
        self.state = State::Open(store);
        self.index = loaded.index;
        self.expiry = loaded.expiry;
        self.set_compacted(loaded.compacted);
        self.set_current(loaded.current);
        if !unseen.is_empty() {
            self.watchers.publish(&unseen.into(), &self.shared.stats);
        }
        self.dirty = CHECKPOINT_BYTES;
        self.limit_wal();
        self.measure();
        Ok(())
    }

    fn continues(&self, store: &Store, loaded: &Loaded) -> Result<(), String> {
        if store.identity() != self.shared.identity {
            return Err(format!("{} is another store", store.path().display()));
        }
        if loaded.current < self.current {
            return Err(format!(
                "{} ends at revision {}, but revision {} was acknowledged",
                store.path().display(),
                loaded.current,
                self.current
            ));
        }
        Ok(())
    }

    /// Deletes keys whose time has come, as ordinary writes.
    fn expire(&mut self) {
        if self.pause.is_some_and(|until| Instant::now() < until)
            || self.expiry.next().is_none_or(|at| at > expiry::now())
        {
            return;
        }
        let mut requests = Vec::new();
        for key in self.expiry.due(expiry::now(), EXPIRE) {
            match self.index.get(&*key) {
                Some(entry) => {
                    let expect = Expect::ModRevision(entry.mod_rev);
                    requests.push(Request { write: Write { key, expect, op: Op::Delete }, reply: None });
                }
                None => self.expiry.forget(&key),
            }
        }
        let (count, before) = (requests.len() as u64, self.current);
        self.write(requests);
        if self.current > before {
            stats::add(&self.shared.stats.expired_keys, count);
        } else {
            self.pause = Some(Instant::now() + Duration::from_secs(1));
        }
    }

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Read(ask) => match self.store() {
                Ok(_) => self.reads.begin(ask, &self.index, self.current, self.compacted),
                Err(why) => drop(ask.reply.send(Err(why))),
            },
            Ask::Watch(ask) => self.watch(ask),
            Ask::Compact(revision, reply) => self.ask_compaction(revision, reply),
            Ask::Health(reply) => drop(reply.send(self.health())),
            Ask::Tune { reserve_bytes, retention, reply } => {
                self.room.resize(reserve_bytes);
                self.limit_wal();
                self.compaction.set_retention(retention);
                let _ = reply.send(());
            }
            Ask::Relocate { directory, files, reply } => {
                let moved = self.relocate(&directory);
                drop(files);
                let _ = reply.send(moved);
            }
            #[cfg(test)]
            Ask::Inspect(look) => look(self),
        }
    }

    fn health(&mut self) -> Result<(), StorageError> {
        self.write_refusal()?;
        self.room.refusal().map_or(Ok(()), Err)
    }

    fn watch(&mut self, ask: WatchAsk) {
        let step = self.begin_watch(&ask);
        if step == Ok(Replayed::Live) {
            self.watchers.add(ask.prefix, ask.events, &self.shared.stats);
        }
        let _ = ask.reply.send(step);
    }

    fn begin_watch(&mut self, ask: &WatchAsk) -> Result<Replayed, StorageError> {
        let (current, compacted) = (self.current, self.compacted);
        if ask.after < compacted {
            return Err(StorageError::Compacted(compacted));
        }
        // Revision 1 is an empty store's: everybody may have seen it.
        if ask.after > current {
            return Err(StorageError::Future { asked: ask.after, current });
        }
        if ask.after == current {
            return Ok(Replayed::Live);
        }
        match watchers::replay(ask, self.store()?, current) {
            Ok(seen) if seen == current => Ok(Replayed::Live),
            // A store that nothing was written to has a revision, but no row of it.
            Ok(seen) if current == super::FIRST_REVISION && seen == ask.after => Ok(Replayed::Live),
            Ok(seen) => Ok(Replayed::More(seen)),
            Err(trouble @ (Trouble::Damaged(_) | Trouble::Busy(_))) => Err(super::reads::read_error(&trouble)),
            Err(trouble) => Err(self.failed(trouble)),
        }
    }

    pub(super) fn read(&mut self) {
        let State::Open(store) = &self.state else {
            return;
        };
        if let Err(trouble) = self.reads.step(store) {
            self.failed(trouble);
        }
    }

    fn ask_compaction(&mut self, revision: Revision, reply: oneshot::Sender<Result<(), StorageError>>) {
        if revision > self.current {
            let _ = reply.send(Err(StorageError::Future { asked: revision, current: self.current }));
        } else if revision <= self.compacted {
            let _ = reply.send(Ok(()));
        } else if let Err(why) = self.write_refusal() {
            let _ = reply.send(Err(why));
        } else {
            self.compaction.ask(revision, reply);
        }
    }

    fn compaction_due(&self, now: Instant) -> Option<(Revision, Revision)> {
        let State::Open(_) = self.state else {
            return None;
        };
        let limit = self.reads.oldest().unwrap_or(Revision::MAX);
        self.compaction.slice(now, self.compacted, limit)
    }

    fn compact(&mut self) {
        let now = Instant::now();
        self.compaction.tick(now, self.current);
        let Some((from, to)) = self.compaction_due(now) else {
            return;
        };
        let done = self.write_refusal().and_then(|()| {
            let done = self.store()?.compact(from, to);
            done.map_err(|trouble| self.failed(trouble))
        });
        match done {
            Ok(rows) => {
                self.set_compacted(to);
                stats::add(&self.shared.stats.compacted_rows, rows as u64);
                // Each removed row dirties its leaf page at least.
                self.dirty += rows as u64 * 4096;
                self.compaction.done(to, rows as u64);
                if self.compaction_due(now).is_none() {
                    self.measure();
                }
            }
            Err(why) => self.compaction.failed(now, &why),
        }
    }

    /// What is done when nobody waits. Returns whether it did something.
    fn idle_work(&mut self, now: Instant) -> bool {
        if self.pause.is_some_and(|until| now < until) || self.write_refusal().is_err() {
            return false;
        }
        self.pause = None;
        if self.dirty >= CHECKPOINT_BYTES {
            self.checkpoint();
            return true;
        }
        let pages = self.room.pages();
        if pages.total > SHRINK_PAGES && pages.free > pages.total / 2 {
            self.shrink();
            return true;
        }
        false
    }

    fn checkpoint(&mut self) {
        let started = Instant::now();
        let Ok(store) = self.store() else {
            return;
        };
        match store.checkpoint() {
            Ok(complete) => {
                self.shared.stats.checkpointed(started.elapsed());
                self.dirty = 0;
                if !complete {
                    // A reader is in the way; the next writes will come back to it.
                    info!("a checkpoint could not move everything: another process reads the store");
                }
                self.measure();
                self.room.warn_if_low();
            }
            Err(trouble) => self.idle_failure(trouble),
        }
    }

    fn shrink(&mut self) {
        let before = self.room.pages().free;
        let shrunk = self.store().map(|store| store.shrink());
        if let Ok(Err(trouble)) = shrunk {
            self.idle_failure(trouble);
        }
        self.dirty += 200 * 4096;
        self.measure();
        if self.room.pages().free >= before {
            self.pause = Some(Instant::now() + Duration::from_secs(1));
        }
    }

    fn idle_failure(&mut self, trouble: Trouble) {
        self.pause = Some(Instant::now() + Duration::from_secs(1));
        self.failed(trouble);
    }

    fn limit_wal(&mut self) {
        if let State::Open(store) = &self.state
            && let Err(trouble) = store.limit_wal(self.room.wal_limit())
        {
            self.failed(trouble);
        }
    }

    fn measure(&mut self) {
        let State::Open(store) = &self.state else {
            return;
        };
        let pages = store.pages().unwrap_or(Pages::default());
        self.room.set_pages(pages);
        stats::set(&self.shared.stats.page_count, pages.total);
        stats::set(&self.shared.stats.freelist_count, pages.free);
        stats::set(&self.shared.stats.keys, self.index.len() as u64);
    }

    /// Looks whether a disk that was full has room again.
    fn recover_room(&mut self) {
        if self.room.next_attempt().is_some_and(|at| at <= Instant::now()) {
            self.measure();
            self.room.recover();
        }
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

fn lost(reason: &str) -> StorageError {
    StorageError::Unavailable(format!("the store failed and is being checked: {reason}"))
}

fn refuse(requests: Vec<Request>, why: &StorageError) {
    for reply in requests.into_iter().filter_map(|request| request.reply) {
        let _: Result<(), Result<WriteOutcome, StorageError>> = reply.send(Err(why.clone()));
    }
}
