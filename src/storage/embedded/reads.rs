//! Reads, done by the writer thread in slices between commits.
//!
//! A read keeps the moment at which it began: a snapshot of the index (O(1)) and the newest revision of then.
//! A read of an older revision first walks over what changed since, so its cost follows the age of the
//! revision, not the size of the store. Compaction stays behind the oldest moment that a read is looking at
//! ([`Reads::oldest`]), so a read that began is never cut off.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use tokio::sync::oneshot;

use super::{
    load::Index,
    row::{Damage, RowRef},
    store::{Store, Trouble},
};
use crate::storage::{KeyValue, Page, Revision, StorageError};

/// Reads under way at once; more wait in the channel.
const ACTIVE: usize = 32;
/// Changes walked over in one slice.
const CHANGES: u32 = 2000;
/// Rows and bytes fetched in one slice.
const ROWS: usize = 512;
const BYTES: usize = 1 << 20;

/// Which keys are wanted.
pub(super) enum Scope {
    Key(Arc<str>),
    /// Keys under `prefix` from `start` on, at most `limit` (0 = all).
    Prefix {
        prefix: Arc<str>,
        start: Arc<str>,
        limit: usize,
    },
}

impl Scope {
    fn contains(&self, key: &str) -> bool {
        match self {
            Self::Key(wanted) => **wanted == *key,
            Self::Prefix { prefix, start, .. } => key.starts_with(&**prefix) && *key >= **start,
        }
    }

    fn limit(&self) -> usize {
        match self {
            Self::Prefix { limit, .. } if *limit > 0 => *limit,
            _ => usize::MAX,
        }
    }

    /// The keys of `index` in this scope.
    fn select<'a>(&'a self, index: &'a Index) -> impl Iterator<Item = (&'a Arc<str>, Revision)> {
        let first: &str = match self {
            Self::Key(key) => key,
            Self::Prefix { prefix, start, .. } => (&**prefix).max(&**start),
        };
        index
            .range::<_, str>((Bound::Included(first), Bound::Unbounded))
            .take_while(|(key, _)| self.contains(key))
            .map(|(key, entry)| (key, entry.mod_rev))
    }
}

pub(super) struct ReadAsk {
    pub scope: Scope,
    /// `None`: as it is now.
    pub at: Option<Revision>,
    pub reply: oneshot::Sender<Result<Page, StorageError>>,
}

/// The reads under way.
#[derive(Default)]
pub(super) struct Reads {
    active: VecDeque<Read>,
}

impl Reads {
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.active.len() < ACTIVE
    }

    /// The oldest revision that a read under way still looks at.
    pub fn oldest(&self) -> Option<Revision> {
        self.active.iter().map(|read| read.at).min()
    }

    /// Begins a read, or answers it right away where that needs no row.
    pub fn begin(&mut self, ask: ReadAsk, index: &Index, current: Revision, compacted: Revision) {
        let at = ask.at.unwrap_or(current);
        if at < compacted {
            let _ = ask.reply.send(Err(StorageError::Compacted(compacted)));
        } else if at > current {
            let _ = ask.reply.send(Err(StorageError::Future { asked: at, current }));
        } else {
            let stage = if at == current {
                Stage::Rows(Rows::plan(&ask.scope, index, &BTreeMap::new(), at))
            } else {
                Stage::Changes { index: index.clone(), next: at, until: current, changed: BTreeMap::new() }
            };
            self.active.push_back(Read { at, scope: ask.scope, stage, reply: ask.reply });
        }
    }

    /// Does one slice of the read that has waited longest. `Err` ends the read and, where the handle failed,
    /// tells the writer.
    pub fn step(&mut self, store: &Store) -> Result<(), Trouble> {
        let Some(mut read) = self.active.pop_front() else {
            return Ok(());
        };
        if read.reply.is_closed() {
            return Ok(());
        }
        match read.step(store) {
            Ok(None) => self.active.push_back(read),
            Ok(Some(page)) => drop(read.reply.send(Ok(page))),
            Err(trouble) => {
                let _ = read.reply.send(Err(read_error(&trouble)));
                return match trouble {
                    Trouble::Damaged(_) | Trouble::Busy(_) => Ok(()),
                    lost => Err(lost),
                };
            }
        }
        Ok(())
    }

    /// Ends all reads: the handle is gone.
    pub fn fail(&mut self, error: &StorageError) {
        for read in self.active.drain(..) {
            let _ = read.reply.send(Err(error.clone()));
        }
    }
}

/// What a reader is told.
pub(super) fn read_error(trouble: &Trouble) -> StorageError {
    match trouble {
        Trouble::Damaged(damage) => {
            StorageError::Corrupt { key: damage.key.clone(), revision: damage.revision, reason: damage.reason.clone() }
        }
        other => StorageError::Unavailable(format!("reading failed: {other}")),
    }
}

struct Read {
    at: Revision,
    scope: Scope,
    stage: Stage,
    reply: oneshot::Sender<Result<Page, StorageError>>,
}

enum Stage {
    /// Walks over what changed after the asked revision. `changed`: the revision each key had before its
    /// first change, 0 for none.
    Changes {
        index: Index,
        next: Revision,
        until: Revision,
        changed: BTreeMap<Arc<str>, Revision>,
    },
    Rows(Rows),
}

impl Read {
    fn step(&mut self, store: &Store) -> Result<Option<Page>, Trouble> {
        match &mut self.stage {
            Stage::Changes { index, next, until, changed } => {
                let found = store.changes(*next, *until, CHANGES)?;
                let last = found.len() < CHANGES as usize;
                for change in found {
                    *next = change.rev;
                    if self.scope.contains(&change.key) {
                        changed.entry(change.key.into()).or_insert(change.prev);
                    }
                }
                if last {
                    let rows = Rows::plan(&self.scope, index, changed, self.at);
                    self.stage = Stage::Rows(rows);
                }
                Ok(None)
            }
            Stage::Rows(rows) => rows.step(store, self.at),
        }
    }
}

/// Fetches the values, in revision order, since the log lies in that order on the disk; key order costs four
/// times as much.
struct Rows {
    keys: Vec<(Arc<str>, Revision)>,
    /// Positions in `keys` by revision.
    order: Vec<u32>,
    done: usize,
    items: Vec<Option<KeyValue>>,
    more: bool,
}

impl Rows {
    fn plan(scope: &Scope, index: &Index, changed: &BTreeMap<Arc<str>, Revision>, at: Revision) -> Self {
        let mut unchanged =
            scope.select(index).filter(|(_, rev)| *rev <= at).map(|(k, r)| (Arc::clone(k), r)).peekable();
        let mut before = changed.iter().filter(|(_, rev)| **rev > 0).map(|(k, r)| (Arc::clone(k), *r)).peekable();
        let limit = scope.limit();
        let mut keys: Vec<(Arc<str>, Revision)> = Vec::new();
        let mut more = false;
        loop {
            let from_index = match (unchanged.peek(), before.peek()) {
                (None, None) => break,
                (Some((left, _)), Some((right, _))) => left < right,
                (left, _) => left.is_some(),
            };
            if keys.len() == limit {
                more = true;
                break;
            }
            keys.extend(if from_index { unchanged.next() } else { before.next() });
        }
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_unstable_by_key(|n| keys.get(*n as usize).map(|(_, rev)| *rev));
        let items = vec![None; keys.len()];
        Self { keys, order, done: 0, items, more }
    }

    fn step(&mut self, store: &Store, at: Revision) -> Result<Option<Page>, Trouble> {
        let mut bytes = 0;
        let end = self.order.len().min(self.done + ROWS);
        while self.done < end && bytes < BYTES {
            let slot = self.order[self.done] as usize;
            let (key, rev) = &self.keys[slot];
            let of_key = |row: RowRef<'_>| (*row.key == **key && !row.deleted).then(|| row.key_value(Arc::clone(key)));
            let found = store.read(*rev, of_key).map_err(|trouble| name(trouble, key))?;
            let item = found.flatten().ok_or_else(|| missing(key, *rev))?;
            bytes += item.value.len();
            self.items[slot] = Some(item);
            self.done += 1;
        }
        if self.done < self.order.len() {
            return Ok(None);
        }
        let items = std::mem::take(&mut self.items).into_iter().flatten().collect();
        Ok(Some(Page { items, more: self.more, revision: at }))
    }
}

/// A row too damaged to tell its own key is named by the key it was read for.
fn name(trouble: Trouble, key: &str) -> Trouble {
    match trouble {
        Trouble::Damaged(damage) if damage.key.is_empty() => Trouble::Damaged(Damage { key: key.to_owned(), ..damage }),
        other => other,
    }
}

fn missing(key: &str, revision: Revision) -> Trouble {
    Trouble::Damaged(Damage { revision, key: key.to_owned(), reason: "the row is missing".to_owned() })
}
