//! The Service `kubernetes` and its endpoints: the addresses of all servers that live (kubernetes
//! `pkg/controlplane/controller/kubernetesservice`, `pkg/controlplane/reconcilers`).
//!
//! A server lives as long as it renews its key below `/registry/masterleases/`; the store forgets a key that is not
//! renewed. Beside it stands a key by which servers that proxy to each other find this one.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use super::{Cluster, Settings, identity::server_identity};
use crate::{
    api::{ApiError, ip::parse_ip},
    json,
    object::{Value, parse, to_vec},
    storage::{Expect, Op, StorageError, Write, WriteOutcome},
};

pub const HOOK: &str = "bootstrap-controller";
/// Its key is written together with the other.
pub const PEER_HOOK: &str = "peer-endpoint-reconciler-controller";

const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const MASTERS: &str = "/registry/masterleases/";
const PEERS: &str = "/registry/peerserverleases/";
const TTL: Duration = Duration::from_secs(15);
const PERIOD: Duration = Duration::from_secs(10);
/// Tries of one key: another process of this server may write it, too.
const TRIES: usize = 5;

/// Forgets what an earlier process of this server left, so that nobody is sent here before it is ready.
pub async fn remove_stale(cluster: &Cluster) {
    let Some(address) = cluster.settings().advertise_address else { return };
    if let Err(error) = leave(cluster, address).await {
        tracing::warn!(controller = HOOK, "cannot remove what an earlier process left: {}", error.message);
    }
}

/// Makes the Service where it is missing; ends when it is there.
pub async fn ready(cluster: &Cluster) {
    let _ = super::until_done(super::FOREVER, HOOK, || ensure_service(cluster)).await;
}

/// Keeps Service and endpoints from now on.
pub async fn run(cluster: Cluster) {
    loop {
        if let Err(error) = pass(&cluster).await {
            tracing::warn!(controller = HOOK, "unable to sync kubernetes service: {}", error.message);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Takes this server out of the endpoints. Call when [`run`] has been ended.
pub async fn stop(cluster: &Cluster) {
    let settings = cluster.settings();
    let Some(address) = settings.advertise_address.filter(|_| settings.publish_endpoints) else { return };
    if let Err(error) = leave(cluster, address).await {
        tracing::warn!(controller = HOOK, "unable to remove endpoints from kubernetes service: {}", error.message);
    }
}

async fn leave(cluster: &Cluster, address: IpAddr) -> Result<(), ApiError> {
    let settings = cluster.settings();
    forget(cluster, &format!("{PEERS}{}", server_identity(&settings.host_name))).await?;
    if forget(cluster, &format!("{MASTERS}{address}")).await? {
        reconcile(cluster, &settings).await?;
    }
    Ok(())
}

async fn pass(cluster: &Cluster) -> Result<(), ApiError> {
    ensure_service(cluster).await?;
    let settings = cluster.settings();
    let Some(address) = settings.advertise_address.filter(|_| settings.publish_endpoints) else { return Ok(()) };
    let mine = json!([{"addresses": [{"ip": (address.to_string())}]}]);
    renew(cluster, &format!("{MASTERS}{address}"), mine).await?;
    let port = i64::from(settings.secure_port);
    let peer = json!([{"addresses": [{"ip": (address.to_string())}], "ports": [{"port": port, "protocol": "TCP"}]}]);
    renew(cluster, &format!("{PEERS}{}", server_identity(&settings.host_name)), peer).await?;
    reconcile(cluster, &settings).await
}

async fn ensure_service(cluster: &Cluster) -> Result<(), ApiError> {
    if cluster.reader.get("", "services", NAMESPACE, NAME).is_some() {
        return Ok(());
    }
    // The reader may be a moment behind, and a second create would be told of its address, not of its name.
    if cluster.exists(&format!("{SERVICES}/{NAME}")).await? {
        return Ok(());
    }
    let settings = cluster.settings();
    let mut port = json!({
        "name": "https", "protocol": "TCP", "port": 443, "targetPort": (i64::from(settings.secure_port))
    });
    let node_port = settings.kubernetes_node_port;
    if node_port > 0 {
        port.set(&["nodePort"], node_port);
    }
    // The first address of the range is the Service's.
    let ip = settings.service_ranges.first().and_then(|range| range.hosts().find(|ip| *ip != range.network()));
    let Some(ip) = ip else { return Ok(()) };
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"}
        },
        "spec": {
            "ports": [port],
            "clusterIP": (ip.to_string()),
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "type": (if node_port > 0 { "NodePort" } else { "ClusterIP" })
        }
    });
    cluster.create(SERVICES, service).await
}

fn failed(error: StorageError) -> ApiError {
    ApiError::internal(error.to_string())
}

/// Writes a key that the store forgets by itself. The generation counts renewals.
async fn renew(cluster: &Cluster, key: &str, subsets: Value) -> Result<(), ApiError> {
    for _ in 0..TRIES {
        let found = cluster.storage.get(key, None).await.map_err(failed)?;
        let expect = found.as_ref().map_or(Expect::Absent, |it| Expect::ModRevision(it.mod_revision));
        let generation = found.and_then(|it| parse(&it.value).ok()?.i64_at(&["metadata", "generation"])).unwrap_or(0);
        let value = json!({
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"generation": (generation + 1)},
            "subsets": (subsets.clone())
        });
        let op = Op::Put { value: to_vec(&value).into(), ttl: Some(TTL) };
        let write = Write { key: Arc::from(key), expect, op };
        if let WriteOutcome::Committed(_) = cluster.storage.write(write).await.map_err(failed)? {
            return Ok(());
        }
    }
    Err(ApiError::internal(format!("{key} is written by somebody else again and again")))
}

/// Whether the key was there.
async fn forget(cluster: &Cluster, key: &str) -> Result<bool, ApiError> {
    for _ in 0..TRIES {
        let Some(found) = cluster.storage.get(key, None).await.map_err(failed)? else { return Ok(false) };
        let write = Write { key: Arc::from(key), expect: Expect::ModRevision(found.mod_revision), op: Op::Delete };
        if let WriteOutcome::Committed(_) = cluster.storage.write(write).await.map_err(failed)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Addresses of all servers that live.
async fn masters(cluster: &Cluster) -> Result<BTreeSet<String>, ApiError> {
    let page = cluster.storage.list(MASTERS, "", 0, None).await.map_err(failed)?;
    let ip = |value: &[u8]| {
        let object = parse(value).ok()?;
        let subset = object.array_at(&["subsets"]).first()?;
        let ip = subset.array_at(&["addresses"]).first()?.str_at(&["ip"]).to_owned();
        (!ip.is_empty()).then_some(ip)
    };
    Ok(page.items.iter().filter_map(|item| ip(&item.value)).collect())
}

/// Brings Endpoints and EndpointSlice to what the keys say.
async fn reconcile(cluster: &Cluster, settings: &Settings) -> Result<(), ApiError> {
    let ips = masters(cluster).await?;
    if ips.is_empty() {
        // This server is the last, or something is wrong with the store: an empty list would help nobody.
        return Ok(());
    }
    let found = cluster.reader.get("", "endpoints", NAMESPACE, NAME);
    let endpoints = wanted_endpoints(found.as_deref(), &ips, settings.secure_port);
    match &found {
        None => cluster.create(ENDPOINTS, endpoints.clone()).await?,
        Some(found) if **found != endpoints => {
            cluster.replace(format!("{ENDPOINTS}/{NAME}"), endpoints.clone()).await?
        }
        Some(_) => {}
    }
    ensure_slice(cluster, &endpoints).await
}

const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// What is there with these addresses. Ports are left alone as long as there is exactly one subset.
fn wanted_endpoints(found: Option<&Value>, ips: &BTreeSet<String>, port: u16) -> Value {
    let mut endpoints = found.cloned().unwrap_or_else(
        || json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": NAME, "namespace": NAMESPACE}}),
    );
    endpoints.set(&["metadata", "labels", SKIP_MIRROR], "true");
    let mut subset = match endpoints.array_at(&["subsets"]) {
        [only] => only.clone(),
        _ => json!({"ports": [{"name": "https", "port": port, "protocol": "TCP"}]}),
    };
    let has: BTreeSet<&str> = subset.array_at(&["addresses"]).iter().map(|it| it.str_at(&["ip"])).collect();
    if has != ips.iter().map(String::as_str).collect() {
        let addresses: Vec<Value> = ips.iter().map(|ip| json!({"ip": (ip.as_str())})).collect();
        subset.set(&["addresses"], addresses);
    }
    endpoints.set(&["subsets"], vec![subset]);
    endpoints
}

async fn ensure_slice(cluster: &Cluster, endpoints: &Value) -> Result<(), ApiError> {
    let wanted = slice_of(endpoints);
    let Some(found) = cluster.reader.get("discovery.k8s.io", "endpointslices", NAMESPACE, NAME) else {
        return cluster.create(SLICES, wanted).await;
    };
    if found.get("addressType") != wanted.get("addressType") {
        cluster.delete(format!("{SLICES}/{NAME}")).await?;
        return cluster.create(SLICES, wanted).await;
    }
    let same = |path: &[&str]| found.at(path) == wanted.at(path);
    if same(&["endpoints"]) && same(&["ports"]) && same(&["metadata", "labels"]) {
        return Ok(());
    }
    cluster.replace(format!("{SLICES}/{NAME}"), wanted).await
}

fn slice_of(endpoints: &Value) -> Value {
    let subset = endpoints.array_at(&["subsets"]).first().cloned().unwrap_or_default();
    let ips: Vec<&str> = subset.array_at(&["addresses"]).iter().map(|it| it.str_at(&["ip"])).collect();
    let is_v6 = |ip: &str| parse_ip(ip).is_some_and(|ip| ip.is_ipv6());
    let v6 = !ips.is_empty() && ips.iter().all(|ip| is_v6(ip));
    let members = ips.iter().filter(|ip| is_v6(ip) == v6);
    let members: Vec<Value> = members.map(|ip| json!({"addresses": [(*ip)], "conditions": {"ready": true}})).collect();
    let mut slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "addressType": (if v6 { "IPv6" } else { "IPv4" }),
        "endpoints": members,
        "ports": (Value::Array(subset.array_at(&["ports"]).to_vec()))
    });
    slice.set(&["metadata", "labels", "kubernetes.io/service-name"], NAME);
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|ip| (*ip).to_owned()).collect()
    }

    #[test]
    fn endpoints_have_the_addresses_of_all_servers_and_keep_their_ports() {
        let new = wanted_endpoints(None, &ips(&["10.1.0.2", "10.1.0.1"]), 6443);
        let subsets = json!([{
            "addresses": [{"ip": "10.1.0.1"}, {"ip": "10.1.0.2"}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]
        }]);
        assert_eq!(new.get("subsets"), Some(&subsets));
        assert_eq!(wanted_endpoints(Some(&new), &ips(&["10.1.0.1", "10.1.0.2"]), 7443), new);
        let fewer = wanted_endpoints(Some(&new), &ips(&["10.1.0.2"]), 7443);
        assert_eq!(fewer.array_at(&["subsets"])[0].array_at(&["ports"])[0].i64_at(&["port"]), Some(6443));
        assert_eq!(slice_of(&fewer).str_at(&["addressType"]), "IPv4");
        assert_eq!(slice_of(&wanted_endpoints(None, &ips(&["fd00::1"]), 1)).str_at(&["addressType"]), "IPv6");
    }
}
