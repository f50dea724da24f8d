//! An online copy: one statement that yields one ordinary file.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Shared, expiry, layout, stats, store};
use crate::storage::StorageError;

/// Copies the store to `file`; writers go on.
pub(super) async fn backup(shared: Arc<Shared>, file: PathBuf) -> Result<(), StorageError> {
    let guard = Arc::clone(&shared.files).lock_owned().await;
    let copy = tokio::task::spawn_blocking(move || {
        // Held to the end of the copy even where nobody waits for it any more.
        let _guard = guard;
        let source = shared.directory.read().join(store::FILE);
        copy(&source, &file, shared.identity)?;
        stats::set(&shared.stats.last_backup, expiry::now());
        Ok(())
    });
    copy.await.map_err(|e| StorageError::Unavailable(format!("the backup was cut off: {e}")))?
}

fn copy(source: &Path, file: &Path, identity: i64) -> Result<(), StorageError> {
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        StorageError::Unavailable(format!("backup to {}: cannot {what}: {why}", file.display()))
    };
    let unfinished = store::companion(file, ".tmp");
    match fs::remove_file(&unfinished) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed("remove an older attempt", &e)),
        _ => {}
    }
    let done = store::copy_into(source, &unfinished)
        .map_err(|e| failed("copy", &e))
        .and_then(|()| match layout::identity_of(&unfinished) {
            Ok(found) if found == identity => Ok(()),
            Ok(_) => Err(failed("copy", &"another store lies in the data directory by now")),
            Err(e) => Err(failed("read the copy", &e)),
        })
        .and_then(|()| store::sync_file(&unfinished).map_err(|e| failed("sync", &e)))
        .and_then(|()| fs::rename(&unfinished, file).map_err(|e| failed("rename", &e)));
    if done.is_err() {
        let _ = fs::remove_file(&unfinished);
        return done;
    }
    store::sync_directory_of(file).map_err(|e| failed("sync the directory", &e))
}
