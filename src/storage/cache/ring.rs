//! The recent changes of one resource: what a watch can begin from, and what an older list is computed from.
//!
//! The ring is a persistent vector: a watcher that starts in the past takes all of it in constant time and reads it on
//! its own task.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use imbl::Vector;

use super::event::WatchEvent;
use crate::storage::Revision;

/// How much of the past is kept, per resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// Events kept however old they are. Default 100, as upstream's smallest ring.
    pub min_events: usize,
    /// Never more than these. Default 100,000, about upstream's largest ring.
    pub max_events: usize,
    /// Events younger than this are kept, within the other two limits. Default 75 s, as upstream
    /// (kubernetes/apiserver pkg/storage/cacher/watch_cache.go).
    pub window: Duration,
    /// Bytes of superseded states; events go before this is exceeded, however young or few. Default 64 MiB.
    pub bytes: usize,
}

impl Default for RingLimits {
    fn default() -> Self {
        Self { min_events: 100, max_events: 100_000, window: Duration::from_secs(75), bytes: 64 << 20 }
    }
}

pub(super) struct Ring {
    events: Vector<Arc<WatchEvent>>,
    held: usize,
    /// Every change above this revision is in `events`, holes aside.
    floor: Revision,
    holes: VecDeque<Hole>,
}

/// A span of revisions of which only the outcome is known, because the feed was lost: strictly between the two, nobody
/// can say what the state was.
#[derive(Clone, Copy)]
struct Hole {
    before: Revision,
    end: Revision,
}

/// A feed that is lost more often than this within the ring's time costs the past before the oldest loss.
const MOST_HOLES: usize = 8;

impl Ring {
    pub(super) fn new(floor: Revision) -> Self {
        Self { events: Vector::new(), held: 0, floor, holes: VecDeque::new() }
    }

    pub(super) fn floor(&self) -> Revision {
        self.floor
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held
    }

    pub(super) fn push(&mut self, event: Arc<WatchEvent>, limits: &RingLimits) {
        let now = event.second;
        self.held += event.held();
        self.events.push_back(event);
        self.trim(limits, now);
    }

    /// Lets go what the limits no longer keep at second `now`.
    pub(super) fn trim(&mut self, limits: &RingLimits, now: u32) {
        let window = limits.window.as_secs();
        while let Some(oldest) = self.events.front() {
            let aged = u64::from(now.saturating_sub(oldest.second)) > window;
            let len = self.events.len();
            let full = len > limits.max_events || self.held > limits.bytes || (aged && len > limits.min_events);
            if !full {
                break;
            }
            self.pop();
        }
        self.holes.retain(|hole| hole.end > self.floor);
    }

    fn pop(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.held -= oldest.held();
            self.floor = self.floor.max(oldest.revision());
        }
    }

    /// What happened after `before` and up to `end` is only known by its outcome, which is pushed next.
    pub(super) fn add_hole(&mut self, before: Revision, end: Revision) {
        if self.holes.len() >= MOST_HOLES
            && let Some(oldest) = self.holes.pop_front()
        {
            while self.events.front().is_some_and(|event| event.revision() <= oldest.end) {
                self.pop();
            }
            self.floor = self.floor.max(oldest.end);
        }
        self.holes.push_back(Hole { before, end });
    }

    /// The changes above `after`; the error is a revision from which on they are known.
    pub(super) fn after(&self, after: Revision) -> Result<Backlog, Revision> {
        if after < self.floor {
            return Err(self.floor);
        }
        if let Some(hole) = self.holes.iter().find(|hole| hole.before < after && after < hole.end) {
            return Err(hole.end);
        }
        let at = self.first_above(after);
        Ok(Backlog { events: self.events.clone(), at })
    }

    /// The revision of the newest change at or below `revision`, the floor if there is none in the ring.
    pub(super) fn last_change(&self, revision: Revision) -> Revision {
        let at = self.first_above(revision);
        at.checked_sub(1).and_then(|at| self.events.get(at)).map_or(self.floor, |event| event.revision())
    }

    fn first_above(&self, revision: Revision) -> usize {
        if self.events.back().is_none_or(|newest| newest.revision() <= revision) {
            return self.events.len();
        }
        self.events
            .binary_search_by(|event| {
                if event.revision() <= revision { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
            })
            .unwrap_or_else(|at| at)
    }
}

/// A part of the ring as it was at one moment.
pub(super) struct Backlog {
    events: Vector<Arc<WatchEvent>>,
    at: usize,
}

impl Backlog {
    pub(super) fn remaining(&self) -> usize {
        self.events.len() - self.at
    }

    /// Newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Arc<WatchEvent>> {
        self.events.iter().rev().take(self.remaining())
    }
}

impl Iterator for Backlog {
    type Item = Arc<WatchEvent>;

    fn next(&mut self) -> Option<Arc<WatchEvent>> {
        let event = self.events.get(self.at)?;
        self.at += 1;
        Some(Arc::clone(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::cache::entry::tests::{entry_of, home};

    fn event(revision: Revision, second: u32) -> Arc<WatchEvent> {
        WatchEvent::put(entry_of(&home("/registry/as/"), "a", r#"{"metadata":{}}"#, revision), None, second)
    }

    fn limits() -> RingLimits {
        RingLimits { min_events: 3, max_events: 10, window: Duration::from_secs(5), bytes: usize::MAX }
    }

    fn revisions(backlog: Result<Backlog, Revision>) -> Option<Vec<Revision>> {
        backlog.ok().map(|backlog| backlog.map(|event| event.revision()).collect())
    }

    #[test]
    fn young_events_are_kept_up_to_the_largest_number() {
        let mut ring = Ring::new(100);
        for i in 0..20 {
            ring.push(event(101 + i, 0), &limits());
        }
        assert_eq!(ring.len(), 10);
        assert_eq!(ring.floor(), 110);
        assert_eq!(revisions(ring.after(118)), Some(vec![119, 120]));
        assert_eq!(revisions(ring.after(110)).map(|all| all.len()), Some(10));
        assert_eq!(ring.after(109).err(), Some(110));
    }

    #[test]
    fn old_events_go_down_to_the_smallest_number() {
        let mut ring = Ring::new(0);
        for i in 1..=8 {
            ring.push(event(i, 0), &limits());
        }
        ring.trim(&limits(), 5);
        assert_eq!(ring.len(), 8);
        ring.trim(&limits(), 6);
        assert_eq!(ring.len(), 3);
        assert_eq!(ring.floor(), 5);
    }

    #[test]
    fn bytes_are_bounded_before_everything_else() {
        let mut ring = Ring::new(0);
        let one = event(1, 0).held();
        let limits = RingLimits { bytes: one * 2, ..limits() };
        for i in 1..=8 {
            ring.push(event(i, 0), &limits);
            assert!(ring.held_bytes() <= one * 2);
        }
        assert_eq!((ring.len(), ring.floor()), (2, 6));
    }

    #[test]
    fn a_start_between_two_changes_gives_the_later_ones() {
        let mut ring = Ring::new(5);
        for revision in [10, 20, 30] {
            ring.push(event(revision, 0), &limits());
        }
        assert_eq!(revisions(ring.after(4)), None);
        assert_eq!(revisions(ring.after(5)), Some(vec![10, 20, 30]));
        assert_eq!(revisions(ring.after(15)), Some(vec![20, 30]));
        assert_eq!(revisions(ring.after(30)), Some(vec![]));
        assert_eq!(revisions(ring.after(99)), Some(vec![]));
        assert_eq!([5, 9, 10, 19, 99].map(|revision| ring.last_change(revision)), [5, 5, 10, 10, 30]);
        let newest: Vec<_> = ring.after(10).expect("kept").newest_first().map(|event| event.revision()).collect();
        assert_eq!(newest, [30, 20]);
    }

    #[test]
    fn nothing_begins_within_a_hole_and_the_oldest_holes_become_the_floor() {
        let mut ring = Ring::new(0);
        ring.push(event(10, 0), &limits());
        ring.add_hole(10, 20);
        ring.push(event(15, 0), &limits());
        assert_eq!(revisions(ring.after(10)), Some(vec![15]));
        for within in [11, 15, 19] {
            assert_eq!(ring.after(within).err(), Some(20));
        }
        assert_eq!(revisions(ring.after(20)), Some(vec![]));
        for i in 1..=MOST_HOLES as u64 {
            ring.add_hole(100 * i, 100 * i + 50);
        }
        assert_eq!((ring.floor(), ring.len()), (20, 0));
        assert_eq!(ring.after(19).err(), Some(20));
        assert_eq!(ring.after(110).err(), Some(150));
    }
}
