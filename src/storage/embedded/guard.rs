//! What else lies in the data directory: the lock that keeps a second daemon out, and the reserve.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{OpenError, store::FileNode, system};

const LOCK: &str = "lock";
const RESERVE: &str = "reserve";

/// Makes the directory, readable by the owner alone, with its parents.
pub(super) fn make_directory(dir: &Path) -> Result<(), OpenError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|source| OpenError::Io {
        what: "create the directory",
        path: dir.to_owned(),
        source,
    })
}

/// Holds the data directory for this process until dropped. The kernel lets go of it when the process dies.
pub(super) struct DirectoryLock {
    file: File,
    node: FileNode,
}

impl DirectoryLock {
    pub fn take(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(LOCK);
        let io = |what| {
            let path = path.clone();
            move |source| OpenError::Io { what, path, source }
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io("open the lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Locked { dir: dir.to_owned(), pid: holder(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(io("lock")(source)),
        }
        write_pid(&mut file).map_err(io("write the lock"))?;
        let node = FileNode::of(&path).map_err(io("look at the lock"))?;
        Ok(Self { file, node })
    }

    /// Whether the lock file in `dir` is this very one: the directory was moved, not copied.
    pub fn is_in(&self, dir: &Path) -> bool {
        FileNode::of(&dir.join(LOCK)).is_ok_and(|node| node == self.node)
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing alone is not enough: a process that is being forked just now shares the descriptor.
        let _ = self.file.unlock();
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// The process that the lock file names, for the message alone.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Space kept back: given up when the disk is full, so that deletions and compaction can still be written.
pub(super) struct Reserve {
    path: PathBuf,
    /// What is wanted.
    bytes: u64,
    /// What is kept back; less where the disk has no room for all.
    held: u64,
}

impl Reserve {
    /// `bytes` 0 keeps nothing back.
    pub fn new(dir: &Path, bytes: u64) -> Self {
        let path = dir.join(RESERVE);
        let held = fs::metadata(&path).map_or(0, |meta| meta.len());
        Self { path, bytes, held }
    }

    /// Bytes that are kept back now.
    pub fn held(&self) -> u64 {
        self.held
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes how much is kept back; [`Reserve::take`] makes it so.
    pub fn resize(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Keeps `bytes` back, if they are there to be taken; otherwise as much as before.
    pub fn take(&mut self, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return self.give_up();
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
        let taken = if self.held < bytes { system::allocate(&file, bytes) } else { file.set_len(bytes) };
        match &taken {
            Ok(()) => self.held = bytes,
            Err(_) => file.set_len(self.held)?,
        }
        taken
    }

    pub fn give_up(&mut self) -> io::Result<()> {
        self.held = 0;
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Room left beside the reserve, in bytes.
    pub fn free_bytes(&self) -> io::Result<u64> {
        system::free_bytes(self.path.parent().unwrap_or(Path::new(".")))
    }
}
