//! Object metadata around a write: what the server sets, keeps and checks for every kind
//! (apiserver `pkg/registry/rest/{create,update,meta}.go`).

use super::WriteContext;
use crate::{
    api::{ApiError, ErrorList, duration::format_time, meta::Meta, unique},
    object::{Map, Value},
    registry::{
        resource::Resource,
        strategy::name_is_path_segment,
        validation::object_meta::{validate_object_meta, validate_object_meta_update},
    },
};

/// Sets what the server decides of a new object's metadata, its generated name included.
pub fn fill_system_fields(write: &WriteContext<'_>, new: &mut Value) {
    let metadata = new.make(&["metadata"]).make_object();
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
        metadata.remove(name);
    }
    metadata.insert("creationTimestamp", format_time(write.cx.now));
    metadata.insert("uid", unique::uuid());
    let base = metadata.get("generateName").and_then(Value::as_str).unwrap_or("").to_owned();
    if !base.is_empty() && metadata.get("name").and_then(Value::as_str).unwrap_or("").is_empty() {
        metadata.insert("name", unique::generate_name(&base));
    }
}

/// Runs the strategy on a new object and judges the result.
pub fn before_create(resource: &Resource, write: &WriteContext<'_>, new: &mut Value) -> Result<(), ApiError> {
    write.strategy.prepare_for_create(&write.cx, new);
    let mut errors = ErrorList::new();
    let judge = |errors: &mut ErrorList| {
        validate_object_meta(
            new,
            resource.namespaced,
            &|name, prefix| write.strategy.validate_name(name, prefix),
            errors,
        );
    };
    let last = write.strategy.judges_metadata();
    if !last {
        judge(&mut errors);
    }
    write.strategy.validate_create(&write.cx, new, &mut errors);
    if last && errors.is_empty() {
        judge(&mut errors);
    }
    refuse(resource, new, errors)?;
    write.strategy.canonicalise(new);
    Ok(())
}

/// Keeps what an update may not change, runs the strategy and judges the result.
pub fn before_update(
    resource: &Resource,
    write: &WriteContext<'_>,
    new: &mut Value,
    old: &Value,
) -> Result<(), ApiError> {
    let metadata = new.make(&["metadata"]).make_object();
    keep(metadata, old, "generation");
    metadata.remove("selfLink");
    write.strategy.prepare_for_update(&write.cx, new, old);
    // Only now, since strategies of parts of an object drop some of this.
    let metadata = new.make(&["metadata"]).make_object();
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if old.at(&["metadata", name]).is_some_and(|it| !it.is_null()) {
            keep(metadata, old, name);
        }
    }
    for name in ["uid", "deletionGracePeriodSeconds"] {
        // Another one is an error that validation tells.
        if metadata.get(name).is_none_or(|it| it.is_null() || it.as_str() == Some("")) {
            keep(metadata, old, name);
        }
    }
    let mut errors = ErrorList::new();
    // What every update is asked first; names may be older than their rule.
    validate_object_meta(new, resource.namespaced, &name_is_path_segment, &mut errors);
    validate_object_meta_update(new, old, &mut errors);
    write.strategy.validate_update(&write.cx, new, old, &mut errors);
    refuse(resource, new, errors)?;
    write.strategy.canonicalise(new);
    Ok(())
}

/// Makes a member of the metadata what it was.
fn keep(metadata: &mut Map, old: &Value, name: &str) {
    match old.at(&["metadata", name]) {
        Some(kept) => metadata.insert(name, kept.clone()),
        None => metadata.remove(name),
    };
}

fn refuse(resource: &Resource, new: &Value, mut errors: ErrorList) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    // Where upstream's declarative rules run, which is everywhere but in these, what was said twice is said once.
    let twice = resource.typed_items || matches!(&*resource.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if !twice {
        errors.dedup();
    }
    if resource.typed_items {
        // Custom resources are what they say they are, right or wrong.
        let (version, kind) = (new.str_at(&["apiVersion"]), new.str_at(&["kind"]));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        return Err(ApiError::invalid(group, kind, Meta::of(new).name(), &errors));
    }
    // What is judged is the stored kind, which for events is of another group.
    let group = resource.storage_group_version.split_once('/').map_or("", |(group, _)| group);
    Err(ApiError::invalid(group, &resource.kind, Meta::of(new).name(), &errors))
}

/// Whether a write would change nothing: everything equal but the resourceVersion and the times of managedFields.
pub fn unchanged(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    new.len() == old.len()
        && new.iter().zip(old.iter()).all(|((name, a), (other, b))| {
            name == other && if name.as_str() == "metadata" { same_metadata(a, b) } else { a == b }
        })
}

fn same_metadata(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return new == old };
    let kept = |name: &str| name != "resourceVersion";
    let mut a = new.iter().filter(|(name, _)| kept(name));
    let mut b = old.iter().filter(|(name, _)| kept(name));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some((name, x)), Some((other, y))) if name == other => {
                let same = if name.as_str() == "managedFields" { same_managed_fields(x, y) } else { x == y };
                if !same {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn same_managed_fields(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_array(), old.as_array()) else { return new == old };
    new.len() == old.len()
        && new.iter().zip(old).all(|(a, b)| {
            let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
            let without_time = |name: &&crate::object::Key| name.as_str() != "time";
            a.iter().filter(|(name, _)| without_time(name)).eq(b.iter().filter(|(name, _)| without_time(name)))
        })
}
