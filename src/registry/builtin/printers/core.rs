//! Rows of the core group, pods aside.

use super::{
    Cells, cells, networking, pod, storage,
    text::{self, NONE, UNKNOWN, age, condition, name, number, or},
    workloads,
};
use crate::{
    api::Meta,
    object::{Map, Value},
    registry::printer::{Cell, Printer},
};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Pod" => Printer::new(pod::row),
        "PodTemplate" | "ReplicationController" => return workloads::printer(kind),
        "Service" | "Endpoints" => return networking::printer(kind),
        "PersistentVolume" | "PersistentVolumeClaim" => return storage::printer(kind),
        "Namespace" => Printer::new(namespace),
        "Node" => Printer::new(node),
        "ConfigMap" => Printer::new(config_map),
        "Secret" => Printer::new(secret),
        "ServiceAccount" => Printer::new(service_account),
        "Event" => Printer::new(event),
        "ResourceQuota" => Printer::new(resource_quota),
        "ComponentStatus" => Printer::new(component_status),
        _ => return None,
    })
}

fn namespace(it: &Value) -> Cells {
    cells![name(it), it.str_at(&["status", "phase"]), age(it)]
}

fn members(it: &Value, field: &str) -> i64 {
    it.object_at(&[field]).map_or(0, Map::len) as i64
}

fn config_map(it: &Value) -> Cells {
    cells![name(it), members(it, "data") + members(it, "binaryData"), age(it)]
}

fn secret(it: &Value) -> Cells {
    cells![name(it), it.str_at(&["type"]), members(it, "data"), age(it)]
}

fn service_account(it: &Value) -> Cells {
    cells![name(it), age(it)]
}

fn component_status(it: &Value) -> Cells {
    let Some(healthy) = condition(it, &["conditions"], "Healthy") else {
        return cells![name(it), "Unknown", "", ""];
    };
    let status = if healthy.str_at(&["status"]) == "True" { "Healthy" } else { "Unhealthy" };
    cells![name(it), status, healthy.str_at(&["message"]), healthy.str_at(&["error"])]
}

fn node(it: &Value) -> Cells {
    // Of conditions of one type the last counts here.
    let ready = it.array_at(&["status", "conditions"]).iter().rev().find(|it| it.str_at(&["type"]) == "Ready");
    let mut status = match ready.map(|ready| ready.str_at(&["status"])) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if it.bool_at(&["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let info = |field: &str| it.str_at(&["status", "nodeInfo", field]);
    let mut kernel = or(info("kernelVersion"), UNKNOWN).to_owned();
    if !info("architecture").is_empty() {
        kernel.push_str(&format!(" ({})", info("architecture")));
    }
    let address = |kind: &str| {
        let addresses = it.array_at(&["status", "addresses"]);
        addresses.iter().find(|it| it.str_at(&["type"]) == kind).map_or(NONE, |it| it.str_at(&["address"]))
    };
    cells![
        name(it),
        status,
        or(&roles(it), NONE),
        age(it),
        info("kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        or(info("osImage"), UNKNOWN),
        kernel,
        or(info("containerRuntimeVersion"), UNKNOWN),
    ]
}

/// The roles that a node's labels name, each once and sorted.
fn roles(node: &Value) -> String {
    let labels = Meta::of(node).labels();
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flat_map(Map::iter)
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None => value.as_str().filter(|_| key.as_str() == "kubernetes.io/role"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles.join(",")
}

fn event(it: &Value) -> Cells {
    let first = text::time(it, &["firstTimestamp"]).or_else(|| text::time(it, &["eventTime"]));
    let series = it.at(&["series"]).filter(|series| !series.is_null());
    let (last, count) = match series {
        Some(series) => (text::time(series, &["lastObservedTime"]), number(series, &["count"])),
        None => (text::time(it, &["lastTimestamp"]).or(first), number(it, &["count"])),
    };
    // What happened once need not say so.
    let count = if series.is_none() && count == 0 { 1 } else { count };
    let involved = |field: &str| it.str_at(&["involvedObject", field]);
    let mut object = involved("kind").to_lowercase();
    if !involved("name").is_empty() {
        object.push_str(&format!("/{}", involved("name")));
    }
    let mut source = or(it.str_at(&["source", "component"]), it.str_at(&["reportingComponent"])).to_owned();
    let instance = or(it.str_at(&["source", "host"]), it.str_at(&["reportingInstance"]));
    if !instance.is_empty() {
        source.push_str(&format!(", {instance}"));
    }
    cells![
        Cell::age(last),
        it.str_at(&["type"]),
        it.str_at(&["reason"]),
        object,
        involved("fieldPath"),
        source,
        it.str_at(&["message"]).trim(),
        Cell::age(first),
        count,
        name(it),
    ]
}

fn resource_quota(it: &Value) -> Cells {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in it.object_at(&["status", "hard"]).into_iter().flat_map(Map::iter) {
        let used = it.at(&["status", "used", resource]);
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{resource}: {}/{}", text::quantity(used), text::quantity(Some(hard))));
    }
    cells![name(it), requests.join(", "), limits.join(", "), age(it)]
}
