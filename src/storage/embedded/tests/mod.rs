//! The embedded back end against the suite, and what only it promises.

use std::{path::Path, sync::Arc, time::Duration};

use super::{Embedded, EmbeddedOptions, OpenError};
use crate::storage::{Storage, suite};

fn options(dir: &Path) -> EmbeddedOptions {
    EmbeddedOptions { reserve_bytes: 1 << 20, ..EmbeddedOptions::new(dir) }
}

fn open(dir: &Path) -> Arc<Embedded> {
    Embedded::open(options(dir)).expect("the store opens")
}

fn refusal(dir: &Path) -> OpenError {
    match Embedded::open(options(dir)) {
        Ok(_) => panic!("the store opened"),
        Err(why) => why,
    }
}

mod conformance {
    use super::*;

    async fn ground() -> (Arc<dyn Storage>, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        (open(dir.path()), dir)
    }

    suite::storage_suite!(ground());
}
