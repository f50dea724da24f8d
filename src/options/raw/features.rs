//! `[features]`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Feature gates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// Gates of Kubernetes 1.37 that are switched away from their default.
    ///
    /// Entries of several layers are joined. Default: none. Class: live. Mirrors --feature-gates (component-base
    /// featuregate/feature_gate.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_gates: Option<BTreeMap<String, bool>>,
}
