//! What the writer does unasked: expiry, compaction, checkpoints, giving pages back.

use std::time::{Duration, Instant};

use tracing::info;

use super::{
    Request, expiry, stats,
    store::{Pages, Trouble},
    writer::{CHECKPOINT_BYTES, State, Writer},
};
use crate::storage::{Expect, Op, Revision, Write};

/// Free pages are given back only in a file of some size: below, keeping them costs nothing.
const SHRINK_PAGES: u64 = 4096;
/// Free pages that are worth a commit while the reserve is not whole.
const SHRINK_FOR_RESERVE: u64 = 64;
/// Keys deleted in one commit because their time has come.
const EXPIRE: usize = 64;

impl Writer {
    /// Deletes keys whose time has come, as ordinary writes.
    pub(super) fn expire(&mut self) {
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

    pub(super) fn compaction_due(&self, now: Instant) -> Option<(Revision, Revision)> {
        let State::Open(_) = self.state else {
            return None;
        };
        let limit = self.reads.oldest().unwrap_or(Revision::MAX);
        self.compaction.slice(now, self.compacted, limit)
    }

    pub(super) fn compact(&mut self) {
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
    pub(super) fn idle_work(&mut self, now: Instant) -> bool {
        if self.pause.is_some_and(|until| now < until) || self.write_refusal().is_err() {
            return false;
        }
        self.pause = None;
        if self.dirty >= CHECKPOINT_BYTES {
            self.checkpoint();
            return true;
        }
        let pages = self.room.pages();
        let much = pages.total > SHRINK_PAGES && pages.free > pages.total / 2;
        // What the reserve lacks is worth more on the disk than in the file.
        if much || (pages.free >= SHRINK_FOR_RESERVE && !self.room.is_reserved()) {
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
        self.room.look_soon();
        if self.room.pages().free >= before {
            self.pause = Some(Instant::now() + Duration::from_secs(1));
        }
    }

    fn idle_failure(&mut self, trouble: Trouble) {
        self.pause = Some(Instant::now() + Duration::from_secs(1));
        self.failed(trouble);
    }

    pub(super) fn limit_wal(&mut self) {
        if let State::Open(store) = &self.state
            && let Err(trouble) = store.limit_wal(self.room.wal_limit())
        {
            self.failed(trouble);
        }
    }

    pub(super) fn measure(&mut self) {
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
    pub(super) fn recover_room(&mut self) {
        if self.room.next_attempt().is_some_and(|at| at <= Instant::now()) {
            self.measure();
            if let State::Open(store) = &self.state
                && !self.room.is_reserved()
            {
                self.room.empty_wal(store);
            }
            self.room.recover();
            self.limit_wal();
        }
    }
}
