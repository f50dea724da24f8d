//! What is done about a disk that is or will be full.
//!
//! When a write finds no room, the reserve is given up, so that deletions and compaction can still be written;
//! other writes are refused without trying. The WAL is kept smaller than the reserve ([`Room::wal_limit`]), so
//! that the space given up is always enough to move the WAL into the file and start it anew. All that ends by itself: when the reserve can be taken again with some
//! room beside it, or when compaction has freed a good part of the file for reuse.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tracing::{info, warn};

use super::{
    guard::Reserve,
    store::{PAGE_SIZE, Pages, Store},
};
use crate::storage::StorageError;

/// Room that must be left beside the reserve for writes to be tried again.
const MARGIN: u64 = 1 << 20;
/// How often the disk is looked at: while full, and while there is no reserve.
const RETRY_FULL: Duration = Duration::from_millis(200);
const RETRY_RESERVE: Duration = Duration::from_secs(60);
const WARN_AGAIN: Duration = Duration::from_secs(600);

pub(super) struct Room {
    reserve: Reserve,
    /// Why puts are refused.
    full: Option<String>,
    /// As last measured.
    pages: Pages,
    /// Free pages when the disk was found full.
    free_then: u64,
    next: Instant,
    warned: Option<Instant>,
}

impl Room {
    pub fn new(dir: &Path, reserve_bytes: u64) -> Self {
        let mut room = Self {
            reserve: Reserve::new(dir, reserve_bytes),
            full: None,
            pages: Pages::default(),
            free_then: 0,
            next: Instant::now(),
            warned: None,
        };
        room.take_reserve();
        room
    }

    pub fn pages(&self) -> Pages {
        self.pages
    }

    pub fn set_pages(&mut self, pages: Pages) {
        self.pages = pages;
    }

    /// What a put is answered while there is no room.
    pub fn refusal(&self) -> Option<StorageError> {
        self.full.clone().map(StorageError::Full)
    }

    /// A statement found no room.
    pub fn ran_out(&mut self, why: &str, store: &Store) {
        let free = self.reserve.free_bytes().unwrap_or(0);
        let text = format!("the disk of {} is full ({free} bytes free): {why}", store.path().display());
        if self.full.is_none() {
            warn!(reserve = self.reserve.bytes(), "{text}; giving up the reserve, refusing writes except deletions");
        }
        self.full = Some(text);
        self.free_then = self.pages.free;
        self.next = Instant::now() + RETRY_FULL;
        if let Err(e) = self.reserve.give_up() {
            warn!("cannot give up the reserve: {e}");
        }
        self.empty_wal(store);
    }

    /// Only where it fits: a checkpoint that fails half-way would have eaten the reserve for nothing.
    fn empty_wal(&self, store: &Store) {
        let room = self.reserve.free_bytes().unwrap_or(0);
        let emptied = store.growth().and_then(|growth| {
            let fits = growth + MARGIN <= room;
            if fits { store.checkpoint_all() } else { Ok(false) }
        });
        match emptied {
            Ok(true) => {}
            Ok(false) => info!(room, "there is no room to empty the WAL"),
            Err(trouble) => info!("cannot empty the WAL of a full disk: {trouble}"),
        }
    }

    /// How large the WAL may become.
    pub fn wal_limit(&self) -> u64 {
        match self.reserve.bytes() {
            0 => u64::MAX,
            bytes => bytes / 4 * 3,
        }
    }

    /// Whether there is practically nothing left beside the reserve.
    pub fn is_exhausted(&self) -> bool {
        self.reserve.free_bytes().is_ok_and(|free| free < MARGIN)
    }

    /// Before a store is opened on a disk that may be full: recovery needs some room.
    pub fn make_way(&mut self) {
        if self.reserve.held() && self.is_exhausted() {
            let _ = self.reserve.give_up();
            self.full = Some("the disk was full when the store was opened again".to_owned());
        }
    }

    /// When [`Room::recover`] should be called though nobody writes.
    pub fn next_attempt(&self) -> Option<Instant> {
        (self.full.is_some() || !self.is_reserved()).then_some(self.next)
    }

    /// Looks whether there is room again; call it at [`Room::next_attempt`].
    pub fn recover(&mut self) {
        self.next = Instant::now() + if self.full.is_some() { RETRY_FULL } else { RETRY_RESERVE };
        let reserved = self.take_reserve();
        let free = self.reserve.free_bytes().unwrap_or(0);
        if self.full.is_none() {
            return;
        }
        if reserved && free < MARGIN {
            let _ = self.reserve.give_up();
        }
        let reusable = self.pages.free.saturating_sub(self.free_then) * PAGE_SIZE;
        if (reserved && free >= MARGIN) || reusable >= (self.reserve.bytes() / 4).max(MARGIN) {
            info!(free, reusable, "there is room again; writes go on");
            self.full = None;
        }
    }

    pub fn resize(&mut self, bytes: u64) {
        if bytes != self.reserve.bytes() {
            self.reserve.resize(bytes);
            if self.full.is_none() {
                self.take_reserve();
            }
        }
    }

    /// The store lives in another directory now; the space kept back there replaces the one kept here.
    pub fn move_to(&mut self, dir: &Path) {
        let bytes = self.reserve.bytes();
        let _ = self.reserve.give_up();
        self.reserve = Reserve::new(dir, bytes);
        self.full = None;
        self.take_reserve();
    }

    /// Says in time that the disk is filling.
    pub fn warn_if_low(&mut self) {
        let Ok(free) = self.reserve.free_bytes() else {
            return;
        };
        let recently = self.warned.is_some_and(|when| when.elapsed() < WARN_AGAIN);
        if free < 2 * self.reserve.bytes().max(MARGIN) && !recently {
            warn!(free, "little room is left on the disk of the store");
            self.warned = Some(Instant::now());
        }
    }

    fn is_reserved(&self) -> bool {
        self.reserve.held() || self.reserve.bytes() == 0
    }

    fn take_reserve(&mut self) -> bool {
        match self.reserve.take() {
            Ok(()) => true,
            Err(e) => {
                if self.full.is_none() {
                    warn!(bytes = self.reserve.bytes(), "cannot keep space back for a full disk: {e}");
                    self.next = Instant::now() + RETRY_RESERVE;
                }
                false
            }
        }
    }
}
