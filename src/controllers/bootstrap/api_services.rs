//! An APIService for every group and version that this server serves itself (kubernetes
//! `pkg/controlplane/apiserver/aggregator.go`, kube-aggregator `pkg/controllers/autoregister`, and the registration of
//! custom resources in kubernetes `pkg/controlplane/controller/crdregistration`).

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{TryStreamExt, future::join_all, stream};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::Cluster;
use crate::{
    api::{ApiError, Meta},
    controllers::crd_versions::{GroupVersion, GroupVersions},
    json,
    object::Value,
};

pub const HOOK: &str = "kube-apiserver-autoregistration";

const GROUP: &str = "apiregistration.k8s.io";
const PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Made once a process: deleted afterwards, it stays deleted.
const ON_START: &str = "onstart";
/// Kept as long as there is a definition behind it.
const ALWAYS: &str = "true";
const PERIOD: Duration = Duration::from_secs(30);
/// How long after a write that failed everything is looked at again.
const RETRY: Duration = Duration::from_secs(1);
/// APIServices of custom groups written at once.
const MOST_WRITES: usize = 32;

/// Group, version, priority of the group, priority of the version. What is not in it is served without an APIService.
const PRIORITIES: &[(&str, &str, i64, i64)] = &[
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("events.k8s.io", "v1beta1", 17750, 5),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("certificates.k8s.io", "v1beta1", 17300, 9),
    ("networking.k8s.io", "v1", 17200, 15),
    ("networking.k8s.io", "v1beta1", 17200, 9),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("storage.k8s.io", "v1", 16800, 15),
    ("storage.k8s.io", "v1beta1", 16800, 9),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1beta1", 16700, 12),
    ("admissionregistration.k8s.io", "v1alpha1", 16700, 9),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("scheduling.k8s.io", "v1beta1", 16600, 9),
    ("scheduling.k8s.io", "v1alpha3", 16600, 3),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("coordination.k8s.io", "v1beta1", 16500, 13),
    ("coordination.k8s.io", "v1alpha2", 16500, 12),
    ("node.k8s.io", "v1", 16300, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("resource.k8s.io", "v1beta2", 16200, 15),
    ("resource.k8s.io", "v1beta1", 16200, 9),
    ("resource.k8s.io", "v1alpha3", 16200, 1),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("internal.apiserver.k8s.io", "v1alpha1", 16000, 9),
    ("storagemigration.k8s.io", "v1", 15800, 15),
    ("storagemigration.k8s.io", "v1beta1", 15800, 9),
    ("lifecycle.k8s.io", "v1alpha1", 15700, 1),
];

const CUSTOM_GROUP_PRIORITY: i64 = 1000;
const CUSTOM_VERSION_PRIORITY: i64 = 100;

/// Makes and keeps APIServices, and knows whether those of the start are there.
pub struct Registration {
    cluster: Cluster,
    custom: Arc<GroupVersions>,
    /// Names that were there when the process started: a spec that differs is put right once.
    found_at_start: HashSet<String>,
    /// Names this process has made, or put right.
    synced: Mutex<HashSet<String>>,
}

impl Registration {
    pub fn new(cluster: Cluster, custom: Arc<GroupVersions>) -> Arc<Self> {
        let found = cluster.reader.list(GROUP, "apiservices", None);
        let found_at_start = found.iter().map(|it| Meta::of(it).name().to_owned()).collect();
        Arc::new(Self { cluster, custom, found_at_start, synced: Mutex::default() })
    }

    /// Ends when everything that is served now has its APIService.
    pub async fn ready(&self) {
        let _ = super::until_done(super::FOREVER, HOOK, || self.pass()).await;
    }

    /// Follows the definitions change by change, and looks at everything once in a while.
    pub async fn run(self: Arc<Self>) {
        let mut look = Instant::now() + PERIOD;
        loop {
            let result = match timeout_at(look, self.custom.changed()).await {
                Ok(changed) => self.follow(changed).await,
                Err(_) => {
                    look = Instant::now() + PERIOD;
                    self.pass().await
                }
            };
            if let Err(error) = result {
                tracing::warn!(controller = HOOK, "{}", error.message);
                look = look.min(Instant::now() + RETRY);
            }
        }
    }

    /// Brings the APIServices of custom groups and versions that came or went up to date.
    async fn follow(&self, changed: Vec<GroupVersion>) -> Result<(), ApiError> {
        let follow = |name| async move { self.follow_one(name).await };
        stream::iter(changed.into_iter().map(Ok)).try_for_each_concurrent(MOST_WRITES, follow).await
    }

    async fn follow_one(&self, changed: GroupVersion) -> Result<(), ApiError> {
        let (name, spec) = custom_spec(&changed);
        if self.built_in().contains_key(&name) {
            return Ok(());
        }
        if self.custom.has(&changed) {
            return self.ensure(&name, &spec, ALWAYS).await;
        }
        match self.cluster.reader.get(GROUP, "apiservices", "", &name) {
            Some(service) if self.manages(&service) => self.cluster.delete(format!("{PATH}/{name}")).await,
            _ => Ok(()),
        }
    }

    /// What is wrong with the APIServices of built-in groups and versions (the check `autoregister-completion`).
    pub fn complete(&self) -> Result<(), String> {
        let available = |name: &str| {
            let service = self.cluster.reader.get(GROUP, "apiservices", "", name);
            let conditions = service.as_deref().map_or(&[][..], |it| it.array_at(&["status", "conditions"]));
            conditions.iter().any(|it| it.str_at(&["type"]) == "Available" && it.str_at(&["status"]) == "True")
        };
        // Seen once is enough: who takes one away later does not make the server unready.
        let synced = self.synced.lock();
        let missing: Vec<String> =
            self.built_in().into_keys().filter(|name| !synced.contains(name) && !available(name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("missing APIService: [{}]", missing.join(" "))) }
    }

    fn built_in(&self) -> BTreeMap<String, Value> {
        let served = &self.cluster.settings().group_versions;
        let wanted =
            PRIORITIES.iter().filter(|(group, version, ..)| served.iter().any(|(g, v)| g == group && v == version));
        wanted.map(|(group, version, of_group, of_version)| spec(group, version, *of_group, *of_version)).collect()
    }

    async fn pass(&self) -> Result<(), ApiError> {
        let told = self.custom.all();
        let custom: BTreeMap<String, Value> = told.iter().flatten().map(custom_spec).collect();
        let built_in = self.built_in();
        let once = built_in.iter().map(|(name, spec)| self.ensure(name, spec, ON_START));
        let always = custom.iter().filter(|(name, _)| !built_in.contains_key(*name));
        let always = always.map(|(name, spec)| self.ensure(name, spec, ALWAYS));
        let (once, always) = tokio::join!(join_all(once), join_all(always));
        once.into_iter().chain(always).collect::<Result<(), _>>()?;
        for service in self.cluster.reader.list(GROUP, "apiservices", None) {
            let name = Meta::of(&service).name();
            // Before all definitions are told, nobody knows whose this is.
            let spurious = told.is_some() && !built_in.contains_key(name) && !custom.contains_key(name);
            if spurious && self.manages(&service) {
                self.cluster.delete(format!("{PATH}/{name}")).await?;
            }
        }
        Ok(())
    }

    /// Whether an APIService is this loop's to change: it made it, or one like it in an earlier process.
    fn manages(&self, service: &Value) -> bool {
        let name = Meta::of(service).name();
        match Meta::of(service).label(MANAGED) {
            Some(ALWAYS) => true,
            Some(ON_START) => self.found_at_start.contains(name) && !self.synced.lock().contains(name),
            _ => false,
        }
    }

    async fn ensure(&self, name: &str, spec: &Value, managed: &'static str) -> Result<(), ApiError> {
        let once = managed == ON_START;
        if once && self.synced.lock().contains(name) {
            return Ok(());
        }
        match self.cluster.reader.get(GROUP, "apiservices", "", name) {
            None => {
                let mut object = json!({
                    "apiVersion": "apiregistration.k8s.io/v1",
                    "kind": "APIService",
                    "metadata": {"name": name},
                    "spec": (spec.clone())
                });
                object.set(&["metadata", "labels", MANAGED], managed);
                self.cluster.create(PATH, object).await?;
            }
            Some(found) if found.get("spec") != Some(spec) && self.manages(&found) => {
                let mut object = (*found).clone();
                object.set(&["spec"], spec.clone());
                self.cluster.replace(format!("{PATH}/{name}"), object).await?;
            }
            Some(_) => {}
        }
        if once {
            self.synced.lock().insert(name.to_owned());
        }
        Ok(())
    }
}

fn custom_spec((group, version): &GroupVersion) -> (String, Value) {
    spec(group, version, CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY)
}

/// Name and spec of a local APIService.
fn spec(group: &str, version: &str, of_group: i64, of_version: i64) -> (String, Value) {
    let mut spec = json!({"version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version});
    if !group.is_empty() {
        spec.set(&["group"], group);
    }
    (format!("{version}.{group}"), spec)
}
