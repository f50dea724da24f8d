//! What is done about a disk that is or will be full.
//!
//! When a write finds no room, the reserve is given up, so that deletions and compaction can still be written;
//! other writes are refused without trying. The WAL is kept smaller than the reserve ([`Room::wal_limit`]), so
//! that the space given up is always enough to move the WAL into the file and start it anew.
//!
//! All that ends by itself. What is deleted while the disk is full is compacted at once, free pages are given back to
//! the disk, the WAL is emptied; writes go on when the reserve can be taken again with some room beside it, or when a
//! good part of the file is free for reuse. In that case as much is kept back as leaves the WAL room to grow, and more
//! when there is more. Of a small disk never more than half is kept back, or it could never be taken again.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tracing::{debug, info, warn};

use super::{
    guard::Reserve,
    store::{self, PAGE_SIZE, Pages, Store},
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
    dir: PathBuf,
    /// Why puts are refused.
    full: Option<String>,
    /// As last measured.
    pages: Pages,
    /// How much should be kept back, as last measured.
    goal: u64,
    /// Free pages when the disk was found full.
    free_then: u64,
    next: Instant,
    warned: Option<Instant>,
}

impl Room {
    pub fn new(dir: &Path, reserve_bytes: u64) -> Self {
        let mut room = Self {
            reserve: Reserve::new(dir, reserve_bytes),
            dir: dir.to_owned(),
            full: None,
            pages: Pages::default(),
            goal: 0,
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
            warn!(reserve = self.reserve.held(), "{text}; giving up the reserve, refusing writes except deletions");
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
    pub fn empty_wal(&self, store: &Store) {
        if self.size_of(&store::companion(store.path(), "-wal")) == 0 {
            return;
        }
        let room = self.reserve.free_bytes().unwrap_or(0);
        let emptied = store.growth().and_then(|growth| {
            let fits = growth + MARGIN <= room;
            if fits { store.checkpoint_all() } else { Ok(false) }
        });
        match emptied {
            Ok(true) => {}
            Ok(false) => debug!(room, "there is no room to empty the WAL"),
            Err(trouble) => debug!("cannot empty the WAL of a full disk: {trouble}"),
        }
    }

    /// How large the WAL may become.
    pub fn wal_limit(&self) -> u64 {
        match self.reserve.bytes() {
            0 => u64::MAX,
            _ => self.reserve.held() / 4 * 3,
        }
    }

    /// Whether there is practically nothing left beside the reserve.
    pub fn is_exhausted(&self) -> bool {
        self.reserve.free_bytes().is_ok_and(|free| free < MARGIN)
    }

    /// Before a store is opened on a disk that may be full: recovery needs some room.
    pub fn make_way(&mut self) {
        if self.reserve.held() > 0 && self.is_exhausted() {
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
        if self.full.is_none() {
            self.take_reserve();
            return;
        }
        let free = self.reserve.free_bytes().unwrap_or(0);
        let reusable = self.pages.free.saturating_sub(self.free_then) * PAGE_SIZE;
        let goal = self.measure_goal();
        if self.reserve.held() + free >= goal + MARGIN || reusable >= (goal / 4).max(MARGIN) {
            self.take_reserve();
            info!(free, reusable, reserve = self.reserve.held(), "there is room again; writes go on");
            self.full = None;
        }
    }

    /// Free pages are being given back to the disk: it is worth looking soon.
    pub fn look_soon(&mut self) {
        self.next = self.next.min(Instant::now() + RETRY_FULL);
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
        self.dir = dir.to_owned();
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

    /// Whether as much is kept back as should be.
    pub fn is_reserved(&self) -> bool {
        self.reserve.held() >= self.goal
    }

    /// How much to keep back: what is asked for, but not more than half of what the store could ever have here.
    fn measure_goal(&mut self) -> u64 {
        let file = self.dir.join(store::FILE);
        let files = self.size_of(&file) + self.size_of(&store::companion(&file, "-wal"));
        let all = files + self.reserve.held() + self.reserve.free_bytes().unwrap_or(0);
        self.goal = self.reserve.bytes().min(all / 2);
        self.goal
    }

    fn size_of(&self, path: &Path) -> u64 {
        fs::metadata(path).map_or(0, |meta| meta.len())
    }

    /// Keeps back what should be; where that would fill the disk, half of what is left.
    fn take_reserve(&mut self) {
        let goal = self.measure_goal();
        let room = self.reserve.held() + self.reserve.free_bytes().unwrap_or(0);
        let bytes = if room >= goal + MARGIN { goal } else { goal.min(room / 2).max(self.reserve.held().min(goal)) };
        if let Err(e) = self.reserve.take(bytes) {
            warn!(bytes, "cannot keep space back for a full disk: {e}");
            self.next = Instant::now() + RETRY_RESERVE;
        }
    }
}
