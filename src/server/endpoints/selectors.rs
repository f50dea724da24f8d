//! Label and field selectors of lists, watches and deletecollections.

use std::sync::Arc;

use super::Scope;
use crate::{
    api::{ApiError, Meta, fields, labels},
    object::{Map, Value},
    storage::cache::{Attrs, Entry},
};

/// What an object has to match.
#[derive(Clone)]
pub struct Selectors {
    pub labels: labels::Selector,
    pub fields: fields::Selector,
    /// `metadata.name` the selector requires; only that object can match.
    pub name: Option<Box<str>>,
}

impl Selectors {
    /// # Errors
    /// 400 with the parser's words, or for a field the kind cannot select by.
    pub fn parse(scope: &Scope<'_>, label_selector: &str, field_selector: &str) -> Result<Self, ApiError> {
        let labels =
            labels::Selector::parse(label_selector).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields =
            fields::Selector::parse(field_selector).map_err(|error| ApiError::bad_request(error.to_string()))?;
        for term in fields.terms() {
            check(scope, &term.field)?;
        }
        let name = fields.requires_exact_match("metadata.name").map(Box::from);
        Ok(Self { labels, fields, name })
    }

    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    pub fn matches(&self, entry: &Arc<Entry>) -> bool {
        if self.is_everything() {
            return true;
        }
        let attrs = entry.attrs();
        let field = |name: &str| match name {
            "metadata.name" => entry.name(),
            "metadata.namespace" => entry.namespace(),
            other => attrs.field(other).unwrap_or(""),
        };
        self.fields.matches(field) && self.labels.matches(&Attributes(&attrs))
    }

    /// The same for an object that is in no cache; it is selected by its name and labels only.
    pub fn match_object(&self, object: &Value) -> bool {
        let meta = Meta::of(object);
        let field = |name: &str| match name {
            "metadata.name" => meta.name(),
            "metadata.namespace" => meta.namespace(),
            _ => "",
        };
        let none = Map::new();
        self.fields.matches(field) && self.labels.matches(meta.labels().unwrap_or(&none))
    }
}

/// An entry's labels as selectors read them.
struct Attributes<'a>(&'a Attrs);

impl labels::Labels for Attributes<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }
}

fn check(scope: &Scope<'_>, field: &str) -> Result<(), ApiError> {
    let selectable = &scope.version.selectable;
    if selectable.labels.iter().any(|label| label == field) {
        return Ok(());
    }
    let message = if selectable.unsupported == "known-only" {
        let known = r#""metadata.name", "metadata.namespace""#;
        format!("{} is not a known field selector: only {known}", crate::api::field::quote(field))
    } else {
        selectable.unsupported.replacen("%s", field, 1)
    };
    Err(ApiError::bad_request(message))
}
