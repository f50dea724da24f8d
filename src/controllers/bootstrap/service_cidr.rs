//! The ServiceCIDR `kubernetes` of `--service-cluster-ip-range` (kubernetes
//! `pkg/controlplane/controller/defaultservicecidr`).

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    Cluster, FOREVER,
    events::{Event, record},
    every, until_done,
};
use crate::{
    api::{ApiError, Meta, clock::now_seconds, duration::format_time},
    json,
    object::{Value, to_string},
};

pub const HOOK: &str = "start-kubernetes-service-cidr-controller";

const MANAGER: &str = "kubernetes-service-cidr-controller";
const NAME: &str = "kubernetes";
const PATH: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const PERIOD: Duration = Duration::from_secs(10);

/// Ends when it is there.
pub async fn ready(cluster: &Cluster) {
    let told = AtomicBool::new(false);
    let _ = until_done(FOREVER, HOOK, || pass(cluster, &told)).await;
}

pub async fn run(cluster: Cluster) {
    let told = AtomicBool::new(false);
    every(PERIOD, MANAGER, || pass(&cluster, &told)).await;
}

async fn pass(cluster: &Cluster, told: &AtomicBool) -> Result<(), ApiError> {
    let cidrs: Vec<String> = cluster.settings().service_ranges.iter().map(ToString::to_string).collect();
    let wanted = Value::from(cidrs.clone());
    let Some(found) = cluster.reader.get("networking.k8s.io", "servicecidrs", "", NAME) else {
        let object = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": NAME},
            "spec": {"cidrs": (wanted.clone())}
        });
        cluster.create(PATH, object.clone()).await?;
        return sync_status(cluster, &object, &wanted, told).await;
    };
    let has = found.array_at(&["spec", "cidrs"]);
    if let [only] = has
        && cidrs.len() == 2
        && only.as_str() == cidrs.first().map(String::as_str)
    {
        let mut object = (*found).clone();
        object.set(&["spec", "cidrs"], wanted);
        return cluster.replace(format!("{PATH}/{NAME}"), object).await;
    }
    sync_status(cluster, &found, &wanted, told).await
}

/// Says that it is ready where nobody has said anything, and once where it is not what the options want.
async fn sync_status(cluster: &Cluster, object: &Value, wanted: &Value, told: &AtomicBool) -> Result<(), ApiError> {
    if Meta::of(object).is_being_deleted() {
        return Ok(());
    }
    if object.at(&["spec", "cidrs"]) != Some(wanted) {
        if !told.swap(true, Ordering::Relaxed) {
            let list =
                |value: Option<&Value>| value.map(to_string).unwrap_or_default().replace('"', "").replace(',', " ");
            let note = format!(
                "The default ServiceCIDR {} does not match the controller flag configurations {}",
                list(object.at(&["spec", "cidrs"])),
                list(Some(wanted))
            );
            let event =
                Event { reason: "KubernetesDefaultServiceCIDRInconsistent", action: "", note, reporter: MANAGER };
            record(cluster, object, event).await;
        }
        return Ok(());
    }
    let conditions = object.array_at(&["status", "conditions"]);
    let ready = conditions.iter().find(|it| it.str_at(&["type"]) == "Ready");
    if ready.is_some_and(|it| it.str_at(&["status"]) != "Unknown") {
        return Ok(());
    }
    let status = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": NAME},
        "status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": (format_time(now_seconds()))
        }]}
    });
    cluster.client.apply(format!("{PATH}/{NAME}/status?fieldManager={MANAGER}&force=true"), status).await.map(drop)
}
