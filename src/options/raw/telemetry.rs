//! `[telemetry]`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// How log lines look.
    ///
    /// Range: text, for people; json, one object a line. Default: text. Class: live. Mirrors --logging-format (component-base logs/api/v1/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging_format: Option<String>,
    /// How much is logged: 0 to 3 what matters, 4 and 5 details too, 6 and more everything.
    ///
    /// Range: 0 to 10. Default: 0. Class: live. Mirrors -v (component-base logs/api/v1/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<i64>,
    /// A filter by level and module ("info,kenter::storage=debug"), instead of `v`.
    ///
    /// Default: unset. Class: live. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_filter: Option<String>,
    /// Whether each request is logged in one line.
    ///
    /// Default: false. Class: live. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log: Option<bool>,
    /// Whether /debug/pprof and /debug/flags are served, to those who may see them.
    ///
    /// Default: true. Class: live. Mirrors --profiling (apiserver pkg/server/options/feature.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiling: Option<bool>,
}
