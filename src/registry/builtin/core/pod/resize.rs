//! `pods/resize`: cpu and memory of containers that run, and of pods as a whole.

use super::{
    EMPTY_PATH,
    options::is_mirror,
    qos,
    quantities::{same, same_member},
    update::{names, take_member},
    view::{given, is_sidecar, items, map, os, text},
};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Map, Value},
};

const SPEC: Path<'static> = Path::new("spec");
const ONLY_CPU_AND_MEMORY: &str = "only cpu and memory resources are mutable";

/// Keeps everything but resources. Where containers came or went the request is kept whole, for validation to refuse.
pub fn prepare_resize(new: &mut Value, old: &Value) {
    let empty = Value::object();
    let (asked, kept) = (new.get("spec").cloned().unwrap_or(Value::Null), old.get("spec").unwrap_or(&empty));
    let same_count = |list: &str| items(&asked, list).len() == items(kept, list).len();
    if same_count("containers") && same_count("initContainers") {
        let mut spec = kept.clone();
        for list in ["containers", "initContainers"] {
            resize_containers(&mut spec, &asked, list);
        }
        take_member(&mut spec, &asked, "resources");
        new.set(&["spec"], spec);
        take_member(new, old, "status");
        super::strategy::reset_metadata_for_status(new, old);
    }
    let spec = new.make(&["spec"]);
    if given(spec, "resources").is_none() {
        take_member(spec, kept, "resources");
    }
    if given(spec, "resources").is_some() {
        qos::default_pod_level(spec);
    }
}

fn resize_containers(spec: &mut Value, asked: &Value, list: &'static str) {
    if names(spec, list) != names(asked, list) {
        spec.set(&[list], items(asked, list).to_vec());
        return;
    }
    let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    for (container, asked) in containers.zip(items(asked, list)) {
        take_member(container, asked, "resources");
        take_member(container, asked, "resizePolicy");
    }
}

/// Judges a resize, after the rules of every pod.
pub fn validate_resize(new: &Value, old: &Value, errors: &mut ErrorList) {
    let empty = Value::object();
    let [spec, was] = [new, old].map(|pod| pod.get("spec").unwrap_or(&empty));
    let refusal = if is_mirror(old) {
        Some("static pods cannot be resized")
    } else {
        (os(was) == Some("windows")).then_some("windows pods cannot be resized")
    };
    if let Some(why) = refusal {
        errors.retain(|_| false);
        errors.push(FieldError::forbidden(&EMPTY_PATH, why));
        return;
    }
    if qos::of_pod(old) != qos::compute(spec) {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&SPEC, new.str_at(&["status", "qosClass"]), why));
    }
    let mut statuses = old.array_at(&["status", "containerStatuses"]).iter();
    let running = statuses.find(|it| it.at(&["state", "running"]).is_some_and(|it| !it.is_null()));
    if running.is_some_and(|status| given(status, "resources").is_none()) {
        errors.push(FieldError::forbidden(&SPEC, "Pod running on node without support for resize"));
    }
    let mut munged = spec.clone();
    validate_pod_level(&mut munged, spec, was, errors);
    let before = errors.len();
    for list in ["containers", "initContainers"] {
        validate_order(spec, was, list, errors);
    }
    if errors.len() > before {
        return;
    }
    for list in ["initContainers", "containers"] {
        validate_removals(spec, was, list, errors);
    }
    validate_containers(&mut munged, was, errors);
    validate_init_containers(&mut munged, was, errors);
    if !same_member(spec.get("volumes"), was.get("volumes")) {
        let why = "volumes are immutable on resize when InPlacePodVerticalScalingMemoryBackedVolumes feature gate is disabled";
        errors.push(FieldError::forbidden(&SPEC.child("volumes"), why));
    }
    if errors.is_empty() && !same(&munged, was) {
        errors.push(FieldError::forbidden(&SPEC, ONLY_CPU_AND_MEMORY));
    }
}

fn says_something(spec: &Value) -> bool {
    ["requests", "limits"].iter().any(|list| spec.object_at(&["resources", list]).is_some_and(|it| !it.is_empty()))
}

fn validate_pod_level(munged: &mut Value, spec: &Value, was: &Value, errors: &mut ErrorList) {
    if !says_something(spec) && !says_something(was) {
        return;
    }
    let path = SPEC.child("resources");
    let (new, old) = (given(spec, "resources"), given(was, "resources"));
    if let Some(old) = old {
        let Some(new) = new else {
            errors.push(FieldError::forbidden(&path, "pod-level resources cannot be removed"));
            return;
        };
        for (list, what) in [("requests", "requests"), ("limits", "limits")] {
            if removed(map(new, list), map(old, list)) {
                let why = format!("pod-level resource {what} cannot be removed");
                errors.push(FieldError::forbidden(&path.child(list), &why));
            }
        }
    }
    let empty = Value::object();
    let mut resources = new.cloned().unwrap_or(Value::Null);
    drop_cpu_and_memory(&mut resources, old.unwrap_or(&empty));
    let nothing = old.is_none() && resources.as_object().is_none_or(Map::is_empty);
    if nothing {
        munged.remove_at(&["resources"]);
    } else {
        munged.set(&["resources"], resources);
    }
    if !same_member(munged.get("resources"), old) {
        errors.push(FieldError::forbidden(&SPEC, "only cpu and memory resources are mutable at pod-level"));
    }
}

fn validate_order(spec: &Value, was: &Value, list: &str, errors: &mut ErrorList) {
    let path = SPEC.child(list);
    let (new, old) = (names(spec, list), names(was, list));
    if new.len() != old.len() {
        errors.push(FieldError::forbidden(&path, &format!("{list} may not be added or removed on resize")));
        return;
    }
    for (index, _) in new.iter().zip(&old).enumerate().filter(|(_, (new, old))| new != old) {
        let why = format!("{list} may not be renamed or reordered on resize");
        errors.push(FieldError::forbidden(&path.index(index).child("name"), &why));
    }
}

fn removed(new: Option<&Map>, old: Option<&Map>) -> bool {
    old.is_some_and(|old| old.keys().any(|name| !new.is_some_and(|new| new.contains_key(name))))
}

fn validate_removals(spec: &Value, was: &Value, list: &str, errors: &mut ErrorList) {
    let path = SPEC.child(list);
    for (index, (new, old)) in items(spec, list).iter().zip(items(was, list)).enumerate() {
        let at = path.index(index);
        let at = at.child("resources");
        for (list, what) in [("requests", "requests"), ("limits", "limits")] {
            if removed(new.object_at(&["resources", list]), old.object_at(&["resources", list])) {
                errors.push(FieldError::forbidden(&at.child(list), &format!("resource {what} cannot be removed")));
            }
        }
    }
}

/// Makes cpu and memory what they were, so that what else changed shows.
fn drop_cpu_and_memory(resources: &mut Value, old: &Value) {
    for list in ["requests", "limits"] {
        let amounts = resources.make(&[list]).make_object();
        for name in ["cpu", "memory"] {
            match old.at(&[list, name]) {
                Some(kept) => {
                    amounts.insert(name, kept.clone());
                }
                None => {
                    amounts.remove(name);
                }
            }
        }
        if amounts.is_empty() {
            resources.remove_at(&[list]);
        }
    }
}

fn munge(container: &mut Value, old: &Value) {
    let empty = Value::object();
    drop_cpu_and_memory(container.make(&["resources"]), old.get("resources").unwrap_or(&empty));
}

fn validate_containers(munged: &mut Value, was: &Value, errors: &mut ErrorList) {
    let containers = munged.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten();
    for (container, old) in containers.zip(items(was, "containers")) {
        munge(container, old);
        if !same(container, old) {
            errors.push(FieldError::forbidden(&SPEC, ONLY_CPU_AND_MEMORY));
        }
    }
}

fn validate_init_containers(munged: &mut Value, was: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("initContainers");
    let containers = munged.get_mut("initContainers").and_then(Value::as_array_mut).into_iter().flatten();
    for (index, (container, old)) in containers.zip(items(was, "initContainers")).enumerate() {
        let at = path.index(index);
        let changed = !same(container, old);
        munge(container, old);
        if !same(container, old) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(FieldError::forbidden(&at, why));
        }
        if changed && !is_sidecar(container) {
            let restarts =
                items(container, "resizePolicy").iter().filter(|it| text(it, "restartPolicy") == "RestartContainer");
            for _ in restarts {
                let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                errors.push(FieldError::forbidden(&at, why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn pod(requests: Value) -> Value {
        json!({
            "metadata": {},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
            "status": {"qosClass": "Burstable"}
        })
    }

    fn resize(new: &Value, old: &Value) -> String {
        let mut new = new.clone();
        prepare_resize(&mut new, old);
        let mut errors = ErrorList::new();
        validate_resize(&new, old, &mut errors);
        errors.to_string()
    }

    #[test]
    fn cpu_may_change_and_nothing_else_is_heard() {
        let old = pod(json!({"cpu": "1"}));
        let mut new = pod(json!({"cpu": "2"}));
        assert_eq!(resize(&new, &old), "");
        new.set(&["spec", "nodeName"], "n");
        prepare_resize(&mut new, &old);
        assert!(new.at(&["spec", "nodeName"]).is_none());
    }

    #[test]
    fn what_is_not_cpu_or_memory_stays_and_nothing_is_removed() {
        let old = pod(json!({"cpu": "1"}));
        let other = json!({"cpu": "1", "ephemeral-storage": "1Gi"});
        assert_eq!(resize(&pod(other), &old), "spec: Forbidden: only cpu and memory resources are mutable");
        let memory = json!({"memory": "1Gi"});
        assert_eq!(
            resize(&pod(memory), &old),
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"
        );
    }
}
