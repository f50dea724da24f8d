//! Rows made at run time: a CustomResourceDefinition becomes a [`Resource`] like any other.
//!
//! A row is made anew whenever what it says changes; the objects stored before stay as they are and are revived
//! ([`Schemas`]) when they are read. Nothing here does I/O; who keeps the rows in step with the definitions lives with
//! the chain.

mod attributes;
mod columns;
pub mod definition;
pub mod json_path;
mod schema;
mod strategy;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD};

pub use attributes::CustomAttributes;
pub use schema::{CustomSchema, Pool, Schemas};
pub use strategy::{CustomStatus, CustomStrategy, Scale, embedded_meta};

use super::resource::{
    Behaviour, Convert, Resource, ScalePaths, Selectable, Subresource, SubresourceBehaviour, Verb, Verbs, Version,
};
use crate::{
    api::{ApiError, version},
    object::Value,
    storage::Revision,
};

/// A row and what belongs to it.
pub struct Made {
    pub resource: Arc<Resource>,
    pub schemas: Arc<Schemas>,
    pub attributes: Arc<CustomAttributes>,
}

impl Made {
    /// The same with another standing: whether it is listed, whether its definition is being deleted.
    pub fn with_standing(&self, standing: Standing, revision: u64) -> Self {
        let Standing { listed, terminating } = standing;
        let resource = Resource { listed, terminating, revision, ..(*self.resource).clone() };
        Self { resource: Arc::new(resource), schemas: self.schemas.clone(), attributes: self.attributes.clone() }
    }
}

/// What of a definition's state its row shows besides what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub listed: bool,
    pub terminating: bool,
}

impl Standing {
    pub fn of(crd: &Value) -> Self {
        Self { listed: definition::is_true(crd, definition::ESTABLISHED), terminating: definition::is_terminating(crd) }
    }
}

/// The row of a definition, with the versions it serves. `None` for a definition without a storage version, which no
/// validation lets through.
///
/// `revision` numbers the row; `settled` is the revision after which everything was written through its schemas.
pub fn make(crd: &Value, revision: u64, settled: Revision, pool: &Pool) -> Option<Made> {
    let group: Arc<str> = crd.str_at(&["spec", "group"]).into();
    let plural: Arc<str> = crd.str_at(&["spec", "names", "plural"]).into();
    let accepted = |name: &str| Arc::<str>::from(crd.str_at(&["status", "acceptedNames", name]));
    let list = |name: &str| {
        crd.array_at(&["status", "acceptedNames", name]).iter().filter_map(Value::as_str).map(Arc::from).collect()
    };
    let (kind, list_kind) = (accepted("kind"), accepted("listKind"));
    let keeps_everything = crd.bool_at(&["spec", "preserveUnknownFields"]);
    let described = definition::versions(crd);
    let schema = |version: &Value| {
        let name = version.str_at(&["name"]);
        Arc::new(CustomSchema::new(pool, &group, name, definition::schema(version), keeps_everything))
    };
    let schemas = Schemas::new(described.iter().map(schema).collect(), settled);
    let namespaced = crd.str_at(&["spec", "scope"]) == "Namespaced";
    let storage = definition::storage_version(crd)?;
    let hash = storage_version_hash(crd, &group, storage, &kind);
    let row = RowOf { group: &group, kind: &kind, namespaced, described, hash: &hash, schemas: &schemas };
    let mut versions: Vec<Version> = described
        .iter()
        .filter(|version| version.bool_at(&["served"]))
        .filter_map(|version| row.version(version))
        .collect();
    versions.sort_by(|a, b| version::compare(&b.name, &a.name));
    let stored = described.iter().find(|version| version.bool_at(&["storage"]))?;
    let behaviour = Behaviour::Stored { strategy: row.strategy(stored)?, lifecycle: None };
    let convert: Convert = {
        let schemas = schemas.clone();
        // To relabel what only a webhook can convert would destroy it: until webhooks are called, other versions than
        // the stored one are refused as where the webhook does not answer.
        let by_webhook = crd.str_at(&["spec", "conversion", "strategy"]) == "Webhook";
        Arc::new(move |object, _from, to| {
            let from = object.str_at(&["apiVersion"]);
            if by_webhook && from != to {
                let kind = object.str_at(&["kind"]);
                let why = "conversion webhooks are not called by this version of kenter";
                return Err(ApiError::unmapped(format!("conversion webhook for {from}, Kind={kind} failed: {why}")));
            }
            schemas.convert(object, to)
        })
    };
    let paths = described.iter().flat_map(|version| version.array_at(&["selectableFields"]));
    let paths = paths.map(|field| field.str_at(&["jsonPath"]));
    let attributes = Arc::new(CustomAttributes::new(paths, schemas.clone()));
    let Standing { listed, terminating } = Standing::of(crd);
    let resource = Resource {
        prefix: format!("/registry/{group}/{plural}/").into(),
        storage_group_version: format!("{group}/{storage}").into(),
        singular: accepted("singular"),
        short_names: list("shortNames"),
        categories: list("categories"),
        namespaced,
        verbs: Verbs::of(&Verb::ALL),
        versions,
        behaviour,
        convert: Some(convert),
        typed_items: true,
        strategic_merge: false,
        revive: Some(schemas.clone()),
        terminating,
        listed,
        revision,
        group,
        plural,
        kind,
        list_kind,
    };
    Some(Made { resource: Arc::new(resource), schemas, attributes })
}

/// Empty where the storage version is not served.
fn storage_version_hash(crd: &Value, group: &str, storage: &str, kind: &str) -> String {
    let named = |version: &&Value| version.str_at(&["name"]) == storage;
    if !definition::versions(crd).iter().find(named).is_some_and(|version| version.bool_at(&["served"])) {
        return String::new();
    }
    let hash = digest(&SHA256, format!("{group}/{storage}/{kind}").as_bytes());
    hash.as_ref().get(..8).map(|start| STANDARD.encode(start)).unwrap_or_default()
}

/// What all versions of a row have in common.
struct RowOf<'a> {
    group: &'a Arc<str>,
    kind: &'a Arc<str>,
    namespaced: bool,
    described: &'a [Value],
    hash: &'a str,
    schemas: &'a Schemas,
}

impl RowOf<'_> {
    fn strategy(&self, version: &Value) -> Option<Arc<CustomStrategy>> {
        let api_version = format!("{}/{}", self.group, version.str_at(&["name"]));
        Some(Arc::new(CustomStrategy {
            schema: self.schemas.version(&api_version)?.clone(),
            kind: self.kind.clone(),
            has_status: version.at(&["subresources", "status"]).is_some_and(|it| !it.is_null()),
            scale: scale(version),
        }))
    }

    fn version(&self, version: &Value) -> Option<Version> {
        let name: Arc<str> = version.str_at(&["name"]).into();
        let strategy = self.strategy(version)?;
        let (columns, printer) = columns::columns(version);
        let mut labels = vec!["metadata.name".to_owned()];
        labels.extend(self.namespaced.then(|| "metadata.namespace".to_owned()));
        let fields = version.array_at(&["selectableFields"]).iter();
        labels.extend(fields.map(|field| attributes::label(field.str_at(&["jsonPath"])).to_owned()));
        Some(Version {
            group_version: strategy.schema.api_version.clone(),
            schema: strategy.schema.clone(),
            columns,
            printer,
            selectable: Selectable { labels, unsupported: "field label not supported: %s".to_owned() },
            subresources: self.subresources(&name, &strategy),
            deprecation: self.deprecation(version),
            storage_version_hash: self.hash.to_owned(),
            strategy: Some(strategy),
            name,
        })
    }

    fn subresources(&self, version: &Arc<str>, strategy: &Arc<CustomStrategy>) -> Vec<Subresource> {
        let verbs = Verbs::of(&[Verb::Get, Verb::Patch, Verb::Update]);
        let status = strategy.has_status.then(|| Subresource {
            name: "status".into(),
            group: self.group.clone(),
            version: version.clone(),
            kind: self.kind.clone(),
            verbs,
            behaviour: SubresourceBehaviour::Part(Arc::new(CustomStatus(strategy.clone()))),
        });
        let scale = strategy.scale.as_ref().map(|scale| Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs,
            behaviour: SubresourceBehaviour::Scale(Arc::new(ScalePaths {
                spec_replicas: strategy::path_steps(&scale.spec_replicas),
                status_replicas: strategy::path_steps(&scale.status_replicas),
                selector: scale.selector.as_deref().map(strategy::path_steps),
                default_replicas: None,
            })),
        });
        status.into_iter().chain(scale).collect()
    }

    /// The warning of a deprecated version: its own words, or where to go.
    fn deprecation(&self, version: &Value) -> Option<String> {
        if !version.bool_at(&["deprecated"]) {
            return None;
        }
        if let Some(own) = version.get("deprecationWarning").and_then(Value::as_str) {
            return Some(own.to_owned());
        }
        let name = version.str_at(&["name"]);
        let better = |other: &&Value| {
            other.bool_at(&["served"])
                && !other.bool_at(&["deprecated"])
                && version::compare(other.str_at(&["name"]), name).is_gt()
        };
        let best = self
            .described
            .iter()
            .filter(better)
            .max_by(|a, b| version::compare(a.str_at(&["name"]), b.str_at(&["name"])));
        let (group, kind) = (self.group, self.kind);
        let hint = best.map(|best| format!("; use {group}/{} {kind}", best.str_at(&["name"]))).unwrap_or_default();
        Some(format!("{group}/{name} {kind} is deprecated{hint}"))
    }
}

fn scale(version: &Value) -> Option<Scale> {
    let scale = version.at(&["subresources", "scale"]).filter(|it| !it.is_null())?;
    let text = |name: &str| scale.str_at(&[name]).to_owned();
    let selector = Some(text("labelSelectorPath")).filter(|path| !path.is_empty());
    Some(Scale { spec_replicas: text("specReplicasPath"), status_replicas: text("statusReplicasPath"), selector })
}
