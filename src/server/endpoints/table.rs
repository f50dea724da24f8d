//! The Table form (`meta.k8s.io` Table): columns of the row, cells by the kind's printer.

use super::Scope;
use crate::{
    api::{ApiError, clock},
    object::{Map, Value},
    server::{
        context::Exchange,
        negotiate::MetaVersion,
    },
};

/// What of the object a row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    None,
    Metadata,
    Object,
}

/// Makes the rows of one answer.
pub struct Rows<'a> {
    scope: &'a Scope<'a>,
    version: MetaVersion,
    include: Include,
    now: crate::api::time::Timestamp,
}

impl<'a> Rows<'a> {
    /// # Errors
    /// 400 for an `includeObject` that is none.
    pub fn new(cx: &Exchange, scope: &'a Scope<'a>, version: MetaVersion) -> Result<Self, ApiError> {
        let include = match cx.query.first("includeObject").unwrap_or("") {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::None,
            "Object" => Include::Object,
            other => {
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: unrecognized includeObject value: {}",
                    crate::api::field::quote(other)
                )));
            }
        };
        Ok(Self { scope, version, include, now: clock::now() })
    }

    /// A table without rows. `columns`: with their definitions.
    pub fn table(&self, object: Option<&Value>, columns: bool) -> Value {
        let mut metadata = Map::new();
        if let Some(version) = object.map(|object| object.str_at(&["metadata", "resourceVersion"])).filter(|it| !it.is_empty()) {
            metadata.insert("resourceVersion", version);
        }
        Value::from([
            ("kind", Value::from("Table")),
            ("apiVersion", self.version.group_version().into()),
            ("metadata", metadata.into()),
            ("columnDefinitions", if columns { self.columns() } else { Value::Null }),
            ("rows", Value::Array(Vec::new())),
        ])
    }

    fn columns(&self) -> Value {
        let column = |column: &crate::registry::resource::Column| {
            Value::from([
                ("name", Value::from(column.name.as_str())),
                ("type", column.kind.as_str().into()),
                ("format", column.format.as_str().into()),
                ("description", column.description.as_str().into()),
                ("priority", column.priority.into()),
            ])
        };
        Value::Array(self.scope.version.columns.iter().map(column).collect())
    }

    /// The row of an object in the request's version.
    pub fn row(&self, object: &Value) -> Result<Value, ApiError> {
        let cells = (self.scope.version.cells)(object, self.now);
        let mut row = Map::from([("cells", Value::Array(cells))]);
        match self.include {
            Include::None => {
                row.insert("object", Value::Null);
            }
            Include::Metadata => {
                row.insert("object", super::encode::partial_metadata(object, self.version));
            }
            Include::Object => {
                row.insert("object", object.clone());
            }
        }
        Ok(row.into())
    }
}
