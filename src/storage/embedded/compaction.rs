//! When old revisions are forgotten.
//!
//! Every so often the newest revision is noted with the time; when a note is older than the retention, what
//! was superseded up to its revision is forgotten, in slices of 200 revisions between commits. The notes live
//! in memory: after a restart history is kept a little longer, never shorter.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::storage::{Revision, StorageError};

/// Revisions per slice: 38-56 ms of a slow disk at worst, where 1000 took up to 90.
const SLICE: u64 = 200;
/// Where slices find little to remove (keys that were only created), they grow up to this, since each costs a
/// sync.
const LONGEST_SLICE: u64 = 16 * SLICE;

pub(super) struct Compaction {
    retention: Duration,
    /// Newest revision at a time, oldest first; at most ten and a few.
    notes: VecDeque<(Instant, Revision)>,
    target: Revision,
    /// Who waits for which revision to be compacted.
    waiting: Vec<(Revision, oneshot::Sender<Result<(), StorageError>>)>,
    /// Revisions of the next slice.
    step: u64,
    /// After a failure: not before this.
    pause: Option<Instant>,
}

impl Compaction {
    pub fn new(retention: Duration, current: Revision) -> Self {
        let notes = VecDeque::from([(Instant::now(), current)]);
        Self { retention, notes, target: 0, waiting: Vec::new(), step: SLICE, pause: None }
    }

    pub fn set_retention(&mut self, retention: Duration) {
        self.retention = retention;
    }

    /// Somebody asks for everything up to `revision` to be forgotten.
    pub fn ask(&mut self, revision: Revision, reply: oneshot::Sender<Result<(), StorageError>>) {
        self.target = self.target.max(revision);
        self.waiting.push((revision, reply));
    }

    /// Room is needed: everything up to `revision` is forgotten at once, without regard to the retention.
    pub fn hurry(&mut self, revision: Revision) {
        self.target = self.target.max(revision);
    }

    /// Notes the time and moves the target; call at [`Compaction::next`] or at any other time.
    pub fn tick(&mut self, now: Instant, current: Revision) {
        while let Some((when, revision)) = self.notes.front() {
            if now.duration_since(*when) < self.retention {
                break;
            }
            self.target = self.target.max(*revision);
            self.notes.pop_front();
        }
        if self.wants_note(current) && self.note_due(now) {
            self.notes.push_back((now, current));
        }
    }

    /// When [`Compaction::tick`] has something to do next, if nothing is written until then.
    pub fn next(&self, current: Revision) -> Option<Instant> {
        let expiry = self.notes.front().map(|(when, _)| *when + self.retention);
        let note = self
            .wants_note(current)
            .then(|| self.notes.back().map_or_else(Instant::now, |(when, _)| *when + self.interval()));
        expiry.into_iter().chain(note).min()
    }

    /// The next slice (from, to], not beyond `limit`, if one is due.
    pub fn slice(&self, now: Instant, compacted: Revision, limit: Revision) -> Option<(Revision, Revision)> {
        if self.pause.is_some_and(|until| now < until) {
            return None;
        }
        let to = self.target.min(limit).min(compacted + self.step);
        (to > compacted).then_some((compacted, to))
    }

    /// A slice failed; it is tried again after a while.
    pub fn failed(&mut self, now: Instant, error: &StorageError) {
        self.pause = Some(now + Duration::from_secs(1));
        for (_, reply) in self.waiting.drain(..) {
            let _ = reply.send(Err(error.clone()));
        }
    }

    /// Until when nothing is tried after a failure.
    pub fn pause(&self) -> Option<Instant> {
        self.pause
    }

    /// A slice up to `compacted` removed `rows` rows.
    pub fn done(&mut self, compacted: Revision, rows: u64) {
        self.pause = None;
        self.step = if rows < SLICE / 2 { (self.step * 2).min(LONGEST_SLICE) } else { SLICE };
        for (_, reply) in self.waiting.extract_if(.., |(revision, _)| *revision <= compacted) {
            let _ = reply.send(Ok(()));
        }
    }

    fn wants_note(&self, current: Revision) -> bool {
        self.notes.back().is_none_or(|(_, revision)| *revision < current) && self.target < current
    }

    fn note_due(&self, now: Instant) -> bool {
        self.notes.back().is_none_or(|(when, _)| now.duration_since(*when) >= self.interval())
    }

    /// Ten notes per retention: what is kept is at most a tenth longer than asked.
    fn interval(&self) -> Duration {
        (self.retention / 10).clamp(Duration::from_millis(50), Duration::from_secs(30))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_younger_than_the_retention_is_kept() {
        let retention = Duration::from_secs(300);
        let mut compaction = Compaction::new(retention, 10);
        let start = Instant::now();
        compaction.tick(start + Duration::from_secs(30), 50);
        assert_eq!(compaction.slice(start, 1, u64::MAX), None);
        compaction.tick(start + Duration::from_secs(301), 900);
        assert_eq!(compaction.slice(start, 1, u64::MAX), Some((1, 10)));
        compaction.tick(start + Duration::from_secs(331), 900);
        assert_eq!(compaction.slice(start, 10, u64::MAX), Some((10, 50)));
    }

    #[test]
    fn slices_are_bounded_and_stay_behind_readers() {
        let mut compaction = Compaction::new(Duration::from_secs(300), 1);
        let (reply, _answer) = oneshot::channel();
        compaction.ask(1000, reply);
        let now = Instant::now();
        assert_eq!(compaction.slice(now, 0, u64::MAX), Some((0, SLICE)));
        assert_eq!(compaction.slice(now, SLICE, SLICE + 7), Some((SLICE, SLICE + 7)));
        assert_eq!(compaction.slice(now, SLICE + 7, SLICE + 7), None);
        assert_eq!(compaction.slice(now, 1000, u64::MAX), None);
    }

    #[test]
    fn slices_grow_only_while_there_is_little_to_remove() {
        let mut compaction = Compaction::new(Duration::from_secs(300), 1);
        let (reply, _answer) = oneshot::channel();
        compaction.ask(1_000_000, reply);
        let now = Instant::now();
        for _ in 0..10 {
            compaction.done(0, 3);
        }
        assert_eq!(compaction.slice(now, 0, u64::MAX), Some((0, LONGEST_SLICE)));
        compaction.done(LONGEST_SLICE, 2500);
        assert_eq!(compaction.slice(now, 5000, u64::MAX), Some((5000, 5000 + SLICE)));
    }

    #[test]
    fn an_idle_store_needs_no_wakeups() {
        let mut compaction = Compaction::new(Duration::from_millis(10), 5);
        let later = Instant::now() + Duration::from_secs(1);
        compaction.tick(later, 5);
        assert_eq!(compaction.next(5), None);
        assert!(compaction.next(6).is_some());
    }
}
