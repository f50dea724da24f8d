//! JSON lists: the items' bytes joined by commas, in pieces of bounded size, gzipped where the client takes it and the
//! list is long.

use std::{io::Write, sync::Arc};

use bytes::{Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use futures_util::stream;

use super::{Page, metadata};
use crate::{
    api::ApiError,
    object::to_vec,
    server::{
        context::Exchange,
        endpoints::{Scope, encode},
        http::{Body, Response},
        respond,
    },
    storage::cache::Entry,
};

/// Lists up to this many bytes are sent whole, with their length, and never gzipped (upstream's threshold).
const WHOLE: usize = 128 * 1024;

/// Bytes made at a time, so that a list of any length costs this much memory.
const PIECE: usize = 256 * 1024;

pub(super) fn json(cx: &Exchange, scope: &Scope<'_>, page: Page) -> Result<Response, ApiError> {
    let head = head(scope, &page);
    // Other versions are encoded before the answer begins, since an error could not be told later.
    let item = |entry: Arc<Entry>| {
        if encode::shows_stored(scope, entry.mod_revision()) {
            return Ok(Item::Stored(entry));
        }
        encode::json(scope, &entry).map(Item::Made)
    };
    let items: Vec<Item> = page.items.into_iter().map(item).collect::<Result<_, ApiError>>()?;
    let typed = scope.resource.typed_items;
    let total: usize = head.len() + items.iter().map(|item| item.bytes().len() + 1).sum::<usize>() + 3;
    let mut pieces = Pieces { head: Some(head), items: items.into_iter(), typed, first: true, done: false };
    if total <= WHOLE {
        let mut body = BytesMut::with_capacity(total);
        while pieces.fill(&mut body, usize::MAX) {}
        return Ok(respond::response(200, "application/json", Body::Full(body.freeze())));
    }
    let gzip = cx.header("accept-encoding").split(',').any(|token| token.trim() == "gzip");
    let body: Body = if gzip {
        let encoder = GzEncoder::new(Vec::new(), Compression::new(1));
        Body::Stream(Box::pin(stream::unfold(Some((pieces, encoder)), compressed)))
    } else {
        Body::Stream(Box::pin(stream::unfold(pieces, plain)))
    };
    let mut response = respond::response(200, "application/json", body);
    if gzip {
        response.headers_mut().insert("content-encoding", ::http::HeaderValue::from_static("gzip"));
        response.headers_mut().insert("vary", ::http::HeaderValue::from_static("Accept-Encoding"));
    }
    Ok(response)
}

fn head(scope: &Scope<'_>, page: &Page) -> Vec<u8> {
    let mut head = format!(r#"{{"kind":"{}","apiVersion":"{}","metadata":"#, scope.resource.list_kind, scope.group_version()).into_bytes();
    head.extend_from_slice(&to_vec(&metadata(page).into()));
    head.extend_from_slice(br#","items":["#);
    head
}

enum Item {
    Stored(Arc<Entry>),
    Made(Bytes),
}

impl Item {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Stored(entry) => entry.value_bytes(),
            Self::Made(bytes) => bytes,
        }
    }
}

struct Pieces {
    head: Option<Vec<u8>>,
    items: std::vec::IntoIter<Item>,
    typed: bool,
    first: bool,
    done: bool,
}

impl Pieces {
    /// Appends up to about `most` bytes; `false` when all is written.
    fn fill(&mut self, out: &mut BytesMut, most: usize) -> bool {
        if self.done {
            return false;
        }
        if let Some(head) = self.head.take() {
            out.extend_from_slice(&head);
        }
        while let Some(item) = self.items.next() {
            if !self.first {
                out.extend_from_slice(b",");
            }
            self.first = false;
            self.item(out, &item);
            if out.len() >= most {
                return true;
            }
        }
        out.extend_from_slice(b"]}\n");
        self.done = true;
        true
    }

    /// Items of built-in kinds leave out what the list says already.
    fn item(&self, out: &mut BytesMut, item: &Item) {
        let bytes = item.bytes();
        let typeless = match item {
            _ if self.typed => None,
            Item::Stored(entry) => entry.typeless_offset(),
            Item::Made(made) => crate::storage::cache::splice::scan(made).and_then(|head| head.typeless_at),
        };
        match typeless.and_then(|at| bytes.get(at..)) {
            Some(rest) => {
                out.extend_from_slice(b"{");
                out.extend_from_slice(rest);
            }
            None => out.extend_from_slice(bytes),
        }
    }
}

type Piece = Result<Bytes, crate::server::http::BodyError>;

async fn plain(mut pieces: Pieces) -> Option<(Piece, Pieces)> {
    let mut out = BytesMut::with_capacity(PIECE + PIECE / 8);
    pieces.fill(&mut out, PIECE).then(|| (Ok(out.freeze()), pieces))
}

type Compressing = Option<(Pieces, GzEncoder<Vec<u8>>)>;

async fn compressed(state: Compressing) -> Option<(Piece, Compressing)> {
    let (mut pieces, mut encoder) = state?;
    let mut plain = BytesMut::new();
    loop {
        plain.clear();
        if !pieces.fill(&mut plain, PIECE) {
            // Writing to memory cannot fail; if it ever did, the client sees the stream break.
            let rest = encoder.finish().map_err(|error| crate::server::http::BodyError(error.to_string()));
            return Some((rest.map(Bytes::from), None));
        }
        if let Err(error) = encoder.write_all(&plain) {
            return Some((Err(crate::server::http::BodyError(error.to_string())), None));
        }
        let made = std::mem::take(encoder.get_mut());
        if !made.is_empty() {
            return Some((Ok(made.into()), Some((pieces, encoder))));
        }
    }
}
