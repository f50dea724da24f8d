//! What the columns of built-in kinds are about.
//!
//! Most columns show a field, and are described as it is (`openapi`); the others have words of their own here
//! (kubernetes `pkg/printers/internalversion/printers.go` has either).

use std::{borrow::Cow, collections::HashMap, sync::OnceLock};

use crate::openapi;

/// `group/Kind`, column, and `@model#field` or a text, separated by tabs. Columns that are named like metadata are
/// left out.
const TEXTS: &str = include_str!("texts.txt");

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The text of a column of a built-in kind; empty where there is none.
pub fn of(group: &str, kind: &str, column: &str) -> &'static str {
    static TEXT: OnceLock<Texts> = OnceLock::new();
    let texts = TEXT.get_or_init(read);
    let general = match column {
        "Name" => "name",
        "Age" => "creationTimestamp",
        _ => "",
    };
    let find = |kind: &str, column: &str| texts.get(kind)?.get(column);
    let found = find(&format!("{group}/{kind}"), column).or_else(|| find("", general));
    found.map_or("", |text| text)
}

/// By kind, then by column; those of metadata under no kind.
type Texts = HashMap<&'static str, HashMap<&'static str, Cow<'static, str>>>;

fn read() -> Texts {
    let descriptions = openapi::Descriptions::load();
    let field = |model: &str, field: &str| Cow::Owned(descriptions.of(model, field).unwrap_or_default().to_owned());
    let mut texts = Texts::new();
    let mut put = |kind, column, text| texts.entry(kind).or_default().insert(column, text);
    for name in ["name", "creationTimestamp"] {
        put("", name, field(METADATA, name));
    }
    for line in TEXTS.lines() {
        let mut columns = line.split('\t');
        let (Some(kind), Some(column), Some(text)) = (columns.next(), columns.next(), columns.next()) else { continue };
        let text = match text.strip_prefix('@').and_then(|place| place.split_once('#')) {
            Some((model, name)) => field(model, name),
            None => Cow::Borrowed(text),
        };
        put(kind, column, text);
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_words_of_its_kind_and_names_those_of_metadata() {
        assert_eq!(of("", "Node", "Roles"), "What the node is for, by its labels.");
        assert_eq!(of("", "Node", "Nothing"), "");
    }

    #[cfg(feature = "descriptions")]
    #[test]
    fn every_field_that_a_column_shows_has_a_text() {
        let texts = read();
        let all =
            texts.iter().flat_map(|(kind, columns)| columns.iter().map(move |(column, text)| (kind, column, text)));
        let empty: Vec<_> = all.clone().filter(|it| it.2.is_empty()).collect();
        assert!(empty.is_empty(), "{empty:?}");
        assert!(all.count() > 200);
        assert!(of("apps", "Deployment", "Name").starts_with("Name must be unique within a namespace."));
        assert!(of("", "ConfigMap", "Data").starts_with("Data contains the configuration data."));
    }
}
