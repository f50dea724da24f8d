//! The parts of the aggregated document, one for each group, kept as long as the group is the same.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::priorities::{ListedGroup, Origin};
use crate::{
    object::{Style, Value},
    registry::catalog::Group,
};

/// Parts by group. They hold the address of the group they are made of, and not the group.
#[derive(Default)]
pub(super) struct Kept(Mutex<HashMap<String, Item>>);

struct Item {
    rows: [Option<Weak<Group>>; 2],
    versions: Vec<(String, Origin)>,
    json: Bytes,
}

impl Kept {
    /// The part of a group: as kept, where it has the same rows and versions as then, else made now. `rows`: the built-in
    /// and the custom ones.
    pub(super) fn get(
        &self,
        group: &ListedGroup,
        rows: [Option<&Arc<Group>>; 2],
        make: impl FnOnce() -> Value,
    ) -> Bytes {
        if let Some(kept) = self.0.lock().get(&group.name).filter(|kept| kept.is_of(group, rows)) {
            return kept.json.clone();
        }
        let json = Bytes::from(super::print(&make(), Style::Compact));
        let versions = group.versions.iter().map(|listed| (listed.version.clone(), listed.origin)).collect();
        let rows = rows.map(|group| group.map(Arc::downgrade));
        self.0.lock().insert(group.name.clone(), Item { rows, versions, json: json.clone() });
        json
    }

    /// Lets the parts of all other groups go.
    pub(super) fn keep_only(&self, groups: &[&ListedGroup]) {
        let mut kept = self.0.lock();
        if kept.len() > groups.len() {
            let there: HashSet<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            kept.retain(|name, _| there.contains(name.as_str()));
        }
    }
}

#[cfg(test)]
impl Kept {
    pub(super) fn json(&self, group: &str) -> Bytes {
        self.0.lock().get(group).map(|item| item.json.clone()).unwrap_or_default()
    }
}

impl Item {
    fn is_of(&self, group: &ListedGroup, rows: [Option<&Arc<Group>>; 2]) -> bool {
        let same = |(kept, now): (&Option<Weak<Group>>, Option<&Arc<Group>>)| match (kept, now) {
            (Some(kept), Some(now)) => std::ptr::eq(kept.as_ptr(), Arc::as_ptr(now)),
            (None, None) => true,
            _ => false,
        };
        let versions = group.versions.iter().map(|listed| (listed.version.as_str(), listed.origin));
        self.rows.iter().zip(rows).all(same)
            && versions.eq(self.versions.iter().map(|(version, origin)| (version.as_str(), *origin)))
    }
}
