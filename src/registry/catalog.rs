//! All rows that are served now: the built-in ones of a generation and the custom ones that come and go.

use std::sync::{Arc, OnceLock, Weak};

use super::{
    resource::{Resource, Version},
    store::Store,
};

/// Rows by group and plural. A value; whoever changes it makes a new one.
#[derive(Clone, Default)]
pub struct Catalog {
    /// In install order, which is discovery's order.
    groups: Vec<Group>,
}

/// A group's rows in discovery order.
#[derive(Clone)]
pub struct Group {
    pub name: Arc<str>,
    pub rows: Vec<Arc<Row>>,
}

impl Catalog {
    pub fn new(rows: impl IntoIterator<Item = Arc<Row>>) -> Self {
        let mut catalog = Self::default();
        for row in rows {
            catalog.insert(row);
        }
        catalog
    }

    /// Adds a row, or replaces the one of the same name in its place.
    pub fn insert(&mut self, row: Arc<Row>) {
        let resource = &row.resource;
        let at = match self.groups.iter().position(|group| group.name == resource.group) {
            Some(at) => at,
            None => {
                self.groups.push(Group { name: resource.group.clone(), rows: Vec::new() });
                self.groups.len() - 1
            }
        };
        let rows = &mut self.groups[at].rows;
        match rows.iter_mut().find(|old| old.resource.plural == resource.plural) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }

    pub fn remove(&mut self, group: &str, plural: &str) {
        for entry in &mut self.groups {
            if &*entry.name == group {
                entry.rows.retain(|row| &*row.resource.plural != plural);
            }
        }
        self.groups.retain(|entry| !entry.rows.is_empty());
    }

    pub fn get(&self, group: &str, plural: &str) -> Option<&Arc<Row>> {
        // A few dozen groups of a few dozen rows: walking them is quicker than hashing two strings.
        let group = self.groups.iter().find(|entry| &*entry.name == group)?;
        group.rows.iter().find(|row| &*row.resource.plural == plural)
    }

    pub fn get_version(&self, group: &str, version: &str, plural: &str) -> Option<(&Arc<Row>, &Version)> {
        let row = self.get(group, plural)?;
        Some((row, row.resource.version(version)?))
    }

    /// Whether any row serves this group and version.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.group(group).is_some_and(|entry| entry.rows.iter().any(|row| row.resource.version(version).is_some()))
    }

    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|entry| &*entry.name == name)
    }

    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}

/// A row with what it stores.
pub struct Row {
    pub resource: Arc<Resource>,
    /// `None` for what is not stored.
    pub store: Option<Arc<Store>>,
}

/// Stores of a generation's rows, for behaviour that writes objects of other rows than its own (bindings write pods).
/// Filled once, after the rows are made; keeps none of them alive.
#[derive(Default)]
pub struct Stores(OnceLock<Vec<Weak<Row>>>);

impl Stores {
    /// Takes the rows. A second time changes nothing.
    pub fn fill(&self, rows: &Catalog) {
        let _ = self.0.set(rows.rows().map(Arc::downgrade).collect());
    }

    /// The store of a resource that is served now.
    pub fn get(&self, group: &str, plural: &str) -> Option<Arc<Store>> {
        let rows = self.0.get()?.iter().filter_map(Weak::upgrade);
        rows.into_iter().find(|row| &*row.resource.group == group && &*row.resource.plural == plural)?.store.clone()
    }
}
