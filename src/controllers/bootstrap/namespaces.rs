//! The four namespaces of the system (kubernetes `pkg/controlplane/controller/systemnamespaces`).

use std::time::Duration;

use futures_util::future::join_all;

use super::{Cluster, FOREVER, until_done};
use crate::{api::ApiError, json};

pub const HOOK: &str = "start-system-namespaces-controller";

const NAMES: [&str; 4] = ["kube-system", "kube-public", "default", "kube-node-lease"];
const PERIOD: Duration = Duration::from_secs(60);

/// Ends when all of them are there.
pub async fn ready(cluster: &Cluster) {
    let _ = until_done(FOREVER, HOOK, || pass(cluster)).await;
}

/// Makes again what is deleted.
pub async fn run(cluster: Cluster) {
    cluster.keep(("", "namespaces"), PERIOD, HOOK, || pass(&cluster)).await;
}

async fn pass(cluster: &Cluster) -> Result<(), ApiError> {
    let missing = NAMES.iter().filter(|name| cluster.reader.get("", "namespaces", "", name).is_none());
    let made = join_all(missing.map(|name| {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": (*name)}});
        cluster.create("/api/v1/namespaces", object)
    }));
    made.await.into_iter().collect()
}
