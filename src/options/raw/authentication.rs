//! `[authentication]`

use crate::options::types::{FilePath, SecretString};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who a request is from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Authentication {
    /// Whether requests without credentials are served, as system:anonymous.
    ///
    /// Default: true, for the paths in `anonymous_paths` only; true given here, with no paths, means all paths. Class:
    /// live. Mirrors --anonymous-auth (kubernetes pkg/kubeapiserver/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymous_auth: Option<bool>,
    /// URL paths that may be asked for without credentials, compared exactly; "*" alone means all.
    ///
    /// Default: /healthz, /livez, /readyz, /version, unless `anonymous_auth` is given. Class: live. kenter's own; upstream
    /// has it in its authentication configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymous_paths: Option<Vec<String>>,
    /// PEM bundle of the authorities whose client certificates are believed: common name is the user, organisations the
    /// groups.
    ///
    /// Default: unset; with self-made certificates their own CA. Class: live. Mirrors --client-ca-file (apiserver pkg/server/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ca_file: Option<FilePath>,
    /// CSV file of bearer tokens: token, user name, user uid, then optionally the groups in one quoted column.
    ///
    /// Default: unset. Class: live, where upstream reads it once. Mirrors --token-auth-file (kubernetes pkg/kubeapiserver/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_auth_file: Option<FilePath>,
    /// Bearer tokens written here instead of a file.
    ///
    /// Default: none. Class: live. kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<InlineToken>>,
    /// PEM bundle of the authorities whose clients may say who the user is, in headers.
    ///
    /// Default: unset, headers are not believed. Class: live. Mirrors --requestheader-client-ca-file (apiserver pkg/server/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requestheader_client_ca_file: Option<FilePath>,
    /// Common names of client certificates that may say so.
    ///
    /// Default: empty, all that `requestheader_client_ca_file` signed. Class: live. Mirrors --requestheader-allowed-names
    /// (apiserver pkg/server/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requestheader_allowed_names: Option<Vec<String>>,
    /// Headers that hold the user name; the first that is not empty counts.
    ///
    /// Default: none. Class: live. Mirrors --requestheader-username-headers (apiserver pkg/server/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requestheader_username_headers: Option<Vec<String>>,
    /// Headers that hold the user's uid.
    ///
    /// Default: none. Class: live. Mirrors --requestheader-uid-headers (apiserver pkg/server/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requestheader_uid_headers: Option<Vec<String>>,
    /// Headers that hold groups.
    ///
    /// Default: none. Class: live. Mirrors --requestheader-group-headers (apiserver pkg/server/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requestheader_group_headers: Option<Vec<String>>,
    /// Prefixes of headers that hold further facts about the user.
    ///
    /// Default: none. Class: live. Mirrors --requestheader-extra-headers-prefix (apiserver pkg/server/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requestheader_extra_headers_prefix: Option<Vec<String>>,
    /// Issuers of service account tokens; the first issues, all are believed.
    ///
    /// Default: none. Class: live. Mirrors --service-account-issuer (kubernetes pkg/kubeapiserver/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_issuer: Option<Vec<String>>,
    /// PEM files with keys that verify service account tokens.
    ///
    /// Default: none. Class: live. Mirrors --service-account-key-file (kubernetes pkg/kubeapiserver/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_key_file: Option<Vec<FilePath>>,
    /// PEM file with the private key that signs service account tokens.
    ///
    /// Default: unset. Class: live. Mirrors --service-account-signing-key-file (kubernetes
    /// pkg/controlplane/apiserver/options/options.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_signing_key_file: Option<FilePath>,
    /// Names this API server answers to in tokens.
    ///
    /// Default: the issuers. Class: live. Mirrors --api-audiences (kubernetes pkg/kubeapiserver/options/authentication.go).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_audiences: Option<Vec<String>>,
}

/// A bearer token and whom it stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineToken {
    /// The token itself; never printed.
    pub token: SecretString,
    /// User name.
    pub user: String,
    /// User uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Groups of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}
