//! What the store's file looks like, and the settings under which it is used.
//!
//! Every setting that durability rests on is read back after it is set, since SQLite ignores what it does not
//! like.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::{OpenError, store};

/// "kntr": tells our files from any other SQLite database.
const APPLICATION_ID: i64 = 0x6b6e_7472;
/// Version of the layout below.
const LAYOUT_VERSION: i64 = 1;

/// `value` comes last so that the short columns stay on the leaf page and a scan of them is cheap.
/// `current` is for people with `sqlite3`; nothing here reads it.
const SCHEMA: &str = "
CREATE TABLE log(
  rev        INTEGER PRIMARY KEY,
  key        TEXT    NOT NULL,
  create_rev INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  prev       INTEGER NOT NULL,
  txn        INTEGER NOT NULL,
  txn_rows   INTEGER NOT NULL,
  deleted    INTEGER NOT NULL,
  expires    INTEGER NOT NULL,
  crc        INTEGER NOT NULL,
  value      BLOB    NOT NULL
) STRICT;
CREATE TABLE meta(name TEXT PRIMARY KEY, n INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE VIEW current AS SELECT key, max(rev) AS rev, create_rev, version, deleted, CAST(value AS TEXT) AS value
  FROM log GROUP BY key HAVING NOT deleted;
";

/// Fixed when the file is made: name, what is set, what must be read back.
const OF_THE_FILE: &[(&str, &str, i64)] = &[("page_size", "4096", 4096), ("auto_vacuum", "INCREMENTAL", 2)];

/// Set on every connection.
const OF_THE_CONNECTION: &[(&str, &str, i64)] = &[
    ("synchronous", "FULL", 2),
    // In KiB, for each connection. The log only grows at its end and the daemon reads objects from its own cache, so the
    // path to the last page and one batch are enough; more would be kept for nothing.
    ("cache_size", "-4096", -4096),
    ("temp_store", "MEMORY", 2),
    ("mmap_size", "0", 0),
    // 64 MB: a backstop under unbroken load; the writer checkpoints when it is idle. See `Store::limit_wal`.
    ("wal_autocheckpoint", "16000", 16000),
    ("journal_size_limit", "67108864", 67_108_864),
    ("foreign_keys", "OFF", 0),
    ("trusted_schema", "OFF", 0),
];

/// Makes an empty store at `path`: wholly or not at all, whenever it is cut off. It is made aside without syncs
/// and synced once, since a newcomer waits for it.
pub(super) fn create(path: &Path) -> Result<(), OpenError> {
    let unfinished = store::companion(path, ".new");
    let io = |what: &'static str| {
        let path = unfinished.clone();
        move |source| OpenError::Io { what, path, source }
    };
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(store::companion(&unfinished, suffix));
    }
    // Made by us and not by SQLite, whose mode would be the umask's; -wal and -shm copy it.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(io("create"))?;
    fill(&unfinished).map_err(|source| OpenError::Sqlite { what: "create", path: unfinished.clone(), source })?;
    store::sync_file(&unfinished).map_err(io("sync"))?;
    fs::rename(&unfinished, path).map_err(io("rename"))?;
    store::sync_directory_of(path).map_err(io("sync the directory of"))
}

/// Tables, identity, and the marks by which the file is known again.
fn fill(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    for (name, value, _) in OF_THE_FILE {
        conn.execute_batch(&format!("PRAGMA {name} = {value}"))?;
    }
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;")?;
    let tx = conn.transaction()?;
    tx.execute_batch(SCHEMA)?;
    let identity: i64 = tx.query_row("SELECT random()", [], |row| row.get(0))?;
    set_meta(&tx, "identity", identity)?;
    set_meta(&tx, "compacted", 0)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", LAYOUT_VERSION)?;
    tx.commit()?;
    conn.close().map_err(|(_, e)| e)
}

/// Sets what a connection needs and verifies everything.
pub(super) fn settle(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let sql = |source| OpenError::Sqlite { what: "set up", path: path.to_owned(), source };
    let refuse = |name: &str, wanted: &dyn ToString, found: &dyn ToString| OpenError::Pragma {
        path: path.to_owned(),
        name: name.to_owned(),
        wanted: wanted.to_string(),
        found: found.to_string(),
    };
    // A backup comes without it.
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(sql)?;
    if mode != "wal" {
        return Err(refuse("journal_mode", &"wal", &mode));
    }
    for (name, value, _) in OF_THE_CONNECTION {
        conn.execute_batch(&format!("PRAGMA {name} = {value}")).map_err(sql)?;
    }
    for (name, _, wanted) in OF_THE_FILE.iter().chain(OF_THE_CONNECTION) {
        let found: i64 = conn.pragma_query_value(None, name, |row| row.get(0)).map_err(sql)?;
        if found != *wanted {
            return Err(refuse(name, wanted, &found));
        }
    }
    Ok(())
}

/// Which store a closed or foreign file is.
pub(super) fn identity_of(path: &Path) -> Result<i64, OpenError> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|source| OpenError::Sqlite { what: "open", path: path.to_owned(), source })?;
    recognise(&conn, path)?;
    meta(&conn, "identity", path)
}

/// Refuses what is no store of ours, or of another version.
pub(super) fn recognise(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let number = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let sql = |source| OpenError::Sqlite { what: "read", path: path.to_owned(), source };
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
    if tables == 0 {
        return Err(OpenError::Foreign { path: path.to_owned(), reason: "it is empty".to_owned() });
    }
    let application = number("application_id").map_err(sql)?;
    let version = number("user_version").map_err(sql)?;
    if application != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned(), reason: "it is no store of kenter".to_owned() });
    }
    if version != LAYOUT_VERSION {
        let reason = format!("its layout is version {version}, this program knows version {LAYOUT_VERSION}");
        return Err(OpenError::Foreign { path: path.to_owned(), reason });
    }
    Ok(())
}

fn meta_crc(name: &str, n: i64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(name.as_bytes()), &n.to_le_bytes())
}

/// Writes one of the store's own numbers.
pub(super) fn set_meta(conn: &Connection, name: &str, n: i64) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO meta VALUES (?1, ?2, ?3) ON CONFLICT(name) DO UPDATE SET n = ?2, crc = ?3")?
        .execute(params![name, n, meta_crc(name, n)])
        .map(drop)
}

/// Reads one of the store's own numbers, with its checksum.
pub(super) fn meta(conn: &Connection, name: &str, path: &Path) -> Result<i64, OpenError> {
    let found = conn
        .query_row("SELECT n, crc FROM meta WHERE name = ?1", params![name], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
        .optional()
        .map_err(|source| OpenError::Sqlite { what: "read", path: path.to_owned(), source })?;
    match found {
        Some((n, crc)) if crc == i64::from(meta_crc(name, n)) => Ok(n),
        Some(_) => Err(OpenError::Meta { path: path.to_owned(), name: name.to_owned(), reason: "checksum is wrong" }),
        None => Err(OpenError::Meta { path: path.to_owned(), name: name.to_owned(), reason: "it is missing" }),
    }
}
