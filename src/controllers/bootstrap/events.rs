//! Events about what the server's own loops find (client-go `tools/events`).

use super::Cluster;
use crate::{
    api::{Meta, clock::now, duration::format_micro_time, unique},
    json,
    object::Value,
};

pub struct Event {
    pub reason: &'static str,
    pub action: &'static str,
    pub note: String,
    /// The loop's name.
    pub reporter: &'static str,
}

/// Writes a warning about an object. One that cannot be written is only logged: nothing depends on it.
pub async fn record(cluster: &Cluster, about: &Value, event: Event) {
    let meta = Meta::of(about);
    let namespace = if meta.namespace().is_empty() { "default" } else { meta.namespace() };
    tracing::warn!(controller = event.reporter, object = meta.name(), reason = event.reason, "{}", event.note);
    let text = |path: &[&str]| about.str_at(path).to_owned();
    let mut regarding = json!({
        "apiVersion": (text(&["apiVersion"])),
        "kind": (text(&["kind"])),
        "name": (meta.name()),
        "uid": (meta.uid()),
        "resourceVersion": (meta.resource_version())
    });
    if !meta.namespace().is_empty() {
        regarding.set(&["namespace"], meta.namespace());
    }
    let action = if event.action.is_empty() { event.reason } else { event.action };
    let object = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": (format!("{}.{}", meta.name(), unique::suffix(16))), "namespace": namespace},
        "eventTime": (format_micro_time(now())),
        "type": "Warning",
        "reason": (event.reason),
        "action": action,
        "note": (event.note),
        "regarding": regarding,
        "reportingController": (event.reporter),
        "reportingInstance": (event.reporter)
    });
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    if let Err(error) = cluster.create(&path, object).await {
        tracing::debug!(controller = event.reporter, "an event could not be written: {}", error.message);
    }
}
