//! Moving the store to another directory while it is in use.
//!
//! Everything is brought into the one file and closed; then it is copied, or the identical store that is
//! already there is adopted; only a successor that was checked and matches is gone on with. Until then the old
//! file is untouched, and any failure opens it again.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tracing::{info, warn};

use super::{
    RelocateError,
    guard::{self, DirectoryLock},
    load::Loaded,
    store::{self, FileNode, Store},
    writer::{State, Writer},
};

impl Writer {
    /// Runs on the writer thread, with nobody else's descriptor on the files.
    pub(super) fn relocate(&mut self, directory: &Path) -> Result<(), RelocateError> {
        let old_dir = self.shared.directory.read().clone();
        let (old, new) = (old_dir.join(store::FILE), directory.join(store::FILE));
        if directory == old_dir {
            return self.is_there();
        }
        guard::make_directory(directory)?;
        // A directory that was moved brought our own lock along; asking for it again would lock us out.
        let lock = if self.lock.is_in(directory) { None } else { Some(DirectoryLock::take(directory)?) };
        while !self.reads.is_empty() {
            self.read();
        }
        let was_open = self.close_for_move()?;
        match self.succeed(&old, &new, was_open) {
            Ok(()) => {
                if let Some(lock) = lock {
                    self.lock = lock;
                }
                *self.shared.directory.write() = directory.to_owned();
                self.room.move_to(directory);
                leave_behind(&old, &new);
                info!(from = %old_dir.display(), to = %directory.display(), "the store was moved");
                Ok(())
            }
            Err(why) => {
                self.go_back(&old);
                Err(why)
            }
        }
    }

    /// Asked to move to where it is: fine, if it is there.
    fn is_there(&self) -> Result<(), RelocateError> {
        match &self.state {
            State::Open(store) => store.in_place().map_err(RelocateError::Source),
            State::Lost { reason, .. } => Err(RelocateError::Source(format!("it is closed after an error: {reason}"))),
        }
    }

    /// Brings everything into the one file and closes it. Returns whether it was open.
    fn close_for_move(&mut self) -> Result<bool, RelocateError> {
        match &self.state {
            State::Open(store) => match store.checkpoint_all() {
                Ok(true) => {}
                Ok(false) => return Err(RelocateError::Source("another process is reading the store".to_owned())),
                Err(trouble) => return Err(RelocateError::Source(trouble.to_string())),
            },
            State::Lost { .. } => return Ok(false),
        }
        let closed = State::Lost {
            reason: "the store is being moved".to_owned(),
            next: Instant::now(),
            backoff: Duration::from_millis(200),
        };
        if let State::Open(store) = std::mem::replace(&mut self.state, closed) {
            // The WAL is empty; removing it by name could hit somebody else's where the file has been moved.
            store.abandon();
        }
        Ok(true)
    }

    fn succeed(&mut self, old: &Path, new: &Path, was_open: bool) -> Result<(), RelocateError> {
        let copied = !new.exists();
        if copied {
            if !was_open {
                let why = "it is closed after an error, and a copy of it could not be trusted";
                return Err(RelocateError::Source(why.to_owned()));
            }
            copy(old, new)?;
        }
        let adopted = self.adopt_at(new, was_open);
        if adopted.is_err() && copied {
            remove_store(new);
        }
        adopted
    }

    fn adopt_at(&mut self, new: &Path, exactly: bool) -> Result<(), RelocateError> {
        let different = |reason: String| RelocateError::Different { path: new.to_owned(), reason };
        let (store, loaded) = self.open_again(new).map_err(different)?;
        if let Err(reason) = self.matches(&store, &loaded, exactly) {
            store.abandon();
            return Err(different(reason));
        }
        self.adopt(store, loaded).map_err(different)
    }

    /// Whether a store is this one in the state that was closed. After an error it may be ahead of us.
    fn matches(&self, store: &Store, loaded: &Loaded, exactly: bool) -> Result<(), String> {
        if store.identity() != self.shared.identity {
            return Err("it is another store".to_owned());
        }
        let same = loaded.current == self.current && loaded.compacted == self.compacted && loaded.index == self.index;
        if exactly && !same {
            return Err(format!(
                "it holds this store as of revision {}, which is at revision {} now; remove it to have the store copied there",
                loaded.current, self.current
            ));
        }
        Ok(())
    }

    fn go_back(&mut self, old: &Path) {
        let back = self.open_again(old).and_then(|(store, loaded)| self.adopt(store, loaded));
        if let Err(reason) = back {
            // Tried again from here on by the writer, with a back-off.
            warn!(reason, "the store could not be opened again where it was");
            self.state = State::Lost { reason, next: Instant::now(), backoff: Duration::from_millis(200) };
        }
    }
}

fn same_file(left: &Path, right: &Path) -> bool {
    matches!((FileNode::of(left), FileNode::of(right)), (Ok(left), Ok(right)) if left == right)
}

/// Copies a closed store, which is one file, so that it is there wholly or not at all.
fn copy(old: &Path, new: &Path) -> Result<(), RelocateError> {
    let unfinished = store::companion(new, ".tmp");
    let step = |what: &'static str, path: &Path, done: io::Result<()>| {
        done.map_err(|source| RelocateError::Io { what, path: path.to_owned(), source })
    };
    let done = step("copy the store to", &unfinished, fs::copy(old, &unfinished).map(drop))
        .and_then(|()| step("sync", &unfinished, store::sync_file(&unfinished)))
        .and_then(|()| step("rename to", new, fs::rename(&unfinished, new)))
        .and_then(|()| step("sync the directory of", new, store::sync_directory_of(new)));
    if done.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    done
}

fn remove_store(file: &Path) {
    for path in companions(file) {
        let _ = fs::remove_file(path);
    }
}

fn companions(file: &Path) -> [PathBuf; 3] {
    [file.to_owned(), store::companion(file, "-wal"), store::companion(file, "-shm")]
}

/// Takes the old file out of the way: a daemon started there must not serve a stale store, nor make an empty one.
fn leave_behind(old: &Path, new: &Path) {
    let _ = fs::remove_file(store::companion(new, store::MOVED_SUFFIX));
    if !old.exists() || same_file(old, new) {
        return;
    }
    let left = store::companion(old, store::MOVED_SUFFIX);
    if let Err(e) = fs::rename(old, &left).and_then(|()| store::sync_directory_of(old)) {
        warn!("cannot rename the store left behind, {}: {e}", old.display());
    }
    for path in [store::companion(old, "-wal"), store::companion(old, "-shm")] {
        let _ = fs::remove_file(path);
    }
}
