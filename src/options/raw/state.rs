//! `[state]`

use crate::options::types::OwnPath;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where kenter keeps what it makes itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// The state directory: the store, self-made certificates, the administrator's kubeconfig.
    ///
    /// Default: the first entry of $STATE_DIRECTORY; else /var/lib/kenter as root; else $XDG_STATE_HOME/kenter or
    /// ~/.local/state/kenter. Class: reopen. Flag: --state-dir, kenter's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<OwnPath>,
    /// The kubeconfig of an administrator that is written (mode 0600) when kenter makes its own certificates.
    ///
    /// Default: admin.conf in the state directory. Class: live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<OwnPath>,
    /// The unix socket, mode 0600, that `kenter reload` talks to. `admin.link` in the state directory leads to where it
    /// is, so that also a reload that moves it finds the daemon.
    ///
    /// Default: admin.sock in the first entry of $RUNTIME_DIRECTORY, else in the state directory. Class: rebind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_socket: Option<OwnPath>,
}
