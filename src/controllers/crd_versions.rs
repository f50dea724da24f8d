//! The groups and versions that CustomResourceDefinitions have: told by who reads the definitions anyway, for who keeps
//! an APIService for each. A change costs what changed, however many definitions there are.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A group and a version of it.
pub type GroupVersion = (String, String);

/// Counts definitions by group and version.
#[derive(Default)]
pub struct GroupVersions {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    counts: BTreeMap<GroupVersion, usize>,
    /// Those that came or went and were not taken yet; no more than there are, and were since the last look.
    changed: BTreeSet<GroupVersion>,
    filled: bool,
}

impl GroupVersions {
    /// A definition of this group has other versions than before.
    pub fn replace(&self, group: &str, old: &[String], new: &[String]) {
        let mut state = self.state.lock();
        let State { counts, changed, .. } = &mut *state;
        for version in new {
            let name = (group.to_owned(), version.clone());
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 {
                changed.insert(name);
            }
        }
        for version in old {
            let name = (group.to_owned(), version.clone());
            let Some(count) = counts.get_mut(&name) else { continue };
            *count -= 1;
            if *count == 0 {
                counts.remove(&name);
                changed.insert(name);
            }
        }
    }

    /// All definitions that there were when it was looked first are told; what is not here is nowhere.
    pub fn fill(&self) {
        let mut state = self.state.lock();
        let first = !std::mem::replace(&mut state.filled, true);
        if first || !state.changed.is_empty() {
            self.changed.notify_one();
        }
    }

    pub fn has(&self, name: &GroupVersion) -> bool {
        self.state.lock().counts.contains_key(name)
    }

    /// All there are; `None` as long as not all are told.
    pub fn all(&self) -> Option<Vec<GroupVersion>> {
        let state = self.state.lock();
        state.filled.then(|| state.counts.keys().cloned().collect())
    }

    /// Waits until some came or went and takes these. Ends for one waiter at a time.
    pub async fn changed(&self) -> Vec<GroupVersion> {
        loop {
            {
                let mut state = self.state.lock();
                if state.filled && !state.changed.is_empty() {
                    return std::mem::take(&mut state.changed).into_iter().collect();
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn name(group: &str, version: &str) -> GroupVersion {
        (group.to_owned(), version.to_owned())
    }

    #[test]
    fn only_the_first_and_the_last_definition_of_a_version_change_it() {
        let versions = GroupVersions::default();
        let (v1, v2) = (["v1".to_owned()], ["v1".to_owned(), "v2".to_owned()]);
        versions.replace("a", &[], &v1);
        assert_eq!((versions.all(), versions.changed().now_or_never()), (None, None), "not all are told");
        versions.fill();
        assert_eq!(versions.changed().now_or_never(), Some(vec![name("a", "v1")]));
        versions.replace("a", &[], &v2);
        assert_eq!(versions.changed().now_or_never(), Some(vec![name("a", "v2")]));
        versions.replace("a", &v1, &[]);
        assert_eq!(versions.changed().now_or_never(), None, "another definition has it");
        versions.replace("a", &v2, &v1);
        assert_eq!(versions.changed().now_or_never(), Some(vec![name("a", "v2")]));
        assert_eq!(versions.all(), Some(vec![name("a", "v1")]));
        versions.replace("a", &v1, &[]);
        assert!(!versions.has(&name("a", "v1")));
        assert_eq!(versions.changed().now_or_never(), Some(vec![name("a", "v1")]));
    }
}
