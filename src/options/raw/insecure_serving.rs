//! `[insecure_serving]`

use std::net::SocketAddr;

use crate::options::types::OwnPath;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Plain HTTP, off unless an address is given. Every request is authenticated and authorised as over TLS.
///
/// Upstream has dropped it; there is no flag, so that it cannot come in by an old command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InsecureServing {
    /// Addresses with ports served without TLS.
    ///
    /// Range: loopback addresses only. Default: none. Class: rebind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<Vec<SocketAddr>>,
    /// Unix sockets, mode 0600, served without TLS.
    ///
    /// Default: none. Class: rebind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<Vec<OwnPath>>,
}
