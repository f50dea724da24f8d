//! From hyper's request through warp to what serves now, and back. Large pieces of a body pass uncopied; small ones are
//! gathered, since each costs a frame, a TLS record and a system call.
//!
//! The request is taken apart in front of warp and travels as one extension, so that the filter is two steps long and
//! clones no headers. Answers keep `Content-Length` where their length is known: warp's stream bodies forget it, and
//! hyper would write a body after the headers of a HEAD answer on HTTP/2.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, Method, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use parking_lot::Mutex;
use tower_service::Service;
use warp::{Filter, Reply, filters::BoxedFilter};

use super::connection::Activity;
use crate::{
    pki::VerdictCache,
    server::{
        current::Current,
        http::{Body, BodyError, BodyStream, ConnInfo, Held, Request, Response, is_upgrade_request},
    },
};

/// The filter every connection calls.
pub(super) type Entry = BoxedFilter<(warp::reply::Response,)>;

/// The request without its body, to be taken out once.
#[derive(Clone)]
struct Ctx(Arc<Mutex<Option<Head>>>);

struct Head {
    parts: http::request::Parts,
    conn: Arc<ConnInfo>,
    upgrade: Option<OnUpgrade>,
    bodiless: bool,
}

/// The one filter there is.
pub(super) fn entry(current: Current) -> Entry {
    warp::ext::get::<Ctx>()
        .and(warp::body::stream())
        .then(move |ctx: Ctx, body| {
            let request = ctx.0.lock().take().map(|head| assemble(head, body));
            let current = current.clone();
            async move {
                match request {
                    Some(request) => {
                        let head_only = request.parts.method == Method::HEAD;
                        let serving = current.load();
                        into_warp(serving.serve(request).await, head_only)
                    }
                    // Unreachable: each request has its own context, and this is its only reader.
                    None => http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                }
            }
        })
        .boxed()
}

fn assemble<S, B, E>(head: Head, body: S) -> Request
where
    S: Stream<Item = Result<B, E>> + Send + Sync + 'static,
    B: Buf,
    E: std::fmt::Display,
{
    let body: BodyStream = if head.bodiless {
        Box::pin(stream::empty())
    } else {
        // `copy_to_bytes` of `Bytes`, which is what is behind the opaque type, hands them on.
        Box::pin(body.map(|piece| match piece {
            Ok(mut piece) => Ok(piece.copy_to_bytes(piece.remaining())),
            Err(error) => Err(BodyError(error.to_string())),
        }))
    };
    Request { parts: head.parts, body, conn: head.conn, upgrade: head.upgrade }
}

/// The length of a body whose type does not tell.
#[derive(Clone, Copy)]
struct Length(u64);

fn into_warp(response: Response, head_only: bool) -> warp::reply::Response {
    let (mut parts, body) = response.into_parts();
    let length = match &body {
        Body::Empty => None,
        Body::Full(bytes) => Some(bytes.len()),
        Body::Chunks(chunks) => Some(chunks.iter().map(Bytes::len).sum()),
        Body::Stream(_) => None,
    };
    let length = length.and_then(|length| u64::try_from(length).ok());
    if let Some(length) = length {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    if head_only {
        return warp::reply::Response::from_parts(parts, Default::default());
    }
    match body {
        Body::Empty => warp::reply::Response::from_parts(parts, Default::default()),
        Body::Full(bytes) => warp::reply::Response::from_parts(parts, bytes.into()),
        Body::Chunks(chunks) => {
            if let Some(length) = length {
                parts.extensions.insert(Length(length));
            }
            let pieces = stream::iter(chunks.into_iter().filter(|chunk| !chunk.is_empty()).map(Ok::<_, BodyError>));
            with_parts(parts, warp::reply::stream(Gathered::new(pieces)))
        }
        Body::Stream(pieces) => with_parts(parts, warp::reply::stream(Gathered::new(pieces))),
    }
}

fn with_parts(parts: http::response::Parts, reply: impl Reply) -> warp::reply::Response {
    warp::reply::Response::from_parts(parts, reply.into_response().into_body())
}

/// Pieces of at least this many bytes pass uncopied: what one HTTP/2 frame or TLS record holds.
const LARGE: usize = 16 * 1024;
/// Small pieces are joined up to this many bytes.
const GATHER: usize = 64 * 1024;

/// Joins small pieces that are there at the same time. Never waits: a piece that comes alone passes alone, and as it is.
struct Gathered<S> {
    pieces: S,
    /// What came after the pieces that were joined.
    next: Option<Result<Bytes, BodyError>>,
    ended: bool,
}

impl<S: Stream<Item = Result<Bytes, BodyError>> + Unpin> Gathered<S> {
    fn new(pieces: S) -> Self {
        Self { pieces, next: None, ended: false }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.pieces).poll_next(cx);
        self.ended = matches!(polled, Poll::Ready(None));
        polled
    }
}

impl<S: Stream<Item = Result<Bytes, BodyError>> + Unpin> Stream for Gathered<S> {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let first = match self.next.take() {
            Some(piece) => piece,
            None => match self.poll_piece(cx) {
                Poll::Ready(Some(piece)) => piece,
                other => return other,
            },
        };
        let first = match first {
            Ok(first) if first.len() < LARGE => first,
            large_or_error => return Poll::Ready(Some(large_or_error)),
        };
        let mut joined = BytesMut::new();
        while let Poll::Ready(Some(piece)) = self.poll_piece(cx) {
            match piece {
                Ok(piece) if piece.len() < LARGE && first.len().max(joined.len()) + piece.len() <= GATHER => {
                    if joined.is_empty() {
                        joined.reserve((first.len() + piece.len()).next_power_of_two().max(4096));
                        joined.extend_from_slice(&first);
                    }
                    joined.extend_from_slice(&piece);
                }
                other => {
                    self.next = Some(other);
                    break;
                }
            }
        }
        Poll::Ready(Some(Ok(if joined.is_empty() { first } else { joined.freeze() })))
    }
}

/// The service of one connection.
pub(super) fn for_connection(entry: &Entry, info: ConnInfo, activity: Arc<Activity>) -> Connection {
    let info = Arc::new(info);
    Connection { filter: entry.clone(), http2: info.clone(), http1: info, activity }
}

/// The service of a connection whose protocol shows with its first request.
pub(super) fn for_either(entry: &Entry, info: ConnInfo, activity: Arc<Activity>) -> Connection {
    let http2 = ConnInfo {
        http2: true,
        peer: info.peer,
        local: info.local,
        transport: info.transport,
        certificates: info.certificates.clone(),
        verdict: VerdictCache::default(),
        peer_uid: info.peer_uid,
        id: info.id,
    };
    Connection { filter: entry.clone(), http1: Arc::new(info), http2: Arc::new(http2), activity }
}

/// Counts requests for the connection's time-outs and turns `Connection: close` on HTTP/2 into a GOAWAY.
pub(super) struct Connection {
    filter: Entry,
    http1: Arc<ConnInfo>,
    http2: Arc<ConnInfo>,
    activity: Arc<Activity>,
}

type Answer = http::Response<Counted<AnswerBody>>;
type AnswerBody = <warp::reply::Response as BodyOf>::Body;

/// Names warp's body type, which has no public name.
pub(super) trait BodyOf {
    type Body;
}

impl<B> BodyOf for http::Response<B> {
    type Body = B;
}

impl hyper::service::Service<http::Request<Incoming>> for Connection {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let running = Running::new(self.activity.clone());
        let (mut parts, body) = request.into_parts();
        let upgrade = parts.extensions.remove::<OnUpgrade>().filter(|_| is_upgrade_request(&parts.headers));
        let http2 = parts.version == http::Version::HTTP_2;
        to_origin_form(&mut parts);
        let head = Head {
            conn: if http2 { &self.http2 } else { &self.http1 }.clone(),
            upgrade,
            bodiless: body.is_end_stream(),
            parts,
        };
        let mut request = http::Request::new(body);
        request.extensions_mut().insert(Ctx(Arc::new(Mutex::new(Some(head)))));
        let answer = warp::service(self.filter.clone()).call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            if http2 && response.headers().get(header::CONNECTION).is_some_and(|value| value == "close") {
                response.headers_mut().remove(header::CONNECTION);
                running.0.close.notify_one();
            }
            Ok(counted(response, running))
        })
    }
}

/// HTTP/2 (and a proxy's HTTP/1.1) says scheme and host in the URI; everything behind here finds a path in it and the
/// host in `Host`, as with Go's server.
fn to_origin_form(parts: &mut http::request::Parts) {
    let Some(authority) = parts.uri.authority() else { return };
    if !parts.headers.contains_key(header::HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(header::HOST, host);
    }
    if let Some(path) = parts.uri.path_and_query() {
        parts.uri = path.clone().into();
    }
}

fn counted(mut response: warp::reply::Response, running: Running) -> Answer {
    let left = response.extensions().get::<Length>().map(|length| length.0);
    let held =
        response.extensions_mut().remove::<Held>().map(|held| Short { id: running.0.answer_began(), _held: held });
    response.map(|body| Counted { body, left, held, running })
}

/// An answer that is to be taken soon, and what its request holds meanwhile.
struct Short {
    id: u64,
    _held: Held,
}

/// A request being answered, until dropped.
struct Running(Arc<Activity>);

impl Running {
    fn new(activity: Arc<Activity>) -> Self {
        activity.request_began();
        Self(activity)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.request_ended();
    }
}

/// An answer's body that knows its length and ends its request when it is gone.
pub(super) struct Counted<B> {
    body: B,
    left: Option<u64>,
    /// `None` for answers that may take as long as they like (watches).
    held: Option<Short>,
    running: Running,
}

impl<B> Drop for Counted<B> {
    fn drop(&mut self) {
        if let Some(short) = &self.held {
            self.running.0.answer_ended(short.id);
        }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(short) = &self.held {
            self.running.0.answer_went_on(short.id);
        }
        if let (Poll::Ready(Some(Ok(frame))), Some(left)) = (&polled, self.left)
            && let Some(data) = frame.data_ref()
        {
            self.left = Some(left.saturating_sub(u64::try_from(data.len()).unwrap_or(u64::MAX)));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0) || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(|| self.body.size_hint(), SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http_body_util::BodyExt;

    use super::*;

    async fn frames(body: Body) -> Vec<Bytes> {
        let mut body = into_warp(Response::new(body), false).into_body();
        let mut frames = Vec::new();
        while let Some(frame) = body.frame().await {
            frames.push(frame.unwrap().into_data().unwrap());
        }
        frames
    }

    #[tokio::test]
    async fn large_pieces_and_whole_bodies_leave_as_the_very_same_memory() {
        let [whole, large] = [100, LARGE].map(|length| Bytes::from(vec![1; length]));
        assert_eq!(frames(Body::Full(whole.clone())).await[0].as_ptr(), whole.as_ptr());
        let mixed = vec![
            Bytes::from_static(b"["),
            large.clone(),
            Bytes::from_static(b","),
            large.clone(),
            Bytes::from_static(b"]"),
        ];
        let sent = frames(Body::Chunks(mixed)).await;
        assert_eq!(sent.iter().map(Bytes::len).collect::<Vec<_>>(), [1, LARGE, 1, LARGE, 1]);
        assert_eq!((sent[1].as_ptr(), sent[3].as_ptr()), (large.as_ptr(), large.as_ptr()));
    }

    #[tokio::test]
    async fn small_pieces_are_gathered_in_order_and_within_bounds() {
        let pieces: Vec<Bytes> = (0..1000u32).map(|number| Bytes::from(format!("{number:0>700},"))).collect();
        let expected: Vec<u8> = pieces.concat();
        let sent = frames(Body::Chunks(pieces)).await;
        assert!(sent.len() < 13 && sent.iter().all(|piece| piece.len() <= GATHER), "{}", sent.len());
        assert_eq!(sent.concat(), expected);
    }

    /// Gives what it holds; `None` is a pause.
    struct Script(VecDeque<Option<Result<Bytes, BodyError>>>);

    impl Stream for Script {
        type Item = Result<Bytes, BodyError>;
        fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            match self.0.pop_front() {
                Some(Some(item)) => Poll::Ready(Some(item)),
                Some(None) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                None => Poll::Ready(None),
            }
        }
    }

    #[tokio::test]
    async fn a_stream_is_never_held_back_and_its_error_comes_after_what_came_before_it() {
        let event = |text: &'static str| Some(Ok(Bytes::from_static(text.as_bytes())));
        let script = [event("a"), None, event("b"), event("c"), Some(Err(BodyError("broken".into())))];
        let sent: Vec<_> =
            Gathered::new(Script(script.into())).map(|item| item.map_err(|error| error.0)).collect().await;
        assert_eq!(sent, [Ok("a".into()), Ok("bc".into()), Err("broken".to_owned())]);
    }
}
