//! All rows that are served now: the built-in ones of a generation and the custom ones that come and go.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use imbl::OrdMap;

use super::{
    resource::{Resource, Version},
    store::Store,
};

/// Rows by group and plural. A value that shares what it has with those it was made from: a copy costs nothing, a change
/// costs the group it is in, and every other group stays the very same [`Arc`], which is how those who keep what they made
/// of a group know that it is still right.
#[derive(Clone, Default)]
pub struct Catalog {
    groups: OrdMap<Arc<str>, Arc<Group>>,
}

/// A group's rows.
#[derive(Clone)]
pub struct Group {
    pub name: Arc<str>,
    /// In order of their plurals.
    rows: Vec<Arc<Row>>,
    /// Versions of rows that are listed, with how many of these have them.
    versions: Vec<(Arc<str>, usize)>,
}

impl Group {
    pub fn rows(&self) -> &[Arc<Row>] {
        &self.rows
    }

    pub fn row(&self, plural: &str) -> Option<&Arc<Row>> {
        self.find(plural).ok().and_then(|at| self.rows.get(at))
    }

    /// The rows that discovery and documents show.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.rows.iter().filter(|row| row.resource.listed)
    }

    /// The versions that any listed row has.
    pub fn versions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.versions.iter().map(|(version, _)| version)
    }

    fn find(&self, plural: &str) -> Result<usize, usize> {
        self.rows.binary_search_by(|row| (*row.resource.plural).cmp(plural))
    }

    fn put(&mut self, row: Arc<Row>) {
        self.count(&row.resource, true);
        match self.find(&row.resource.plural) {
            Ok(at) => {
                let old = std::mem::replace(&mut self.rows[at], row);
                self.count(&old.resource, false);
            }
            Err(at) => self.rows.insert(at, row),
        }
    }

    fn take(&mut self, at: usize) {
        let old = self.rows.remove(at);
        self.count(&old.resource, false);
    }

    fn count(&mut self, resource: &Resource, more: bool) {
        for version in resource.versions.iter().filter(|_| resource.listed) {
            match self.versions.iter_mut().find(|(name, _)| *name == version.name) {
                Some((_, rows)) if more => *rows += 1,
                Some((_, rows)) => *rows -= 1,
                None => self.versions.push((version.name.clone(), 1)),
            }
        }
        self.versions.retain(|(_, rows)| *rows > 0);
    }
}

impl Catalog {
    pub fn new(rows: impl IntoIterator<Item = Arc<Row>>) -> Self {
        let mut catalog = Self::default();
        for row in rows {
            catalog.insert(row);
        }
        catalog
    }

    /// Adds a row, or replaces the one of the same name.
    pub fn insert(&mut self, row: Arc<Row>) {
        let name = &row.resource.group;
        match self.groups.get_mut(&**name) {
            Some(group) => Arc::make_mut(group).put(row),
            None => {
                let mut group = Group { name: name.clone(), rows: Vec::new(), versions: Vec::new() };
                group.put(row);
                self.groups.insert(group.name.clone(), Arc::new(group));
            }
        }
    }

    /// Takes a row away; a group without rows goes with it.
    pub fn remove(&mut self, group: &str, plural: &str) {
        let Some(at) = self.group(group).and_then(|group| group.find(plural).ok()) else { return };
        let Some(entry) = self.groups.get_mut(group) else { return };
        if entry.rows.len() == 1 {
            self.groups.remove(group);
        } else {
            Arc::make_mut(entry).take(at);
        }
    }

    pub fn get(&self, group: &str, plural: &str) -> Option<&Arc<Row>> {
        self.group(group)?.row(plural)
    }

    pub fn get_version(&self, group: &str, version: &str, plural: &str) -> Option<(&Arc<Row>, &Version)> {
        let row = self.get(group, plural)?;
        Some((row, row.resource.version(version)?))
    }

    /// Whether any listed row serves this group and version.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.group(group).is_some_and(|group| group.versions().any(|name| &**name == version))
    }

    pub fn group(&self, name: &str) -> Option<&Arc<Group>> {
        self.groups.get(name)
    }

    /// All groups by name.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.groups.values()
    }

    pub fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.groups().flat_map(|group| &group.rows)
    }
}

/// A row with what it stores.
pub struct Row {
    pub resource: Arc<Resource>,
    /// `None` for what is not stored.
    pub store: Option<Arc<Store>>,
}

/// A group's rows by plural.
type WeakRows = HashMap<Arc<str>, Weak<Row>>;

/// Stores of a generation's rows, for behaviour that writes objects of other rows than its own (bindings write pods).
/// Filled once, after the rows are made; keeps none of them alive.
#[derive(Default)]
pub struct Stores(OnceLock<HashMap<Arc<str>, WeakRows>>);

impl Stores {
    /// Takes the rows. A second time changes nothing.
    pub fn fill(&self, rows: &Catalog) {
        let weak = |row: &Arc<Row>| (row.resource.plural.clone(), Arc::downgrade(row));
        let groups = rows.groups().map(|group| (group.name.clone(), group.rows.iter().map(weak).collect()));
        let _ = self.0.set(groups.collect());
    }

    /// The store of a resource that is served now.
    pub fn get(&self, group: &str, plural: &str) -> Option<Arc<Store>> {
        self.0.get()?.get(group)?.get(plural)?.upgrade()?.store.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::dynamic::testing::{definition, row};

    fn thousand() -> Catalog {
        let name = |at: usize| (format!("g{}.example.com", at % 10), format!("things{at}"));
        Catalog::new((0..1000).map(name).map(|(group, plural)| row(&definition(&group, &plural), 1)))
    }

    #[test]
    fn a_change_leaves_every_other_group_as_it_is() {
        let before = thousand();
        let mut after = before.clone();
        after.insert(row(&definition("g3.example.com", "more"), 2));
        after.remove("g3.example.com", "things13");
        for group in before.groups() {
            let same = after.group(&group.name).is_some_and(|new| Arc::ptr_eq(new, group));
            assert_eq!(same, &*group.name != "g3.example.com", "{}", group.name);
        }
        let plurals = |catalog: &Catalog| catalog.group("g3.example.com").unwrap().rows().len();
        assert_eq!((plurals(&before), plurals(&after)), (100, 100));
        assert!(before.get("g3.example.com", "things13").is_some() && before.get("g3.example.com", "more").is_none());
        assert!(after.get("g3.example.com", "things13").is_none() && after.get("g3.example.com", "more").is_some());
    }

    #[test]
    fn rows_are_found_by_name_and_go_with_their_group() {
        let mut catalog = thousand();
        for at in 0..1000 {
            let (group, plural) = (format!("g{}.example.com", at % 10), format!("things{at}"));
            assert_eq!(&*catalog.get_version(&group, "v1", &plural).unwrap().0.resource.plural, plural);
            catalog.remove(&group, &plural);
            assert!(catalog.get(&group, &plural).is_none());
        }
        assert_eq!((catalog.groups().count(), catalog.rows().count()), (0, 0));
    }

    #[test]
    fn versions_are_listed_as_long_as_a_listed_row_has_them() {
        let (mut one, mut two) = (definition("example.com", "ones"), definition("example.com", "twos"));
        one.remove_at(&["status", "conditions"]);
        let mut catalog = Catalog::new([row(&one, 1)]);
        assert!(catalog.get("example.com", "ones").is_some(), "it is served");
        assert!(!catalog.serves("example.com", "v1"), "but not listed before it is established");
        catalog.insert(row(&definition("example.com", "ones"), 2));
        catalog.insert(row(&two, 3));
        catalog.remove("example.com", "ones");
        assert!(catalog.serves("example.com", "v1"));
        two.remove_at(&["status", "conditions"]);
        catalog.insert(row(&two, 4));
        assert!(!catalog.serves("example.com", "v1"));
    }
}
