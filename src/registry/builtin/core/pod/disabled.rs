//! Fields of features that are off: dropped from what is written, unless the old object has them
//! (kubernetes `pkg/api/pod/util.go`, dropDisabledFields). Feature gates have their defaults.

use super::{annotations, view::CONTAINER_LISTS};
use crate::object::Value;

/// Steps from the spec (or status) to a member. `*`: each item of a list. `#`: each container of all lists.
type Place = &'static [&'static str];

/// Gates that are off, and where their fields are.
const SPEC: &[&[Place]] = &[
    // ContainerStopSignals
    &[&["#", "lifecycle", "stopSignal"]],
    // AtomicWriteVolumeUserFields
    &[
        &["volumes", "*", "secret", "defaultUser"],
        &["volumes", "*", "secret", "items", "*", "user"],
        &["volumes", "*", "configMap", "defaultUser"],
        &["volumes", "*", "configMap", "items", "*", "user"],
        &["volumes", "*", "downwardAPI", "defaultUser"],
        &["volumes", "*", "downwardAPI", "items", "*", "user"],
        &["volumes", "*", "projected", "defaultUser"],
        &["volumes", "*", "projected", "sources", "*", "secret", "items", "*", "user"],
        &["volumes", "*", "projected", "sources", "*", "configMap", "items", "*", "user"],
        &["volumes", "*", "projected", "sources", "*", "downwardAPI", "items", "*", "user"],
        &["volumes", "*", "projected", "sources", "*", "serviceAccountToken", "user"],
        &["volumes", "*", "projected", "sources", "*", "clusterTrustBundle", "user"],
        &["volumes", "*", "projected", "sources", "*", "podCertificate", "user"],
    ],
    // GenericWorkload
    &[&["schedulingGroup"]],
    // GRPCContainerProbeTLS
    &[
        &["#", "livenessProbe", "grpc", "mode"],
        &["#", "readinessProbe", "grpc", "mode"],
        &["#", "startupProbe", "grpc", "mode"],
    ],
    // H2CContainerProbe
    &[
        &["#", "livenessProbe", "httpGet", "protocol"],
        &["#", "readinessProbe", "httpGet", "protocol"],
        &["#", "startupProbe", "httpGet", "protocol"],
        &["#", "lifecycle", "postStart", "httpGet", "protocol"],
        &["#", "lifecycle", "preStop", "httpGet", "protocol"],
    ],
    // EvictionRequestAPI
    &[&["evictionResponders"]],
    // EmptyDirVolumeMode
    &[&["volumes", "*", "emptyDir", "mode"]],
    // VolumeBindMountOptions
    &[&["#", "volumeMounts", "*", "bindMountOptions"]],
];

const STATUS: &[&[Place]] = &[
    // ImageVolumeWithDigest
    &[
        &["containerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
        &["initContainerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
        &["ephemeralContainerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
    ],
    // DRANodeAllocatableResources
    &[&["nodeAllocatableResourceClaimStatuses"]],
    // CSIVolumeHealth
    &[&["volumeHealth"]],
];

fn holds(value: &Value, place: &[&str]) -> bool {
    let Some((step, rest)) = place.split_first() else { return !value.is_null() };
    match *step {
        "*" => value.as_array().is_some_and(|items| items.iter().any(|item| holds(item, rest))),
        "#" => CONTAINER_LISTS.iter().any(|list| value.array_at(&[list]).iter().any(|item| holds(item, rest))),
        key => value.get(key).is_some_and(|member| holds(member, rest)),
    }
}

fn remove(value: &mut Value, place: &[&str]) {
    let Some((step, rest)) = place.split_first() else { return };
    let each = |value: Option<&mut Value>| {
        for item in value.and_then(Value::as_array_mut).into_iter().flatten() {
            remove(item, rest);
        }
    };
    match *step {
        "*" => each(Some(value)),
        "#" => CONTAINER_LISTS.iter().for_each(|list| each(value.get_mut(list))),
        key if rest.is_empty() => {
            value.remove_at(&[key]);
        }
        key => {
            if let Some(member) = value.get_mut(key) {
                remove(member, rest);
            }
        }
    }
}

fn drop_from(part: &mut Value, old: Option<&Value>, gates: &[&[Place]]) {
    for places in gates {
        let used = |part: &Value| places.iter().any(|place| holds(part, place));
        if used(part) && !old.is_some_and(used) {
            places.iter().for_each(|place| remove(part, place));
        }
    }
}

/// Of a pod.
pub fn drop_pod_fields(new: &mut Value, old: Option<&Value>) {
    drop_template_fields(new, old);
    if let Some(status) = new.get_mut("status") {
        drop_from(status, old.and_then(|old| old.get("status")), STATUS);
    }
}

/// Of a template: `metadata` and `spec`.
pub fn drop_template_fields(new: &mut Value, old: Option<&Value>) {
    if let Some(spec) = new.get_mut("spec") {
        drop_from(spec, old.and_then(|old| old.get("spec")), SPEC);
    }
    annotations::drop_init_containers(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_field_of_a_feature_that_is_off_stays_only_where_it_was() {
        let pod = || {
            json!({"spec": {
                "containers": [{"name": "c", "lifecycle": {"stopSignal": "SIGTERM"}}],
                "volumes": [{"name": "v", "emptyDir": {"mode": 1}}]
            }})
        };
        let mut new = pod();
        drop_pod_fields(&mut new, None);
        assert_eq!(
            new,
            json!({"spec": {"containers": [{"name": "c", "lifecycle": {}}], "volumes": [{"name": "v", "emptyDir": {}}]}})
        );
        let mut new = pod();
        drop_pod_fields(&mut new, Some(&pod()));
        assert_eq!(new, pod());
    }
}
