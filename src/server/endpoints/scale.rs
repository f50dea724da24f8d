//! The Scale of an object: made when it is read, written back into the object (`autoscaling/v1 Scale`).

use super::Scope;
use crate::{
    api::{ApiError, ErrorList, FieldError, Path, field::quote, meta::Meta},
    object::{Key, Map, Value},
    registry::resource::{ScalePaths, SubresourceBehaviour},
    schema::patch::go_print,
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

/// An integer at a path; `None` where nothing is.
fn number(object: &Value, path: &[String]) -> Result<Option<i64>, ApiError> {
    match at(object, path) {
        None => Ok(None),
        Some(Value::Int(number)) => Ok(Some(*number)),
        Some(other) => Err(accessor_error(path, other, "int64")),
    }
}

/// Go's words for a value of a type that was not expected.
fn accessor_error(path: &[String], found: &Value, expected: &str) -> ApiError {
    let (shown, kind) = (go_print::plain(found), go_print::type_name(found));
    ApiError::unmapped(format!("{} accessor error: {shown} is of the type {kind}, expected {expected}", dotted(path)))
}

fn dotted(path: &[String]) -> String {
    path.iter().fold(String::new(), |text, name| text + "." + name)
}

/// What stands for replicas that an object lacks while its Scale is patched (apiextensions-apiserver
/// `pkg/registry/customresource/etcd.go`).
const NO_REPLICAS: i64 = i32::MIN as i64;

/// The Scale an object shows.
///
/// # Errors
/// 500 for an object that lacks the replicas, or has something else in their place.
pub fn of(scope: &Scope<'_>, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(scope)?;
    let replicas = number(object, &paths.spec_replicas)?.or(paths.default_replicas);
    let missing = || {
        ApiError::internal(format!("the spec replicas field {} does not exist", quote(&dotted(&paths.spec_replicas))))
    };
    made(paths, object, replicas.ok_or_else(missing)?)
}

/// The Scale that a patch changes, which may lack its replicas.
pub fn to_change(scope: &Scope<'_>, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(scope)?;
    let replicas = number(object, &paths.spec_replicas)?.or(paths.default_replicas);
    made(paths, object, replicas.unwrap_or(NO_REPLICAS))
}

fn made(paths: &ScalePaths, object: &Value, replicas: i64) -> Result<Value, ApiError> {
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
    let mut spec = Map::new();
    // Go leaves a zero out.
    if replicas != 0 {
        spec.insert("replicas", replicas);
    }
    let current = number(object, &paths.status_replicas)?.unwrap_or(0);
    let mut status = Map::from([("replicas", current)]);
    if let Some((path, selector)) = paths.selector.as_ref().and_then(|path| Some((path, at(object, path)?))) {
        if paths.default_replicas.is_none() && selector.as_str().is_none() {
            return Err(accessor_error(path, selector, "string"));
        }
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
        other => crate::api::labels::Selector::from_object(Some(other))
            .map_err(|error| ApiError::internal(error.to_string()))?,
    };
    Ok(parsed.to_string())
}

/// Writes a wished Scale into an object. The Scale's resourceVersion and uid become the object's, so that they are
/// checked like those of any update.
pub fn write_into(scope: &Scope<'_>, object: &Value, scale: &Value) -> Result<Value, ApiError> {
    let paths = paths(scope)?;
    let meta = Meta::of(scale);
    let mut new = object.clone();
    let replicas = scale.i64_at(&["spec", "replicas"]).unwrap_or(0);
    if replicas == NO_REPLICAS {
        let field = quote(&dotted(&paths.spec_replicas));
        return Err(ApiError::bad_request(format!("the spec replicas field {field} cannot be empty")));
    }
    let mut node = &mut new;
    for key in &paths.spec_replicas {
        node = node.make_object().entry_or(key.as_str(), || Value::Null);
    }
    *node = replicas.into();
    if paths.default_replicas.is_some() {
        // What a custom resource allows is for its own validation to say.
        validate(scope, scale)?;
    }
    for (name, value) in [("resourceVersion", meta.resource_version()), ("uid", meta.uid())] {
        if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
            // The Scale of a custom resource that names no version is one of the version it was made from.
            if value.is_empty() && name == "resourceVersion" && paths.default_replicas.is_some() {
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
