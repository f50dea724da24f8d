//! What happens after a failure: the handle is given up, the file is checked and opened again.
//!
//! After an I/O error nobody knows what is on the disk. So nothing is written until the whole log was read again
//! and found to hold everything that was acknowledged; what it holds beyond is told to watchers, so that they
//! and the file never differ.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tracing::{error, info, warn};

use super::{
    OpenError,
    load::{self, Loaded},
    stats,
    store::{self, Store, Trouble},
    wal, watchers,
    writer::{CHECKPOINT_BYTES, State, Writer},
};
use crate::storage::StorageError;

pub(super) const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LAST_BACKOFF: Duration = Duration::from_secs(30);

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
    /// What the failure of a statement means for the store and for who asked.
    pub(super) fn failed(&mut self, trouble: Trouble) -> StorageError {
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

    pub(super) fn reopen_if_due(&mut self) {
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
}

/// What is answered while there is no handle.
pub(super) fn lost(reason: &str) -> StorageError {
    StorageError::Unavailable(format!("the store failed and is being checked: {reason}"))
}
