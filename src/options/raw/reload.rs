//! `[reload]`

use crate::options::types::GoDuration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How changes of the configuration are noticed and brought in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reload {
    /// Whether the configuration and every file it refers to are watched. SIGHUP and `kenter reload` work regardless.
    ///
    /// Default: true. Class: live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<bool>,
    /// Quiet time after the last change of a file before the configuration is read.
    ///
    /// Unit: duration text. Range: 0s to 1m. Default: 50ms, enough for an editor or a mounted ConfigMap to finish. Class:
    /// live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debounce: Option<GoDuration>,
    /// Longest time that further changes may put off the reading.
    ///
    /// Unit: duration text. Range: `debounce` to 10m. Default: 500ms. Class: live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debounce_max: Option<GoDuration>,
    /// Time between looks at all files, in case an event was lost.
    ///
    /// Unit: duration text. Range: 0s (never) or 1s to 24h. Default: 30s. Class: live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<GoDuration>,
    /// How long a new configuration may take to prove that it works before it is dropped.
    ///
    /// Unit: duration text. Range: 100ms to 10m. Default: 10s. Class: live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_timeout: Option<GoDuration>,
    /// How long the new configuration is watched after it went live, with the old one kept to go back to.
    ///
    /// Unit: duration text. Range: 0s to 10m. Default: 5s. Class: live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observe: Option<GoDuration>,
    /// How long a retired configuration may finish the requests it began.
    ///
    /// Unit: duration text. Range: 0s to 1h. Default: 1m0s, the same as the request deadline, so that a request that may
    /// run may finish. Watches are not cut: they go on in the new configuration. Class: live. Mirrors the watch grace
    /// period of apiserver pkg/server/genericapiserver.go, for reloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<GoDuration>,
}
