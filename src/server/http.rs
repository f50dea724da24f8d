//! A request as it came from the connection, and the answer as it leaves: the two values that cross every
//! layer and every server of the chain.

use std::{net::SocketAddr, pin::Pin, sync::Arc};

use ::http::{
    HeaderMap,
    header::{CONNECTION, UPGRADE},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use rustls_pki_types::CertificateDer;

use crate::pki::VerdictCache;

/// Where a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tls,
    /// Plain HTTP on a loopback address.
    Plain,
    /// Plain HTTP on a unix socket.
    Unix,
}

/// What is known of a connection, shared by its requests.
#[derive(Debug)]
pub struct ConnInfo {
    /// `None` on a unix socket.
    pub peer: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
    pub transport: Transport,
    /// Whether this connection speaks HTTP/2.
    pub http2: bool,
    /// The certificates the client sent, end entity first. Possession of the key is proven by the handshake;
    /// trust is judged per request by the authenticator.
    pub certificates: Arc<[CertificateDer<'static>]>,
    /// What the trust bundle said of `certificates`, kept so that a chain is verified once per connection and bundle.
    pub verdict: VerdictCache,
    /// The user id of the process at the other end of a unix socket.
    pub peer_uid: Option<u32>,
    /// Numbers connections from 1, for logs.
    pub id: u64,
}

pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send + Sync>>;

/// Why a request body could not be read or an answer's body broke off.
#[derive(Debug)]
pub struct BodyError(pub String);

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BodyError {}

/// A request that no server has answered yet.
pub struct Request {
    pub parts: ::http::request::Parts,
    pub body: BodyStream,
    pub conn: Arc<ConnInfo>,
    /// Present where the client asked for an upgrade ([`is_upgrade_request`], HTTP/1.1 only). The connection becomes
    /// the upgraded stream once a 101 has been answered.
    pub upgrade: Option<hyper::upgrade::OnUpgrade>,
}

/// Whether the client asks for the connection to become something else: any `Connection` header that speaks of it
/// (apimachinery `pkg/util/httpstream` IsUpgradeRequest).
pub fn is_upgrade_request(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONNECTION)
        .iter()
        .any(|value| value.as_bytes().to_ascii_lowercase().windows(7).any(|it| it == b"upgrade"))
}

/// Whether it is to become a websocket (IsWebSocketRequest).
pub fn is_websocket_request(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && is_upgrade_request(headers)
}

/// An answer's body. Watches and large lists are streams, everything else is whole.
pub enum Body {
    Empty,
    Full(Bytes),
    /// Pieces that are already there, sent in order without being copied together.
    Chunks(Vec<Bytes>),
    Stream(BodyStream),
}

pub type Response = ::http::Response<Body>;

/// What a request holds until the last byte of its answer was taken, or its client is gone.
#[derive(Clone, Default)]
pub struct Held(Vec<Arc<dyn std::any::Any + Send + Sync>>);

/// Keeps `what` until the answer's body has ended.
pub fn hold(response: &mut Response, what: impl Send + Sync + 'static) {
    response.extensions_mut().get_or_insert_default::<Held>().0.push(Arc::new(what));
}

/// Makes a stream that one reader polls usable as a body, which has to be `Sync`: a mutex nobody else can reach is
/// never locked.
pub fn unsynced(stream: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static) -> BodyStream {
    type Inner = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>;
    struct Alone(std::sync::Mutex<Inner>);
    impl Stream for Alone {
        type Item = Result<Bytes, BodyError>;
        fn poll_next(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<Self::Item>> {
            let inner = self.get_mut().0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            inner.as_mut().poll_next(cx)
        }
    }
    Box::pin(Alone(std::sync::Mutex::new(Box::pin(stream))))
}

/// The text a body begins with, `limit` bytes at most; what cannot be read ends it. For bodies of others that are shown to
/// somebody and not understood.
pub async fn beginning(mut body: BodyStream, limit: usize) -> String {
    let mut bytes = Vec::new();
    while let Some(Ok(piece)) = body.next().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() >= limit {
            bytes.truncate(limit);
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
