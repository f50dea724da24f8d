//! What selectors look at: labels and selectable fields of an object.
//!
//! The cache knows no kinds, so whoever registers a resource brings the function that reads them. It runs at most
//! once per entry (again only after the function was replaced), since most lists and watches select nothing.

use std::ops::Range;

/// Reads labels and selectable fields out of an object of one resource.
pub trait Attributes: Send + Sync + 'static {
    /// `value` is the object's JSON. Called on the task that first asks, or on the dispatcher where a watcher is
    /// indexed by a field; must not block. An unreadable object has no attributes.
    fn attributes(&self, value: &[u8]) -> Attrs;
}

/// No labels, no fields: for rows that nobody selects by content.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAttributes;

impl Attributes for NoAttributes {
    fn attributes(&self, _value: &[u8]) -> Attrs {
        Attrs::default()
    }
}

/// Labels and fields of one object, each sorted by name. One text holds all names and values, since there is one of
/// these per entry as soon as somebody selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attrs {
    text: Box<str>,
    pairs: Box<[Pair]>,
    labels: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    name: u32,
    value: u32,
    end: u32,
}

impl Attrs {
    /// Names may come in any order. Fields are named by their label in field selectors, e.g. `spec.nodeName`;
    /// `metadata.name` and `metadata.namespace` need not be given, an entry knows them from its key.
    pub fn new<N: AsRef<str>, V: AsRef<str>, M: AsRef<str>, W: AsRef<str>>(
        labels: impl IntoIterator<Item = (N, V)>,
        fields: impl IntoIterator<Item = (M, W)>,
    ) -> Self {
        let mut text = String::new();
        let mut pairs = gather(&mut text, labels);
        let labels = pairs.len();
        pairs.append(&mut gather(&mut text, fields));
        Self { text: text.into_boxed_str(), pairs: pairs.into_boxed_slice(), labels }
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.find(0..self.labels, name)
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.find(self.labels..self.pairs.len(), name)
    }

    /// In the order of their names.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().take(self.labels).map(|pair| self.pair(pair))
    }

    /// In the order of their names.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().skip(self.labels).map(|pair| self.pair(pair))
    }

    fn find(&self, range: Range<usize>, name: &str) -> Option<&str> {
        let pairs = self.pairs.get(range)?;
        let at = pairs.binary_search_by(|pair| self.pair(pair).0.cmp(name)).ok()?;
        pairs.get(at).map(|pair| self.pair(pair).1)
    }

    fn pair(&self, pair: &Pair) -> (&str, &str) {
        let part = |from: u32, to: u32| self.text.get(from as usize..to as usize).unwrap_or_default();
        (part(pair.name, pair.value), part(pair.value, pair.end))
    }
}

fn gather<N: AsRef<str>, V: AsRef<str>>(text: &mut String, items: impl IntoIterator<Item = (N, V)>) -> Vec<Pair> {
    let mut items: Vec<(N, V)> = items.into_iter().collect();
    items.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
    let mut pairs = Vec::with_capacity(items.len());
    for (name, value) in &items {
        let start = text.len();
        text.push_str(name.as_ref());
        let middle = text.len();
        text.push_str(value.as_ref());
        // An object is far below 4 GiB; a pair that would not fit is left out rather than wrapped round.
        if let (Ok(name), Ok(value), Ok(end)) = (start.try_into(), middle.try_into(), text.len().try_into()) {
            pairs.push(Pair { name, value, end });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_fields_are_found_by_name_whatever_their_order() {
        let attrs = Attrs::new([("b", "2"), ("a", "1"), ("c", "")], [("spec.nodeName", "n1"), ("a", "field")]);
        assert_eq!(attrs.label("a"), Some("1"));
        assert_eq!(attrs.label("b"), Some("2"));
        assert_eq!(attrs.label("c"), Some(""));
        assert_eq!(attrs.label("spec.nodeName"), None);
        assert_eq!(attrs.field("spec.nodeName"), Some("n1"));
        assert_eq!(attrs.field("a"), Some("field"));
        assert_eq!(attrs.field("b"), None);
        assert_eq!(attrs.labels().collect::<Vec<_>>(), [("a", "1"), ("b", "2"), ("c", "")]);
        assert_eq!(attrs.fields().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "spec.nodeName"]);
    }

    #[test]
    fn an_object_without_attributes_answers_none() {
        let attrs = NoAttributes.attributes(b"{}");
        assert_eq!(attrs.label("a"), None);
        assert_eq!(attrs.field("a"), None);
    }
}
