//! How the parts of a pod are reached: members that count as there, and all containers with their paths.

use crate::{
    api::Path,
    object::{Map, Value},
};

/// A member that is neither missing nor null: a pointer that is set.
pub fn given<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|it| !it.is_null())
}

/// The text of a member; `""` where there is none.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.str_at(&[key])
}

/// The items of a member that is a list.
pub fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.array_at(&[key])
}

/// The texts of a list of texts.
pub fn texts<'v>(value: &'v Value, key: &str) -> impl ExactSizeIterator<Item = &'v str> {
    items(value, key).iter().map(|it| it.as_str().unwrap_or(""))
}

/// A member that is a map.
pub fn map<'v>(value: &'v Value, key: &str) -> Option<&'v Map> {
    value.object_at(&[key])
}

/// The three lists of containers, in the order in which upstream visits them.
pub const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Calls `visit` with each container and its path: init containers, containers, ephemeral containers.
pub fn visit_containers<'v>(spec: &'v Value, path: &Path<'_>, visit: &mut dyn FnMut(&'v Value, &Path<'_>)) {
    for list in CONTAINER_LISTS {
        let path = path.child(list);
        for (index, container) in items(spec, list).iter().enumerate() {
            visit(container, &path.index(index));
        }
    }
}

/// All containers, in the same order.
pub fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    CONTAINER_LISTS.into_iter().flat_map(|list| items(spec, list))
}

/// All containers, to be changed.
pub fn containers_mut(spec: &mut Value, mut change: impl FnMut(&mut Value)) {
    for list in CONTAINER_LISTS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            change(container);
        }
    }
}

/// An init container that runs beside the others.
pub fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

/// The name of the operating system the pod says it is for; `None` where it says nothing.
pub fn os(spec: &Value) -> Option<&str> {
    given(spec, "os").map(|os| text(os, "name"))
}

/// The annotations of an object or of a template.
pub fn annotations(object: &Value) -> Option<&Map> {
    object.object_at(&["metadata", "annotations"])
}

/// An annotation's value.
pub fn annotation<'v>(annotations: Option<&'v Map>, key: &str) -> Option<&'v str> {
    annotations?.get(key)?.as_str()
}
