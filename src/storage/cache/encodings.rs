//! Other encodings of entries (protobuf, Table row, another version, gzip), kept beside their bytes within one budget.
//!
//! The budget is for the whole cache. When it is used up, encodings nobody asked for since the hand of the clock last
//! came by are forgotten first; if a few steps of the hand free nothing, the new encoding is handed out unkept.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::entry::Entry;

/// Names one encoding of an entry. The cache gives it no meaning; whoever makes encodings numbers them, and takes
/// fresh numbers where old bytes must not be served any more (a changed schema).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncodingKey(pub u32);

/// How many entries one insertion may look at to find room.
const STEPS: usize = 64;
/// One encoding may take at most this share of the budget.
const LARGEST_SHARE: usize = 8;

/// The budget and the clock over all entries that hold encodings.
pub(super) struct Encodings {
    limit: usize,
    kept: AtomicUsize,
    clock: Mutex<Clock>,
}

struct Clock {
    /// Exactly the entries whose set is `Some`, and some that are gone.
    entries: VecDeque<Weak<Entry>>,
    /// Length at which entries that are gone are swept out.
    sweep_at: usize,
}

/// The encodings of one entry; replaced as a whole.
pub(super) struct KeptSet {
    items: Box<[(EncodingKey, Bytes)]>,
    used: AtomicBool,
}

impl KeptSet {
    pub(super) fn find(&self, key: EncodingKey) -> Option<Bytes> {
        let (_, bytes) = self.items.iter().find(|(kept, _)| *kept == key)?;
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(bytes.clone())
    }

    fn size(&self) -> usize {
        self.items.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

impl Encodings {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, kept: AtomicUsize::new(0), clock: Mutex::new(Clock { entries: VecDeque::new(), sweep_at: 1024 }) }
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    pub(super) fn keep(&self, entry: &Arc<Entry>, key: EncodingKey, bytes: &Bytes) {
        if bytes.len() > self.limit / LARGEST_SHARE || !self.make_room(bytes.len()) {
            return;
        }
        let mut known = entry.encodings.load_full();
        loop {
            let items = known.as_ref().map(|set| &set.items[..]).unwrap_or_default();
            if items.iter().any(|(kept, _)| *kept == key) {
                return;
            }
            let items = items.iter().cloned().chain([(key, bytes.clone())]).collect();
            let set = Arc::new(KeptSet { items, used: AtomicBool::new(false) });
            let before = arc_swap::Guard::into_inner(entry.encodings.compare_and_swap(&known, Some(set)));
            if before.as_ref().map(Arc::as_ptr) == known.as_ref().map(Arc::as_ptr) {
                break;
            }
            known = before;
        }
        self.kept.fetch_add(bytes.len(), Ordering::Relaxed);
        if known.is_none() {
            self.clock.lock().push(Arc::downgrade(entry));
        }
    }

    /// Lets an entry's encodings go; it stays on the clock.
    pub(super) fn forget(&self, entry: &Entry) {
        if entry.encodings.load().is_some() {
            let empty = Arc::new(KeptSet { items: Box::default(), used: AtomicBool::new(false) });
            self.release(entry.encodings.swap(Some(empty)));
        }
    }

    pub(super) fn release(&self, set: Option<Arc<KeptSet>>) {
        if let Some(set) = set {
            self.kept.fetch_sub(set.size(), Ordering::Relaxed);
        }
    }

    fn make_room(&self, wanted: usize) -> bool {
        for _ in 0..STEPS {
            if self.kept_bytes().saturating_add(wanted) <= self.limit {
                return true;
            }
            let Some(oldest) = self.clock.lock().entries.pop_front() else {
                return false;
            };
            let Some(entry) = oldest.upgrade() else { continue };
            let used = entry.encodings.load().as_ref().is_some_and(|set| set.used.swap(false, Ordering::Relaxed));
            if used {
                self.clock.lock().entries.push_back(oldest);
            } else {
                self.release(entry.encodings.swap(None));
            }
        }
        false
    }
}

impl Clock {
    fn push(&mut self, entry: Weak<Entry>) {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|entry| entry.strong_count() > 0);
            self.sweep_at = (self.entries.len() * 2).max(1024);
        }
        self.entries.push_back(entry);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::storage::cache::entry::{Home, tests::entry_of};

    fn home(limit: usize) -> Arc<Home> {
        Arc::new(Home::new(
            "/registry/",
            Arc::new(crate::storage::cache::NoAttributes),
            Arc::new(Encodings::new(limit)),
        ))
    }

    fn encode(entry: &Arc<Entry>, key: u32, len: usize) -> Bytes {
        entry.encoding(EncodingKey(key), |_| Ok::<_, Infallible>(Bytes::from(vec![1; len]))).expect("infallible")
    }

    fn kept(entry: &Arc<Entry>, key: u32) -> bool {
        entry.encoding(EncodingKey(key), |_| Err(())).is_ok()
    }

    #[test]
    fn an_encoding_is_made_once_and_then_served() {
        let home = home(1 << 20);
        let entry = entry_of(&home, "a", r#"{"metadata":{}}"#, 1);
        let first = encode(&entry, 1, 100);
        let again = entry.encoding(EncodingKey(1), |_| Err("made again")).expect("kept");
        assert_eq!(first.as_ptr(), again.as_ptr());
        assert!(!kept(&entry, 2));
        encode(&entry, 2, 50);
        assert!(kept(&entry, 1) && kept(&entry, 2));
        assert_eq!(home.encodings.kept_bytes(), 150);
    }

    #[test]
    fn the_budget_is_never_exceeded_and_the_unused_goes_first() {
        let home = home(1000);
        let entries: Vec<_> = (0..30).map(|i| entry_of(&home, &format!("e{i}"), "{}", i)).collect();
        for (i, entry) in entries.iter().enumerate() {
            encode(entry, 1, 100);
            assert!(home.encodings.kept_bytes() <= 1000);
            if i > 0 {
                assert!(kept(&entries[0], 1), "the one that is asked for all the time stays (at {i})");
            }
        }
        assert!(!kept(&entries[5], 1));
        assert!(kept(&entries[29], 1));
    }

    #[test]
    fn an_encoding_too_large_for_its_share_is_handed_out_unkept() {
        let home = home(1000);
        let entry = entry_of(&home, "a", "{}", 1);
        assert_eq!(encode(&entry, 1, 500).len(), 500);
        assert!(!kept(&entry, 1));
        assert_eq!(home.encodings.kept_bytes(), 0);
    }

    #[test]
    fn what_is_dropped_or_forgotten_gives_its_bytes_back() {
        let home = home(10_000);
        let entry = entry_of(&home, "a", "{}", 1);
        encode(&entry, 1, 100);
        entry.forget_encodings();
        assert_eq!(home.encodings.kept_bytes(), 0);
        assert!(!kept(&entry, 1));
        encode(&entry, 1, 100);
        assert_eq!(home.encodings.kept_bytes(), 100);
        drop(entry);
        assert_eq!(home.encodings.kept_bytes(), 0);
    }

    #[test]
    fn entries_that_are_gone_do_not_pile_up_on_the_clock() {
        let home = home(1 << 30);
        for i in 0..10_000 {
            encode(&entry_of(&home, "a", "{}", i), 1, 10);
        }
        assert!(home.encodings.clock.lock().entries.len() <= 2048);
        assert_eq!(home.encodings.kept_bytes(), 0);
    }

    #[test]
    fn a_failed_encoding_is_an_error_and_leaves_nothing() {
        let home = home(1000);
        let entry = entry_of(&home, "a", "{}", 1);
        assert_eq!(entry.encoding(EncodingKey(1), |_| Err::<Bytes, _>("no")), Err("no"));
        assert_eq!(home.encodings.kept_bytes(), 0);
    }
}
