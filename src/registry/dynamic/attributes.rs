//! Labels and selectable fields of stored custom resources, for the cache.

use std::sync::Arc;

use super::{json_path::JsonPath, schema::Schemas};
use crate::{
    object::{Map, parse},
    registry::resource::Revive,
    schema::patch::go_print,
    storage::cache::{Attributes, Attrs},
};

/// Reads what the versions of a custom resource select by.
pub struct CustomAttributes {
    /// By label, without the leading dot.
    fields: Vec<(String, JsonPath)>,
    schemas: Arc<Schemas>,
}

impl CustomAttributes {
    /// `paths`: the selectable fields of all versions, as definitions write them.
    pub fn new<'a>(paths: impl Iterator<Item = &'a str>, schemas: Arc<Schemas>) -> Self {
        let named = paths.filter_map(|path| Some((label(path).to_owned(), JsonPath::parse(path).ok()?)));
        let mut fields: Vec<(String, JsonPath)> = named.collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.dedup_by(|a, b| a.0 == b.0);
        Self { fields, schemas }
    }
}

/// A field's name in selectors.
pub fn label(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

impl Attributes for CustomAttributes {
    fn attributes(&self, value: &[u8]) -> Attrs {
        let Ok(mut object) = parse(value) else { return Attrs::default() };
        if !self.fields.is_empty() {
            // A default is selected by as if it were written.
            self.schemas.revive(&mut object);
        }
        let labels = object.object_at(&["metadata", "labels"]);
        let labels =
            labels.into_iter().flat_map(Map::iter).filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        let text = |path: &JsonPath| match path.first(&object) {
            Some(value) if !value.is_null() => go_print::plain(&value),
            _ => String::new(),
        };
        Attrs::new(labels, self.fields.iter().map(|(label, path)| (label.as_str(), text(path))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_are_empty_and_scalars_are_text() {
        let attributes =
            CustomAttributes::new([".spec.color", ".spec.n", ".spec.b"].into_iter(), Schemas::new(Vec::new(), 0));
        let attrs = attributes.attributes(br#"{"metadata":{"labels":{"a":"b"}},"spec":{"n":5,"b":true}}"#);
        assert_eq!(
            (attrs.field("spec.n"), attrs.field("spec.b"), attrs.field("spec.color")),
            (Some("5"), Some("true"), Some(""))
        );
        assert_eq!(attrs.label("a"), Some("b"));
    }
}
