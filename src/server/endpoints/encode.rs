//! Entries to what clients are sent: the stored bytes where nothing is asked of them, other versions and forms made
//! on first use.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Scope,
    table::{CLOSING, Rows, list_metadata},
};
use crate::{
    api::ApiError,
    codec::{self, Format},
    object::{Style, Value, to_vec},
    registry::{resource::Behaviour, store::Stored},
    server::{
        context::Exchange,
        http::Response,
        negotiate::{Accepted, MetaVersion, Offer, Transform, accept_header, negotiate, not_acceptable},
        respond,
    },
    storage::{
        Revision,
        cache::{EncodingKey, Entry, splice::metadata_range},
    },
};

/// Negotiates what a resource endpoint answers.
///
/// # Errors
/// The handler's 406.
pub fn accepted(cx: &Exchange, scope: &Scope<'_>, stream: bool) -> Result<Accepted, ApiError> {
    // What is answered and not stored has no columns.
    let table = !matches!(scope.resource.behaviour, Behaviour::Call(_));
    let offer = Offer { table, metadata: true, protobuf: !scope.resource.typed_items };
    let accepted = negotiate(&accept_header(&cx.parts.headers), cx.formats, offer)
        .ok_or_else(|| not_acceptable(cx.formats, false))?;
    // The clause is chosen first: one that could stream is not looked for behind it.
    if stream && accepted.format.stream_media_type().is_none() {
        return Err(not_acceptable(cx.formats, true));
    }
    Ok(accepted)
}

/// Whether the bytes stored at this revision are what this endpoint shows.
pub fn shows_stored(scope: &Scope<'_>, revision: Revision) -> bool {
    scope.group_version() == scope.storage_version()
        && !scope.is_scale()
        && scope.resource.revive.as_ref().is_none_or(|revive| revive.is_current(revision))
}

/// The object of an entry in the request's version.
pub fn object(scope: &Scope<'_>, entry: &Entry) -> Result<Value, ApiError> {
    let object = scope.store()?.object(entry)?;
    shown(scope, object)
}

/// Brings an object from the version it is in (the storage version for built-in kinds) to what the endpoint shows.
pub fn shown(scope: &Scope<'_>, mut object: Value) -> Result<Value, ApiError> {
    scope.strategy().decorate(&mut object);
    in_version(scope, &mut object)?;
    Ok(object)
}

fn in_version(scope: &Scope<'_>, object: &mut Value) -> Result<(), ApiError> {
    scope.resource.convert(object, scope.storage_version(), scope.group_version())?;
    if let Some(map) = object.as_object_mut() {
        map.insert("kind", &*scope.resource.kind);
    }
    Ok(())
}

/// The object of an entry in the version its printer knows.
pub fn printed(scope: &Scope<'_>, entry: &Entry) -> Result<Value, ApiError> {
    let mut object = scope.store()?.object(entry)?;
    if scope.resource.typed_items {
        return shown(scope, object);
    }
    scope.strategy().decorate(&mut object);
    Ok(object)
}

/// From the version that printers know to what the endpoint shows.
pub fn from_printed(scope: &Scope<'_>, mut object: Value) -> Result<Value, ApiError> {
    if !scope.resource.typed_items && !scope.is_scale() {
        in_version(scope, &mut object)?;
    }
    Ok(object)
}

/// The other way.
fn to_printed(scope: &Scope<'_>, mut object: Value) -> Result<Value, ApiError> {
    let stored = matches!(scope.resource.behaviour, Behaviour::Stored { .. });
    if stored && !scope.resource.typed_items && !scope.is_scale() {
        scope.resource.convert(&mut object, scope.group_version(), scope.storage_version())?;
    }
    Ok(object)
}

/// Other forms of an entry that are kept beside its bytes.
#[derive(Clone, Copy)]
enum Kept {
    Json,
    Yaml,
    /// The message without its envelope.
    Protobuf,
    /// The row of a table, without the object in it.
    Row,
    /// The message of its PartialObjectMetadata.
    MetadataProtobuf,
}

/// Numbers the other forms of an entry: one per served version and form.
fn encoding_key(scope: &Scope<'_>, form: Kept) -> EncodingKey {
    let version = scope.resource.versions.iter().position(|it| it.name == scope.version.name).unwrap_or(0) as u32;
    // Rows that share a prefix (the two kinds of events) must not share encodings.
    let group = u32::from(scope.storage_version() != scope.group_version());
    // A row that was made anew shows the same bytes differently.
    let schema = (scope.resource.revision as u32) << 12;
    EncodingKey(schema | version << 4 | group << 3 | form as u32)
}

/// The object's JSON in the request's version, compact.
pub fn json(scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Bytes, ApiError> {
    json_of(scope, entry, entry.mod_revision())
}

/// The same for an entry whose content is from another revision than its own: that of a deletion.
pub fn json_of(scope: &Scope<'_>, entry: &Arc<Entry>, written: Revision) -> Result<Bytes, ApiError> {
    if shows_stored(scope, written) {
        return Ok(entry.value());
    }
    entry.encoding(encoding_key(scope, Kept::Json), |entry| Ok(to_vec(&object(scope, entry)?).into()))
}

fn yaml(scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Bytes, ApiError> {
    entry.encoding(encoding_key(scope, Kept::Yaml), |entry| {
        codec::encode(Format::Yaml, &object(scope, entry)?, Style::Compact).map(Bytes::from).map_err(ApiError::internal)
    })
}

/// The object's message, as it stands in an envelope or a list.
pub fn protobuf_body(scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Bytes, ApiError> {
    entry.encoding(encoding_key(scope, Kept::Protobuf), |entry| {
        codec::protobuf_body(&object(scope, entry)?).map(Bytes::from).map_err(ApiError::internal)
    })
}

/// The object in protobuf with its envelope.
pub fn protobuf(scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Vec<u8>, ApiError> {
    Ok(codec::protobuf::wrap(scope.group_version(), &scope.resource.kind, &protobuf_body(scope, entry)?))
}

/// The message of the object's PartialObjectMetadata, which is the same in every version of `meta.k8s.io`.
pub fn metadata_protobuf_body(scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Bytes, ApiError> {
    entry.encoding(encoding_key(scope, Kept::MetadataProtobuf), |entry| {
        let metadata = partial_metadata(&object(scope, entry)?, MetaVersion::V1);
        codec::protobuf_body(&metadata).map(Bytes::from).map_err(ApiError::internal)
    })
}

/// The object's cells, for [`Rows::write`].
pub fn row(scope: &Scope<'_>, entry: &Arc<Entry>) -> Result<Bytes, ApiError> {
    entry.encoding(encoding_key(scope, Kept::Row), |entry| {
        Ok(super::table::pack(&super::table::printer(scope).row(&printed(scope, entry)?)).into())
    })
}

/// The `metadata` of an entry as JSON.
pub fn metadata_json(scope: &Scope<'_>, entry: &Arc<Entry>, written: Revision) -> Result<Bytes, ApiError> {
    let json = json_of(scope, entry, written)?;
    match metadata_range(&json) {
        Some(range) => Ok(json.slice(range)),
        None => Ok(Bytes::from_static(b"{}")),
    }
}

/// `PartialObjectMetadata` around metadata that is JSON already.
pub fn write_partial_metadata(out: &mut Vec<u8>, version: MetaVersion, metadata: &[u8]) {
    out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
    out.extend_from_slice(version.group_version().as_bytes());
    out.extend_from_slice(br#"","metadata":"#);
    out.extend_from_slice(metadata);
    out.push(b'}');
}

/// `PartialObjectMetadata` of an object.
pub fn partial_metadata(object: &Value, version: MetaVersion) -> Value {
    let metadata = object.at(&["metadata"]).cloned().unwrap_or_else(Value::object);
    Value::from([
        ("kind", Value::from("PartialObjectMetadata")),
        ("apiVersion", version.group_version().into()),
        ("metadata", metadata),
    ])
}

/// Answers with one object that was read.
pub fn entry_response(
    cx: &Exchange,
    scope: &Scope<'_>,
    accepted: Accepted,
    entry: &Arc<Entry>,
) -> Result<Response, ApiError> {
    let compact = respond::style(cx, accepted) == Style::Compact;
    let media_type = accepted.format.media_type();
    match (accepted.transform, accepted.format) {
        (Transform::None, Format::Json) if compact => Ok(respond::json_bytes(cx, 200, json(scope, entry)?)),
        (Transform::None, Format::Yaml) => Ok(respond::whole(cx, 200, media_type, yaml(scope, entry)?)),
        (Transform::None, Format::Protobuf) => Ok(respond::whole(cx, 200, media_type, protobuf(scope, entry)?.into())),
        (Transform::Table(version), Format::Json) if compact => {
            let rows = Rows::new(cx, version)?;
            let mut out = Vec::with_capacity(4096);
            rows.open(&mut out, scope, list_metadata(&entry.mod_revision().to_string()), true);
            rows.write(&mut out, &row(scope, entry)?, &rows.object(scope, entry, entry.mod_revision())?);
            out.extend_from_slice(CLOSING);
            out.push(b'\n');
            Ok(respond::whole(cx, 200, media_type, out.into()))
        }
        (Transform::Table(version), _) => {
            let table = Rows::new(cx, version)?.table_of(scope, true, printed(scope, entry)?)?;
            Ok(respond::document(cx, 200, accepted, &table))
        }
        _ => object_response(cx, scope, accepted, 200, object(scope, entry)?),
    }
}

/// Answers with an object that was written.
pub fn stored_response(
    cx: &Exchange,
    scope: &Scope<'_>,
    accepted: Accepted,
    status: u16,
    stored: Stored,
) -> Result<Response, ApiError> {
    cx.warnings.extend(stored.warnings);
    let plain = accepted.format == Format::Json && accepted.transform == Transform::None;
    // What was written just now is as today's schema has it.
    let same = scope.group_version() == scope.storage_version() && !scope.is_scale() && !stored.revived;
    if plain && same && respond::style(cx, accepted) == Style::Compact {
        return Ok(respond::json_bytes(cx, status, stored.bytes));
    }
    let object = shown(scope, stored.object)?;
    object_response(cx, scope, accepted, status, object)
}

/// Answers with an object in the request's version, transformed as asked.
pub fn object_response(
    cx: &Exchange,
    scope: &Scope<'_>,
    accepted: Accepted,
    status: u16,
    object: Value,
) -> Result<Response, ApiError> {
    let value = match accepted.transform {
        Transform::None => object,
        Transform::PartialObjectMetadata(version) => partial_metadata(&object, version),
        Transform::PartialObjectMetadataList(_) => {
            let message = format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                go_type(scope)
            );
            return Err(ApiError::not_acceptable(message));
        }
        Transform::Table(version) => Rows::new(cx, version)?.table_of(scope, true, to_printed(scope, object)?)?,
    };
    Ok(respond::document(cx, status, accepted, &value))
}

/// Go's name of the internal type, as upstream's messages print it.
pub fn go_type(scope: &Scope<'_>) -> String {
    if scope.resource.typed_items {
        return "*unstructured.Unstructured".to_owned();
    }
    let group = scope.resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    format!("*{group}.{}", scope.resource.kind)
}
