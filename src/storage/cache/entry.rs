//! One object as everybody sees it: unchangeable, shared, encoded once.
//!
//! An entry's bytes are one allocation: the frame of the watch event it was born with, around the object with its
//! revision in it. So GET, LIST and (for all watchers without a selector that turns the type) WATCH take slices of the
//! same memory. What is computed later (attributes, other encodings) hangs on pointers that are null until then.

use std::{ops::Deref, sync::Arc};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;

use super::{
    attributes::{Attributes, Attrs},
    encodings::{EncodingKey, Encodings, KeptSet},
    splice,
};
use crate::storage::{KeyValue, Revision};

/// The three types of events about objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    /// As it stands in a watch event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// What stands before the object in a framed event.
    pub fn opening(self) -> &'static [u8] {
        match self {
            Self::Added => br#"{"type":"ADDED","object":"#,
            Self::Modified => br#"{"type":"MODIFIED","object":"#,
            Self::Deleted => br#"{"type":"DELETED","object":"#,
        }
    }
}

/// What stands after the object in a framed event.
pub const CLOSING: &[u8] = b"}\n";

/// What all entries of one resource share.
pub(super) struct Home {
    pub(super) prefix: Box<str>,
    attributes: ArcSwap<Maker>,
    pub(super) encodings: Arc<Encodings>,
}

struct Maker {
    generation: u64,
    make: Arc<dyn Attributes>,
}

impl Home {
    pub(super) fn new(prefix: &str, attributes: Arc<dyn Attributes>, encodings: Arc<Encodings>) -> Self {
        let attributes = ArcSwap::from_pointee(Maker { generation: 0, make: attributes });
        Self { prefix: prefix.into(), attributes, encodings }
    }

    /// Attributes computed before are computed again when next asked for.
    pub(super) fn replace_attributes(&self, attributes: Arc<dyn Attributes>) {
        self.attributes
            .rcu(|before| Maker { generation: before.generation.wrapping_add(1), make: Arc::clone(&attributes) });
    }
}

struct Kept {
    generation: u64,
    attrs: Attrs,
}

/// Attributes of an entry; cheap to hold.
pub struct SharedAttrs(Arc<Kept>);

impl Deref for SharedAttrs {
    type Target = Attrs;

    fn deref(&self) -> &Attrs {
        &self.0.attrs
    }
}

/// One key's state at one revision, ready to be served.
pub struct Entry {
    key: Arc<str>,
    home: Arc<Home>,
    /// Opening of the event type below, the value, closing.
    framed: Bytes,
    mod_revision: Revision,
    create_revision: Revision,
    version: u32,
    /// Place of `"resourceVersion":"…",` in the value and its length; length 0 where there is none.
    member_at: u32,
    member_len: u8,
    born: EventType,
    /// Place of `"metadata"` in the value where only the type stands before it, else 0.
    typeless_at: u32,
    attrs: ArcSwapOption<Kept>,
    pub(super) encodings: ArcSwapOption<KeptSet>,
}

impl Entry {
    /// The entry of a stored row; `born` is the type of the event it will mostly be shown as.
    pub(super) fn new(home: &Arc<Home>, row: &KeyValue, born: EventType) -> Arc<Self> {
        Self::build(home, Arc::clone(&row.key), &row.value, row.mod_revision, row.create_revision, row.version, born)
    }

    fn build(
        home: &Arc<Home>,
        key: Arc<str>,
        stored: &[u8],
        mod_revision: Revision,
        create_revision: Revision,
        version: u64,
        born: EventType,
    ) -> Arc<Self> {
        let spliced = splice::splice(stored, mod_revision, born.opening(), CLOSING);
        let member = spliced.member.unwrap_or(0..0);
        Arc::new(Self {
            key,
            home: Arc::clone(home),
            framed: Bytes::from(spliced.bytes),
            mod_revision,
            create_revision,
            version: u32::try_from(version).unwrap_or(u32::MAX),
            member_at: member.start as u32,
            member_len: member.len() as u8,
            born,
            typeless_at: spliced.typeless_at.unwrap_or(0) as u32,
            attrs: ArcSwapOption::empty(),
            encodings: ArcSwapOption::empty(),
        })
    }

    /// The same state as part of another resource. In place where nobody else holds it, else the bytes are shared.
    pub(super) fn moved_to(mut self: Arc<Self>, home: &Arc<Home>) -> Arc<Self> {
        if let Some(entry) = Arc::get_mut(&mut self) {
            entry.home = Arc::clone(home);
            entry.attrs = ArcSwapOption::empty();
            return self;
        }
        Arc::new(Self {
            key: Arc::clone(&self.key),
            home: Arc::clone(home),
            framed: self.framed.clone(),
            attrs: ArcSwapOption::empty(),
            encodings: ArcSwapOption::empty(),
            ..*self
        })
    }

    pub(super) fn is_at_home(&self, home: &Arc<Home>) -> bool {
        Arc::ptr_eq(&self.home, home)
    }

    /// The last state before a deletion at `revision`, with that revision in it.
    pub(super) fn deleted_at(&self, revision: Revision) -> Arc<Self> {
        let stored = self.stored_parts().concat();
        let version = u64::from(self.version);
        let key = Arc::clone(&self.key);
        Self::build(&self.home, key, &stored, revision, self.create_revision, version, EventType::Deleted)
    }

    /// The whole key, e.g. `/registry/pods/default/web-0`.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// The key without the resource's prefix: `namespace/name` or `name`.
    pub fn path(&self) -> &str {
        self.key.get(self.home.prefix.len()..).unwrap_or_default()
    }

    /// `""` for objects without one.
    pub fn namespace(&self) -> &str {
        self.path().split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.path().split_once('/').map_or(self.path(), |(_, name)| name)
    }

    /// Revision of the write that made this state; for the state shown by a deletion, the deletion's.
    pub fn mod_revision(&self) -> Revision {
        self.mod_revision
    }

    pub fn create_revision(&self) -> Revision {
        self.create_revision
    }

    /// 1 for a fresh key, then one more with each write; stays at `u32::MAX` once there.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The object's JSON with its `resourceVersion`; shares the entry's memory.
    pub fn value(&self) -> Bytes {
        self.framed.slice(self.value_range())
    }

    /// As [`Self::value`], borrowed.
    pub fn value_bytes(&self) -> &[u8] {
        self.framed.get(self.value_range()).unwrap_or_default()
    }

    /// Where in the value `"metadata"` begins; a list item that leaves out its type is `{` and the rest from there.
    /// `None` where something else than the type stands before it, or where the value is no object.
    pub fn typeless_offset(&self) -> Option<usize> {
        (self.typeless_at > 0).then_some(self.typeless_at as usize)
    }

    /// The value as it is stored, without the revision: two parts to be read one after the other. Comparing them with
    /// a fresh encoding tells whether a write would change anything.
    pub fn stored_parts(&self) -> [&[u8]; 2] {
        let value = self.value_bytes();
        let (at, len) = (self.member_at as usize, usize::from(self.member_len));
        [value.get(..at).unwrap_or_default(), value.get(at + len..).unwrap_or_default()]
    }

    /// Whether `stored` is what is stored of this entry.
    pub fn is_stored_as(&self, stored: &[u8]) -> bool {
        let [head, tail] = self.stored_parts();
        stored.strip_prefix(head) == Some(tail)
    }

    /// Labels and selectable fields, computed when first asked for.
    pub fn attrs(&self) -> SharedAttrs {
        let maker = self.home.attributes.load();
        if let Some(kept) = &*self.attrs.load()
            && kept.generation == maker.generation
        {
            return SharedAttrs(Arc::clone(kept));
        }
        let attrs = maker.make.attributes(self.value_bytes());
        let kept = Arc::new(Kept { generation: maker.generation, attrs });
        self.attrs.store(Some(Arc::clone(&kept)));
        SharedAttrs(kept)
    }

    /// The encoding named `key`: as kept, or made now and kept if the budget allows. Two callers that ask for the same
    /// one at the same time may both make it; nobody waits for another.
    pub fn encoding<E>(
        self: &Arc<Self>,
        key: EncodingKey,
        make: impl FnOnce(&Entry) -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        if let Some(bytes) = self.encodings.load().as_ref().and_then(|set| set.find(key)) {
            return Ok(bytes);
        }
        let bytes = make(self)?;
        self.home.encodings.keep(self, key, &bytes);
        Ok(bytes)
    }

    /// Lets the kept encodings go.
    pub fn forget_encodings(&self) {
        self.home.encodings.forget(self);
    }

    /// The framed watch event `{"type":"<shown>","object":<value>}\n` in up to three parts without a copy; parts may
    /// be empty.
    pub fn frame(&self, shown: EventType) -> [Bytes; 3] {
        match self.native_frame(shown) {
            Some(whole) => [whole, Bytes::new(), Bytes::new()],
            None => [Bytes::from_static(shown.opening()), self.value(), Bytes::from_static(CLOSING)],
        }
    }

    /// The framed event in one piece where the entry was born as `shown`.
    pub fn native_frame(&self, shown: EventType) -> Option<Bytes> {
        (self.born == shown).then(|| self.framed.clone())
    }

    /// Bytes this entry holds, its other encodings aside.
    pub fn size(&self) -> usize {
        self.framed.len()
    }

    fn value_range(&self) -> std::ops::Range<usize> {
        self.born.opening().len()..self.framed.len() - CLOSING.len()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.encodings.load().is_some() {
            self.home.encodings.release(self.encodings.swap(None));
        }
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key)
            .field("mod_revision", &self.mod_revision)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::storage::cache::NoAttributes;

    pub(in crate::storage::cache) fn entry_of(home: &Arc<Home>, path: &str, value: &str, revision: u64) -> Arc<Entry> {
        let key = format!("{}{path}", home.prefix).into();
        let value = Bytes::copy_from_slice(value.as_bytes());
        let row = KeyValue { key, value, mod_revision: revision, create_revision: revision, version: 1 };
        Entry::new(home, &row, EventType::Added)
    }

    pub(in crate::storage::cache) fn home(prefix: &str) -> Arc<Home> {
        Arc::new(Home::new(prefix, Arc::new(NoAttributes), Arc::new(Encodings::new(1 << 20))))
    }

    const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}"#;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("text")
    }

    #[test]
    fn namespace_and_name_come_from_the_key() {
        let home = home("/registry/pods/");
        let entry = entry_of(&home, "default/web-0", POD, 3);
        assert_eq!((entry.namespace(), entry.name(), entry.path()), ("default", "web-0", "default/web-0"));
        let entry = entry_of(&home, "web-0", POD, 3);
        assert_eq!((entry.namespace(), entry.name()), ("", "web-0"));
    }

    #[test]
    fn the_value_carries_its_revision_and_what_is_stored_is_still_there() {
        let entry = entry_of(&home("/registry/pods/"), "default/a", POD, 42);
        let with = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"42","name":"a"},"spec":{}}"#;
        assert_eq!(text(&entry.value()), with);
        assert_eq!(text(&entry.stored_parts().concat()), POD);
        assert!(entry.is_stored_as(POD.as_bytes()));
        assert!(!entry.is_stored_as(with.as_bytes()));
        assert_eq!(&with[entry.typeless_offset().expect("an object")..][..10], r#""metadata""#);
    }

    #[test]
    fn the_frame_it_was_born_with_is_a_slice_and_others_copy_nothing() {
        let entry = entry_of(&home("/registry/pods/"), "default/a", POD, 42);
        let native = entry.frame(EventType::Added);
        assert_eq!(text(&native.concat()), format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", text(&entry.value())));
        assert!(native[1].is_empty() && native[2].is_empty());
        let other = entry.frame(EventType::Modified);
        assert_eq!(text(&other.concat()), format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", text(&entry.value())));
        assert_eq!(other[1].as_ptr(), entry.value().as_ptr());
    }

    #[test]
    fn a_deletion_shows_the_last_state_with_the_revision_of_the_deletion() {
        let entry = entry_of(&home("/registry/pods/"), "default/a", POD, 42).deleted_at(1000);
        assert_eq!(
            text(&entry.frame(EventType::Deleted)[0]),
            "{\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"1000\",\"name\":\"a\"},\"spec\":{}}}\n"
        );
        assert_eq!(entry.mod_revision(), 1000);
        assert_eq!(entry.create_revision(), 42);
    }

    #[test]
    fn rows_that_are_no_objects_are_served_as_they_are() {
        let entry = entry_of(&home("/registry/"), "ranges/serviceips", "k8s\0bitmap", 5);
        assert_eq!(text(&entry.value()), "k8s\0bitmap");
        assert!(entry.is_stored_as(b"k8s\0bitmap"));
        assert_eq!(entry.typeless_offset(), None);
        assert_eq!(text(&entry.deleted_at(6).value()), "k8s\0bitmap");
    }

    struct Counting(AtomicUsize, &'static str);

    impl Attributes for Counting {
        fn attributes(&self, value: &[u8]) -> Attrs {
            self.0.fetch_add(1, Ordering::Relaxed);
            assert!(value.starts_with(b"{"));
            Attrs::new([("from", self.1)], [("metadata.name", "a")])
        }
    }

    #[test]
    fn attributes_are_computed_once_and_again_only_after_they_were_replaced() {
        let first = Arc::new(Counting(AtomicUsize::new(0), "first"));
        let second = Arc::new(Counting(AtomicUsize::new(0), "second"));
        let home = Arc::new(Home::new("/registry/pods/", first.clone(), Arc::new(Encodings::new(0))));
        let entry = entry_of(&home, "a/b", POD, 1);
        assert_eq!(first.0.load(Ordering::Relaxed), 0);
        for _ in 0..3 {
            assert_eq!(entry.attrs().label("from"), Some("first"));
        }
        assert_eq!(first.0.load(Ordering::Relaxed), 1);
        home.replace_attributes(second.clone());
        for _ in 0..3 {
            assert_eq!(entry.attrs().label("from"), Some("second"));
        }
        assert_eq!((first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed)), (1, 1));
    }

    #[test]
    fn an_entry_costs_little_beyond_its_bytes() {
        assert!(size_of::<Entry>() <= 128, "{}", size_of::<Entry>());
    }
}
