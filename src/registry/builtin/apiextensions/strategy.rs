//! The policy of CustomResourceDefinitions (apiextensions-apiserver `pkg/registry/customresourcedefinition`).

use std::sync::OnceLock;

use super::{schema_rules::any, validation};
use crate::{
    api::{
        ApiError, ErrorList, FieldError, Path, duration::format_time, field::quote, meta::Meta, names::Messages,
        status::GroupResource,
    },
    object::{Map, Value},
    registry::{
        dynamic::definition::{self, CLEANUP, GROUP, RESOURCE, TERMINATING},
        store::Preconditions,
        strategy::{ResetFields, Strategy, StrategyContext, name_is_dns_subdomain},
    },
    schema::{
        ownership::FieldSet,
        structural::{check, formats},
    },
};

/// Definitions.
pub struct DefinitionStrategy;

/// Notes the storage version among those that objects may be stored in.
fn note_storage_version(crd: &mut Value) {
    let Some(storage) = definition::storage_version(crd).map(str::to_owned) else { return };
    let stored = crd.make(&["status", "storedVersions"]);
    if !matches!(stored, Value::Array(_)) {
        *stored = Value::Array(Vec::new());
    }
    if let Some(stored) = stored.as_array_mut()
        && !stored.iter().any(|it| it.as_str() == Some(&storage))
    {
        stored.push(storage.into());
    }
}

/// Formats that no check stands behind, one for each time they are asked for.
fn unknown_formats(crd: &Value) -> Vec<String> {
    let found = std::cell::RefCell::new(Vec::new());
    walk(crd, &|schema| {
        let format = schema.str_at(&["format"]);
        if !format.is_empty() && formats::of(schema.str_at(&["type"]), format).is_none() {
            found.borrow_mut().push(format!("unrecognized format {}", quote(format)));
        }
    });
    found.into_inner()
}

/// Sets of what is no scalar, sorted.
fn sets_of_compounds(crd: &Value) -> Vec<String> {
    let found = std::cell::RefCell::new(std::collections::BTreeSet::new());
    walk(crd, &|schema| {
        let kind = check::items(schema).map_or("", |items| items.str_at(&["type"]));
        if schema.str_at(&["x-kubernetes-list-type"]) == "set" && matches!(kind, "object" | "array") {
            found.borrow_mut().insert(format!(
                "x-kubernetes-list-type: set for items of type {} is not supported by server-side apply or CEL validation rules",
                quote(kind)
            ));
        }
    });
    found.into_inner().into_iter().collect()
}

/// Visits every schema of a definition once; what versions have in common is visited once for all.
fn walk(crd: &Value, visit: &dyn Fn(&Value)) {
    let versions = definition::versions(crd);
    let hoisted = super::internal::Hoisted::of(versions).schema.is_some();
    for schema in versions.iter().take(if hoisted { 1 } else { usize::MAX }).filter_map(definition::schema) {
        any(schema, &|schema| {
            visit(schema);
            false
        });
    }
}

/// The name has to be made of plural and group. What is wrong with that stands beside what else is wrong with the name.
fn demand_name(new: &Value, errors: &mut ErrorList) {
    let wanted = format!("{}.{}", new.str_at(&["spec", "names", "plural"]), new.str_at(&["spec", "group"]));
    let metadata = Path::new("metadata");
    let mut at = 0;
    for member in ["generateName", "name"] {
        let (given, path) = (new.str_at(&["metadata", member]), metadata.child(member));
        let field = path.to_string();
        let last = errors.iter().rposition(|error| error.field == field);
        at = last.map_or(at, |last| last + 1);
        if !given.is_empty() && given != wanted {
            errors.insert(at, FieldError::invalid(&path, given, r#"must be spec.names.plural+"."+spec.group"#));
            at += 1;
        }
    }
}

impl Strategy for DefinitionStrategy {
    fn prepare_for_create(&self, _cx: &StrategyContext<'_>, new: &mut Value) {
        new.set(&["status"], empty_status());
        new.set(&["metadata", "generation"], 1);
        note_storage_version(new);
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        demand_name(new, errors);
        validation::validate_create(new, errors);
    }

    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        if let Some(map) = new.as_object_mut() {
            match old.get("status") {
                Some(status) => map.insert("status", status.clone()),
                None => map.remove("status"),
            };
        }
        if new.get("spec") != old.get("spec") {
            new.set(&["metadata", "generation"], Meta::of(old).generation() + 1);
        }
        note_storage_version(new);
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validation::validate_update(new, old, errors);
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        let known = |of: fn(&Value) -> Vec<String>| old.map(of).unwrap_or_default();
        let added = |of: fn(&Value) -> Vec<String>| {
            let before = known(of);
            of(new).into_iter().filter(|warning| !before.contains(warning)).collect::<Vec<_>>()
        };
        let mut warnings = added(unknown_formats);
        warnings.extend(added(sets_of_compounds));
        warnings
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        name_is_dns_subdomain(name, prefix)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self) -> ResetFields {
        static STATUS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(STATUS.get_or_init(|| FieldSet::of(&[&["status"]])))
    }

    fn check_preconditions(&self, object: &Value, wanted: &Preconditions) -> Result<(), ApiError> {
        let meta = Meta::of(object);
        let current =
            [("UID", &wanted.uid, meta.uid()), ("ResourceVersion", &wanted.resource_version, meta.resource_version())];
        for (what, wanted, found) in current {
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
                let why =
                    format!("precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
                return Err(ApiError::conflict(GroupResource::new(GROUP, RESOURCE), meta.name(), &why));
            }
        }
        Ok(())
    }

    /// The first deletion marks the definition in its own way: the finalizer that deletes its objects is added, and
    /// nothing else of a deletion happens yet.
    fn takes_over_deletion(&self, cx: &StrategyContext<'_>, object: &mut Value) -> bool {
        if !object.str_at(&["metadata", "deletionTimestamp"]).is_empty() {
            return false;
        }
        let now = format_time(cx.now);
        object.set(&["metadata", "deletionTimestamp"], now.as_str());
        let mut finalizers: Vec<String> = Meta::of(object).finalizers().map(str::to_owned).collect();
        if !finalizers.iter().any(|it| it == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        object.set(&["metadata", "finalizers"], finalizers);
        let why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        definition::set_condition(object, TERMINATING, "True", "InstanceDeletionPending", why, &now);
        true
    }
}

fn empty_status() -> Map {
    let names = Map::from([("kind", ""), ("plural", "")]);
    Map::from([("acceptedNames", Value::from(names)), ("conditions", Value::Null), ("storedVersions", Value::Null)])
}

/// Their status: the spec stays, all else is taken, metadata included.
pub struct DefinitionStatus;

impl Strategy for DefinitionStatus {
    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        // Mostly it was not touched, and it may be large.
        if new.get("spec") != old.get("spec")
            && let Some(map) = new.as_object_mut()
        {
            match old.get("spec") {
                Some(spec) => map.insert("spec", spec.clone()),
                None => map.remove("spec"),
            };
        }
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        validation::validate_status(new, errors);
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self) -> ResetFields {
        static SPEC: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(SPEC.get_or_init(|| FieldSet::of(&[&["spec"]])))
    }
}
