//! The two priority classes of the system (kubernetes `pkg/registry/scheduling/rest`).

use std::time::Duration;

use futures_util::future::join_all;

use super::{Cluster, until_done};
use crate::{api::ApiError, json};

pub const HOOK: &str = "scheduling/bootstrap-system-priority-classes";

const PATH: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const PATIENCE: Duration = Duration::from_secs(30);

const CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

/// Makes what is missing; what is there stays as it is.
pub async fn run(cluster: Cluster) -> Result<(), String> {
    let done = until_done(PATIENCE, HOOK, || pass(&cluster)).await;
    done.map_err(|error| format!("unable to add default system priority classes: {}", error.message))
}

async fn pass(cluster: &Cluster) -> Result<(), ApiError> {
    let is_missing = |name: &str| cluster.reader.get("scheduling.k8s.io", "priorityclasses", "", name).is_none();
    let missing = CLASSES.into_iter().filter(|(name, ..)| is_missing(name));
    let made = join_all(missing.map(|(name, value, description)| {
        let object = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description
        });
        cluster.create(PATH, object)
    }));
    made.await.into_iter().collect()
}
