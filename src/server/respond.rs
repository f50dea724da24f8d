//! Values to answers: the one place where an error becomes a Status on the wire.

use std::io::Write;

use ::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::{
    context::Exchange,
    http::{Body, Response},
    negotiate::{Accepted, Offer, accept_header, negotiate, pretty},
};
use crate::{
    api::ApiError,
    codec::{self, Format},
    object::{Style, Value, write_json},
};

/// An answer with a body of this type.
pub fn response(status: u16, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Plain text, as Go's http.Error sends it: with a final newline and not to be sniffed.
pub fn text_error(status: u16, message: &str) -> Response {
    let mut response = text(status, format!("{message}\n"));
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

pub fn text(status: u16, text: impl Into<Bytes>) -> Response {
    response(status, "text/plain; charset=utf-8", Body::Full(text.into()))
}

/// A document in the negotiated format. `gvk` is what the tree's apiVersion and kind say.
pub fn document(cx: &Exchange, status: u16, accepted: Accepted, value: &Value) -> Response {
    match codec::encode(accepted.format, value, style(cx, accepted)) {
        Ok(bytes) => whole(cx, status, accepted.format.media_type(), bytes.into()),
        Err(why) => error_in(cx, Accepted::JSON, &ApiError::internal(why)),
    }
}

/// Answers up to this many bytes are never gzipped (apiserver `pkg/endpoints/handlers/responsewriters`).
pub const GZIP_FROM: usize = 128 * 1024;

/// Quick rather than small, as upstream.
pub const GZIP_LEVEL: Compression = Compression::new(1);

/// Whether the client takes gzip.
pub fn takes_gzip(cx: &Exchange) -> bool {
    cx.header("accept-encoding").split(',').any(|token| token.trim() == "gzip")
}

/// Tells that the body is gzipped.
pub fn mark_gzip(response: &mut Response) {
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// One gzip member of these bytes.
pub fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), GZIP_LEVEL);
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// One member of these bytes for a stream that goes on: flushed before it ends, since readers would else wait for the
/// next member before they hand out this one.
pub fn gzip_piece(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), GZIP_LEVEL);
    encoder.write_all(bytes)?;
    encoder.flush()?;
    encoder.finish()
}

/// An answer whose bytes are all there, gzipped where it is long and the client takes it.
pub fn whole(cx: &Exchange, status: u16, content_type: &'static str, bytes: Bytes) -> Response {
    if bytes.len() > GZIP_FROM
        && takes_gzip(cx)
        && let Ok(small) = gzip(&bytes)
    {
        let mut response = response(status, content_type, Body::Full(small.into()));
        mark_gzip(&mut response);
        return response;
    }
    response(status, content_type, Body::Full(bytes))
}

/// JSON bytes that are ready, with the newline Go's encoder ends compact output with.
pub fn json_bytes(cx: &Exchange, status: u16, bytes: Bytes) -> Response {
    if bytes.last() == Some(&b'\n') {
        return whole(cx, status, "application/json", bytes);
    }
    if bytes.len() >= GZIP_FROM && takes_gzip(cx) {
        return whole(cx, status, "application/json", [&bytes[..], b"\n"].concat().into());
    }
    response(status, "application/json", Body::Chunks(vec![bytes, Bytes::from_static(b"\n")]))
}

pub fn style(cx: &Exchange, accepted: Accepted) -> Style {
    let agent = cx.header("user-agent");
    if pretty(cx.query.first("pretty"), agent, accepted) { Style::Indented } else { Style::Compact }
}

/// An error as the client asked for documents; what cannot be negotiated is indented JSON.
pub fn error(cx: &Exchange, error: &ApiError) -> Response {
    match negotiate(&accept_header(&cx.parts.headers), cx.formats, Offer::PLAIN) {
        Some(accepted) => error_in(cx, accepted, error),
        None => {
            let mut body = Vec::new();
            write_json(&mut body, &error.to_value(), Style::Indented);
            finish(error, response(error.code, "application/json", Body::Full(body.into())))
        }
    }
}

fn error_in(cx: &Exchange, accepted: Accepted, error: &ApiError) -> Response {
    let value = error.to_value();
    let (format, bytes) = match codec::encode(accepted.format, &value, style(cx, accepted)) {
        Ok(bytes) => (accepted.format, bytes),
        Err(_) => (Format::Json, crate::object::to_vec(&value)),
    };
    finish(error, response(error.code, format.media_type(), Body::Full(bytes.into())))
}

fn finish(error: &ApiError, mut response: Response) -> Response {
    let retry = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0
        && let Ok(value) = HeaderValue::from_str(&retry.to_string())
    {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}
