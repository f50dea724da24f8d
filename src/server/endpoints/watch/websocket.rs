//! A watch over a WebSocket (RFC 6455; apiserver `pkg/endpoints/handlers/watch.go`, HandleWS): every event is a message
//! of its own, text for JSON and binary for protobuf, where it goes without its length. What the client sends is
//! ignored but for pings and its closing.
//!
//! The handshake is that of golang.org/x/net/websocket, which wants an `Origin`. The stream lives in a task of its own
//! and holds what a watch's body holds, no generation.

use std::time::Duration;

use ::http::{HeaderValue, Method, StatusCode, header};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::StreamExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
    time::timeout,
};

use crate::{
    codec::Format,
    server::{
        context::Exchange,
        http::{Body, BodyStream, Response, is_websocket_request},
        respond,
    },
};

/// A client that takes no bytes for this long is gone.
const STALLED: Duration = Duration::from_secs(60);

/// The most a control frame may carry.
const MAX_CONTROL: u64 = 125;

/// What the key of a handshake is hashed with.
const MAGIC: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The status of a stream that came to its end.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();
const PROTOCOL_ERROR: [u8; 2] = 1002_u16.to_be_bytes();

/// Whether the request wants a WebSocket, on a connection that can become one.
pub fn is_wanted(cx: &Exchange) -> bool {
    cx.upgrade.is_some() && is_websocket_request(&cx.parts.headers)
}

/// Answers with a WebSocket that sends `events`, whose frames are in this format; or says why not.
pub fn answer(cx: &mut Exchange, format: Format, events: BodyStream) -> Response {
    let accepted = match handshake(cx) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.response(),
    };
    let Some(upgrade) = cx.upgrade.take() else { return Refusal::Protocol.response() };
    tokio::spawn(serve(upgrade, format, events));
    accepted
}

/// What is wrong with a request for a WebSocket.
#[derive(Clone, Copy)]
enum Refusal {
    Method,
    Key,
    Version,
    Origin,
    Protocol,
}

impl Refusal {
    fn response(self) -> Response {
        let (status, why) = match self {
            Self::Method => (405, "bad method"),
            Self::Key => (400, "mismatch challenge/response"),
            Self::Version => (400, "missing or bad WebSocket Version"),
            Self::Origin => (403, ""),
            Self::Protocol => (400, ""),
        };
        let mut response = respond::text(status, why);
        response.headers_mut().remove(header::CONTENT_TYPE);
        if matches!(self, Self::Version) {
            response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        response
    }
}

/// The 101, or what is wrong with the request.
fn handshake(cx: &Exchange) -> Result<Response, Refusal> {
    if cx.parts.method != Method::GET {
        return Err(Refusal::Method);
    }
    let key = cx.header("sec-websocket-key");
    if key.is_empty() {
        return Err(Refusal::Key);
    }
    if cx.header("sec-websocket-version") != "13" {
        return Err(Refusal::Version);
    }
    let origin = cx.header("origin");
    if !(origin.starts_with('/') || origin.parse::<::http::Uri>().is_ok_and(|uri| uri.scheme().is_some())) {
        return Err(Refusal::Origin);
    }
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.extend(HeaderValue::from_str(&accept_key(key)).map(|value| (header::SEC_WEBSOCKET_ACCEPT, value)));
    // One protocol is taken, whatever it is; among several none can be chosen.
    match cx.header("sec-websocket-protocol") {
        "" => {}
        text if text.contains(',') => return Err(Refusal::Protocol),
        text => headers.extend(HeaderValue::from_str(text).map(|value| (header::SEC_WEBSOCKET_PROTOCOL, value))),
    }
    Ok(response)
}

fn accept_key(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), MAGIC].concat()).as_ref())
}

async fn serve(upgrade: OnUpgrade, format: Format, events: BodyStream) {
    match upgrade.await {
        Ok(stream) => run(TokioIo::new(stream), format, events).await,
        Err(error) => tracing::debug!(%error, "a connection did not become a WebSocket"),
    }
}

async fn run(stream: impl AsyncRead + AsyncWrite, format: Format, mut events: BodyStream) {
    let (mut read, mut write) = tokio::io::split(stream);
    let (pongs, mut waiting) = mpsc::channel(1);
    let closed = receive(&mut read, pongs);
    tokio::pin!(closed);
    let status = loop {
        let out = tokio::select! {
            biased;
            status = &mut closed => break status,
            Some(payload) = waiting.recv() => frame(PONG, &payload),
            piece = events.next() => match piece {
                Some(Ok(piece)) => messages(format, &piece),
                _ => break Some(NORMAL),
            },
        };
        if !matches!(timeout(STALLED, write.write_all(&out)).await, Ok(Ok(()))) {
            return;
        }
    };
    if let Some(status) = status {
        let closing = async {
            write.write_all(&frame(CLOSE, &status)).await?;
            write.shutdown().await
        };
        // The client may be gone already.
        let _ = timeout(STALLED, closing).await;
    }
}

/// Reads until the client closes; answers the status to close with, if the client can still hear it.
async fn receive(read: &mut (impl AsyncRead + Unpin), pongs: mpsc::Sender<Vec<u8>>) -> Option<[u8; 2]> {
    loop {
        let [first, second] = [read.read_u8().await.ok()?, read.read_u8().await.ok()?];
        let length = match second & 0x7f {
            126 => u64::from(read.read_u16().await.ok()?),
            127 => read.read_u64().await.ok()?,
            short => u64::from(short),
        };
        let control = first & 0x08 != 0;
        // Clients mask what they send.
        if second & 0x80 == 0 || control && length > MAX_CONTROL {
            return Some(PROTOCOL_ERROR);
        }
        let mask = read.read_u32().await.ok()?.to_be_bytes();
        match first & 0x0f {
            CLOSE => return Some(NORMAL),
            PING => {
                let mut payload = Vec::new();
                (&mut *read).take(length).read_to_end(&mut payload).await.ok()?;
                payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                // One answer may wait; a client that does not take it needs no second.
                let _ = pongs.try_send(payload);
            }
            _ => {
                let skipped = tokio::io::copy(&mut (&mut *read).take(length), &mut tokio::io::sink()).await.ok()?;
                if skipped < length {
                    return None;
                }
            }
        }
    }
}

/// The frames of a watch's body as messages.
fn messages(format: Format, piece: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(piece.len() + 64);
    let mut rest = piece;
    while !rest.is_empty() {
        let (kind, skipped, end) = match format {
            Format::Protobuf => {
                let length = rest.first_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize);
                (BINARY, 4, 4 + length)
            }
            _ => (TEXT, 0, rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1)),
        };
        let (event, after) = rest.split_at(end.min(rest.len()));
        put(&mut out, kind, event.get(skipped..).unwrap_or_default());
        rest = after;
    }
    out
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 10);
    put(&mut out, kind, payload);
    out
}

/// Writes a whole message, unmasked as servers do.
fn put(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    out.push(0x80 | kind);
    match payload.len() {
        short @ 0..=125 => out.push(short as u8),
        medium @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_rfc() {
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn every_event_is_a_message() {
        assert_eq!(messages(Format::Json, b"{1}\n{22}\n"), b"\x81\x04{1}\n\x81\x05{22}\n");
        assert_eq!(messages(Format::Protobuf, b"\0\0\0\x02ab\0\0\0\x01c"), b"\x82\x02ab\x82\x01c");
        let long = [vec![b'x'; 300], b"\n".to_vec()].concat();
        assert_eq!(messages(Format::Json, &long)[..4], [0x81, 126, 1, 45]);
        assert_eq!(frame(TEXT, &vec![0; 70_000])[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]);
    }

    fn events(pieces: &'static [&'static str], go_on: bool) -> BodyStream {
        let pieces = futures_util::stream::iter(pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))));
        if go_on { Box::pin(pieces.chain(futures_util::stream::pending())) } else { Box::pin(pieces) }
    }

    #[tokio::test]
    async fn the_end_of_the_watch_closes_the_stream_in_good_order() {
        let (mut client, server) = tokio::io::duplex(1024);
        let task = tokio::spawn(run(server, Format::Json, events(&["{}\n"], false)));
        let mut seen = Vec::new();
        client.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"\x81\x03{}\n\x88\x02\x03\xe8");
        task.await.unwrap();
    }

    #[tokio::test]
    async fn pings_are_answered_what_is_sent_is_ignored_and_closing_is_heard() {
        let (mut client, server) = tokio::io::duplex(1024);
        let task = tokio::spawn(run(server, Format::Json, events(&[], true)));
        // A text that nobody reads, a ping with "hi", a close; all masked with 1, 2, 3, 4.
        client.write_all(b"\x81\x82\x01\x02\x03\x04ab\x89\x82\x01\x02\x03\x04ik").await.unwrap();
        let mut pong = [0; 4];
        client.read_exact(&mut pong).await.unwrap();
        assert_eq!(&pong, b"\x8a\x02hi");
        client.write_all(b"\x88\x80\x01\x02\x03\x04").await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"\x88\x02\x03\xe8");
        task.await.unwrap();
    }

    #[tokio::test]
    async fn frames_that_clients_must_not_send_end_the_stream() {
        for wrong in [&b"\x81\x01a"[..], b"\x89\xfe\x00\x7e\0\0\0\0"] {
            let (mut client, server) = tokio::io::duplex(1024);
            let task = tokio::spawn(run(server, Format::Json, events(&[], true)));
            client.write_all(wrong).await.unwrap();
            let mut seen = Vec::new();
            client.read_to_end(&mut seen).await.unwrap();
            assert_eq!(seen, b"\x88\x02\x03\xea", "{wrong:?}");
            task.await.unwrap();
        }
    }
}
