//! `[authorization]`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a user may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Authorization {
    /// Authorizers, asked in this order until one decides.
    ///
    /// Range: RBAC, AlwaysAllow, AlwaysDeny, Node (accepted with a warning: it has no opinion yet). Default: RBAC, where
    /// upstream's is AlwaysAllow. Class: live. Mirrors --authorization-mode (kubernetes
    /// pkg/kubeapiserver/options/authorization.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_mode: Option<Vec<String>>,
}
