//! One change of one object, shared by all watchers of it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::entry::{Entry, EventType};
use crate::storage::Revision;

/// A change. What several watchers need of it (the state shown by a deletion, a frame with a turned type) is made by
/// the first that asks and shared by all.
pub struct WatchEvent {
    kind: EventType,
    revision: Revision,
    current: Option<Arc<Entry>>,
    previous: Option<Arc<Entry>>,
    /// Seconds since the cache started, for the age of events in the ring.
    pub(super) second: u32,
    gone: OnceLock<Arc<Entry>>,
    turned: OnceLock<Bytes>,
}

impl WatchEvent {
    pub(super) fn put(entry: Arc<Entry>, previous: Option<Arc<Entry>>, second: u32) -> Arc<Self> {
        let kind = if previous.is_some() { EventType::Modified } else { EventType::Added };
        Self::build(kind, entry.mod_revision(), Some(entry), previous, second)
    }

    pub(super) fn deletion(previous: Arc<Entry>, revision: Revision, second: u32) -> Arc<Self> {
        Self::build(EventType::Deleted, revision, None, Some(previous), second)
    }

    fn build(
        kind: EventType,
        revision: Revision,
        current: Option<Arc<Entry>>,
        previous: Option<Arc<Entry>>,
        second: u32,
    ) -> Arc<Self> {
        let (gone, turned) = (OnceLock::new(), OnceLock::new());
        Arc::new(Self { kind, revision, current, previous, second, gone, turned })
    }

    /// What happened to the object, whatever a selector makes of it.
    pub fn kind(&self) -> EventType {
        self.kind
    }

    /// Revision of the change, deletions included.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The state after the change; `None` for a deletion.
    pub fn current(&self) -> Option<&Arc<Entry>> {
        self.current.as_ref()
    }

    /// The state before the change, with its own revision; `None` for a new object.
    pub fn previous(&self) -> Option<&Arc<Entry>> {
        self.previous.as_ref()
    }

    /// The state that names the object: after the change, or before it for a deletion.
    pub(super) fn subject(&self) -> Option<&Arc<Entry>> {
        self.current.as_ref().or(self.previous.as_ref())
    }

    /// As what a watcher with a selector sees this: an update that starts to match is ADDED, one that stops to match
    /// is DELETED; `None` if neither state matches.
    pub fn shown(&self, mut matches: impl FnMut(&Arc<Entry>) -> bool) -> Option<EventType> {
        let now = self.current.as_ref().is_some_and(&mut matches);
        let before = self.previous.as_ref().is_some_and(&mut matches);
        match (before, now) {
            (false, false) => None,
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
        }
    }

    /// The object to show with type `shown`: for DELETED the last state with the revision of the change. `None` where
    /// the event has no such state.
    pub fn object(&self, shown: EventType) -> Option<&Arc<Entry>> {
        match shown {
            EventType::Added | EventType::Modified => self.current.as_ref(),
            EventType::Deleted => {
                let previous = self.previous.as_ref()?;
                Some(self.gone.get_or_init(|| previous.deleted_at(self.revision)))
            }
        }
    }

    /// The framed event in up to three parts, nothing copied.
    pub fn frame(&self, shown: EventType) -> Option<[Bytes; 3]> {
        Some(self.object(shown)?.frame(shown))
    }

    /// The framed event in one piece: a slice of the entry's own memory where the type is the one it was born with,
    /// else a copy made once per event.
    pub fn framed(&self, shown: EventType) -> Option<Bytes> {
        let object = self.object(shown)?;
        if let Some(whole) = object.native_frame(shown) {
            return Some(whole);
        }
        let join = || Bytes::from([shown.opening(), object.value_bytes(), super::entry::CLOSING].concat());
        // Only one turned type is common per event (an update that starts to match); any other is made each time.
        let turned = self.turned.get_or_init(join);
        if turned.starts_with(shown.opening()) { Some(turned.clone()) } else { Some(join()) }
    }

    /// Bytes of the object this event is about.
    pub fn size(&self) -> usize {
        self.subject().map_or(0, |entry| entry.size())
    }

    /// Bytes that live on only because of this event: the superseded state.
    pub(super) fn held(&self) -> usize {
        size_of::<Self>() + self.previous.as_ref().map_or(0, |entry| size_of::<Entry>() + entry.size())
    }
}

impl std::fmt::Debug for WatchEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.subject().map(|entry| entry.key());
        write!(f, "{} {:?} at {}", self.kind.name(), key, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::cache::entry::tests::{entry_of, home};

    const OLD: &str = r#"{"kind":"A","metadata":{"name":"a"},"x":"old"}"#;
    const NEW: &str = r#"{"kind":"A","metadata":{"name":"a"},"x":"new"}"#;

    fn update() -> Arc<WatchEvent> {
        let home = home("/registry/as/");
        WatchEvent::put(entry_of(&home, "a", NEW, 7), Some(entry_of(&home, "a", OLD, 5)), 0)
    }

    fn framed(event: &WatchEvent, shown: EventType) -> String {
        let whole = event.framed(shown).expect("has that state");
        assert_eq!(event.frame(shown).expect("has that state").concat(), whole);
        String::from_utf8(whole.to_vec()).expect("text")
    }

    #[test]
    fn a_selector_turns_an_update_into_added_or_deleted() {
        let event = update();
        let is = |what: &'static str| move |entry: &Arc<Entry>| entry.value_bytes().ends_with(what.as_bytes());
        assert_eq!(event.shown(is(r#""new"}"#)), Some(EventType::Added));
        assert_eq!(event.shown(is(r#""old"}"#)), Some(EventType::Deleted));
        assert_eq!(event.shown(is("}")), Some(EventType::Modified));
        assert_eq!(event.shown(is("]")), None);
    }

    #[test]
    fn a_turned_deletion_shows_the_last_matching_state_at_the_revision_of_the_change() {
        assert_eq!(
            framed(&update(), EventType::Deleted),
            "{\"type\":\"DELETED\",\"object\":{\"kind\":\"A\",\"metadata\":{\"resourceVersion\":\"7\",\"name\":\"a\"},\"x\":\"old\"}}\n"
        );
    }

    #[test]
    fn frames_are_made_once_and_shared() {
        let event = update();
        for shown in [EventType::Added, EventType::Modified, EventType::Deleted] {
            let first = event.framed(shown).expect("has that state");
            let again = event.framed(shown).expect("has that state");
            if shown != EventType::Modified {
                assert_eq!(first.as_ptr(), again.as_ptr());
            }
            assert!(framed(&event, shown).contains(shown.name()));
        }
    }

    #[test]
    fn a_new_object_has_no_state_to_delete_and_a_deletion_none_to_add() {
        let home = home("/registry/as/");
        let added = WatchEvent::put(entry_of(&home, "a", NEW, 7), None, 0);
        assert_eq!(added.kind(), EventType::Added);
        assert!(added.framed(EventType::Deleted).is_none());
        let deleted = WatchEvent::deletion(entry_of(&home, "a", OLD, 5), 9, 0);
        assert!(deleted.framed(EventType::Added).is_none());
        assert_eq!(deleted.shown(|_| true), Some(EventType::Deleted));
        assert!(framed(&deleted, EventType::Deleted).contains(r#""resourceVersion":"9""#));
    }
}
