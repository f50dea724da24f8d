//! Why a store does not open or move. Texts are for operators: each names the file and, where there is one,
//! the way out.

use std::{fmt, io, path::PathBuf};

use crate::storage::Revision;

/// Why [`super::Embedded::open`] refuses.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has the directory open; its id where the lock file says.
    Locked {
        dir: PathBuf,
        pid: Option<u32>,
    },
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    Sqlite {
        what: &'static str,
        path: PathBuf,
        source: rusqlite::Error,
    },
    /// A database, but none of ours or of another version.
    Foreign {
        path: PathBuf,
        reason: String,
    },
    /// SQLite did not take a setting that durability rests on.
    Pragma {
        path: PathBuf,
        name: String,
        wanted: String,
        found: String,
    },
    /// One of the store's own numbers is damaged.
    Meta {
        path: PathBuf,
        name: String,
        reason: &'static str,
    },
    /// The WAL is damaged in the middle: opening it would silently drop commits.
    DamagedWal {
        path: PathBuf,
        frame: u64,
        commits: u64,
    },
    /// A row is not what was written; `key` is empty where it cannot be read.
    Damaged {
        path: PathBuf,
        revision: Revision,
        key: String,
        reason: String,
    },
    /// The log could not be read to its end.
    Unreadable {
        path: PathBuf,
        reason: String,
    },
    /// The store was moved away from here; making an empty one would hide that.
    MovedAway {
        left: PathBuf,
    },
    /// The writer's thread could not be started.
    Thread(io::Error),
}

const RESTORE: &str = "restore the last backup: stop, put it in place, remove the -wal and -shm files beside it";

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { dir, pid: Some(pid) } => {
                write!(f, "data directory {} is in use by another kenter (process {pid})", dir.display())
            }
            Self::Locked { dir, pid: None } => {
                write!(f, "data directory {} is in use by another process", dir.display())
            }
            Self::Io { what, path, source } => write!(f, "cannot {what} {}: {source}", path.display()),
            Self::Sqlite { what, path, source } => write!(f, "cannot {what} {}: {source}", path.display()),
            Self::Foreign { path, reason } => write!(f, "cannot use {}: {reason}", path.display()),
            Self::Pragma { path, name, wanted, found } => {
                write!(f, "cannot use {}: {name} should be {wanted} and is {found}", path.display())
            }
            Self::Meta { path, name, reason } => {
                write!(f, "{} is damaged: entry {name} of table meta: {reason}; {RESTORE}", path.display())
            }
            Self::DamagedWal { path, frame, commits } => write!(
                f,
                "{} is damaged at frame {frame}: at least {commits} commits after it would be lost; {RESTORE}, \
                 or accept the loss with accept_damaged_wal",
                path.display()
            ),
            Self::Damaged { path, revision, key, reason } => {
                write!(f, "{} is damaged: revision {revision}", path.display())?;
                if !key.is_empty() {
                    write!(f, " of {key}")?;
                }
                write!(f, ": {reason}; {RESTORE}")
            }
            Self::Unreadable { path, reason } => write!(f, "cannot read {} to its end: {reason}", path.display()),
            Self::MovedAway { left } => write!(
                f,
                "the store was moved away from here, {} is what it left: name the directory that it was moved to, \
                 or rename this file to store.db to go back to it",
                left.display()
            ),
            Self::Thread(source) => write!(f, "cannot start the store's writer: {source}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Thread(source) => Some(source),
            Self::Sqlite { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Why [`super::Embedded::relocate`] left the store where it was.
#[derive(Debug)]
pub enum RelocateError {
    /// The new directory cannot be used.
    Target(OpenError),
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// There is another store, or another state of this one.
    Different {
        path: PathBuf,
        reason: String,
    },
    /// The old store cannot be brought into one file, or is closed after an error.
    Source(String),
    Closed,
}

impl fmt::Display for RelocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => error.fmt(f),
            Self::Io { what, path, source } => write!(f, "cannot {what} {}: {source}", path.display()),
            Self::Different { path, reason } => write!(f, "cannot adopt {}: {reason}", path.display()),
            Self::Source(reason) => write!(f, "cannot move the store: {reason}"),
            Self::Closed => f.write_str("the store is closed"),
        }
    }
}

impl std::error::Error for RelocateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Target(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<OpenError> for RelocateError {
    fn from(error: OpenError) -> Self {
        Self::Target(error)
    }
}
