//! Serving OpenAPI: which documents there are, their hashes, and the bytes of those that were asked for.
//!
//! A document's hash covers what it is made from, and not the document: so the index with all hashes costs next to
//! nothing, and a document that nobody reads is never made. Bytes are kept compressed; whoever asks first does not wait
//! for that.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    io::{Read, Write as _},
    sync::{Arc, OnceLock, Weak},
    time::{Duration, SystemTime},
};

use ::http::{HeaderName, HeaderValue, StatusCode, header};
use aws_lc_rs::digest;
use bytes::{Buf, Bytes};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::{Documents, Now, hexadecimal, priorities::Origin};
use crate::{
    api::ApiError,
    json,
    object::{Map, Value, to_vec},
    openapi::{self, Form, GroupVersion, Gvk, Resource, Section, Subresource},
    registry::{
        catalog::{Catalog, Group, Row},
        resource::{SubresourceBehaviour, Verb, Verbs, Version},
    },
    server::{
        context::Exchange,
        http::{Body, BodyError, Response, unsynced},
        negotiate::{self, accept_header},
        respond,
    },
};

/// Everything that shapes documents besides the rows: the code, the type table, whether there are texts.
const FINGERPRINT: &str = env!("KENTER_DOCUMENTS_FINGERPRINT");

/// The documents there are.
pub(super) struct Index {
    /// By key, in order.
    sections: BTreeMap<String, Entry>,
    /// The hash of the one document of v2.
    v2: String,
}

struct Entry {
    hash: String,
    place: Place,
}

/// Where a section's rows are found when its document is made.
#[derive(Clone)]
enum Place {
    Small(Section),
    Rows { group: Arc<str>, version: Arc<str>, origin: Origin },
}

/// What outlives one index: bytes by key and form, and hashes of custom groups by their rows.
pub(super) struct Kept {
    bytes: Mutex<HashMap<(String, Form), Slot>>,
    hashes: Mutex<HashMap<String, Hashed>>,
    since: SystemTime,
}

impl Default for Kept {
    fn default() -> Self {
        Self { bytes: Mutex::default(), hashes: Mutex::default(), since: SystemTime::now() }
    }
}

#[cfg(test)]
impl Kept {
    /// The document that is kept under a key.
    pub(super) fn made(&self, key: &str) -> Arc<Made> {
        self.bytes.lock()[&(key.to_owned(), Form::Json)].made.get().expect("a document that was asked for").clone()
    }
}

/// The bytes of one document, made once for all who wait for them.
#[derive(Clone)]
struct Slot {
    hash: String,
    made: Arc<OnceCell<Arc<Made>>>,
}

/// A document, plain until it is compressed.
pub(super) struct Made {
    plain: Mutex<Option<Bytes>>,
    packed: OnceLock<Bytes>,
}

impl Made {
    /// The document and its length.
    fn body(&self) -> (Body, usize) {
        let plain = self.plain.lock().clone();
        match (plain, self.packed.get()) {
            (None, Some(packed)) => unpacked(packed.clone()),
            (plain, _) => {
                let plain = plain.unwrap_or_default();
                let length = plain.len();
                (Body::Full(plain), length)
            }
        }
    }

    /// The compressed bytes, made now if they are not there. Takes a while.
    fn packed(&self) -> Bytes {
        let packed =
            self.packed.get_or_init(|| self.plain.lock().clone().map(|plain| pack(&plain)).unwrap_or_default());
        *self.plain.lock() = None;
        packed.clone()
    }
}

/// The hash of a custom group and version, right as long as the group is this one. Its address is held, not the group.
struct Hashed {
    group: Weak<Group>,
    hash: String,
}

impl Documents {
    fn openapi_index(&self, now: &Now) -> Arc<Index> {
        now.made.openapi.get_or_init(|| Arc::new(self.make_index(&now.custom))).clone()
    }

    fn make_index(&self, custom: &Catalog) -> Index {
        let small =
            [Section::Api, Section::Groups, Section::Version, Section::OpenIdConfiguration, Section::OpenIdKeys];
        let mut sections = BTreeMap::new();
        let groups = self.built_in.groups().filter(|group| !group.name.is_empty());
        for section in small.into_iter().chain(groups.map(|group| Section::Group(group.name.clone()))) {
            sections.insert(section.key(), Entry { hash: hash_of(&section), place: Place::Small(section) });
        }
        for group in self.built_in.groups() {
            for version in group.versions().cloned() {
                let source = source(group, &version, false);
                let place = Place::Rows { group: group.name.clone(), version, origin: Origin::BuiltIn };
                sections.insert(source.path(), Entry { hash: hash_of(&source), place });
            }
        }
        let mut hashes = self.openapi.hashes.lock();
        let mut known = std::mem::take(&mut *hashes);
        for group in custom.groups() {
            for version in group.versions() {
                let place = Place::Rows { group: group.name.clone(), version: version.clone(), origin: Origin::Custom };
                let key = format!("apis/{}/{version}", group.name);
                let same = |hashed: &Hashed| std::ptr::eq(hashed.group.as_ptr(), Arc::as_ptr(group));
                let hashed = known
                    .remove(&key)
                    .filter(same)
                    .unwrap_or_else(|| Hashed { group: Arc::downgrade(group), hash: custom_hash(group, version) });
                let hash = hashed.hash.clone();
                hashes.insert(key.clone(), hashed);
                sections.entry(key).or_insert(Entry { hash, place });
            }
        }
        drop(hashes);
        let all: Vec<(&String, &String)> = sections.iter().map(|(key, entry)| (key, &entry.hash)).collect();
        let v2 = hash_of(&all);
        self.openapi.bytes.lock().retain(|(key, _), _| key == V2 || sections.contains_key(key));
        Index { sections, v2 }
    }

    /// `/openapi/v3`: whatever the method and media type.
    pub(super) fn openapi_root(&self) -> Response {
        let index = self.openapi_index(&self.now());
        let paths = index.sections.iter().map(|(key, entry)| {
            let url = format!("/openapi/v3/{key}?hash={}", entry.hash);
            (key.as_str(), json!({"serverRelativeURL": url}))
        });
        let paths: Map = paths.collect();
        respond::text(200, to_vec(&json!({"paths": paths})))
    }

    /// One document of v3, whatever the method.
    pub(super) async fn openapi_v3(&self, cx: &Exchange, key: &str) -> Response {
        let now = self.now();
        let index = self.openapi_index(&now);
        let Some(entry) = index.sections.get(key) else { return empty(StatusCode::NOT_FOUND, &[]) };
        let vary = (header::VARY, "Accept".to_owned());
        let Some(form) = accepted(cx, &V3_TYPES) else { return empty(StatusCode::NOT_ACCEPTABLE, &[vary]) };
        let media_type = media_type(&V3_TYPES, form);
        let mut headers = self.validators(&entry.hash);
        headers.push(vary);
        match cx.query.first("hash").filter(|hash| !hash.is_empty()) {
            Some(hash) if hash == entry.hash => {
                headers.push((header::CACHE_CONTROL, "public, immutable".to_owned()));
                headers.push((header::EXPIRES, http_date(SystemTime::now() + YEAR).replace("GMT", "UTC")));
            }
            Some(_) => {
                headers.push((header::LOCATION, format!("/openapi/v3/{key}?hash={}", entry.hash)));
                headers.push((header::CONTENT_TYPE, media_type.to_owned()));
                return empty(StatusCode::MOVED_PERMANENTLY, &headers);
            }
            None => {}
        }
        if matches(cx.header("if-none-match"), &entry.hash) {
            return empty(StatusCode::NOT_MODIFIED, &headers);
        }
        let section = self.section(&now, &entry.place);
        let made = self.document(key, &entry.hash, form, move || openapi::v3(&section, form)).await;
        match made.map(|made| made.body()) {
            Ok((body, length)) => {
                headers.push((header::CONTENT_LENGTH, length.to_string()));
                with(respond::response(200, media_type, body), &headers)
            }
            Err(why) => respond::error(cx, &ApiError::internal(why)),
        }
    }

    /// The document of v2, whatever the method.
    pub(super) async fn openapi_v2(&self, cx: &Exchange) -> Response {
        let now = self.now();
        let index = self.openapi_index(&now);
        let vary = [(header::VARY, "Accept-Encoding".to_owned()), (header::VARY, "Accept".to_owned())];
        let Some(form) = accepted(cx, &V2_TYPES) else { return empty(StatusCode::NOT_ACCEPTABLE, &vary) };
        let mut headers = self.validators(&index.v2);
        headers.extend(vary);
        if matches(cx.header("if-none-match"), &index.v2) {
            return empty(StatusCode::NOT_MODIFIED, &headers);
        }
        let sections: Vec<Section> = index.sections.values().map(|entry| self.section(&now, &entry.place)).collect();
        let made = match self.document(V2, &index.v2, form, move || openapi::v2(&sections, form)).await {
            Ok(made) => made,
            Err(why) => return respond::error(cx, &ApiError::internal(why)),
        };
        let body = if takes_gzip(cx.header("accept-encoding")) {
            headers.push((header::CONTENT_ENCODING, "gzip".to_owned()));
            match aside(move || made.packed()).await {
                Ok(packed) => Body::Full(packed),
                Err(why) => return respond::error(cx, &ApiError::internal(why)),
            }
        } else {
            let (body, length) = made.body();
            headers.push((header::CONTENT_LENGTH, length.to_string()));
            body
        };
        with(respond::response(200, media_type(&V2_TYPES, form), body), &headers)
    }

    fn validators(&self, hash: &str) -> Vec<(HeaderName, String)> {
        vec![(header::ETAG, format!("\"{hash}\"")), (header::LAST_MODIFIED, http_date(self.openapi.since))]
    }

    fn section(&self, now: &Now, place: &Place) -> Section {
        match place {
            Place::Small(section) => section.clone(),
            Place::Rows { group, version, origin } => {
                let custom = *origin == Origin::Custom;
                let rows = self.rows(now, group, *origin);
                let made = rows.map(|rows| source(rows, version, custom));
                let nothing =
                    || GroupVersion { group: group.clone(), version: version.clone(), resources: Vec::new(), custom };
                Section::GroupVersion(Arc::new(made.unwrap_or_else(nothing)))
            }
        }
    }

    /// A document. Whoever asks first has it made, away from the threads that serve.
    async fn document(
        &self,
        key: &str,
        hash: &str,
        form: Form,
        make: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<Arc<Made>, String> {
        let slot = {
            let mut kept = self.openapi.bytes.lock();
            let fresh = || Slot { hash: hash.to_owned(), made: Arc::default() };
            let slot = kept.entry((key.to_owned(), form)).or_insert_with(fresh);
            if slot.hash != hash {
                *slot = fresh();
            }
            slot.made.clone()
        };
        let made = slot.get_or_try_init(|| async {
            let plain = Bytes::from(aside(make).await?);
            let made = Arc::new(Made { plain: Mutex::new(Some(plain)), packed: OnceLock::new() });
            let later = made.clone();
            tokio::task::spawn_blocking(move || later.packed());
            Ok(made)
        });
        made.await.cloned()
    }
}

/// Does what takes long away from the threads that serve.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| format!("the document could not be made: {error}"))
}

const V2: &str = "v2";
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Media types by form: JSON, protobuf. The second spelling is an older one.
type MediaTypes = [(&'static str, Option<&'static str>); 2];
const V3_TYPES: MediaTypes = [
    ("application/json", None),
    (
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        Some("application/com.github.proto-openapi.spec.v3@v1.0+protobuf"),
    ),
];
const V2_TYPES: MediaTypes = [
    ("application/json", None),
    (
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        Some("application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
    ),
];

fn media_type(types: &MediaTypes, form: Form) -> &'static str {
    let [json, protobuf] = types;
    match form {
        Form::Json => json.0,
        Form::Protobuf => protobuf.0,
    }
}

fn accepted(cx: &Exchange, types: &MediaTypes) -> Option<Form> {
    let offers: Vec<&str> = types.iter().flat_map(|(new, old)| [Some(*new), *old]).flatten().collect();
    let chosen = negotiate::choose(&accept_header(&cx.parts.headers), &offers)?;
    Some(if chosen == 0 { Form::Json } else { Form::Protobuf })
}

/// The hash of a custom group and version, out of what is known of its schemas without reading them.
fn custom_hash(group: &Group, version: &str) -> String {
    let rows = group.listed().filter_map(|row| Some((row, row.resource.version(version)?)));
    let described = rows.map(|(row, version)| (version.schema.written_digest(), resource(row, version, true, None)));
    hash_of(&(&group.name, version, described.collect::<Vec<_>>()))
}

/// What a document is made from, out of the rows.
fn source(group: &Group, version: &str, custom: bool) -> GroupVersion {
    let own = group.listed().filter_map(|row| Some((row, row.resource.version(version)?)));
    let written = |version: &Version| version.schema.written_schema().filter(|_| custom);
    GroupVersion {
        group: group.name.clone(),
        version: version.into(),
        resources: own.map(|(row, version)| resource(row, version, custom, written(version))).collect(),
        custom,
    }
}

fn resource(row: &Row, version: &Version, custom: bool, schema: Option<Value>) -> Resource {
    let it = &row.resource;
    let labels = version.selectable.labels.iter().filter(|label| custom && !label.starts_with("metadata."));
    Resource {
        plural: it.plural.clone(),
        kind: it.kind.clone(),
        list_kind: it.list_kind.clone(),
        namespaced: it.namespaced,
        verbs: verbs(it.verbs),
        // Namespaces answer the object, since their deletion never ends at once; documents say Status all the same.
        returns_deleted: !custom
            && &*it.kind != "Namespace"
            && it.strategy().is_some_and(|strategy| strategy.returns_deleted_object()),
        subresources: version.subresources.iter().map(subresource).collect(),
        schema,
        selectable: labels.map(|label| format!(".{label}")).collect(),
    }
}

fn subresource(it: &crate::registry::resource::Subresource) -> Subresource {
    Subresource {
        name: it.name.clone(),
        gvk: Gvk { group: it.group.clone(), version: it.version.clone(), kind: it.kind.clone() },
        verbs: verbs(it.verbs),
        connect: matches!(it.behaviour, SubresourceBehaviour::Connect(_)),
    }
}

fn verbs(verbs: Verbs) -> Vec<&'static str> {
    verbs.iter().map(Verb::as_str).collect()
}

/// A hash of what a value prints, and of the program.
fn hash_of(value: &impl std::fmt::Debug) -> String {
    struct Sink(digest::Context);
    impl std::fmt::Write for Sink {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut sink = Sink(digest::Context::new(&digest::SHA512));
    // Writing into a hash does not fail.
    let _ = write!(sink, "{FINGERPRINT} {value:?}");
    hexadecimal(sink.0.finish().as_ref())
}

fn pack(bytes: &[u8]) -> Bytes {
    let mut out = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
    // Memory takes whatever is written.
    out.write_all(bytes).and_then(|()| out.finish()).unwrap_or_default().into()
}

/// Bytes unpacked at a time: a client that reads slowly, or not at all, costs this much and not the document.
const PIECE: usize = 64 * 1024;

/// The document as a body, unpacked while it is read. Its length is what gzip says at the end (RFC 1952, ISIZE).
fn unpacked(packed: Bytes) -> (Body, usize) {
    let length = packed.last_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    let pieces = stream::unfold(Some(GzDecoder::new(packed.reader())), |decoder| async move {
        let mut decoder = decoder?;
        let mut piece = vec![0; PIECE];
        let mut filled = 0;
        while filled < PIECE {
            match decoder.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => return Some((Err(BodyError(error.to_string())), None)),
            }
        }
        piece.truncate(filled);
        (filled > 0).then(|| (Ok(Bytes::from(piece)), Some(decoder)))
    });
    (Body::Stream(unsynced(pieces)), length)
}

/// Whether `If-None-Match` names this hash: one of a list, weak or not, or "*".
fn matches(header: &str, hash: &str) -> bool {
    header.split(',').map(str::trim).any(|tag| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        tag == "*" || tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) == Some(hash)
    })
}

fn takes_gzip(header: &str) -> bool {
    header.split(',').any(|piece| {
        let mut words = piece.split(';').map(str::trim);
        words.next() == Some("gzip") && !words.any(|word| matches!(word, "q=0" | "q=0.0"))
    })
}

fn empty(status: StatusCode, headers: &[(HeaderName, String)]) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    with(response, headers)
}

fn with(mut response: Response, headers: &[(HeaderName, String)]) -> Response {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// `Wed, 01 Dec 2027 04:27:12 GMT`.
fn http_date(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap_or_default()
}
