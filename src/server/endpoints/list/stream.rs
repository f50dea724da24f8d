//! Lists put together from the bytes of their items, in pieces of bounded size that are made while the client reads,
//! gzipped where the client takes it and the list is long.

use std::{io::Write, sync::Arc};

use bytes::Bytes;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};

use super::{METADATA_LIST, Page, metadata, own_metadata};
use crate::{
    api::ApiError,
    codec::{Format, protobuf},
    object::{Map, to_vec},
    schema,
    server::{
        context::Exchange,
        endpoints::{Scope, encode, table::Rows},
        http::{Body, BodyError, BodyStream, Response},
        negotiate::MetaVersion,
        respond::{self, GZIP_FROM},
    },
    storage::cache::{Entry, splice},
};

/// Bytes made at a time, so that a list of any length costs this much memory.
const PIECE: usize = 256 * 1024;

/// What a list is put together as.
pub(super) enum Form {
    Json,
    Table(Rows),
    Metadata(MetaVersion),
    Protobuf,
    MetadataProtobuf(MetaVersion),
}

/// What is written of one object.
struct Item {
    /// The object or what is shown of it, in the list's format.
    object: Bytes,
    /// JSON: where the object goes on after its type, 0 where it is shown whole.
    typeless_at: usize,
    /// The row's cells, in tables.
    cells: Bytes,
}

impl Item {
    fn of(object: Bytes) -> Self {
        Self { object, typeless_at: 0, cells: Bytes::new() }
    }
}

impl Form {
    fn media_type(&self) -> &'static str {
        match self {
            Self::Json | Self::Table(_) | Self::Metadata(_) => Format::Json.media_type(),
            Self::Protobuf | Self::MetadataProtobuf(_) => Format::Protobuf.media_type(),
        }
    }

    fn item(&self, scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Item, ApiError> {
        let written = entry.mod_revision();
        Ok(match self {
            Self::Json => json_item(scope, entry)?,
            Self::Table(rows) => {
                Item { cells: encode::row(scope, entry)?, ..Item::of(rows.object(scope, entry, written)?) }
            }
            Self::Metadata(_) => Item::of(encode::metadata_json(scope, entry, written)?),
            Self::Protobuf => Item::of(encode::protobuf_body(scope, entry)?),
            Self::MetadataProtobuf(_) => Item::of(encode::metadata_protobuf_body(scope, entry)?),
        })
    }

    /// What stands before the items.
    fn head(&self, scope: &Scope<'_>, metadata: Map, items: &[Item]) -> Result<Vec<u8>, ApiError> {
        let (api_version, kind) = match self {
            Self::Metadata(version) | Self::MetadataProtobuf(version) => (version.group_version(), METADATA_LIST),
            _ => (scope.group_version(), &*scope.resource.list_kind),
        };
        match self {
            Self::Table(rows) => {
                let mut head = Vec::with_capacity(2048);
                rows.open(&mut head, scope, metadata, true);
                Ok(head)
            }
            Self::Json | Self::Metadata(_) => {
                let mut head = format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":"#).into_bytes();
                head.extend_from_slice(&to_vec(&metadata.into()));
                head.extend_from_slice(br#","items":["#);
                Ok(head)
            }
            Self::Protobuf | Self::MetadataProtobuf(_) => {
                let start = protobuf::encode_list_start(schema::builtin(), &metadata.into());
                let start = start.map_err(|error| ApiError::internal(error.to_string()))?;
                let length = items.iter().map(|item| protobuf::list_item_len(item.object.len())).sum::<usize>();
                let mut head = protobuf::envelope_start(api_version, kind, start.len() + length);
                head.extend_from_slice(&start);
                Ok(head)
            }
        }
    }

    /// What stands after them.
    fn tail(&self) -> &'static [u8] {
        match self {
            Self::Protobuf | Self::MetadataProtobuf(_) => protobuf::ENVELOPE_END,
            Self::Json | Self::Table(_) | Self::Metadata(_) => b"]}\n",
        }
    }

    fn separator(&self) -> &'static [u8] {
        match self {
            Self::Protobuf | Self::MetadataProtobuf(_) => b"",
            Self::Json | Self::Table(_) | Self::Metadata(_) => b",",
        }
    }

    fn write(&self, out: &mut Vec<u8>, item: &Item) {
        match self {
            // Items of built-in kinds leave out what the list says already.
            Self::Json => match item.object.get(item.typeless_at..).filter(|_| item.typeless_at > 0) {
                Some(rest) => {
                    out.push(b'{');
                    out.extend_from_slice(rest);
                }
                None => out.extend_from_slice(&item.object),
            },
            Self::Table(rows) => rows.write(out, &item.cells, &item.object),
            Self::Metadata(version) => encode::write_partial_metadata(out, *version, &item.object),
            Self::Protobuf | Self::MetadataProtobuf(_) => protobuf::append_list_item(out, &item.object),
        }
    }
}

fn json_item(scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Item, ApiError> {
    if encode::shows_stored(scope, entry.mod_revision()) {
        let typeless_at = if scope.resource.typed_items { 0 } else { entry.typeless_offset().unwrap_or(0) };
        return Ok(Item { typeless_at, ..Item::of(entry.value()) });
    }
    let made = encode::json(scope, entry)?;
    let typeless_at =
        if scope.resource.typed_items { None } else { splice::scan(&made).and_then(|head| head.typeless_at) };
    Ok(Item { typeless_at: typeless_at.unwrap_or(0), ..Item::of(made) })
}

/// Answers with a page.
///
/// # Errors
/// What fails in making an item: items are made before the answer begins, since an error could not be told later.
pub(super) async fn answer(cx: &Exchange, scope: &Scope<'_>, form: Form, page: Page) -> Result<Response, ApiError> {
    let mut items = Vec::with_capacity(page.items.len());
    for entry in &page.items {
        items.push(form.item(scope, entry)?);
        // Making many of them is work; others get their turn.
        tokio::task::coop::consume_budget().await;
    }
    let metadata = if matches!(form, Form::Json) { own_metadata(scope, &page) } else { metadata(&page) };
    let mut out = form.head(scope, metadata, &items)?;
    let media_type = form.media_type();
    let mut pieces = Pieces { items: items.into_iter(), form, first: true, done: false };
    pieces.fill(&mut out, GZIP_FROM + 1);
    if pieces.done {
        return Ok(respond::whole(cx, 200, media_type, out.into()));
    }
    let gzip = respond::takes_gzip(cx);
    let body: BodyStream = if gzip {
        let encoder = GzEncoder::new(Vec::new(), respond::GZIP_LEVEL);
        Box::pin(stream::unfold(Some((pieces, out, encoder)), compressed))
    } else {
        Box::pin(stream::once(std::future::ready(Ok(Bytes::from(out)))).chain(stream::unfold(pieces, plain)))
    };
    let mut response = respond::response(200, media_type, Body::Stream(body));
    if gzip {
        respond::mark_gzip(&mut response);
    }
    Ok(response)
}

struct Pieces {
    items: std::vec::IntoIter<Item>,
    form: Form,
    first: bool,
    done: bool,
}

impl Pieces {
    /// Appends until there are about `most` bytes or all is written; `false` where nothing was left to write.
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> bool {
        if self.done {
            return false;
        }
        while out.len() < most {
            let Some(item) = self.items.next() else {
                out.extend_from_slice(self.form.tail());
                self.done = true;
                return true;
            };
            if !std::mem::take(&mut self.first) {
                out.extend_from_slice(self.form.separator());
            }
            self.form.write(out, &item);
        }
        true
    }
}

type Piece = Result<Bytes, BodyError>;

async fn plain(mut pieces: Pieces) -> Option<(Piece, Pieces)> {
    let mut out = Vec::with_capacity(PIECE + PIECE / 8);
    pieces.fill(&mut out, PIECE).then(|| (Ok(out.into()), pieces))
}

/// What is left, what waits to be compressed, and the encoder; `None` once all is sent.
type Compressing = Option<(Pieces, Vec<u8>, GzEncoder<Vec<u8>>)>;

async fn compressed(state: Compressing) -> Option<(Piece, Compressing)> {
    let (mut pieces, mut waiting, mut encoder) = state?;
    loop {
        if waiting.is_empty() && !pieces.fill(&mut waiting, PIECE) {
            // Writing to memory cannot fail; if it ever did, the client sees the stream break.
            let rest = encoder.finish().map_err(|error| BodyError(error.to_string()));
            return Some((rest.map(Bytes::from), None));
        }
        if let Err(error) = encoder.write_all(&waiting) {
            return Some((Err(BodyError(error.to_string())), None));
        }
        waiting.clear();
        let made = std::mem::take(encoder.get_mut());
        if !made.is_empty() {
            return Some((Ok(made.into()), Some((pieces, waiting, encoder))));
        }
    }
}
