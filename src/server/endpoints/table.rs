//! The Table form (`meta.k8s.io` Table): columns of the row, cells by the kind's printer.
//!
//! Compact JSON is put together from bytes: the cells are printed once for each state of an object and kept beside it,
//! the metadata is a slice of the stored bytes. Every other form goes through a tree.

mod packed;
mod texts;

use bytes::Bytes;

use super::{Scope, encode};
use crate::{
    api::{ApiError, clock, field::quote},
    object::{Map, Value, to_vec},
    registry::{
        builtin::SCALE_TABLE,
        printer::{PrintedRow, Printer},
        resource::Column,
    },
    server::{context::Exchange, negotiate::MetaVersion},
    storage::{Revision, cache::Entry},
};

pub use packed::pack;

/// What of the object a row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    None,
    Metadata,
    Object,
}

/// Makes the rows of one answer.
#[derive(Clone, Copy)]
pub struct Rows {
    version: MetaVersion,
    include: Include,
    now: jiff::Timestamp,
}

/// What ends a table in bytes.
pub const CLOSING: &[u8] = b"]}";

impl Rows {
    /// # Errors
    /// 400 for an `includeObject` that is none.
    pub fn new(cx: &Exchange, version: MetaVersion) -> Result<Self, ApiError> {
        let include = match cx.query.first("includeObject").unwrap_or("") {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::None,
            "Object" => Include::Object,
            other => {
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                    quote(other)
                )));
            }
        };
        Ok(Self { version, include, now: clock::now() })
    }

    /// The same at another time: watches go on for long.
    pub fn now(self) -> Self {
        Self { now: clock::now(), ..self }
    }

    /// Rows that carry metadata where they would carry nothing.
    pub fn with_metadata(self) -> Self {
        let include = if self.include == Include::None { Include::Metadata } else { self.include };
        Self { include, ..self }
    }

    /// A table as a tree. `columns`: with their definitions.
    pub fn table(&self, scope: &Scope<'_>, metadata: Map, columns: bool, rows: Vec<Value>) -> Value {
        Value::from([
            ("kind", Value::from("Table")),
            ("apiVersion", self.version.group_version().into()),
            ("metadata", metadata.into()),
            ("columnDefinitions", if columns { definitions(scope) } else { Value::Null }),
            ("rows", if rows.is_empty() && printer(scope).gathers { Value::Null } else { Value::Array(rows) }),
        ])
    }

    /// A table of one object, which is in the version its printer knows.
    ///
    /// # Errors
    /// What fails in bringing the object to the request's version.
    pub fn table_of(&self, scope: &Scope<'_>, columns: bool, object: Value) -> Result<Value, ApiError> {
        let metadata = list_metadata(object.str_at(&["metadata", "resourceVersion"]));
        let row = printer(scope).row(&object);
        Ok(self.table(scope, metadata, columns, vec![self.row(scope, &row, object)?]))
    }

    /// A row as a tree, of an object in the version its printer knows.
    ///
    /// # Errors
    /// As [`Self::table_of`].
    pub fn row(&self, scope: &Scope<'_>, row: &PrintedRow, object: Value) -> Result<Value, ApiError> {
        let cells: Vec<Value> = row.cells.iter().map(|cell| cell.value(self.now)).collect();
        let mut members = Map::from([("cells", Value::Array(cells))]);
        if let Some(completed) = row.completed {
            let condition = Value::from([
                ("type", "Completed"),
                ("status", "True"),
                ("reason", completed.reason),
                ("message", completed.message),
            ]);
            members.insert("conditions", vec![condition]);
        }
        let shown = match self.include {
            Include::None => Value::Null,
            Include::Metadata => encode::partial_metadata(&encode::from_printed(scope, object)?, self.version),
            Include::Object => encode::from_printed(scope, object)?,
        };
        members.insert("object", shown);
        Ok(members.into())
    }

    /// Begins a table in bytes; rows, joined by commas, follow, and then [`CLOSING`].
    pub fn open(&self, out: &mut Vec<u8>, scope: &Scope<'_>, metadata: Map, columns: bool) {
        out.extend_from_slice(br#"{"kind":"Table","apiVersion":""#);
        out.extend_from_slice(self.version.group_version().as_bytes());
        out.extend_from_slice(br#"","metadata":"#);
        out.extend_from_slice(&to_vec(&metadata.into()));
        out.extend_from_slice(br#","columnDefinitions":"#);
        out.extend_from_slice(&if columns { to_vec(&definitions(scope)) } else { b"null".to_vec() });
        out.extend_from_slice(br#","rows":["#);
    }

    /// What a row shows of an entry whose content is from revision `written`.
    ///
    /// # Errors
    /// An object that is damaged or cannot be brought to the request's version.
    pub fn object(
        &self,
        scope: &Scope<'_>,
        entry: &std::sync::Arc<Entry>,
        written: Revision,
    ) -> Result<Bytes, ApiError> {
        match self.include {
            Include::None => Ok(Bytes::new()),
            Include::Metadata => encode::metadata_json(scope, entry, written),
            Include::Object => encode::json_of(scope, entry, written),
        }
    }

    /// Writes a row of cells as [`pack`] left them and what [`Self::object`] gave.
    pub fn write(&self, out: &mut Vec<u8>, cells: &[u8], object: &[u8]) {
        out.push(b'{');
        packed::write(out, cells, self.now);
        out.extend_from_slice(br#","object":"#);
        match self.include {
            Include::None => out.extend_from_slice(b"null"),
            Include::Metadata => encode::write_partial_metadata(out, self.version, object),
            Include::Object => out.extend_from_slice(object),
        }
        out.push(b'}');
    }
}

/// The metadata of a table or list with nothing but a version.
pub fn list_metadata(resource_version: &str) -> Map {
    let mut metadata = Map::new();
    if !resource_version.is_empty() {
        metadata.insert("resourceVersion", resource_version);
    }
    metadata
}

/// The Scale of a built-in kind has a table of its own; that of a custom resource is shown as the resource is.
fn shows_scale(scope: &Scope<'_>) -> bool {
    scope.is_scale() && !scope.resource.typed_items
}

pub fn printer<'a>(scope: &Scope<'a>) -> &'a Printer {
    if shows_scale(scope) { &SCALE_TABLE.1 } else { &scope.version.printer }
}

fn columns<'a>(scope: &Scope<'a>) -> &'a [Column] {
    if shows_scale(scope) { &SCALE_TABLE.0 } else { &scope.version.columns }
}

fn definitions(scope: &Scope<'_>) -> Value {
    let built_in = !scope.resource.typed_items;
    let kind =
        if shows_scale(scope) { ("autoscaling", "Scale") } else { (&*scope.resource.group, &*scope.resource.kind) };
    let text = |column: &Column| match built_in {
        true => texts::of(kind.0, kind.1, &column.name),
        false => "",
    };
    let column = |column: &Column| {
        let text = if column.description.is_empty() { text(column) } else { &column.description };
        Value::from([
            ("name", Value::from(column.name.as_str())),
            ("type", column.kind.as_str().into()),
            ("format", column.format.as_str().into()),
            ("description", text.into()),
            ("priority", column.priority.into()),
        ])
    };
    Value::Array(columns(scope).iter().map(column).collect())
}
