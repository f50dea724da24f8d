//! Decides what a batch of writes becomes: a plain function from the index and the requests to rows and answers.
//!
//! Each write sees the ones before it in the batch. Losers cost no disk access.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;

use super::{
    expiry,
    load::{Entry, Index},
    row::Row,
};
use crate::storage::{Expect, Op, Revision, Write, WriteOutcome};

/// What is to be written, and what each request is told once it is.
pub(super) struct Batch {
    pub rows: Vec<Row>,
    pub outcomes: Vec<WriteOutcome>,
}

/// `current` is the newest revision; the batch's first row gets the next one.
pub(super) fn decide<'a>(index: &Index, current: Revision, writes: impl Iterator<Item = &'a Write>) -> Batch {
    let mut changed: HashMap<Arc<str>, Option<Entry>> = HashMap::new();
    let mut batch = Batch { rows: Vec::new(), outcomes: Vec::new() };
    for write in writes {
        let before = match changed.get(&write.key) {
            Some(entry) => *entry,
            None => index.get(&*write.key).copied(),
        };
        let held = before.map(|entry| entry.mod_rev);
        let wanted = match write.expect {
            Expect::Absent => None,
            Expect::ModRevision(revision) => Some(revision),
        };
        let deletes_nothing = write.op == Op::Delete && before.is_none();
        if held != wanted || deletes_nothing {
            batch.outcomes.push(WriteOutcome::Conflict(held));
            continue;
        }
        let rev = current + 1 + batch.rows.len() as u64;
        let row = row(write, before, rev);
        let after = (!row.deleted).then_some(Entry { mod_rev: rev, create_rev: row.create_rev, version: row.version });
        changed.insert(Arc::clone(&write.key), after);
        batch.rows.push(row);
        batch.outcomes.push(WriteOutcome::Committed(rev));
    }
    let rows = batch.rows.len() as u64;
    for row in &mut batch.rows {
        row.txn = current + 1;
        row.txn_rows = rows;
    }
    batch
}

fn row(write: &Write, before: Option<Entry>, rev: Revision) -> Row {
    let (value, expires, deleted) = match &write.op {
        Op::Put { value, ttl } => (value.clone(), expiry::deadline(*ttl), false),
        Op::Delete => (Bytes::new(), 0, true),
    };
    let (create_rev, version) = match before {
        _ if deleted => (0, 0),
        Some(entry) => (entry.create_rev, entry.version + 1),
        None => (rev, 1),
    };
    Row {
        rev,
        key: Arc::clone(&write.key),
        create_rev,
        version,
        prev: before.map_or(0, |entry| entry.mod_rev),
        txn: 0,
        txn_rows: 0,
        deleted,
        expires,
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, expect: Expect, op: Op) -> Write {
        Write { key: key.into(), expect, op }
    }

    fn put() -> Op {
        Op::Put { value: Bytes::from_static(b"v"), ttl: None }
    }

    #[test]
    fn a_write_sees_those_before_it_in_the_batch() {
        let writes = [
            write("a", Expect::Absent, put()),
            write("a", Expect::Absent, put()),
            write("a", Expect::ModRevision(11), put()),
            write("a", Expect::ModRevision(12), Op::Delete),
            write("a", Expect::ModRevision(12), Op::Delete),
            write("a", Expect::Absent, put()),
        ];
        let batch = decide(&Index::new(), 10, writes.iter());
        assert_eq!(
            batch.outcomes,
            [
                WriteOutcome::Committed(11),
                WriteOutcome::Conflict(Some(11)),
                WriteOutcome::Committed(12),
                WriteOutcome::Committed(13),
                WriteOutcome::Conflict(None),
                WriteOutcome::Committed(14),
            ]
        );
        let shape: Vec<_> = batch.rows.iter().map(|r| (r.rev, r.prev, r.create_rev, r.version, r.deleted)).collect();
        assert_eq!(shape, [(11, 0, 11, 1, false), (12, 11, 11, 2, false), (13, 12, 0, 0, true), (14, 0, 14, 1, false)]);
        assert!(batch.rows.iter().all(|r| (r.txn, r.txn_rows) == (11, 4)));
    }

    #[test]
    fn deleting_what_is_absent_writes_nothing() {
        let writes = [write("a", Expect::Absent, Op::Delete)];
        let batch = decide(&Index::new(), 10, writes.iter());
        assert_eq!(batch.outcomes, [WriteOutcome::Conflict(None)]);
        assert!(batch.rows.is_empty());
    }
}
