//! `[controllers]`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Loops that kube-controller-manager would run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Controllers {
    /// Loops to run: "*" means all that are on by default, "name" adds one, "-name" takes one away; an empty list runs
    /// none. Names are kube-controller-manager's.
    ///
    /// Default: "*". Class: live. Flag: --controllers, kenter's own with kube-controller-manager's meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<String>>,
}
