//! Since when the use of legacy tokens is tracked (kubernetes `pkg/controlplane/controller/legacytokentracking`).

use std::time::Duration;

use tokio::time::Instant;

use super::Cluster;
use crate::{
    api::{ApiError, clock::now_seconds},
    json,
    object::Value,
};

pub const HOOK: &str = "start-legacy-token-tracking-controller";

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const PATH: &str = "/api/v1/namespaces/kube-system/configmaps";
const PERIOD: Duration = Duration::from_secs(12 * 60 * 60);
/// Servers that track and servers that do not would make and delete it in turns.
const BETWEEN_CREATIONS: Duration = Duration::from_secs(30 * 60);

pub async fn run(cluster: Cluster) {
    let mut made = None::<Instant>;
    loop {
        let recent = made.map(|at| at.elapsed()).filter(|since| *since < BETWEEN_CREATIONS);
        // Deleted again so soon: it is looked at when the time has passed.
        let period = recent.map_or(PERIOD, |since| BETWEEN_CREATIONS - since);
        let seen = cluster.reader.version("", "configmaps");
        match pass(&cluster, recent.is_none()).await {
            Ok(true) => made = Some(Instant::now()),
            Ok(false) => {}
            Err(error) => tracing::warn!(controller = HOOK, "{}", error.message),
        }
        tokio::time::sleep(super::QUIET).await;
        let _ = tokio::time::timeout(period, cluster.changes.changed("", "configmaps", seen)).await;
    }
}

/// Whether it was made.
async fn pass(cluster: &Cluster, may_create: bool) -> Result<bool, ApiError> {
    let today: String = now_seconds().to_string().chars().take(DATE_LENGTH).collect();
    match cluster.reader.get("", "configmaps", NAMESPACE, NAME) {
        None if may_create => {
            let object = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": NAME, "namespace": NAMESPACE},
                "data": {"since": today}
            });
            cluster.create(PATH, object).await.map(|()| true)
        }
        None => Ok(false),
        Some(found) if is_date(found.str_at(&["data", "since"])) => Ok(false),
        Some(found) => {
            let mut object: Value = (*found).clone();
            object.set(&["data", "since"], today);
            cluster.replace(format!("{PATH}/{NAME}"), object).await.map(|()| false)
        }
    }
}

const DATE_LENGTH: usize = "2006-01-02".len();

fn is_date(text: &str) -> bool {
    text.len() == DATE_LENGTH && text.parse::<jiff::civil::Date>().is_ok()
}
