//! `metadata` of an object, read and written without a struct of its own.
//!
//! [`Meta`] borrows: every reader answers as upstream's accessor does, with the zero value where the member is
//! missing or of another type. [`MetaMut`] sets and removes as Go's `omitempty` would: an empty value leaves the
//! member out. Mirrors apimachinery `pkg/apis/meta/v1/{types,meta}.go`.

use jiff::Timestamp;

use super::duration::{format_time, parse_time};
use crate::object::{Key, Map, Value};

/// Finalizer that keeps an owner until its dependents are orphaned.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// Finalizer that keeps an owner until its dependents are deleted.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

/// Read view of `metadata`.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a>(Option<&'a Map>);

impl<'a> Meta<'a> {
    /// The `metadata` of `object`; empty where it has none.
    pub fn of(object: &'a Value) -> Self {
        Self(object.object_at(&["metadata"]))
    }

    /// A view of the metadata itself.
    pub fn from_map(metadata: Option<&'a Map>) -> Self {
        Self(metadata)
    }

    pub fn as_map(self) -> Option<&'a Map> {
        self.0
    }

    fn get(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key)
    }

    fn text(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or("")
    }

    pub fn name(self) -> &'a str {
        self.text("name")
    }

    pub fn generate_name(self) -> &'a str {
        self.text("generateName")
    }

    pub fn namespace(self) -> &'a str {
        self.text("namespace")
    }

    pub fn uid(self) -> &'a str {
        self.text("uid")
    }

    pub fn resource_version(self) -> &'a str {
        self.text("resourceVersion")
    }

    /// The revision in `resourceVersion`: 0 where empty, `None` where it is no number.
    pub fn revision(self) -> Option<u64> {
        match self.resource_version() {
            "" => Some(0),
            text if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        }
    }

    pub fn generation(self) -> i64 {
        self.get("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    /// `None` where missing or unreadable.
    pub fn creation_timestamp(self) -> Option<Timestamp> {
        parse_time(self.text("creationTimestamp")).ok()
    }

    pub fn is_being_deleted(self) -> bool {
        !self.text("deletionTimestamp").is_empty()
    }

    pub fn labels(self) -> Option<&'a Map> {
        self.get("labels").and_then(Value::as_object)
    }

    pub fn label(self, key: &str) -> Option<&'a str> {
        self.labels()?.get(key)?.as_str()
    }

    pub fn annotations(self) -> Option<&'a Map> {
        self.get("annotations").and_then(Value::as_object)
    }

    pub fn annotation(self, key: &str) -> Option<&'a str> {
        self.annotations()?.get(key)?.as_str()
    }

    fn list(self, key: &str) -> &'a [Value] {
        self.get(key).and_then(Value::as_array).unwrap_or(&[])
    }

    pub fn owner_references(self) -> impl ExactSizeIterator<Item = OwnerReference<'a>> {
        self.list("ownerReferences").iter().map(OwnerReference)
    }

    /// The reference with `controller: true`, if there is one.
    pub fn controller(self) -> Option<OwnerReference<'a>> {
        self.owner_references().find(|owner| owner.controller() == Some(true))
    }

    pub fn finalizers(self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.list("finalizers").iter().filter_map(Value::as_str)
    }

    pub fn has_finalizer(self, name: &str) -> bool {
        self.finalizers().any(|it| it == name)
    }

    pub fn managed_fields(self) -> &'a [Value] {
        self.list("managedFields")
    }
}

/// One of `ownerReferences`.
#[derive(Clone, Copy, Debug)]
pub struct OwnerReference<'a>(pub &'a Value);

impl<'a> OwnerReference<'a> {
    pub fn api_version(self) -> &'a str {
        self.0.str_at(&["apiVersion"])
    }

    /// The group in `apiVersion`; empty for the core group.
    pub fn group(self) -> &'a str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    pub fn kind(self) -> &'a str {
        self.0.str_at(&["kind"])
    }

    pub fn name(self) -> &'a str {
        self.0.str_at(&["name"])
    }

    pub fn uid(self) -> &'a str {
        self.0.str_at(&["uid"])
    }

    pub fn controller(self) -> Option<bool> {
        self.0.get("controller")?.as_bool()
    }

    pub fn block_owner_deletion(self) -> Option<bool> {
        self.0.get("blockOwnerDeletion")?.as_bool()
    }
}

/// Write view of `metadata`.
#[derive(Debug)]
pub struct MetaMut<'a>(&'a mut Map);

impl<'a> MetaMut<'a> {
    /// The `metadata` of `object`, made where it has none.
    pub fn of(object: &'a mut Value) -> Self {
        Self(object.make(&["metadata"]).make_object())
    }

    pub fn from_map(metadata: &'a mut Map) -> Self {
        Self(metadata)
    }

    /// The same metadata for reading.
    pub fn read(&self) -> Meta<'_> {
        Meta(Some(self.0))
    }

    pub fn as_map(&mut self) -> &mut Map {
        self.0
    }

    fn put(&mut self, key: &'static str, value: Option<Value>) -> &mut Self {
        match value {
            Some(value) => {
                self.0.insert(Key::from_static(key), value);
            }
            None => {
                self.0.remove(key);
            }
        }
        self
    }

    fn put_text(&mut self, key: &'static str, text: &str) -> &mut Self {
        self.put(key, (!text.is_empty()).then(|| text.into()))
    }

    pub fn set_uid(&mut self, uid: &str) -> &mut Self {
        self.put_text("uid", uid)
    }

    /// 0 leaves it out.
    pub fn set_generation(&mut self, generation: i64) -> &mut Self {
        self.put("generation", (generation != 0).then(|| generation.into()))
    }

    pub fn set_creation_timestamp(&mut self, at: Option<Timestamp>) -> &mut Self {
        self.put("creationTimestamp", at.map(|it| format_time(it).into()))
    }

    pub fn set_deletion_timestamp(&mut self, at: Option<Timestamp>) -> &mut Self {
        self.put("deletionTimestamp", at.map(|it| format_time(it).into()))
    }

    /// An empty list leaves it out.
    pub fn set_finalizers(&mut self, names: Vec<String>) -> &mut Self {
        self.put("finalizers", (!names.is_empty()).then(|| names.into()))
    }

    pub fn set_managed_fields(&mut self, entries: Vec<Value>) -> &mut Self {
        self.put("managedFields", (!entries.is_empty()).then_some(Value::Array(entries)))
    }

    pub fn set_label(&mut self, key: &str, value: &str) -> &mut Self {
        self.member("labels", key, value)
    }

    fn member(&mut self, map: &'static str, key: &str, value: &str) -> &mut Self {
        self.0.entry_or(Key::from_static(map), Value::object).make_object().insert(key, value);
        self
    }

    /// Removes an annotation, and `annotations` with the last of them.
    pub fn remove_annotation(&mut self, key: &str) -> Option<Value> {
        let removed = self.0.get_mut("annotations")?.as_object_mut()?.remove(key);
        if self.read().annotations().is_some_and(Map::is_empty) {
            self.0.remove("annotations");
        }
        removed
    }

    /// Removes what only the server may say about a new object.
    pub fn wipe_system_fields(&mut self) -> &mut Self {
        for key in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            self.0.remove(key);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn empty_values_are_left_out() {
        let mut object = json!({"metadata": {"name": "a", "uid": "u", "finalizers": ["x"]}});
        MetaMut::of(&mut object).set_uid("").set_finalizers(vec![]).set_generation(0).set_label("k", "");
        assert_eq!(object, json!({"metadata": {"name": "a", "labels": {"k": ""}}}));
    }

    #[test]
    fn removing_the_last_annotation_removes_the_map() {
        let mut object = json!({"metadata": {"annotations": {"a": "1"}}});
        assert_eq!(MetaMut::of(&mut object).remove_annotation("a"), Some(json!("1")));
        assert_eq!(object, json!({"metadata": {}}));
    }

    #[test]
    fn times_survive_setting_and_reading() {
        let mut object = Value::object();
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        MetaMut::of(&mut object).set_creation_timestamp(Some(at)).set_deletion_timestamp(Some(at));
        assert_eq!(Meta::of(&object).creation_timestamp(), Some(at));
        assert!(Meta::of(&object).is_being_deleted());
        assert_eq!(object.str_at(&["metadata", "creationTimestamp"]), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn a_missing_metadata_reads_as_empty() {
        let object = json!({"metadata": null});
        let meta = Meta::of(&object);
        assert_eq!((meta.name(), meta.generation(), meta.revision()), ("", 0, Some(0)));
        assert!(meta.labels().is_none() && meta.finalizers().next().is_none());
    }
}
