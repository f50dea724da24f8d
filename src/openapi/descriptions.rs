//! Texts of models and fields.
//!
//! They are read from `k8s-openapi` when the program is built (feature `descriptions`) and kept compressed, since they
//! are needed only while a document is made; but for the few that documents of custom resources have, which are made
//! whenever definitions change. Without the feature there are none.

use std::{io::Read, sync::OnceLock};

#[cfg(feature = "descriptions")]
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.deflate"));
#[cfg(not(feature = "descriptions"))]
static COMPRESSED: &[u8] = &[];

/// The text once expanded; made for a document and dropped after it.
#[derive(Default)]
pub struct Descriptions {
    text: String,
    /// Sorted by what stands before the first separator of the record.
    records: Vec<(usize, usize)>,
}

/// Ends a record.
const RECORD: char = '\u{1e}';
/// Stands between `model`, a tab and `field` (empty for the model itself), and the text.
const UNIT: char = '\u{1f}';

impl Descriptions {
    /// Expands the texts that are part of the program.
    pub fn load() -> Self {
        let mut text = String::new();
        if !COMPRESSED.is_empty() && flate2::read::DeflateDecoder::new(COMPRESSED).read_to_string(&mut text).is_err() {
            text.clear();
        }
        Self::of_text(text)
    }

    /// The texts of what custom resources have in common: their metadata, options, Status and Scale. Expanded once and kept,
    /// some ten thousands of bytes.
    pub fn of_custom_resources() -> &'static Self {
        static KEPT: OnceLock<Descriptions> = OnceLock::new();
        const OF: [&str; 2] = ["io.k8s.apimachinery.", "io.k8s.api.autoscaling.v1.Scale"];
        KEPT.get_or_init(|| {
            let all = Self::load();
            let records = all.text.split_inclusive(RECORD);
            Self::of_text(records.filter(|record| OF.iter().any(|model| record.starts_with(model))).collect())
        })
    }

    fn of_text(text: String) -> Self {
        let mut records = Vec::new();
        let mut start = 0;
        for record in text.split_inclusive(RECORD) {
            records.push((start, start + record.trim_end_matches(RECORD).len()));
            start += record.len();
        }
        Self { text, records }
    }

    /// The text of a field, or of the model itself for the field "".
    pub fn of(&self, model: &str, field: &str) -> Option<&str> {
        let split = |(start, end): (usize, usize)| self.text.get(start..end)?.split_once(UNIT);
        let place =
            |record: (usize, usize)| split(record).map_or(("", ""), |it| it.0.split_once('\t').unwrap_or((it.0, "")));
        let at = self.records.binary_search_by(|record| place(*record).cmp(&(model, field))).ok()?;
        split(*self.records.get(at)?).map(|it| it.1).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_by_model_and_field() {
        let text = "a.Pod\t\u{1f}A pod.\u{1e}a.Pod\tkind\u{1f}Its\nkind.\u{1e}a.PodList\t\u{1f}Pods.\u{1e}";
        let all = Descriptions::of_text(text.to_owned());
        assert_eq!(all.of("a.Pod", ""), Some("A pod."));
        assert_eq!(all.of("a.Pod", "kind"), Some("Its\nkind."));
        assert_eq!(all.of("a.PodList", ""), Some("Pods."));
        assert_eq!(all.of("a.Pod", "spec"), None);
        assert_eq!(Descriptions::default().of("a.Pod", ""), None);
    }

    #[cfg(feature = "descriptions")]
    #[test]
    fn the_built_in_kinds_have_texts() {
        let all = Descriptions::load();
        let text = all.of("io.k8s.api.core.v1.PodSpec", "nodeName").unwrap_or_default();
        assert!(text.contains("node"), "{text:?}");
        assert!(all.of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "").is_some());
    }

    #[cfg(feature = "descriptions")]
    #[test]
    fn custom_resources_have_the_texts_of_what_all_have() {
        let (kept, all) = (Descriptions::of_custom_resources(), Descriptions::load());
        for (model, field) in [
            ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "name"),
            ("io.k8s.apimachinery.pkg.apis.meta.v1.Status", "kind"),
            ("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", ""),
            ("io.k8s.api.autoscaling.v1.ScaleSpec", "replicas"),
        ] {
            assert!(kept.of(model, field).is_some(), "{model}");
            assert_eq!(kept.of(model, field), all.of(model, field));
        }
        assert!(kept.text.len() < 200_000, "{}", kept.text.len());
    }
}
