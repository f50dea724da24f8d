//! `[api]`

use std::collections::BTreeMap;

use crate::options::types::GoDuration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which API is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Api {
    /// A starting point for `runtime_config`, whose entries win over it.
    ///
    /// Default: default. Class: live. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ApiProfile>,
    /// Group versions and resources to serve or not.
    ///
    /// Range: keys group/version, group/version/resource, v1, api/all, api/ga, api/beta, api/alpha. Entries of several
    /// layers are joined. Default: none. Class: live. Mirrors --runtime-config (apiserver
    /// pkg/server/options/api_enablement.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_config: Option<BTreeMap<String, bool>>,
    /// Whether pods may have privileged containers.
    ///
    /// Default: false. Class: live. Mirrors --allow-privileged (kubernetes pkg/controlplane/apiserver/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privileged: Option<bool>,
    /// How long an event is kept.
    ///
    /// Unit: duration text. Default: 1h0m0s. Class: live, for new events. Mirrors --event-ttl (kubernetes pkg/controlplane/apiserver/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_ttl: Option<GoDuration>,
}

/// Starting points of the served API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApiProfile {
    /// What kube-apiserver serves by default.
    Default,
    /// Beta versions too.
    Beta,
    /// Beta and alpha versions too.
    All,
}
