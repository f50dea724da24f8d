//! All rows that are served now: the built-in ones of a generation and the custom ones that come and go.

use std::sync::Arc;

use super::resource::{Resource, Version};

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
    pub resources: Vec<Arc<Resource>>,
}

impl Catalog {
    pub fn new(resources: impl IntoIterator<Item = Arc<Resource>>) -> Self {
        let mut catalog = Self::default();
        for resource in resources {
            catalog.insert(resource);
        }
        catalog
    }

    /// Adds a row, or replaces the one of the same name in its place.
    pub fn insert(&mut self, resource: Arc<Resource>) {
        let at = match self.groups.iter().position(|group| group.name == resource.group) {
            Some(at) => at,
            None => {
                self.groups.push(Group { name: resource.group.clone(), resources: Vec::new() });
                self.groups.len() - 1
            }
        };
        let rows = &mut self.groups[at].resources;
        match rows.iter_mut().find(|row| row.plural == resource.plural) {
            Some(row) => *row = resource,
            None => rows.push(resource),
        }
    }

    pub fn remove(&mut self, group: &str, plural: &str) {
        for entry in &mut self.groups {
            if &*entry.name == group {
                entry.resources.retain(|row| &*row.plural != plural);
            }
        }
        self.groups.retain(|entry| !entry.resources.is_empty());
    }

    pub fn get(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        // A few dozen groups of a few dozen rows: walking them is quicker than hashing two strings.
        let group = self.groups.iter().find(|entry| &*entry.name == group)?;
        group.resources.iter().find(|row| &*row.plural == plural)
    }

    pub fn get_version(&self, group: &str, version: &str, plural: &str) -> Option<(&Arc<Resource>, &Version)> {
        let resource = self.get(group, plural)?;
        Some((resource, resource.version(version)?))
    }

    /// Whether any row serves this group and version.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.group(group).is_some_and(|entry| entry.resources.iter().any(|row| row.version(version).is_some()))
    }

    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|entry| &*entry.name == name)
    }

    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.iter().flat_map(|group| &group.resources)
    }
}
