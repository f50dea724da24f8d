//! All entries of a resource at one revision: taken in constant time, read without locks.

use std::{ops::Bound, sync::Arc};

use imbl::OrdMap;

use super::entry::{Entry, Home};
use crate::storage::Revision;

/// By whole key. Keys are held beside the entries, because inner nodes of the tree would otherwise keep superseded
/// entries alive.
pub(super) type Entries = OrdMap<Arc<str>, Arc<Entry>>;

/// The map of entries in key order, its leaves full. Inserting in order would leave every leaf half full, since a full
/// leaf is split in the middle; so every other entry goes in first and the rest fills the halves.
pub(super) fn packed(sorted: Vec<Arc<Entry>>) -> Entries {
    let mut entries = Entries::new();
    let mut rest = Vec::with_capacity(sorted.len() / 2);
    for (at, entry) in sorted.into_iter().enumerate() {
        match at % 2 {
            0 => drop(entries.insert(Arc::clone(entry.key()), entry)),
            _ => rest.push(entry),
        }
    }
    for entry in rest {
        entries.insert(Arc::clone(entry.key()), entry);
    }
    entries
}

/// What a list is made from. Cheap to clone and to hold; holding one keeps superseded entries alive.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) entries: Entries,
    pub(super) revision: Revision,
    pub(super) home: Arc<Home>,
}

impl Snapshot {
    /// The store's revision this shows; a watch after it misses nothing and repeats nothing.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// By whole key.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// By name; `namespace` is `""` for objects without one.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&Arc<Entry>> {
        let mut key = String::with_capacity(self.home.prefix.len() + namespace.len() + 1 + name.len());
        key.push_str(&self.home.prefix);
        if !namespace.is_empty() {
            key.push_str(namespace);
            key.push('/');
        }
        key.push_str(name);
        self.entries.get(key.as_str())
    }

    /// In key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// In key order, of one namespace if one is given, beginning at the path `start` (inclusive; a path is the key
    /// without the resource's prefix, `""` is the beginning). A continue token's `start` fits as it is.
    pub fn range(&self, namespace: Option<&str>, start: &str) -> impl Iterator<Item = &Arc<Entry>> {
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let scope = match namespace {
            Some(namespace) => format!("{}{namespace}/", self.home.prefix),
            None => self.home.prefix.to_string(),
        };
        let from = format!("{}{start}", self.home.prefix).max(scope.clone());
        let bounds = (Bound::Included(from.as_str()), Bound::Unbounded::<&str>);
        let entries = self.entries.range::<_, str>(bounds);
        entries.map(|(_, entry)| entry).take_while(move |entry| entry.key().starts_with(scope.as_str()))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries of {} at {}", self.len(), self.home.prefix, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::cache::entry::tests::{entry_of, home};

    fn snapshot(paths: &[&str]) -> Snapshot {
        let home = home("/registry/pods/");
        let entries = paths.iter().map(|path| entry_of(&home, path, "{}", 1));
        Snapshot { entries: entries.map(|entry| (entry.key().clone(), entry)).collect(), revision: 9, home }
    }

    fn range(snapshot: &Snapshot, namespace: Option<&str>, start: &str) -> Vec<String> {
        snapshot.range(namespace, start).map(|entry| entry.path().to_owned()).collect()
    }

    #[test]
    fn a_range_is_in_key_order_and_stays_in_its_namespace() {
        let all = snapshot(&["b/2", "a/1", "b/1", "b-c/1", "c/1"]);
        assert_eq!(range(&all, None, ""), ["a/1", "b-c/1", "b/1", "b/2", "c/1"]);
        assert_eq!(range(&all, Some("b"), ""), ["b/1", "b/2"]);
        assert_eq!(range(&all, Some("d"), ""), Vec::<String>::new());
        assert_eq!(range(&all, Some(""), "b/"), ["b/1", "b/2", "c/1"]);
    }

    #[test]
    fn a_page_begins_after_the_key_of_a_continue_token() {
        let all = snapshot(&["a/1", "a/2", "a/3", "b/1"]);
        assert_eq!(range(&all, None, "a/2\0"), ["a/3", "b/1"]);
        assert_eq!(range(&all, Some("a"), "a/2\0"), ["a/3"]);
        assert_eq!(range(&all, Some("b"), "a/2\0"), ["b/1"]);
        assert_eq!(range(&all, Some("a"), "b/1"), Vec::<String>::new());
    }

    #[test]
    fn a_packed_map_has_every_entry_in_order() {
        let home = home("/registry/pods/");
        for count in [0, 1, 2, 3, 15, 16, 17, 1000] {
            let sorted: Vec<_> = (0..count).map(|i| entry_of(&home, &format!("{i:05}"), "{}", 1)).collect();
            let map = packed(sorted.clone());
            assert!(map.values().map(|entry| entry.key()).eq(sorted.iter().map(|entry| entry.key())), "{count}");
        }
    }

    #[test]
    fn an_object_is_found_by_namespace_and_name() {
        let all = snapshot(&["a/1", "cluster-wide"]);
        assert_eq!(all.find("a", "1").map(|entry| entry.name()), Some("1"));
        assert_eq!(all.find("", "cluster-wide").map(|entry| entry.name()), Some("cluster-wide"));
        assert!(all.find("a", "2").is_none() && all.find("", "1").is_none());
    }
}
