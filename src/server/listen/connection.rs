//! One connection from accept to end: handshake, protocol, time-outs, GOAWAY, drain.

use std::{
    collections::HashMap,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper::server::conn::{http1, http2};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpStream, UnixStream},
    sync::Notify,
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use super::{Limits, Phase, Shared, accept::Slot, service, socket};
use crate::{
    pki::VerdictCache,
    server::http::{ConnInfo, Transport},
};

/// Request headers of one HTTP/1.1 request; upstream allows 16384 values, which would be set aside at each request here.
const MAX_HEADERS: usize = 1000;
/// Bytes a stream may hold between handler and socket; a frame or two more than what the kernel takes at once.
const SEND_BUFFER: usize = 512 * 1024;
/// What Go's server says to a client that speaks plain HTTP to it (`net/http/server.go`).
const PLAIN_TO_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// What a connection starts with.
pub(super) struct Accepted {
    pub shared: Arc<Shared>,
    pub slot: Slot,
    pub id: u64,
    pub limits: Arc<Limits>,
}

impl Accepted {
    fn info(&self, transport: Transport) -> ConnInfo {
        ConnInfo {
            peer: None,
            local: None,
            transport,
            http2: false,
            certificates: Arc::new([]),
            verdict: VerdictCache::default(),
            peer_uid: None,
            id: self.id,
        }
    }
}

pub(super) async fn tls(accepted: Accepted, stream: TcpStream, peer: SocketAddr, config: Arc<ServerConfig>) {
    let mut phase = accepted.shared.phase.subscribe();
    let local = stream.local_addr().ok().map(socket::canonical);
    let handshake = tokio::time::timeout(accepted.limits.connections.handshake_timeout, handshake(stream, config));
    let result = tokio::select! {
        result = handshake => result,
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => return,
    };
    let stream = match result {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return handshake_failed(peer, &error),
        Err(_) => return handshake_failed(peer, &"timed out"),
    };
    let session = stream.get_ref().1;
    let certificates =
        session.peer_certificates().unwrap_or_default().iter().cloned().map(|der| der.into_owned()).collect();
    let http2 = session.alpn_protocol() == Some(b"h2");
    let info = ConnInfo { peer: Some(peer), local, certificates, http2, ..accepted.info(Transport::Tls) };
    if http2 { serve_http2(accepted, stream, info).await } else { serve_http1(accepted, stream, info).await }
}

async fn handshake(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> io::Result<tokio_rustls::server::TlsStream<TcpStream>> {
    let mut first = [0; 5];
    let seen = stream.peek(&mut first).await?;
    if seen == first.len() && [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"].contains(&&first) {
        answer_plain(stream).await;
        return Err(io::Error::other("client sent an HTTP request to an HTTPS server"));
    }
    TlsAcceptor::from(config).accept(stream).await
}

/// Closing with unread bytes would make the kernel throw the answer away, so the request is read first, within reason.
async fn answer_plain(mut stream: TcpStream) {
    if stream.write_all(PLAIN_TO_TLS).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut scratch = [0; 4096];
    for _ in 0..16 {
        if !matches!(stream.read(&mut scratch).await, Ok(1..)) {
            return;
        }
    }
}

fn handshake_failed(peer: SocketAddr, reason: &dyn std::fmt::Display) {
    crate::telemetry::metrics().tls_handshake_errors.inc();
    tracing::debug!(%peer, %reason, "TLS handshake error");
}

pub(super) async fn plain(accepted: Accepted, stream: TcpStream, peer: SocketAddr) {
    let local = stream.local_addr().ok().map(socket::canonical);
    let info = ConnInfo { peer: Some(peer), local, ..accepted.info(Transport::Plain) };
    serve_plain(accepted, stream, info).await;
}

pub(super) async fn unix(accepted: Accepted, stream: UnixStream) {
    let peer_uid = stream.peer_cred().ok().map(|credentials| credentials.uid());
    let info = ConnInfo { peer_uid, ..accepted.info(Transport::Unix) };
    serve_plain(accepted, stream, info).await;
}

async fn serve_plain(accepted: Accepted, stream: impl Io, info: ConnInfo) {
    if accepted.limits.http2.enabled {
        serve_either(accepted, stream, info).await;
    } else {
        serve_http1(accepted, stream, info).await;
    }
}

async fn serve_http1(accepted: Accepted, stream: impl Io, info: ConnInfo) {
    let activity = Arc::new(Activity::new());
    let service = service::for_connection(&accepted.shared.filter, info, activity.clone());
    let mut builder = http1::Builder::new();
    // Header and idle time-outs are ours (`Activity`): hyper has one clock for both.
    builder.timer(TokioTimer::new()).header_read_timeout(None).max_headers(MAX_HEADERS);
    let bytes = usize::try_from(accepted.limits.connections.max_header_bytes).unwrap_or(usize::MAX);
    builder.max_header_size(bytes).max_buf_size(bytes.max(8192));
    let connection =
        builder.serve_connection(TokioIo::new(Watched { stream, activity: activity.clone() }), service).with_upgrades();
    drive(&accepted, &activity, connection, |connection| connection.graceful_shutdown()).await;
}

async fn serve_http2(accepted: Accepted, stream: impl Io, info: ConnInfo) {
    let activity = Arc::new(Activity::new());
    let service = service::for_connection(&accepted.shared.filter, info, activity.clone());
    let limits = &accepted.limits;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2.max_streams_per_connection)
        .initial_stream_window_size(limits.http2.stream_window)
        .initial_connection_window_size(limits.http2.connection_window)
        .max_frame_size(frame_size(limits))
        .max_header_list_size(limits.connections.max_header_bytes)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(some(limits.http2.keep_alive_interval))
        .keep_alive_timeout(limits.http2.keep_alive_timeout);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    drive(&accepted, &activity, connection, |connection| connection.graceful_shutdown()).await;
}

/// Plain text has no ALPN: the first bytes tell.
async fn serve_either(accepted: Accepted, stream: impl Io, info: ConnInfo) {
    let activity = Arc::new(Activity::new());
    let service = service::for_either(&accepted.shared.filter, info, activity.clone());
    let limits = &accepted.limits;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let bytes = usize::try_from(limits.connections.max_header_bytes).unwrap_or(usize::MAX);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_buf_size(bytes.max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2.max_streams_per_connection)
        .initial_stream_window_size(limits.http2.stream_window)
        .initial_connection_window_size(limits.http2.connection_window)
        .max_frame_size(frame_size(limits))
        .max_header_list_size(limits.connections.max_header_bytes)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(some(limits.http2.keep_alive_interval))
        .keep_alive_timeout(limits.http2.keep_alive_timeout);
    let watched = Watched { stream, activity: activity.clone() };
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(watched), service);
    drive(&accepted, &activity, connection, |connection| connection.graceful_shutdown()).await;
}

/// HTTP/2 allows 16384 to 16777215.
fn frame_size(limits: &Limits) -> u32 {
    limits.http2.max_frame_size.clamp(16_384, 16_777_215)
}

fn some(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}

/// Runs a connection to its end and ends it in good order where it has idled too long, an answer asked for it, or the
/// server goes down.
async fn drive<C, E>(accepted: &Accepted, activity: &Activity, connection: C, graceful: impl Fn(Pin<&mut C>))
where
    C: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let _slot = &accepted.slot;
    let limits = &accepted.limits.connections;
    let mut phase = accepted.shared.phase.subscribe();
    let mut closing = false;
    tokio::pin!(connection);
    let timer = tokio::time::sleep(limits.header_timeout);
    tokio::pin!(timer);
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(connection = accepted.id, %error, "connection ended");
                }
                return;
            }
            () = activity.close.notified(), if !closing => {
                closing = true;
                graceful(connection.as_mut());
            }
            changed = phase.wait_for(|phase| *phase == Phase::Killed || (!closing && *phase == Phase::Draining)) => {
                if changed.is_ok_and(|phase| *phase == Phase::Draining) {
                    closing = true;
                    graceful(connection.as_mut());
                } else {
                    return;
                }
            }
            () = timer.as_mut() => match activity.verdict(limits.header_timeout, limits.idle_timeout, closing) {
                Patience::Until(next) => timer.as_mut().reset(next),
                Patience::Over => return,
                Patience::Idle => {
                    closing = true;
                    graceful(connection.as_mut());
                    // What is left is a peer that does not answer a GOAWAY.
                    timer.as_mut().reset(Instant::now() + limits.header_timeout);
                }
            },
        }
    }
}

/// What happens on a connection, as far as its time-outs care. Times are milliseconds since it began, plus one; 0: never.
pub(super) struct Activity {
    began: Instant,
    /// Requests between their headers and the end of their answer's body.
    open: AtomicUsize,
    /// When the last answer ended; before the first request, when the connection began.
    idle_since: AtomicU64,
    /// When the first bytes came that may be the next request's headers (HTTP/1.1).
    head_since: AtomicU64,
    requests: AtomicU64,
    /// An answer asks for the connection to end.
    pub close: Notify,
    /// Short answers that are not wholly taken, by number, and when each last went on.
    answers: Mutex<HashMap<u64, u64>>,
    next_answer: AtomicU64,
}

/// A peer that takes nothing of a short answer for so long is gone or means harm (upstream cuts such requests off after
/// `--request-timeout`, whose default this is).
const STALLED: Duration = Duration::from_secs(60);

enum Patience {
    Until(Instant),
    /// Cut it off.
    Over,
    /// End it in good order.
    Idle,
}

impl Activity {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            open: AtomicUsize::new(0),
            idle_since: AtomicU64::new(1),
            head_since: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            close: Notify::new(),
            answers: Mutex::default(),
            next_answer: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    pub fn request_began(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
    }

    pub fn request_ended(&self) {
        self.idle_since.store(self.now(), Ordering::Relaxed);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// A short answer is ready to be taken; gives its number.
    pub fn answer_began(&self) -> u64 {
        let id = self.next_answer.fetch_add(1, Ordering::Relaxed);
        self.answers.lock().insert(id, self.now());
        id
    }

    pub fn answer_went_on(&self, id: u64) {
        if let Some(at) = self.answers.lock().get_mut(&id) {
            *at = self.now();
        }
    }

    pub fn answer_ended(&self, id: u64) {
        self.answers.lock().remove(&id);
    }

    fn is_stalled(&self) -> bool {
        let limit = u64::try_from(STALLED.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        self.answers.lock().values().any(|at| now.saturating_sub(*at) >= limit)
    }

    fn read(&self) {
        if self.open.load(Ordering::Relaxed) == 0 && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn verdict(&self, header: Duration, idle: Duration, closing: bool) -> Patience {
        let (now, at) = (Instant::now(), |stamp: u64| self.began + Duration::from_millis(stamp.saturating_sub(1)));
        if self.is_stalled() {
            return Patience::Over;
        }
        if self.open.load(Ordering::Relaxed) > 0 {
            return Patience::Until(now + header.min(idle));
        }
        if closing || self.requests.load(Ordering::Relaxed) == 0 {
            return Patience::Over;
        }
        let mut next = at(self.idle_since.load(Ordering::Relaxed)) + idle;
        if next <= now {
            return Patience::Idle;
        }
        match self.head_since.load(Ordering::Relaxed) {
            // Headers may begin at any moment: look again in time for them.
            0 => next = next.min(now + header),
            head if at(head) + header <= now => return Patience::Over,
            head => next = next.min(at(head) + header),
        }
        Patience::Until(next)
    }
}

/// What a connection runs over.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for T {}

/// A stream that tells when bytes come in.
struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.read();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
