//! The data table of built-in resources, made into rows.

use std::sync::{Arc, OnceLock};

use super::{Wiring, groups};
use crate::{
    object::{Value, parse},
    registry::resource::{
        Column, Resource, Selectable, Subresource, SubresourceBehaviour, Verb, Verbs, Version, VersionSchema,
    },
    schema::{self, Table, TypeId},
};

/// Made by `tools/gen-resources.py`; a test holds it against the type table.
const DATA: &str = include_str!("../data/resources.json");

fn table() -> &'static [Value] {
    static TABLE: OnceLock<Vec<Value>> = OnceLock::new();
    TABLE.get_or_init(|| match parse(DATA.as_bytes()) {
        Ok(Value::Array(rows)) => rows,
        other => unreachable!("the data file is an array of rows: {other:?}"),
    })
}

/// The order in which upstream installs its groups, which is the order of discovery; others follow by name.
const INSTALL_ORDER: [&str; 24] = [
    "",
    "internal.apiserver.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "lifecycle.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "apps",
    "admissionregistration.k8s.io",
    "events.k8s.io",
    "resource.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
];

/// The rows of all built-in resources for which `serves(group, version, plural, by default)` says so.
pub fn rows(wiring: &Wiring, serves: &dyn Fn(&str, &str, &str, bool) -> bool) -> Vec<Resource> {
    let mut rows: Vec<Resource> = Vec::new();
    for entry in table() {
        let text = |name: &str| entry.str_at(&[name]);
        if !serves(text("group"), text("version"), text("plural"), entry.bool_at(&["default"])) {
            continue;
        }
        let version = version(entry, wiring);
        match rows.iter_mut().find(|row| &*row.group == text("group") && &*row.plural == text("plural")) {
            Some(row) => row.versions.push(version),
            None => rows.push(resource(entry, version, wiring)),
        }
    }
    for row in &mut rows {
        row.versions.sort_by(|a, b| crate::api::version::compare(&b.name, &a.name));
    }
    let place = |group: &str| INSTALL_ORDER.iter().position(|it| *it == group).unwrap_or(INSTALL_ORDER.len());
    rows.sort_by_key(|a| place(&a.group));
    rows
}

fn resource(entry: &Value, version: Version, wiring: &Wiring) -> Resource {
    let text = |name: &str| Arc::<str>::from(entry.str_at(&[name]));
    let list =
        |name: &str| entry.array_at(&[name]).iter().filter_map(Value::as_str).map(Arc::from).collect::<Vec<Arc<str>>>();
    let (group, plural, kind) = (text("group"), text("plural"), text("kind"));
    let stored_as = text("storage_group_version");
    let bare_version = stored_as.rsplit('/').next().filter(|it| !it.is_empty()).unwrap_or(&version.name);
    let behaviour = groups::behaviour(wiring, &group, &plural, bare_version, &kind);
    Resource {
        convert: groups::convert(&group, &plural),
        storage_group_version: if stored_as.is_empty() {
            version.group_version.clone()
        } else {
            stored_version(&group, &stored_as)
        },
        list_kind: format!("{kind}List").into(),
        singular: text("singular"),
        short_names: list("short_names"),
        categories: list("categories"),
        namespaced: entry.bool_at(&["namespaced"]),
        verbs: verbs(entry),
        versions: vec![version],
        prefix: text("prefix"),
        behaviour,
        typed_items: false,
        strategic_merge: true,
        revive: None,
        terminating: false,
        listed: true,
        revision: 0,
        group,
        plural,
        kind,
    }
}

/// What the objects are kept as. Upstream stores definitions as v1beta1, which has the same fields and is read by no
/// one but the server itself: they are kept in the served version here.
fn stored_version(group: &str, stored: &Arc<str>) -> Arc<str> {
    if group == "apiextensions.k8s.io" { "apiextensions.k8s.io/v1".into() } else { stored.clone() }
}

fn verbs(entry: &Value) -> Verbs {
    let named = |name: &str| Verb::ALL.into_iter().find(|verb| verb.as_str() == name);
    Verbs::of(&entry.array_at(&["verbs"]).iter().filter_map(Value::as_str).filter_map(named).collect::<Vec<_>>())
}

fn version(entry: &Value, wiring: &Wiring) -> Version {
    let text = |name: &str| Arc::<str>::from(entry.str_at(&[name]));
    let (group, name, kind, plural) = (text("group"), text("version"), text("kind"), text("plural"));
    let group_version: Arc<str> = if group.is_empty() { name.clone() } else { format!("{group}/{name}").into() };
    let columns: Arc<[Column]> = entry.array_at(&["columns"]).iter().map(column).collect();
    let labels = entry.array_at(&["selectable"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Version {
        schema: Arc::new(BuiltinSchema::new(&group, &name, &kind)),
        printer: super::printers::printer(&group, &kind),
        columns,
        selectable: Selectable { labels, unsupported: entry.str_at(&["unsupported"]).to_owned() },
        subresources: entry
            .array_at(&["subresources"])
            .iter()
            .filter_map(|it| subresource(it, &group, &plural, wiring))
            .collect(),
        strategy: None,
        deprecation: groups::deprecation(&group_version, &kind),
        storage_version_hash: entry.str_at(&["storage_version_hash"]).to_owned(),
        group_version,
        name,
    }
}

fn column(entry: &Value) -> Column {
    let (name, kind) = (entry.str_at(&["name"]), entry.str_at(&["type"]));
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: entry.str_at(&["format"]).to_owned(),
        description: String::new(),
        priority: entry.i64_at(&["priority"]).unwrap_or(0),
        json_path: None,
    }
}

fn subresource(entry: &Value, group: &str, plural: &str, wiring: &Wiring) -> Option<Subresource> {
    let text = |name: &str| Arc::<str>::from(entry.str_at(&[name]));
    let name = text("name");
    let behaviour: SubresourceBehaviour = groups::subresource(wiring, group, plural, &name)?;
    Some(Subresource {
        group: text("group"),
        version: text("version"),
        kind: text("kind"),
        verbs: verbs(entry),
        behaviour,
        name,
    })
}

/// A built-in version: the type table and the defaulting functions.
struct BuiltinSchema {
    ty: TypeId,
    group: Box<str>,
    version: Box<str>,
    kind: Box<str>,
}

impl BuiltinSchema {
    fn new(group: &str, version: &str, kind: &str) -> Self {
        let ty = schema::builtin().kind(group, version, kind).unwrap_or(TypeId::ANY);
        Self { ty, group: group.into(), version: version.into(), kind: kind.into() }
    }
}

impl VersionSchema for BuiltinSchema {
    fn typed(&self) -> (&Table, TypeId) {
        (schema::builtin(), self.ty)
    }

    fn decode(&self, object: &mut Value, source: Option<&[u8]>) -> Result<Vec<String>, String> {
        let unknown = schema::decode(schema::builtin(), self.ty, object, source).map_err(|error| error.to_string())?;
        super::conversion::round_trip(&self.group, &self.version, &self.kind, object)?;
        Ok(unknown)
    }

    fn blank(&self, object: &mut Value) {
        // Not the way through the internal type and back: the internal object is where this one begins.
        let _ = schema::decode(schema::builtin(), self.ty, object, None);
        super::conversion::of_nothing(&self.group, &self.version, &self.kind, object);
    }

    fn default(&self, object: &mut Value) {
        let now = crate::api::clock::now_seconds();
        super::defaults::apply_defaults(&self.group, &self.version, &self.kind, object, now);
    }
}

/// Groups and versions of which `serves` (see [`rows`]) serves a resource.
pub fn group_versions(serves: &dyn Fn(&str, &str, &str, bool) -> bool) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in table() {
        let text = |name: &str| entry.str_at(&[name]);
        let (group, version) = (text("group"), text("version"));
        let known = found.iter().any(|(g, v)| g == group && v == version);
        if !known && serves(group, version, text("plural"), entry.bool_at(&["default"])) {
            found.push((group.to_owned(), version.to_owned()));
        }
    }
    found
}

/// Group and plural of all rows.
#[cfg(test)]
pub fn names() -> std::collections::HashSet<(&'static str, &'static str)> {
    table().iter().map(|entry| (entry.str_at(&["group"]), entry.str_at(&["plural"]))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Group, kind and number of columns of every kind that has any.
    pub fn columns_of_kinds() -> Vec<(String, String, usize)> {
        let of = |entry: &Value| {
            let text = |name: &str| entry.str_at(&[name]).to_owned();
            (text("group"), text("kind"), entry.array_at(&["columns"]).len())
        };
        table().iter().map(of).filter(|(.., columns)| *columns > 0).collect()
    }

    #[test]
    fn every_row_has_a_type_and_every_name_is_unique() {
        let mut seen = std::collections::HashSet::new();
        for entry in table() {
            let text = |name: &str| entry.str_at(&[name]);
            assert!(seen.insert((text("group"), text("version"), text("plural"))), "{entry:?} is there twice");
            let known = schema::builtin().kind(text("group"), text("version"), text("kind"));
            assert!(known.is_some(), "{}/{} {} has no type", text("group"), text("version"), text("kind"));
        }
        assert!(seen.len() > 70);
    }
}
