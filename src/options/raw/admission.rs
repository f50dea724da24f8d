//! `[admission]`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Admission plugins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Admission {
    /// Plugins to run besides the default ones; their order has no meaning.
    ///
    /// Default: none. Class: live. Mirrors --enable-admission-plugins (kubernetes pkg/kubeapiserver/options/admission.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_admission_plugins: Option<Vec<String>>,
    /// Default plugins not to run.
    ///
    /// Default: none. Class: live. Mirrors --disable-admission-plugins (kubernetes pkg/kubeapiserver/options/admission.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_admission_plugins: Option<Vec<String>>,
    /// Exactly the plugins to run; cannot be given together with the two lists above.
    ///
    /// Default: unset. Class: live. Mirrors the deprecated --admission-control (kubernetes pkg/kubeapiserver/options/admission.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_control: Option<Vec<String>>,
    /// Seconds that pods tolerate a node that is not ready, added by DefaultTolerationSeconds.
    ///
    /// Unit: seconds. Default: 300. Class: live. Mirrors --default-not-ready-toleration-seconds (kubernetes
    /// plugin/pkg/admission/defaulttolerationseconds/admission.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_not_ready_toleration_seconds: Option<i64>,
    /// Seconds that pods tolerate a node that cannot be reached, added by DefaultTolerationSeconds.
    ///
    /// Unit: seconds. Default: 300. Class: live. Mirrors --default-unreachable-toleration-seconds (kubernetes
    /// plugin/pkg/admission/defaulttolerationseconds/admission.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_unreachable_toleration_seconds: Option<i64>,
}
