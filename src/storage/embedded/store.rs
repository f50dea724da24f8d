//! Every statement the back end runs on the SQLite file.
//!
//! One connection at a time, owned by the writer thread. Nothing here decides what may be written; it knows
//! rows and revisions only.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, config::DbConfig, params};

use super::{
    OpenError, layout,
    row::{COLUMNS, Damage, Row, RowRef},
};
use crate::storage::Revision;

/// Name of the store's file in its directory.
pub(super) const FILE: &str = "store.db";
pub(super) const PAGE_SIZE: u64 = 4096;
/// What the file is renamed to with when the store has been moved away.
pub(super) const MOVED_SUFFIX: &str = ".moved";
/// How long a statement waits for a lock that somebody else's `sqlite3` holds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Which file a path leads to, to notice that it was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileNode {
    device: u64,
    inode: u64,
}

impl FileNode {
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let meta = fs::metadata(path)?;
        Ok(Self { device: meta.dev(), inode: meta.ino() })
    }
}

/// Why a statement failed, as far as it decides what to do next.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No room; rolled back, the handle works on.
    Full(String),
    /// Somebody else held a lock for too long; rolled back, the handle works on.
    Busy(String),
    /// Nobody knows what is on disk: the handle has to be closed.
    Lost(String),
    /// A row is not what was written.
    Damaged(Damage),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(text),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(text),
            _ => Self::Lost(text),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(text) | Self::Busy(text) | Self::Lost(text) => f.write_str(text),
            Self::Damaged(d) => write!(f, "revision {} of {}: {}", d.revision, d.key, d.reason),
        }
    }
}

/// A superseding change, without its value.
pub(super) struct Change {
    pub rev: Revision,
    pub key: String,
    pub prev: Revision,
}

/// How many pages the file has, and how many of them are free.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pages {
    pub total: u64,
    pub free: u64,
}

pub(super) struct Store {
    conn: Connection,
    path: PathBuf,
    node: FileNode,
    /// Random, made with the store: tells a moved store from another one.
    identity: i64,
    #[cfg(test)]
    pub fault: Option<Fault>,
}

/// An I/O error that a test asks for.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    BeforeCommit,
    /// The rows are on the disk, but nobody is told.
    AfterCommit,
}

impl Store {
    /// Opens the file at `path`, or makes a new store there. The check of its contents is `load::load`'s.
    pub fn open_or_create(path: &Path) -> Result<Self, OpenError> {
        let wal = companion(path, "-wal");
        match fs::symlink_metadata(path) {
            Ok(_) => {}
            // Making an empty store would hide that one was here.
            Err(e) if e.kind() == ErrorKind::NotFound && wal.exists() => {
                let reason = format!("it is missing, but its WAL {} is here", wal.display());
                return Err(OpenError::Foreign { path: path.to_owned(), reason });
            }
            Err(e) if e.kind() == ErrorKind::NotFound => layout::create(path)?,
            Err(source) => return Err(OpenError::Io { what: "look at", path: path.to_owned(), source }),
        }
        Self::open(path)
    }

    /// Opens the file at `path`, which must be there.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let sql = |source| OpenError::Sqlite { what: "open", path: path.to_owned(), source };
        let conn = Connection::open_with_flags(path, flags).map_err(sql)?;
        conn.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
        layout::recognise(&conn, path)?;
        layout::settle(&conn, path)?;
        let node =
            FileNode::of(path).map_err(|source| OpenError::Io { what: "look at", path: path.to_owned(), source })?;
        let identity = layout::meta(&conn, "identity", path)?;
        Ok(Self {
            conn,
            path: path.to_owned(),
            node,
            identity,
            #[cfg(test)]
            fault: None,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn identity(&self) -> i64 {
        self.identity
    }

    /// Up to which revision superseded rows are forgotten.
    pub fn compacted(&self) -> Result<Revision, OpenError> {
        layout::meta(&self.conn, "compacted", &self.path).map(|n| u64::try_from(n).unwrap_or(0))
    }

    /// Whether the path still leads to the file that is open. `Err` says what is there instead.
    pub fn in_place(&self) -> Result<(), String> {
        match FileNode::of(&self.path) {
            Ok(node) if node == self.node => Ok(()),
            Ok(_) => Err(format!("{} was replaced by another file", self.path.display())),
            Err(e) => Err(format!("{} is no longer there: {e}", self.path.display())),
        }
    }

    /// Writes the rows of one commit and waits until they are on the disk.
    pub fn commit(&mut self, rows: &[Row]) -> Result<(), Trouble> {
        #[cfg(test)]
        if self.fault == Some(Fault::BeforeCommit) {
            return Err(Trouble::Lost("injected before the commit".to_owned()));
        }
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = tx.prepare_cached("INSERT INTO log VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")?;
            for row in rows {
                insert.execute(params![
                    sql_int(row.rev),
                    &*row.key,
                    sql_int(row.create_rev),
                    sql_int(row.version),
                    sql_int(row.prev),
                    sql_int(row.txn),
                    sql_int(row.txn_rows),
                    row.deleted,
                    sql_int(row.expires),
                    row.borrowed().crc(),
                    &row.value[..],
                ])?;
            }
        }
        tx.commit()?;
        #[cfg(test)]
        if self.fault == Some(Fault::AfterCommit) {
            return Err(Trouble::Lost("injected after the commit".to_owned()));
        }
        Ok(())
    }

    /// Reads the row of one revision.
    pub fn read<T>(&self, rev: Revision, take: impl FnOnce(RowRef<'_>) -> T) -> Result<Option<T>, Trouble> {
        const SQL: &str = "SELECT rev, key, create_rev, version, prev, txn, txn_rows, deleted, expires, crc, value \
                           FROM log WHERE rev = ?1";
        let mut statement = self.conn.prepare_cached(SQL)?;
        let mut rows = statement.query(params![sql_int(rev)])?;
        match rows.next().map_err(|e| at_row(rev, e))? {
            Some(row) => RowRef::read(row).map(|row| Some(take(row))).map_err(Trouble::Damaged),
            None => Ok(None),
        }
    }

    /// Whole rows above `after` up to `until`, in order, while `take` wants more.
    pub fn scan(
        &self,
        after: Revision,
        until: Revision,
        mut take: impl FnMut(RowRef<'_>) -> bool,
    ) -> Result<(), Trouble> {
        let sql = format!("SELECT {COLUMNS} FROM log WHERE rev > ?1 AND rev <= ?2 ORDER BY rev");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query(params![sql_int(after), sql_int(until)])?;
        let mut seen = after;
        while let Some(row) = rows.next().map_err(|e| at_row(seen + 1, e))? {
            let row = RowRef::read(row).map_err(Trouble::Damaged)?;
            seen = row.rev;
            if !take(row) {
                break;
            }
        }
        Ok(())
    }

    /// What changed above `after` up to `until`, at most `limit` of it, without values.
    pub fn changes(&self, after: Revision, until: Revision, limit: u32) -> Result<Vec<Change>, Trouble> {
        const SQL: &str = "SELECT rev, key, prev FROM log WHERE rev > ?1 AND rev <= ?2 ORDER BY rev LIMIT ?3";
        let mut statement = self.conn.prepare_cached(SQL)?;
        let rows = statement.query_map(params![sql_int(after), sql_int(until), limit], |row| {
            Ok(Change { rev: from_sql(row.get(0)?), key: row.get(1)?, prev: from_sql(row.get(2)?) })
        })?;
        rows.collect::<Result<_, _>>().map_err(Trouble::from)
    }

    /// Forgets what the changes in (`from`, `to`] superseded, and the deletions among them. One transaction;
    /// its cost follows the number of changes, not what is stored.
    pub fn compact(&mut self, from: Revision, to: Revision) -> Result<usize, Trouble> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let superseded = tx
            .prepare_cached(
                "DELETE FROM log WHERE rev IN (SELECT prev FROM log WHERE rev > ?1 AND rev <= ?2 AND prev > 0)",
            )?
            .execute(params![sql_int(from), sql_int(to)])?;
        let tombstones = tx
            .prepare_cached("DELETE FROM log WHERE rev > ?1 AND rev <= ?2 AND deleted = 1")?
            .execute(params![sql_int(from), sql_int(to)])?;
        layout::set_meta(&tx, "compacted", sql_int(to))?;
        tx.commit()?;
        Ok(superseded + tombstones)
    }

    /// Moves what it can from the WAL into the file without waiting for anybody. Returns whether all was moved.
    pub fn checkpoint(&self) -> Result<bool, Trouble> {
        self.run_checkpoint("PASSIVE")
    }

    /// Moves everything from the WAL into the file and empties the WAL; after it the file alone is the store.
    pub fn checkpoint_all(&self) -> Result<bool, Trouble> {
        self.run_checkpoint("TRUNCATE")
    }

    fn run_checkpoint(&self, mode: &str) -> Result<bool, Trouble> {
        let (busy, log, moved): (i64, i64, i64) =
            self.conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        Ok(busy == 0 && log == moved)
    }

    /// Lets the WAL grow to about `bytes` (and one commit more) before a commit empties it.
    pub fn limit_wal(&self, bytes: u64) -> Result<(), Trouble> {
        let pages = (bytes / PAGE_SIZE).clamp(100, 16_000);
        // Answers with the new value, so it cannot go through execute.
        self.conn.query_row(&format!("PRAGMA wal_autocheckpoint = {pages}"), [], |_| Ok(()))?;
        Ok(())
    }

    /// How much the file will grow when everything in the WAL is moved into it.
    pub fn growth(&self) -> Result<u64, Trouble> {
        let size = fs::metadata(&self.path).map_or(0, |meta| meta.len());
        Ok((self.pages()?.total * PAGE_SIZE).saturating_sub(size))
    }

    /// Gives up to 200 free pages back to the file system.
    pub fn shrink(&self) -> Result<(), Trouble> {
        let mut statement = self.conn.prepare_cached("PRAGMA incremental_vacuum(200)")?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    }

    pub fn pages(&self) -> Result<Pages, Trouble> {
        let number = |name| self.conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(from_sql);
        Ok(Pages { total: number("page_count")?, free: number("freelist_count")? })
    }

    /// Gives SQLite's page cache back; after a scan of everything it holds what nobody will ask for.
    pub fn release_memory(&self) {
        let _ = self.conn.execute_batch("PRAGMA shrink_memory");
    }

    /// Closes in order: everything goes into the file, the WAL is removed.
    pub fn close(self) -> Result<(), Trouble> {
        self.conn.close().map_err(|(_, e)| Trouble::from(e))
    }

    /// Closes without touching any file: for a handle that has failed, or whose path leads elsewhere by now.
    pub fn abandon(self) {
        let _ = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        let _ = self.conn.close();
    }

    /// Limits the file to `pages` pages, as a full disk would.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: u64) -> rusqlite::Result<()> {
        self.conn.pragma_update(None, "max_page_count", sql_int(pages))
    }
}

/// Writes a copy of the store at `path` to `target` through a connection of its own: a compact file that holds
/// one moment's state. Writers go on meanwhile; the WAL only grows.
pub(super) fn copy_into(path: &Path, target: &Path) -> Result<(), rusqlite::Error> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    let target = target.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(target.to_owned()))?;
    conn.execute("VACUUM INTO ?1", params![target])?;
    Ok(())
}

/// Makes a file's creation or renaming last.
pub(super) fn sync_directory_of(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => fs::File::open(parent)?.sync_all(),
        _ => fs::File::open(".")?.sync_all(),
    }
}

/// Waits until what was written to a file that no connection has open is on the disk.
pub(super) fn sync_file(path: &Path) -> std::io::Result<()> {
    fs::File::open(path)?.sync_all()
}

/// The path of a companion file of `path`: `store.db` → `store.db-wal`.
pub(super) fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A page that cannot be made sense of while a row is read damages that row alone; the handle works on.
fn at_row(revision: Revision, error: rusqlite::Error) -> Trouble {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => {
            Trouble::Damaged(Damage { revision, key: String::new(), reason: error.to_string() })
        }
        _ => error.into(),
    }
}

/// Revisions, counts and seconds stay far below 2^63.
fn sql_int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn from_sql(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Bytes of a row in the log, page overhead included: what a checkpoint will have to move, roughly.
pub(super) fn disk_cost(value: &Bytes) -> u64 {
    (value.len() as u64).next_multiple_of(PAGE_SIZE) + PAGE_SIZE
}
