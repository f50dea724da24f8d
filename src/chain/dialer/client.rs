//! A small HTTP client: TLS with one identity, HTTP/2 or HTTP/1.1 by ALPN, connections kept per authority.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, Method, Request, Response, Uri, Version, header};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::DialError;
use crate::{
    pki::{self, PkiError},
    server::http::{Body, BodyError, BodyStream},
};

/// Idle HTTP/1.1 connections kept per authority.
const IDLE_PER_AUTHORITY: usize = 8;
/// How long one is kept; below the 90 s after which Go servers close them.
const IDLE_FOR: Duration = Duration::from_secs(60);
/// Requests put on one HTTP/2 connection; Go servers allow 100 to 250.
const STREAMS_PER_CONNECTION: usize = 90;
/// Authorities whose connections are kept; idle ones go first.
const AUTHORITIES: usize = 4096;
/// As client-go's transports: a dead peer is noticed within 45 seconds.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// A host (name or IP address, without brackets) and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Which servers are talked to.
#[derive(Clone, Debug)]
pub enum Peer {
    /// Those with a certificate of one of these authorities for their name.
    SignedBy(Vec<CertificateDer<'static>>),
    /// Any: nothing is verified but that the server holds the key of what it shows.
    Anyone,
}

/// The TLS side of a client.
#[derive(Clone, Debug)]
pub struct ClientTls<'a> {
    pub peer: Peer,
    /// Certificate and key in PEM, shown to servers that ask.
    pub identity: Option<(&'a [u8], &'a [u8])>,
    /// The name to expect in certificates instead of the host.
    pub server_name: Option<String>,
}

/// Sends requests to any number of servers with one TLS identity. Clones share connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    tls: Option<Tls>,
    connect_timeout: Duration,
    pools: Mutex<HashMap<Authority, Pool>>,
}

struct Tls {
    any_version: TlsConnector,
    http1: TlsConnector,
    server_name: Option<ServerName<'static>>,
}

#[derive(Default)]
struct Pool {
    http1: Vec<(Http1, Instant)>,
    http2: Vec<Http2>,
}

type RequestBody = BoxBody<Bytes, BodyError>;
type Http1 = http1::SendRequest<RequestBody>;

#[derive(Clone)]
struct Http2 {
    sender: http2::SendRequest<RequestBody>,
    open: Arc<AtomicUsize>,
}

enum Connection {
    Http1(Http1),
    Http2(Http2),
}

impl Client {
    /// `tls: None` is plain HTTP/1.1. `connect_timeout` covers name, connection and handshake, not the answer.
    pub fn new(tls: Option<ClientTls<'_>>, connect_timeout: Duration) -> Result<Self, PkiError> {
        let tls = tls.map(|tls| Tls::new(&tls)).transpose()?;
        Ok(Self(Arc::new(Inner { tls, connect_timeout, pools: Mutex::default() })))
    }

    /// Sends `request`, whose URI is a path; `Host` is added where it is missing. Returns with the answer's headers.
    /// A connection that turns out dead before anything was sent on it, or under a GET, is replaced once.
    pub async fn send(&self, authority: &Authority, request: Request<Body>) -> Result<Response<BodyStream>, DialError> {
        let again = replayable(&request);
        let mut request = prepare(authority, request)?;
        if let Some(connection) = self.0.idle(authority) {
            match self.0.send_on(authority, connection, request).await {
                Ok(response) => return Ok(response),
                Err((error, unsent)) => {
                    request = match (unsent, again) {
                        (Some(request), _) => request,
                        (None, Some(head)) => prepare(authority, head)?,
                        (None, None) => return Err(error),
                    }
                }
            }
        }
        let connection = self.0.connect(authority).await?;
        self.0.send_on(authority, connection, request).await.map_err(|(error, _)| error)
    }

    /// Sends an upgrade request over HTTP/1.1 on a connection of its own.
    pub async fn upgrade(
        &self,
        authority: &Authority,
        request: Request<Body>,
    ) -> Result<(Response<BodyStream>, Option<OnUpgrade>), DialError> {
        let request = prepare(authority, request)?;
        let failed =
            |error: hyper::Error| DialError::Request { authority: authority.to_string(), reason: chain_text(&error) };
        let stream = self.0.stream(authority, true).await?.0;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        tokio::spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        let mut response = sender.send_request(request).await.map_err(failed)?;
        let switched = response.status() == http::StatusCode::SWITCHING_PROTOCOLS;
        let upgrade = switched.then(|| hyper::upgrade::on(&mut response));
        Ok((response.map(|body| body_stream(body, (sender, ()))), upgrade))
    }
}

/// Why there is no connection, in Go's words where the system said why.
fn why(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((words, _)) => format!("connect: {}", words.to_lowercase()),
        None => text,
    }
}

/// A copy of a request that may be sent twice.
fn replayable(request: &Request<Body>) -> Option<Request<Body>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) || !matches!(request.body(), Body::Empty) {
        return None;
    }
    let mut copy = Request::new(Body::Empty);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

fn prepare(authority: &Authority, request: Request<Body>) -> Result<Request<RequestBody>, DialError> {
    let (mut parts, body) = request.into_parts();
    if !parts.headers.contains_key(header::HOST) {
        let host = HeaderValue::try_from(authority.to_string())
            .map_err(|error| DialError::Address(format!("host {authority}: {error}")))?;
        parts.headers.insert(header::HOST, host);
    }
    let body = match body {
        Body::Empty => boxed(stream::empty(), true),
        Body::Full(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed(),
        Body::Chunks(chunks) => {
            let length: usize = chunks.iter().map(Bytes::len).sum();
            parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
            boxed(stream::iter(chunks.into_iter().map(Ok)), false)
        }
        Body::Stream(pieces) => boxed(pieces, false),
    };
    Ok(Request::from_parts(parts, body))
}

fn boxed(pieces: impl Stream<Item = Result<Bytes, BodyError>> + Send + Sync + 'static, empty: bool) -> RequestBody {
    if empty {
        return Full::new(Bytes::new()).map_err(|never| match never {}).boxed();
    }
    BodyExt::boxed(StreamBody::new(pieces.map(|piece| piece.map(Frame::data))))
}

impl Inner {
    /// A living connection with room.
    fn idle(&self, authority: &Authority) -> Option<Connection> {
        let mut pools = self.pools.lock();
        let pool = pools.get_mut(authority)?;
        pool.tidy();
        if let Some(connection) =
            pool.http2.iter().find(|connection| connection.open.load(Ordering::Relaxed) < STREAMS_PER_CONNECTION)
        {
            return Some(Connection::Http2(connection.clone()));
        }
        pool.http1.pop().map(|(sender, _)| Connection::Http1(sender))
    }

    async fn connect(&self, authority: &Authority) -> Result<Connection, DialError> {
        let (stream, http2) = self.stream(authority, false).await?;
        let failed =
            |error: hyper::Error| DialError::Handshake { authority: authority.to_string(), reason: chain_text(&error) };
        if http2 {
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_TIMEOUT)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(failed)?;
            tokio::spawn(async move {
                let _ = connection.await;
            });
            let connection = Http2 { sender, open: Arc::default() };
            self.pool(authority, |pool| pool.http2.push(connection.clone()));
            return Ok(Connection::Http2(connection));
        }
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Connection::Http1(sender))
    }

    /// A stream to the server, and whether it wants HTTP/2.
    async fn stream(&self, authority: &Authority, only_http1: bool) -> Result<(Box<dyn Duplex>, bool), DialError> {
        let connecting = async {
            let tcp = TcpStream::connect((authority.host.as_str(), authority.port))
                .await
                .map_err(|error| DialError::Connect { authority: authority.to_string(), reason: why(&error) })?;
            // Refused only where the peer has gone already.
            let _ = tcp.set_nodelay(true);
            let Some(tls) = &self.tls else { return Ok((Box::new(tcp) as Box<dyn Duplex>, false)) };
            let failed = |error: std::io::Error| DialError::Handshake {
                authority: authority.to_string(),
                reason: error.to_string(),
            };
            let connector = if only_http1 { &tls.http1 } else { &tls.any_version };
            let stream = connector.connect(tls.name(authority)?, tcp).await.map_err(failed)?;
            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Ok((Box::new(stream) as Box<dyn Duplex>, http2))
        };
        match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(result) => result,
            Err(_) => Err(DialError::TimedOut { authority: authority.to_string(), after: self.connect_timeout }),
        }
    }

    /// On an error, the request too where nothing of it was sent.
    async fn send_on(
        self: &Arc<Self>,
        authority: &Authority,
        connection: Connection,
        request: Request<RequestBody>,
    ) -> Result<Response<BodyStream>, (DialError, Option<Request<RequestBody>>)> {
        let failed =
            |error: &hyper::Error| DialError::Request { authority: authority.to_string(), reason: chain_text(error) };
        match connection {
            Connection::Http1(mut sender) => {
                if let Err(error) = sender.ready().await {
                    return Err((failed(&error), Some(request)));
                }
                match sender.try_send_request(request).await {
                    Ok(response) => {
                        let back = GiveBack { pool: self.clone(), authority: authority.clone(), sender: Some(sender) };
                        Ok(response.map(|body| body_stream(body, back)))
                    }
                    Err(mut error) => Err((failed(error.error()), error.take_message())),
                }
            }
            Connection::Http2(mut connection) => {
                let open = Open::new(&connection.open);
                let request = match for_http2(authority, request) {
                    Ok(request) => request,
                    Err(error) => return Err((error, None)),
                };
                match connection.sender.try_send_request(request).await {
                    Ok(response) => Ok(response.map(|body| body_stream(body, open))),
                    Err(mut error) => Err((failed(error.error()), error.take_message())),
                }
            }
        }
    }

    fn pool(&self, authority: &Authority, change: impl FnOnce(&mut Pool)) {
        let mut pools = self.pools.lock();
        if pools.len() >= AUTHORITIES && !pools.contains_key(authority) {
            pools.retain(|_, pool| {
                pool.tidy();
                !pool.is_empty()
            });
            if pools.len() >= AUTHORITIES {
                return;
            }
        }
        change(pools.entry(authority.clone()).or_default());
    }
}

impl Pool {
    fn tidy(&mut self) {
        self.http2.retain(|connection| !connection.sender.is_closed());
        self.http1.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < IDLE_FOR);
    }

    fn is_empty(&self) -> bool {
        self.http1.is_empty() && self.http2.is_empty()
    }
}

/// HTTP/2 says scheme and host in the URI, and forbids the headers that speak of one connection.
fn for_http2(authority: &Authority, request: Request<RequestBody>) -> Result<Request<RequestBody>, DialError> {
    let (mut parts, body) = request.into_parts();
    let wrong = |error: &dyn fmt::Display| DialError::Address(format!("request to {authority}: {error}"));
    let host = parts.headers.remove(header::HOST);
    let host = host.as_ref().and_then(|host| host.to_str().ok()).map_or_else(|| authority.to_string(), str::to_owned);
    let mut uri = parts.uri.into_parts();
    uri.scheme = Some(http::uri::Scheme::HTTPS);
    uri.authority = Some(host.parse().map_err(|error: http::uri::InvalidUri| wrong(&error))?);
    parts.uri = Uri::from_parts(uri).map_err(|error| wrong(&error))?;
    parts.version = Version::HTTP_2;
    Ok(Request::from_parts(parts, body))
}

impl Tls {
    fn new(options: &ClientTls<'_>) -> Result<Self, PkiError> {
        let making = |error: Error| PkiError::Making(error.to_string());
        let builder = ClientConfig::builder_with_provider(pki::provider())
            .with_safe_default_protocol_versions()
            .map_err(making)?;
        let builder = match &options.peer {
            Peer::SignedBy(authorities) => {
                let mut roots = RootCertStore::empty();
                for (index, certificate) in authorities.iter().enumerate() {
                    roots.add(certificate.clone()).map_err(|error| {
                        PkiError::Malformed(format!("certificate {} of the bundle: {error}", index + 1))
                    })?;
                }
                builder.with_root_certificates(roots)
            }
            Peer::Anyone => {
                let algorithms = pki::provider().signature_verification_algorithms;
                builder.dangerous().with_custom_certificate_verifier(Arc::new(BelieveAnyone { algorithms }))
            }
        };
        let mut config = match options.identity {
            Some((certificate, key)) => {
                let (chain, key) = (pki::pair::read_certificates(certificate)?, pki::pair::read_key(key)?);
                builder.with_client_auth_cert(chain, key).map_err(|error| match error {
                    Error::InconsistentKeys(_) => PkiError::Mismatch,
                    other => PkiError::UnsupportedKey(other.to_string()),
                })?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let http1 = TlsConnector::from(Arc::new(config.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let server_name = options.server_name.as_deref().map(name).transpose().map_err(PkiError::Malformed)?;
        Ok(Self { any_version: TlsConnector::from(Arc::new(config)), http1, server_name })
    }

    fn name(&self, authority: &Authority) -> Result<ServerName<'static>, DialError> {
        match &self.server_name {
            Some(name) => Ok(name.clone()),
            None => name(&authority.host).map_err(DialError::Address),
        }
    }
}

fn name(text: &str) -> Result<ServerName<'static>, String> {
    match text.parse::<IpAddr>() {
        Ok(address) => Ok(ServerName::IpAddress(address.into())),
        Err(_) => ServerName::try_from(text.to_owned()).map_err(|_| format!("{text:?} is no host name")),
    }
}

/// Takes any server certificate, but makes sure the server holds its key.
#[derive(Debug)]
struct BelieveAnyone {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for BelieveAnyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// One more stream on an HTTP/2 connection, until dropped.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What to do with the connection when an answer's body has been read to its end.
trait AtEnd: Send + Sync + Unpin + 'static {
    fn at_end(&mut self) {}
}

impl AtEnd for Open {}
/// An upgrade's connection is used once.
impl AtEnd for (Http1, ()) {}

struct GiveBack {
    pool: Arc<Inner>,
    authority: Authority,
    sender: Option<Http1>,
}

impl AtEnd for GiveBack {
    fn at_end(&mut self) {
        let Some(sender) = self.sender.take().filter(|sender| !sender.is_closed()) else { return };
        self.pool.pool(&self.authority, |pool| {
            if pool.http1.len() < IDLE_PER_AUTHORITY {
                pool.http1.push((sender, Instant::now()));
            }
        });
    }
}

fn body_stream(body: Incoming, at_end: impl AtEnd) -> BodyStream {
    Box::pin(Answer { body, at_end })
}

struct Answer<E: AtEnd> {
    body: Incoming,
    at_end: E,
}

impl<E: AtEnd> Stream for Answer<E> {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            return match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => {
                    self.at_end.at_end();
                    Poll::Ready(None)
                }
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(BodyError(chain_text(&error))))),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => Poll::Ready(Some(Ok(data))),
                    // Trailers: nobody here reads them.
                    Err(_) => continue,
                },
            };
        }
    }
}

/// hyper's errors say what failed and keep why in their source.
fn chain_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
