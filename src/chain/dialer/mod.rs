//! The way to kubelets: what upstream calls the node dialer (`CreateNodeDialer`, `pkg/kubelet/client`).
//!
//! [`NodeDialer`] knows how kubelets are addressed and which certificates count between us and them; [`Client`] is the
//! small HTTP client below it, over one TLS identity, that anything else which calls out may use too. Neither knows pods,
//! nodes or requests: callers hand in addresses and paths.

use std::{fmt, time::Duration};

use http::{Method, Request, uri::PathAndQuery};
use hyper::upgrade::OnUpgrade;

use crate::{
    options::completed::Kubelet,
    pki::PkiError,
    server::http::{Body, BodyStream},
};

mod client;
#[cfg(test)]
pub(crate) mod fake_kubelet;
#[cfg(test)]
mod tests;

pub use client::{Authority, Client, ClientTls, Peer};

/// Why a server could not be reached or did not answer. Trying again may help, except for `Address`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialError {
    /// None of the node's addresses is of a kind that is preferred; names what there is.
    NoAddress(Vec<NodeAddress>),
    /// A host, path or header that cannot be sent.
    Address(String),
    /// No connection: refused, unreachable, unknown name.
    Connect { authority: String, reason: String },
    /// A connection, but no agreement on TLS.
    Handshake { authority: String, reason: String },
    /// Connecting took longer than allowed.
    TimedOut { authority: String, after: Duration },
    /// The connection broke before an answer came.
    Request { authority: String, reason: String },
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress(known) => {
                // Go's %v of a slice of structs (`pkg/util/node`, NoMatchError).
                let known: Vec<String> =
                    known.iter().map(|address| format!("{{{} {}}}", address.kind, address.address)).collect();
                write!(f, "no preferred addresses found; known addresses: [{}]", known.join(" "))
            }
            Self::Address(why) => f.write_str(why),
            Self::Connect { authority, reason } => write!(f, "dial tcp {authority}: {reason}"),
            Self::Handshake { authority, reason } => write!(f, "TLS handshake with {authority}: {reason}"),
            Self::TimedOut { authority, after } => write!(f, "dial tcp {authority}: i/o timeout after {after:?}"),
            Self::Request { authority, reason } => write!(f, "request to {authority}: {reason}"),
        }
    }
}

impl std::error::Error for DialError {}

/// An entry of a node's `status.addresses`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// `Hostname`, `InternalIP`, ...
    pub kind: String,
    pub address: String,
}

/// Reaches the kubelets of nodes.
pub struct NodeDialer {
    client: Client,
    preferred: Vec<String>,
    default_port: u16,
}

impl NodeDialer {
    /// Fails where a configured certificate or key is unusable. Without an authority, kubelets' certificates are not
    /// verified, as upstream.
    pub fn new(options: &Kubelet) -> Result<Self, PkiError> {
        let peer = match &options.certificate_authority {
            Some(authority) => Peer::SignedBy(authority.certificates.clone()),
            None => Peer::Anyone,
        };
        let identity = options.client.as_ref().map(|pair| (&*pair.cert_pem, pair.key_pem.reveal()));
        let tls = ClientTls { peer, identity, server_name: None };
        Ok(Self {
            client: Client::new(Some(tls), options.timeout)?,
            preferred: options.preferred_address_types.clone(),
            default_port: options.port,
        })
    }

    /// The authority of a node's kubelet: its first address of the most preferred kind, and `port`, or where that is 0
    /// (the node's status names none) the configured one.
    pub fn kubelet(&self, addresses: &[NodeAddress], port: u16) -> Result<Authority, DialError> {
        let preferred = self.preferred.iter().find_map(|kind| addresses.iter().find(|address| address.kind == *kind));
        let address = preferred.ok_or_else(|| DialError::NoAddress(addresses.to_vec()))?;
        Ok(Authority { host: address.address.clone(), port: if port == 0 { self.default_port } else { port } })
    }

    /// GET of `path_and_query` from a node's kubelet. Returns when the headers of its answer are there, whatever its
    /// status; there is no limit on how long that takes, since a followed log answers with its first line. Dropping the
    /// body ends the request.
    pub async fn stream_get(
        &self,
        addresses: &[NodeAddress],
        port: u16,
        path_and_query: &str,
    ) -> Result<http::Response<BodyStream>, DialError> {
        let mut request = Request::new(Body::Empty);
        *request.uri_mut() = path(path_and_query)?;
        self.client.send(&self.kubelet(addresses, port)?, request).await
    }

    /// Sends `request` (its URI a path) to a server at this authority, with the identity kubelets are shown.
    pub async fn send_to(
        &self,
        authority: &Authority,
        request: Request<Body>,
    ) -> Result<http::Response<BodyStream>, DialError> {
        self.client.send(authority, request).await
    }

    /// Sends `request` (its URI a path) to a node's kubelet.
    pub async fn send(
        &self,
        addresses: &[NodeAddress],
        port: u16,
        request: Request<Body>,
    ) -> Result<http::Response<BodyStream>, DialError> {
        self.client.send(&self.kubelet(addresses, port)?, request).await
    }

    /// Sends an upgrade request on a connection of its own. Where the kubelet answers 101, the second value becomes the
    /// stream; else the answer is an ordinary one.
    pub async fn upgrade(
        &self,
        addresses: &[NodeAddress],
        port: u16,
        request: Request<Body>,
    ) -> Result<(http::Response<BodyStream>, Option<OnUpgrade>), DialError> {
        debug_assert!(request.method() != Method::CONNECT);
        self.client.upgrade(&self.kubelet(addresses, port)?, request).await
    }
}

fn path(text: &str) -> Result<http::Uri, DialError> {
    let parsed: PathAndQuery =
        text.parse().map_err(|error| DialError::Address(format!("invalid path {text:?}: {error}")))?;
    Ok(parsed.into())
}
