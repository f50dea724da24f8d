//! One row of the log and its checksum.
//!
//! The checksum covers every other column in a fixed encoding, so that a flipped bit anywhere in a row is
//! seen, including one that moves a value under another key or revision. SQLite itself has none.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::{KeyValue, Revision};

/// The columns, in the order of the table and of every `SELECT` that ends in [`RowRef::read`].
pub(super) const COLUMNS: &str = "rev, key, create_rev, version, prev, txn, txn_rows, deleted, expires, crc, value";

/// A row to be written.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub rev: Revision,
    pub key: Arc<str>,
    /// 0 in a deletion.
    pub create_rev: Revision,
    /// 0 in a deletion.
    pub version: u64,
    /// The revision that this row supersedes; 0 where the key did not exist.
    pub prev: Revision,
    /// First revision of the commit.
    pub txn: Revision,
    /// Rows in the commit: proves that it is whole.
    pub txn_rows: u64,
    pub deleted: bool,
    /// Seconds since 1970 at which the store deletes the key; 0 = never.
    pub expires: u64,
    pub value: Bytes,
}

impl Row {
    pub fn borrowed(&self) -> RowRef<'_> {
        RowRef {
            rev: self.rev,
            key: &self.key,
            create_rev: self.create_rev,
            version: self.version,
            prev: self.prev,
            txn: self.txn,
            txn_rows: self.txn_rows,
            deleted: self.deleted,
            expires: self.expires,
            value: &self.value,
        }
    }
}

/// A row as SQLite holds it, valid until the statement steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowRef<'a> {
    pub rev: Revision,
    pub key: &'a str,
    pub create_rev: Revision,
    pub version: u64,
    pub prev: Revision,
    pub txn: Revision,
    pub txn_rows: u64,
    pub deleted: bool,
    pub expires: u64,
    pub value: &'a [u8],
}

/// What is wrong with a stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub revision: Revision,
    /// Empty where the key itself cannot be read.
    pub key: String,
    pub reason: String,
}

impl<'a> RowRef<'a> {
    /// Takes a row apart and verifies its checksum.
    pub fn read(row: &'a rusqlite::Row<'_>) -> Result<Self, Damage> {
        let revision = row.get::<_, i64>(0).ok().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let key = row.get_ref(1).ok().and_then(|v| v.as_str().ok()).unwrap_or("");
        let damage = |reason: String| Damage { revision, key: key.to_owned(), reason };
        let number = |column: usize, name: &str| {
            row.get::<_, i64>(column)
                .ok()
                .and_then(|n| u64::try_from(n).ok())
                .ok_or_else(|| damage(format!("column {name} holds no number")))
        };
        let value = row
            .get_ref(10)
            .ok()
            .and_then(|v| v.as_blob().ok())
            .ok_or_else(|| damage("column value holds no bytes".to_owned()))?;
        let found = Self {
            rev: number(0, "rev")?,
            key,
            create_rev: number(2, "create_rev")?,
            version: number(3, "version")?,
            prev: number(4, "prev")?,
            txn: number(5, "txn")?,
            txn_rows: number(6, "txn_rows")?,
            deleted: number(7, "deleted")? != 0,
            expires: number(8, "expires")?,
            value,
        };
        let stored = number(9, "crc")?;
        let computed = u64::from(found.crc());
        if stored != computed {
            return Err(damage(format!("checksum is {computed:#010x}, the row says {stored:#010x}")));
        }
        Ok(found)
    }

    /// CRC-32C over all columns but itself: numbers as little-endian 64 bits, texts and bytes after their length.
    pub fn crc(&self) -> u32 {
        let mut head = [0u8; 8 * 10];
        let numbers = [
            self.rev,
            self.create_rev,
            self.version,
            self.prev,
            self.txn,
            self.txn_rows,
            u64::from(self.deleted),
            self.expires,
            self.key.len() as u64,
            self.value.len() as u64,
        ];
        for (slot, number) in head.chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&head);
        let crc = crc32c::crc32c_append(crc, self.key.as_bytes());
        crc32c::crc32c_append(crc, self.value)
    }

    /// What a reader of this row gets, under a key that is already shared.
    pub fn key_value(&self, key: Arc<str>) -> KeyValue {
        KeyValue {
            key,
            value: Bytes::copy_from_slice(self.value),
            mod_revision: self.rev,
            create_revision: self.create_rev,
            version: self.version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            rev: 7,
            key: "/registry/pods/a/b".into(),
            create_rev: 3,
            version: 2,
            prev: 3,
            txn: 6,
            txn_rows: 2,
            deleted: false,
            expires: 0,
            value: Bytes::from_static(b"value"),
        }
    }

    #[test]
    fn every_column_is_under_the_checksum() {
        let good = row().borrowed().crc();
        let changes: [fn(&mut Row); 10] = [
            |r| r.rev ^= 1,
            |r| r.key = "/registry/pods/a/c".into(),
            |r| r.create_rev ^= 1,
            |r| r.version ^= 1,
            |r| r.prev ^= 1,
            |r| r.txn ^= 1,
            |r| r.txn_rows ^= 1,
            |r| r.deleted = true,
            |r| r.expires ^= 1,
            |r| r.value = Bytes::from_static(b"valuf"),
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let mut changed = row();
            change(&mut changed);
            assert_ne!(changed.borrowed().crc(), good, "change {n} went unseen");
        }
    }

    #[test]
    fn a_byte_moved_from_key_to_value_changes_the_checksum() {
        let mut moved = row();
        moved.key = "/registry/pods/a/".into();
        moved.value = Bytes::from_static(b"bvalue");
        assert_ne!(moved.borrowed().crc(), row().borrowed().crc());
    }
}
