//! The core group but for pods.

use super::{Hooks, set};
use crate::{
    json,
    object::{Key, Map, Value},
};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.core.v1.ReplicationController", |it, _| replication_controller(it)),
    ("io.k8s.api.core.v1.Service", |it, _| service(it)),
    ("io.k8s.api.core.v1.Secret", |it, _| set::empty(it, "type", "Opaque")),
    ("io.k8s.api.core.v1.PersistentVolume", |it, _| {
        set::empty(set::child(it, "status"), "phase", "Pending");
        let spec = set::child(it, "spec");
        set::empty(spec, "persistentVolumeReclaimPolicy", "Retain");
        set::nil(spec, "volumeMode", "Filesystem");
    }),
    ("io.k8s.api.core.v1.PersistentVolumeClaim", |it, _| set::empty(set::child(it, "status"), "phase", "Pending")),
    ("io.k8s.api.core.v1.PersistentVolumeClaimSpec", |it, _| set::nil(it, "volumeMode", "Filesystem")),
    ("io.k8s.api.core.v1.Endpoints", |it, _| endpoints(it)),
    ("io.k8s.api.core.v1.Namespace", |it, _| namespace(it)),
    ("io.k8s.api.core.v1.NamespaceStatus", |it, _| set::empty(it, "phase", "Active")),
    ("io.k8s.api.core.v1.NodeStatus", |it, _| node_status(it)),
    ("io.k8s.api.core.v1.LimitRangeItem", |it, _| limit_range_item(it)),
];

fn replication_controller(it: &mut Map) {
    let template = it.get("spec").and_then(|spec| spec.at(&["template", "metadata", "labels"]));
    let Some(labels) = template.filter(|labels| labels.as_object().is_some_and(|it| !it.is_empty())).cloned() else {
        return;
    };
    let spec = set::child(it, "spec");
    if set::has_none(spec, "selector") {
        spec.insert(Key::from_static("selector"), labels.clone());
    }
    let metadata = set::child(it, "metadata");
    if set::has_none(metadata, "labels") {
        metadata.insert(Key::from_static("labels"), labels);
    }
}

fn service(it: &mut Map) {
    let spec = set::child(it, "spec");
    session_affinity(spec);
    set::empty(spec, "type", "ClusterIP");
    for port in set::items(spec, "ports") {
        set::empty(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or(Value::Int(0));
        match port.get("targetPort") {
            None | Some(Value::Null | Value::Int(0)) => {
                port.insert(Key::from_static("targetPort"), number);
            }
            Some(Value::Str(name)) if name.is_empty() => {
                port.insert(Key::from_static("targetPort"), number);
            }
            Some(_) => {}
        }
    }
    let kind = set::text(spec, "type").to_owned();
    let has_address = matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP");
    let reachable = kind == "NodePort" || kind == "LoadBalancer";
    if reachable || kind == "ClusterIP" && !set::has_none(spec, "externalIPs") {
        set::empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if has_address {
        set::nil(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set::nil(spec, "allocateLoadBalancerNodePorts", true);
        let status = set::child(it, "status");
        for ingress in set::items(set::child(status, "loadBalancer"), "ingress") {
            if !set::text(ingress, "ip").is_empty() {
                set::nil(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn session_affinity(spec: &mut Map) {
    set::empty(spec, "sessionAffinity", "None");
    match set::text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let timeout = |config: &Value| config.at(&["clientIP", "timeoutSeconds"]).is_some_and(|it| !it.is_null());
            if !spec.get("sessionAffinityConfig").is_some_and(timeout) {
                let config = json!({"clientIP": {"timeoutSeconds": 10800}});
                spec.insert(Key::from_static("sessionAffinityConfig"), config);
            }
        }
        _ => {}
    }
}

fn endpoints(it: &mut Map) {
    for subset in set::items(it, "subsets") {
        for port in set::items(subset, "ports") {
            set::empty(port, "protocol", "TCP");
        }
    }
}

/// A namespace carries its name as a label; one whose name is yet to be generated gets it later.
fn namespace(it: &mut Map) {
    let metadata = set::child(it, "metadata");
    let name = set::text(metadata, "name").to_owned();
    if !name.is_empty() {
        set::child(metadata, "labels").insert(Key::from_static("kubernetes.io/metadata.name"), name);
    }
}

fn node_status(it: &mut Map) {
    if set::is_nil(it, "allocatable")
        && let Some(capacity) = it.get("capacity").filter(|capacity| !capacity.is_null()).cloned()
    {
        it.insert(Key::from_static("allocatable"), capacity);
    } else if set::has_none(it, "allocatable") {
        // Given, and given empty: not defaulted, and not printed.
        it.remove("allocatable");
    }
}

/// For containers: limit from the maximum, request from the limit, request from the minimum.
fn limit_range_item(it: &mut Map) {
    if set::text(it, "type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(from) = it.get(from).and_then(Value::as_object).filter(|it| !it.is_empty()).cloned() else { continue };
        let to = it.entry_or(Key::from_static(to), Value::object).make_object();
        for (name, amount) in from {
            to.entry_or(name, || amount);
        }
    }
}
