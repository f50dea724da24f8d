//! The check at start: reads the whole log once, in revision order, and rebuilds what is kept in memory.
//!
//! A row that is not what was written, a gap, a commit that is not whole or a row that names a predecessor
//! that is not there is a refusal naming revision and key. Nothing is skipped.

use std::{path::Path, sync::Arc};

use super::{
    FIRST_REVISION, OpenError,
    expiry::Expiry,
    row::{Damage, RowRef},
    store::{Store, Trouble},
};
use crate::storage::Revision;

/// Where a key stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub mod_rev: Revision,
    pub create_rev: Revision,
    pub version: u64,
}

/// Every existing key, in order. Cloning is O(1), which is how a list keeps its moment while writes go on.
pub(super) type Index = imbl::OrdMap<Arc<str>, Entry>;

/// What a log amounts to.
pub(super) struct Loaded {
    pub index: Index,
    pub expiry: Expiry,
    pub current: Revision,
    pub compacted: Revision,
}

/// Reads and checks everything in `store`.
pub(super) fn load(store: &Store) -> Result<Loaded, OpenError> {
    let path = store.path();
    let mut check = Check::new(store.compacted()?);
    let mut refused = None;
    store
        .scan(0, Revision::MAX, |row| match check.row(&row) {
            Ok(()) => true,
            Err(damage) => {
                refused = Some(damage);
                false
            }
        })
        .map_err(|trouble| refusal(path, trouble))?;
    if let Some(damage) = refused {
        return Err(damaged(path, damage));
    }
    check.end().map_err(|damage| damaged(path, damage))?;
    store.release_memory();
    Ok(check.loaded)
}

fn damaged(path: &Path, damage: Damage) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), revision: damage.revision, key: damage.key, reason: damage.reason }
}

fn refusal(path: &Path, trouble: Trouble) -> OpenError {
    match trouble {
        Trouble::Damaged(damage) => damaged(path, damage),
        other => OpenError::Unreadable { path: path.to_owned(), reason: other.to_string() },
    }
}

/// The commit that the last row belongs to.
#[derive(Clone, Copy)]
struct Commit {
    first: Revision,
    rows: u64,
}

struct Check {
    loaded: Loaded,
    commit: Option<Commit>,
}

impl Check {
    fn new(compacted: Revision) -> Self {
        let current = compacted.max(FIRST_REVISION);
        Self { loaded: Loaded { index: Index::new(), expiry: Expiry::default(), current, compacted }, commit: None }
    }

    fn row(&mut self, row: &RowRef<'_>) -> Result<(), Damage> {
        let fault = |reason: String| Damage { revision: row.rev, key: row.key.to_owned(), reason };
        if row.rev <= self.loaded.compacted {
            self.kept_by_compaction(row).map_err(fault)?;
        } else {
            self.in_sequence(row).map_err(fault)?;
            self.follows_its_predecessor(row).map_err(fault)?;
            self.loaded.current = row.rev;
        }
        if row.deleted {
            self.loaded.index.remove(row.key);
            self.loaded.expiry.forget(row.key);
            return Ok(());
        }
        let entry = Entry { mod_rev: row.rev, create_rev: row.create_rev, version: row.version };
        let key = match self.loaded.index.get_key_value(row.key) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(row.key),
        };
        self.loaded.expiry.set(&key, row.expires);
        self.loaded.index.insert(key, entry);
        Ok(())
    }

    /// At or below the compaction point only the newest row of each existing key is left.
    fn kept_by_compaction(&self, row: &RowRef<'_>) -> Result<(), String> {
        if row.deleted {
            return Err("a deletion is left below the compaction point".to_owned());
        }
        match self.loaded.index.get(row.key) {
            Some(entry) => Err(format!("supersedes revision {}, which compaction should have removed", entry.mod_rev)),
            None => Ok(()),
        }
    }

    /// Above the compaction point no revision is missing and every commit is whole.
    fn in_sequence(&mut self, row: &RowRef<'_>) -> Result<(), String> {
        let expected = self.loaded.current + 1;
        if row.rev != expected {
            return Err(format!("revision {expected} is missing before it"));
        }
        if row.rev == row.txn {
            self.commit_is_whole(row.rev - 1)?;
        } else if let Some(commit) = self.commit
            && (commit.first, commit.rows) != (row.txn, row.txn_rows)
        {
            return Err(format!("is in the middle of the commit of revision {}", commit.first));
        }
        if row.rev < row.txn || row.rev - row.txn >= row.txn_rows {
            return Err(format!("is outside its own commit ({} rows from {})", row.txn_rows, row.txn));
        }
        self.commit = Some(Commit { first: row.txn, rows: row.txn_rows });
        Ok(())
    }

    fn commit_is_whole(&self, last: Revision) -> Result<(), String> {
        match self.commit {
            Some(commit) if commit.first + commit.rows - 1 != last => {
                Err(format!("the commit of revision {} should have {} rows", commit.first, commit.rows))
            }
            _ => Ok(()),
        }
    }

    fn follows_its_predecessor(&self, row: &RowRef<'_>) -> Result<(), String> {
        match (self.loaded.index.get(row.key), row.prev) {
            (None, 0) if row.deleted => Err("deletes a key that does not exist".to_owned()),
            (None, 0) if row.create_rev != row.rev || row.version != 1 => {
                Err("creates its key but names an older creation".to_owned())
            }
            (None, 0) => Ok(()),
            (None, prev) => Err(format!("revision {prev}, which it supersedes, is missing")),
            (Some(entry), prev) if entry.mod_rev != prev => {
                Err(format!("supersedes revision {prev}, but the key's revision before it is {}", entry.mod_rev))
            }
            (Some(entry), _)
                if !row.deleted && (entry.create_rev, entry.version + 1) != (row.create_rev, row.version) =>
            {
                Err(format!("is version {} after version {}", row.version, entry.version))
            }
            (Some(_), _) => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Damage> {
        let revision = self.loaded.current;
        self.commit_is_whole(revision).map_err(|reason| Damage { revision, key: String::new(), reason })
    }
}
