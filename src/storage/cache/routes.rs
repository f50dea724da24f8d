//! Which resource a key belongs to, and the rows that belong to none.
//!
//! The dispatcher holds this for one batch at a time; registering and dropping a resource happens between batches, so
//! no row is ever in two places or in none.

use std::{collections::HashMap, ops::Bound, sync::Arc, task::Waker};

use super::{
    Shared,
    attributes::{Attributes, NoAttributes},
    encodings::Encodings,
    entry::{Entry, EventType, Home},
    resource::{Change, ResourceCache},
    snapshot::{Entries, packed},
};
use crate::storage::{Event, KeyValue, Revision};

pub(super) struct Routes {
    by_prefix: HashMap<Box<str>, Arc<ResourceCache>>,
    unclaimed: Entries,
    /// Of `unclaimed`.
    home: Arc<Home>,
    /// Everything up to here is in its place.
    revision: Revision,
}

impl Routes {
    pub(super) fn new(prefix: &str, encodings: Arc<Encodings>) -> Self {
        let home = Arc::new(Home::new(prefix, Arc::new(NoAttributes), encodings));
        Self { by_prefix: HashMap::new(), unclaimed: Entries::new(), home, revision: 0 }
    }

    /// By prefix.
    pub(super) fn resources(&self) -> Vec<Arc<ResourceCache>> {
        let mut resources: Vec<_> = self.by_prefix.values().cloned().collect();
        resources.sort_by(|a, b| a.prefix().cmp(b.prefix()));
        resources
    }

    pub(super) fn find(&self, prefix: &str) -> Option<Arc<ResourceCache>> {
        self.by_prefix.get(prefix).cloned()
    }

    pub(super) fn unclaimed(&self) -> usize {
        self.unclaimed.len()
    }

    pub(super) fn register(
        &mut self,
        shared: &Arc<Shared>,
        prefix: &str,
        attributes: Arc<dyn Attributes>,
    ) -> Arc<ResourceCache> {
        if let Some(resource) = self.by_prefix.get(prefix) {
            resource.replace_attributes(attributes);
            return Arc::clone(resource);
        }
        let home = Arc::new(Home::new(prefix, attributes, Arc::clone(&shared.encodings)));
        let claimed = self.claim(&home);
        let resource = ResourceCache::new(home, Arc::clone(shared), claimed, self.revision);
        self.by_prefix.insert(prefix.into(), Arc::clone(&resource));
        resource
    }

    fn claim(&mut self, home: &Arc<Home>) -> Entries {
        let from = (Bound::Included(&*home.prefix), Bound::Unbounded);
        let rows = self.unclaimed.range::<_, str>(from).map(|(key, _)| key);
        let keys: Vec<_> = rows.take_while(|key| key.starts_with(&*home.prefix)).cloned().collect();
        let claimed = keys.iter().filter_map(|key| self.unclaimed.remove(key));
        packed(claimed.map(|entry| entry.moved_to(home)).collect())
    }

    pub(super) fn unregister(&mut self, prefix: &str, wakers: &mut Vec<Waker>) {
        let Some(resource) = self.by_prefix.remove(prefix) else { return };
        for (key, entry) in resource.close(wakers) {
            self.unclaimed.insert(key, entry.moved_to(&self.home));
        }
    }

    /// The resource with the longest prefix of `key`.
    fn route(&self, key: &str) -> Option<&Arc<ResourceCache>> {
        let mut rest = key;
        while let Some(slash) = rest.rfind('/') {
            let (prefix, _) = key.split_at(slash + 1);
            if let Some(resource) = self.by_prefix.get(prefix) {
                return Some(resource);
            }
            rest = rest.get(..slash)?;
        }
        None
    }

    fn home_of(&self, key: &str) -> &Arc<Home> {
        self.route(key).map_or(&self.home, |resource| &resource.home)
    }

    /// An entry for where `row` belongs now.
    pub(super) fn entry(&self, row: &KeyValue) -> Arc<Entry> {
        Entry::new(self.home_of(&row.key), row, EventType::Added)
    }

    pub(super) fn apply<'a>(
        &mut self,
        events: impl Iterator<Item = &'a Event>,
        end: Revision,
        second: u32,
        wakers: &mut Vec<Waker>,
    ) {
        let mut batches: HashMap<Box<str>, (Arc<ResourceCache>, Vec<Change>)> = HashMap::new();
        for event in events {
            let Some(resource) = self.route(&event.kv.key) else {
                // Nobody watches these.
                Change::new(&self.home, event).apply_to(&mut self.unclaimed, second);
                continue;
            };
            let change = Change::new(&resource.home, event);
            match batches.get_mut(resource.prefix()) {
                Some((_, changes)) => changes.push(change),
                None => {
                    batches.insert(resource.prefix().into(), (Arc::clone(resource), vec![change]));
                }
            }
        }
        for (resource, changes) in batches.into_values() {
            resource.apply(changes, end, second, wakers);
        }
        self.revision = end;
    }

    /// What happened after what is applied and up to `end` will only be known by its outcome.
    pub(super) fn add_hole(&self, end: Revision) {
        for resource in self.by_prefix.values() {
            resource.add_hole(self.revision, end);
        }
    }

    /// All rows there are, for comparing them with a fresh list.
    pub(super) fn all(&self) -> HashMap<Arc<str>, Arc<Entry>> {
        let mut all: HashMap<_, _> = self.unclaimed.iter().map(|(key, entry)| (key.clone(), entry.clone())).collect();
        for resource in self.by_prefix.values() {
            all.extend(resource.entries());
        }
        all
    }

    /// Replaces everything by `entries` (in key order), the store at `revision`.
    pub(super) fn reset(&mut self, entries: Vec<Arc<Entry>>, revision: Revision, wakers: &mut Vec<Waker>) {
        let mut parts: HashMap<&str, Vec<Arc<Entry>>> = HashMap::new();
        let mut unclaimed = Vec::new();
        for entry in entries {
            let home = self.home_of(entry.key());
            let part =
                if Arc::ptr_eq(home, &self.home) { &mut unclaimed } else { parts.entry(&home.prefix).or_default() };
            // It may have been made while its resource was not registered yet.
            part.push(if entry.is_at_home(home) { entry } else { entry.moved_to(home) });
        }
        for (prefix, resource) in &self.by_prefix {
            resource.reset(packed(parts.remove(&**prefix).unwrap_or_default()), revision, wakers);
        }
        self.unclaimed = packed(unclaimed);
        self.revision = revision;
    }
}
