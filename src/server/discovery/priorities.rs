//! Which group stands before which (kubernetes `pkg/controlplane/apiserver/aggregator.go`).

use std::sync::Arc;

use crate::{
    api::version,
    registry::catalog::{Catalog, Group},
};

/// What decides the place of a group and of a version in it; more is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    pub group: i64,
    pub version: i64,
}

/// Groups of custom resources.
pub const CUSTOM: Priority = Priority { group: 1000, version: 100 };

/// Group, its priority, its versions with theirs.
type Row = (&'static str, i64, &'static [(&'static str, i64)]);

const BUILT_IN: &[Row] = &[
    ("", 18000, &[("v1", 1)]),
    // Has no APIService; always first.
    ("apiregistration.k8s.io", 20001, &[("v1", 18), ("v1beta1", 10)]),
    ("apps", 17800, &[("v1", 15)]),
    ("events.k8s.io", 17750, &[("v1", 15), ("v1beta1", 5)]),
    ("authentication.k8s.io", 17700, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("authorization.k8s.io", 17600, &[("v1", 15)]),
    ("autoscaling", 17500, &[("v2", 30), ("v1", 15), ("v2beta1", 9), ("v2beta2", 1)]),
    ("batch", 17400, &[("v1", 15), ("v1beta1", 9), ("v2alpha1", 9)]),
    ("certificates.k8s.io", 17300, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("networking.k8s.io", 17200, &[("v1", 15), ("v1beta1", 9)]),
    ("policy", 17100, &[("v1", 15), ("v1beta1", 9)]),
    ("rbac.authorization.k8s.io", 17000, &[("v1", 15)]),
    ("storage.k8s.io", 16800, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("apiextensions.k8s.io", 16700, &[("v1", 15)]),
    ("admissionregistration.k8s.io", 16700, &[("v1", 15), ("v1beta1", 12), ("v1alpha1", 9)]),
    ("scheduling.k8s.io", 16600, &[("v1", 15), ("v1beta1", 9), ("v1alpha3", 3)]),
    ("coordination.k8s.io", 16500, &[("v1", 15), ("v1beta1", 13), ("v1alpha2", 12)]),
    ("node.k8s.io", 16300, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("discovery.k8s.io", 16200, &[("v1", 15), ("v1beta1", 12)]),
    ("resource.k8s.io", 16200, &[("v1", 21), ("v1beta2", 15), ("v1beta1", 9), ("v1alpha3", 1)]),
    (
        "flowcontrol.apiserver.k8s.io",
        16100,
        &[("v1", 21), ("v1beta3", 18), ("v1beta2", 15), ("v1beta1", 12), ("v1alpha1", 9)],
    ),
    ("internal.apiserver.k8s.io", 16000, &[("v1alpha1", 9)]),
    ("storagemigration.k8s.io", 15800, &[("v1", 15), ("v1beta1", 9)]),
    ("lifecycle.k8s.io", 15700, &[("v1alpha1", 1)]),
];

/// The priority of a built-in group and version; `None` where it is not in the table, and so not in `/apis`.
pub fn built_in(group: &str, version: &str) -> Option<Priority> {
    let (_, group, versions) = BUILT_IN.iter().find(|row| row.0 == group)?;
    let (_, version) = versions.iter().find(|row| row.0 == version)?;
    Some(Priority { group: *group, version: *version })
}

/// A group and version in discovery.
#[derive(Clone, Debug)]
pub struct Listed {
    pub version: String,
    pub priority: Priority,
    pub origin: Origin,
}

/// Who answers for a group and version. Where several could, the first wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    BuiltIn,
    Custom,
    /// Another server, named by an APIService.
    Remote,
}

/// A group with its versions in order.
#[derive(Clone, Debug)]
pub struct ListedGroup {
    pub name: String,
    pub versions: Vec<Listed>,
}

impl ListedGroup {
    /// The best priority of any version.
    pub fn priority(&self) -> i64 {
        self.versions.iter().map(|it| it.priority.group).max().unwrap_or_default()
    }
}

/// All groups, unordered, with their versions in order.
pub fn groups(found: impl Iterator<Item = (String, Listed)>) -> Vec<ListedGroup> {
    let mut all: std::collections::BTreeMap<String, Vec<Listed>> = Default::default();
    for (group, listed) in found {
        let versions = all.entry(group).or_default();
        match versions.iter_mut().find(|it| it.version == listed.version) {
            Some(other) if listed.origin < other.origin => *other = listed,
            Some(_) => {}
            None => versions.push(listed),
        }
    }
    let ordered = |(name, mut versions): (String, Vec<Listed>)| {
        versions.sort_by(|a, b| {
            b.priority.version.cmp(&a.priority.version).then_with(|| version::compare(&b.version, &a.version))
        });
        ListedGroup { name, versions }
    };
    all.into_iter().map(ordered).collect()
}

/// The order of `/apis`: equal priorities by the name of the best version's APIService (`v1.apps`).
pub fn order_by_service(groups: &mut [ListedGroup]) {
    let service = |group: &ListedGroup| {
        let version = group.versions.first().map_or("", |it| it.version.as_str());
        format!("{version}.{}", group.name)
    };
    let first = |group: &ListedGroup| group.versions.first().map_or(0, |it| it.priority.group);
    groups.sort_by_cached_key(|group| (std::cmp::Reverse(first(group)), service(group)));
}

/// The order of aggregated discovery: equal priorities by the name of the group.
pub fn order_by_name(groups: &mut [impl std::borrow::Borrow<ListedGroup>]) {
    groups.sort_by(|a, b| {
        let (a, b): (&ListedGroup, &ListedGroup) = (a.borrow(), b.borrow());
        b.priority().cmp(&a.priority()).then_with(|| a.name.cmp(&b.name))
    });
}

/// The groups and versions of a catalog.
pub fn of_catalog<'a>(
    catalog: &'a Catalog,
    priority: impl Fn(&str, &str) -> Option<Priority> + 'a,
    origin: Origin,
) -> impl Iterator<Item = (String, Listed)> + 'a {
    of_groups(catalog.groups(), priority, origin)
}

/// The versions of some groups.
pub fn of_groups<'a>(
    groups: impl Iterator<Item = &'a Arc<Group>> + 'a,
    priority: impl Fn(&str, &str) -> Option<Priority> + 'a,
    origin: Origin,
) -> impl Iterator<Item = (String, Listed)> + 'a {
    let versions = groups.flat_map(|group| group.versions().map(move |version| (&group.name, version)));
    versions.filter_map(move |(group, version)| {
        let priority = priority(group, version)?;
        Some((group.to_string(), Listed { version: version.to_string(), priority, origin }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(group: &str, version: &str, priority: Priority) -> (String, Listed) {
        (group.to_owned(), Listed { version: version.to_owned(), priority, origin: Origin::Custom })
    }

    #[test]
    fn equal_groups_are_told_apart_by_service_in_one_list_and_by_name_in_the_other() {
        let found = [
            listed("a.example.com", "v2", CUSTOM),
            listed("b.example.com", "v1", CUSTOM),
            listed("b.example.com", "v1beta1", CUSTOM),
            listed("z.example.com", "v1", Priority { group: 2000, version: 1 }),
        ];
        let mut all = groups(found.into_iter());
        order_by_service(&mut all);
        let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["z.example.com", "b.example.com", "a.example.com"]);
        order_by_name(&mut all);
        let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["z.example.com", "a.example.com", "b.example.com"]);
        let versions: Vec<&str> = all[2].versions.iter().map(|it| it.version.as_str()).collect();
        assert_eq!(versions, ["v1", "v1beta1"]);
    }

    #[test]
    fn a_built_in_version_is_never_taken_over() {
        let mine = Listed { version: "v1".to_owned(), priority: CUSTOM, origin: Origin::Remote };
        let built_in = Listed { origin: Origin::BuiltIn, ..mine.clone() };
        let all = groups([("apps".to_owned(), mine), ("apps".to_owned(), built_in)].into_iter());
        assert_eq!(all[0].versions[0].origin, Origin::BuiltIn);
        assert_eq!(all[0].versions.len(), 1);
    }
}
