//! The Table form (`meta.k8s.io` Table): columns of the row, cells by the kind's printer.

use crate::{
    api::{ApiError, clock},
    object::{Map, Value},
    registry::resource::{Column, Version},
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
pub struct Rows {
    version: MetaVersion,
    include: Include,
    now: jiff::Timestamp,
}

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
                    "Unable to convert to Table as requested: unrecognized includeObject value: {}",
                    crate::api::field::quote(other)
                )));
            }
        };
        Ok(Self { version, include, now: clock::now() })
    }

    /// A table without rows. `columns`: with their definitions.
    pub fn table(&self, version: &Version, object: Option<&Value>, columns: bool) -> Value {
        let mut metadata = Map::new();
        if let Some(version) = object.map(|object| object.str_at(&["metadata", "resourceVersion"])).filter(|it| !it.is_empty()) {
            metadata.insert("resourceVersion", version);
        }
        Value::from([
            ("kind", Value::from("Table")),
            ("apiVersion", self.version.group_version().into()),
            ("metadata", metadata.into()),
            ("columnDefinitions", if columns { definitions(version) } else { Value::Null }),
            ("rows", Value::Array(Vec::new())),
        ])
    }

    pub fn version(&self) -> MetaVersion {
        self.version
    }

    /// The row of an object in the request's version.
    pub fn row(&self, version: &Version, object: &Value) -> Result<Value, ApiError> {
        let cells = (version.cells)(object, self.now);
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

fn definitions(version: &Version) -> Value {
    let column = |column: &Column| {
        Value::from([
            ("name", Value::from(column.name.as_str())),
            ("type", column.kind.as_str().into()),
            ("format", column.format.as_str().into()),
            ("description", column.description.as_str().into()),
            ("priority", column.priority.into()),
        ])
    };
    Value::Array(version.columns.iter().map(column).collect())
}
