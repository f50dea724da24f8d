//! The Scale of an object: made when it is read, written back into the object (`autoscaling/v1 Scale`).

use super::Scope;
use crate::{
    api::{ApiError, ErrorList, FieldError, Path, meta::Meta},
    object::{Key, Map, Value},
    registry::resource::{ScalePaths, SubresourceBehaviour},
};

fn paths<'a>(scope: &'a Scope<'_>) -> Result<&'a ScalePaths, ApiError> {
    match scope.subresource.map(|subresource| &subresource.behaviour) {
        Some(SubresourceBehaviour::Scale(paths)) => Ok(paths),
        _ => Err(super::method_not_allowed()),
    }
}

fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |node, key| node.get(key))
}

/// The Scale an object shows.
pub fn of(scope: &Scope<'_>, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(scope)?;
    let meta = Meta::of(object);
    let mut metadata = Map::new();
    let text = |metadata: &mut Map, name: &'static str, value: &str| {
        if !value.is_empty() {
            metadata.insert(Key::from_static(name), value);
        }
    };
    text(&mut metadata, "name", meta.name());
    text(&mut metadata, "namespace", meta.namespace());
    text(&mut metadata, "uid", meta.uid());
    text(&mut metadata, "resourceVersion", meta.resource_version());
    text(&mut metadata, "creationTimestamp", object.str_at(&["metadata", "creationTimestamp"]));
    let replicas = at(object, &paths.spec_replicas).and_then(Value::as_i64);
    let mut spec = Map::new();
    // Go leaves a zero out.
    let replicas = replicas.unwrap_or(paths.default_replicas);
    if replicas != 0 {
        spec.insert("replicas", replicas);
    }
    let current = at(object, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0);
    let mut status = Map::from([("replicas", current)]);
    if let Some(selector) = paths.selector.as_ref().and_then(|path| at(object, path)) {
        text(&mut status, "selector", &selector_text(selector)?);
    }
    Ok(Value::from([
        ("kind", Value::from("Scale")),
        ("apiVersion", "autoscaling/v1".into()),
        ("metadata", metadata.into()),
        ("spec", spec.into()),
        ("status", status.into()),
    ]))
}

/// A selector as text: custom resources keep it so, replication controllers have a map, `apps` a LabelSelector.
fn selector_text(selector: &Value) -> Result<String, ApiError> {
    let parsed = match selector {
        Value::Str(text) => return Ok(text.clone()),
        Value::Object(map) if map.values().all(|value| value.as_str().is_some()) && !map.is_empty() => {
            crate::api::labels::Selector::from_set(Some(map))
        }
        other => crate::api::labels::Selector::from_object(Some(other)).map_err(|error| ApiError::internal(error.to_string()))?,
    };
    Ok(parsed.to_string())
}

/// Writes a wished Scale into an object. The Scale's resourceVersion and uid become the object's, so that they are
/// checked like those of any update.
pub fn write_into(scope: &Scope<'_>, object: &Value, scale: &Value) -> Result<Value, ApiError> {
    let paths = paths(scope)?;
    let meta = Meta::of(scale);
    validate(scope, scale)?;
    let mut new = object.clone();
    let replicas = scale.i64_at(&["spec", "replicas"]).unwrap_or(0);
    let mut node = &mut new;
    for key in &paths.spec_replicas {
        node = node.make_object().entry_or(key.as_str(), || Value::Null);
    }
    *node = replicas.into();
    for (name, value) in [("resourceVersion", meta.resource_version()), ("uid", meta.uid())] {
        if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
            if value.is_empty() && name == "resourceVersion" {
                metadata.remove(name);
            } else if !value.is_empty() {
                metadata.insert(name, value);
            }
        }
    }
    Ok(new)
}

/// autoscaling `ValidateScale`.
fn validate(scope: &Scope<'_>, scale: &Value) -> Result<(), ApiError> {
    let replicas = scale.i64_at(&["spec", "replicas"]).unwrap_or(0);
    if replicas >= 0 {
        return Ok(());
    }
    let spec = Path::new("spec");
    let error = FieldError::invalid(&spec.child("replicas"), replicas, "must be greater than or equal to 0");
    let name = if Meta::of(scale).name().is_empty() { scope.name } else { Meta::of(scale).name() };
    Err(ApiError::invalid("autoscaling", "Scale", name, &ErrorList::from_iter([error])))
}
