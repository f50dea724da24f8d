//! `[storage]`

use crate::options::types::{ByteSize, GoDuration, OwnPath};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// The directory of the embedded store: `store.db` and what belongs to it.
    ///
    /// Default: the state directory. Class: reopen; the store is moved to the new place, and the old file is kept as
    /// `store.db.moved`. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<OwnPath>,
    /// Disk space held back beside the database, given up when the disk is full so that compaction can make room. Of a
    /// small disk never more than half of what the store could have is held back.
    ///
    /// Unit: size. Range: 0 to 1GiB. Default: 32MiB. Class: reopen. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<ByteSize>,
    /// Every interval, history older than one interval is dropped; a watch or list that asks for it is told 410.
    ///
    /// Unit: duration text. Range: 0s (never) and up. Default: 5m0s. Class: live. Mirrors --etcd-compaction-interval
    /// (apiserver pkg/server/options/etcd.go); here it rules the embedded store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_compaction_interval: Option<GoDuration>,
    /// How long start waits for the store and for the first fill of the caches before it gives up.
    ///
    /// Unit: duration text. Default: 1m0s. Class: live. Mirrors --storage-initialization-timeout (apiserver pkg/server/options/server_run_options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_initialization_timeout: Option<GoDuration>,
}
