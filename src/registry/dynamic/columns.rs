//! Columns of the Table form that a definition describes
//! (apiextensions-apiserver `pkg/registry/customresource/tableconvertor`).

use std::sync::Arc;

use super::json_path::{JsonPath, print};
use crate::{
    api::duration::{is_zero_time, parse_time},
    object::Value,
    registry::{
        printer::{Cell, Printer},
        resource::Column,
    },
};

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Columns and printer of a version; what follows a path that cannot be read is left out.
pub fn columns(version: &Value) -> (Arc<[Column]>, Printer) {
    let mut columns = vec![Column {
        name: "Name".into(),
        kind: "string".into(),
        format: "name".into(),
        description: NAME.into(),
        priority: 0,
        json_path: Some(".metadata.name".into()),
    }];
    let mut paths = Vec::new();
    let described = version.array_at(&["additionalPrinterColumns"]);
    for column in described.iter().map(column).chain(described.is_empty().then(age_column)) {
        let Some(Ok(path)) = column.json_path.as_deref().map(JsonPath::parse) else { break };
        paths.push((path, Kind::of(&column.kind)));
        columns.push(column);
    }
    let printer = Printer::new(move |object| {
        let name = Cell::from(object.str_at(&["metadata", "name"]));
        let cells = paths.iter().map(|(path, kind)| match path.first(object) {
            Some(value) => kind.cell(&value),
            None => Value::Null.into(),
        });
        [name].into_iter().chain(cells).collect::<Vec<_>>()
    });
    (columns.into(), printer)
}

fn column(described: &Value) -> Column {
    let text = |name: &str| described.str_at(&[name]).to_owned();
    let path = text("jsonPath");
    let description = match text("description") {
        empty if empty.is_empty() => format!("Custom resource definition column (in JSONPath format): {path}"),
        own => own,
    };
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description,
        priority: described.i64_at(&["priority"]).unwrap_or(0),
        json_path: Some(path),
    }
}

fn age_column() -> Column {
    Column {
        name: "Age".into(),
        kind: "date".into(),
        format: String::new(),
        description: AGE.into(),
        priority: 0,
        json_path: Some(".metadata.creationTimestamp".into()),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Date,
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "date" => Self::Date,
            _ => Self::Other,
        }
    }

    /// The cell of a value; null where it is of another type.
    fn cell(self, value: &Value) -> Cell {
        match (self, value) {
            (Self::Text, value) => print(value).into(),
            (Self::Integer, Value::Int(number)) => (*number).into(),
            (Self::Integer, Value::Float(number)) => (*number as i64).into(),
            (Self::Number, Value::Int(number)) => (*number as f64).into(),
            (Self::Number, Value::Float(number)) => (*number).into(),
            (Self::Boolean, Value::Bool(it)) => (*it).into(),
            (Self::Date, Value::Str(text)) => date(text),
            _ => Value::Null.into(),
        }
    }
}

fn date(text: &str) -> Cell {
    if text.is_empty() || text == "null" {
        return Cell::age(None);
    }
    match parse_time(text) {
        Ok(at) => Cell::age(Some(at).filter(|at| !is_zero_time(*at))),
        Err(_) => "<invalid>".into(),
    }
}
