//! Entries to what clients are sent: the stored bytes where nothing is asked of them, other versions and forms made
//! on first use.

use std::sync::Arc;

use bytes::Bytes;

use super::{Scope, table::Rows};
use crate::{
    api::ApiError,
    codec::{self, Format},
    object::{Style, Value, to_vec},
    registry::{resource::Behaviour, store::Stored},
    server::{
        context::Exchange,
        http::{Body, Response},
        negotiate::{Accepted, MetaVersion, Offer, Transform, accept_header, negotiate, not_acceptable},
        respond,
    },
    storage::{
        Revision,
        cache::{EncodingKey, Entry},
    },
};

/// Negotiates what a resource endpoint answers.
///
/// # Errors
/// The handler's 406.
pub fn accepted(cx: &Exchange, scope: &Scope<'_>, stream: bool) -> Result<Accepted, ApiError> {
    // What is answered and not stored has no columns.
    let table = !scope.is_scale() && !matches!(scope.resource.behaviour, Behaviour::Call(_));
    let offer = Offer { table, metadata: !scope.is_scale(), stream, protobuf: !scope.resource.typed_items };
    negotiate(&accept_header(&cx.parts.headers), offer).ok_or_else(|| not_acceptable(stream))
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
    scope.resource.convert(&mut object, scope.storage_version(), scope.group_version())?;
    if let Some(map) = object.as_object_mut() {
        map.insert("kind", &*scope.resource.kind);
    }
    Ok(object)
}

/// Numbers the other encodings of an entry: one per served version and format.
fn encoding_key(scope: &Scope<'_>, format: Format) -> EncodingKey {
    let version = scope.resource.versions.iter().position(|it| it.name == scope.version.name).unwrap_or(0) as u32;
    // Rows that share a prefix (the two kinds of events) must not share encodings.
    let group = u32::from(scope.storage_version() != scope.group_version());
    // A row that was made anew shows the same bytes differently.
    let schema = (scope.resource.revision as u32) << 12;
    EncodingKey(schema | version << 4 | group << 3 | format as u32)
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
    entry.encoding(encoding_key(scope, Format::Json), |entry| Ok(to_vec(&object(scope, entry)?).into()))
}

/// The object in a format, untransformed and compact.
pub fn formatted(scope: &Scope<'_>, entry: &Arc<Entry>, format: Format) -> Result<Bytes, ApiError> {
    if format == Format::Json {
        return json(scope, entry);
    }
    entry.encoding(encoding_key(scope, format), |entry| {
        codec::encode(format, &object(scope, entry)?, Style::Compact).map(Bytes::from).map_err(ApiError::internal)
    })
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
pub fn entry_response(cx: &Exchange, scope: &Scope<'_>, accepted: Accepted, entry: &Arc<Entry>) -> Result<Response, ApiError> {
    match (accepted.transform, accepted.format) {
        (Transform::None, Format::Json) if respond::style(cx, accepted) == Style::Compact => {
            Ok(respond::json_bytes(200, json(scope, entry)?))
        }
        (Transform::None, Format::Protobuf | Format::Yaml) => {
            let bytes = formatted(scope, entry, accepted.format)?;
            Ok(respond::response(200, accepted.format.media_type(), Body::Full(bytes)))
        }
        _ => object_response(cx, scope, accepted, 200, object(scope, entry)?),
    }
}

/// Answers with an object that was written.
pub fn stored_response(cx: &Exchange, scope: &Scope<'_>, accepted: Accepted, status: u16, stored: Stored) -> Result<Response, ApiError> {
    cx.warnings.extend(stored.warnings);
    let plain = accepted.format == Format::Json && accepted.transform == Transform::None;
    // What was written just now is as today's schema has it.
    let same = scope.group_version() == scope.storage_version() && !scope.is_scale() && !stored.revived;
    if plain && same && respond::style(cx, accepted) == Style::Compact {
        return Ok(respond::json_bytes(status, stored.bytes));
    }
    let object = shown(scope, stored.object)?;
    object_response(cx, scope, accepted, status, object)
}

/// Answers with an object in the request's version, transformed as asked.
pub fn object_response(cx: &Exchange, scope: &Scope<'_>, accepted: Accepted, status: u16, object: Value) -> Result<Response, ApiError> {
    let value = match accepted.transform {
        Transform::None => object,
        Transform::PartialObjectMetadata(version) => partial_metadata(&object, version),
        Transform::PartialObjectMetadataList(_) => {
            let message = format!("you requested PartialObjectMetadataList, but the requested object is not a list ({})", go_type(scope));
            return Err(ApiError::not_acceptable(message));
        }
        Transform::Table(version) => {
            let rows = Rows::new(cx, version)?;
            let mut table = rows.table(scope.version, Some(&object), true);
            table.set(&["rows"], Value::Array(vec![rows.row(scope.version, &object)?]));
            table
        }
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
