//! Services with what they take, and what every cluster has from its first second on.

use std::collections::HashSet;

use futures_util::future::join_all;
use kenter::{json, object::Value};

use crate::support::{Client, Daemon, Setup, eventually};

const SERVICES: &str = "/api/v1/namespaces/it/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn node_port(name: &str, port: Option<i64>) -> Value {
    let mut service =
        json!({ "metadata": { "name": name }, "spec": { "type": "NodePort", "ports": [{ "port": 80 }] } });
    if let Some(port) = port {
        service.set(&["spec", "ports"], vec![json!({ "port": 80, "nodePort": port })]);
    }
    service
}

fn taken(service: &Value) -> (String, i64) {
    let port = service.array_at(&["spec", "ports"])[0].i64_at(&["nodePort"]).expect("it has one");
    (service.str_at(&["spec", "clusterIP"]).to_owned(), port)
}

async fn addresses(client: &Client) -> HashSet<String> {
    let list = client.get(ADDRESSES).await.json();
    list.array_at(&["items"]).iter().map(|it| it.str_at(&["metadata", "name"]).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn services_that_are_made_at_once_share_nothing_and_a_kill_forgets_nothing() {
    let mut daemon = Daemon::start(&["--service-cluster-ip-range=10.7.0.0/27"]).await;
    let client = daemon.client();
    eventually("the kubernetes service has its address", || async { !addresses(&client).await.is_empty() }).await;
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let made = join_all(names.iter().map(|name| async {
        let answer = client.post(SERVICES, &node_port(name, None)).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        taken(&answer.json())
    }))
    .await;
    let ips: HashSet<&String> = made.iter().map(|(ip, _)| ip).collect();
    let ports: HashSet<i64> = made.iter().map(|(_, port)| *port).collect();
    assert_eq!((ips.len(), ports.len()), (20, 20), "{made:?}");
    let objects = addresses(&client).await;
    assert!(ips.iter().all(|ip| objects.contains(*ip)) && objects.len() == 21, "{objects:?}");

    daemon.kill().await;
    daemon.restart().await;
    let client = daemon.client();
    let (ip, port) = &made[0];
    let answer = client.post(SERVICES, &node_port("again", Some(*port))).await;
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("provided port is already allocated"), "{}", answer.text());
    let same_ip =
        json!({ "metadata": { "name": "again" }, "spec": { "clusterIP": (ip.as_str()), "ports": [{ "port": 80 }] } });
    let answer = client.post(SERVICES, &same_ip).await;
    assert!(answer.text().contains("provided IP is already allocated"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_write_a_dry_run_or_a_deletion_took_is_free_again() {
    let daemon = Daemon::start(&["--service-node-port-range=30000-30001"]).await;
    let client = daemon.client();
    let ports = json!([{ "name": "a", "port": 1 }, { "name": "b", "port": 2 }]);
    let both = json!({ "metadata": { "name": "both" }, "spec": { "type": "NodePort", "ports": ports } });
    let before = addresses(&client).await;
    // Neither keeps anything, or the second of each would find the range full.
    for _ in 0..3 {
        assert_eq!(client.post(&format!("{SERVICES}?dryRun=All"), &both).await.status, 201);
        let mut bad = both.clone();
        bad.set(&["spec", "sessionAffinity"], "Nobody");
        assert_eq!(client.post(SERVICES, &bad).await.status, 422);
    }
    assert_eq!(addresses(&client).await, before);
    assert_eq!(client.post(SERVICES, &both).await.status, 201);
    for _ in 0..3 {
        let answer = client.post(SERVICES, &node_port("other", None)).await;
        assert_eq!(answer.status, 500);
        assert!(answer.text().contains("failed to allocate a nodePort: range is full"), "{}", answer.text());
    }
    assert_eq!(client.delete(&format!("{SERVICES}/both")).await.status, 200);
    assert_eq!(addresses(&client).await, before);
    assert_eq!(client.post(SERVICES, &node_port("other", Some(30001))).await.status, 201);
    // Another type needs no port, and gives it back.
    let plain = json!({ "spec": { "type": "ClusterIP" } });
    let changed = client.patch(&format!("{SERVICES}/other"), &plain).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(client.post(SERVICES, &both).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn services_get_a_second_family_and_lose_it_when_told_to() {
    let daemon = Daemon::start(&["--service-cluster-ip-range=10.7.0.0/24,fd00:7::/112"]).await;
    let client = daemon.client();
    let wish = json!({
        "metadata": { "name": "s" },
        "spec": { "ipFamilyPolicy": "PreferDualStack", "ports": [{ "port": 80 }] }
    });
    let made = client.post(SERVICES, &wish).await.json();
    let ips: Vec<&str> = made.array_at(&["spec", "clusterIPs"]).iter().filter_map(Value::as_str).collect();
    assert!(ips[0].starts_with("10.7.0.") && ips[1].starts_with("fd00:7::"), "{ips:?}");
    let second = ips[1].to_owned();
    assert!(addresses(&client).await.contains(&second));
    let single = json!({ "spec": { "ipFamilyPolicy": "SingleStack" } });
    let changed = client.patch(&format!("{SERVICES}/s"), &single).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let changed = changed.json();
    assert_eq!(changed.array_at(&["spec", "ipFamilies"]).len(), 1);
    assert_eq!(changed.str_at(&["spec", "clusterIP"]), ips[0]);
    assert!(!addresses(&client).await.contains(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_finds_everything_and_writes_none_of_it_anew() {
    // Controllers would write into namespaces whenever they come to it.
    let mut daemon = Setup::new().flags(&["--controllers="]).start().await;
    let kept = [
        "/api/v1/namespaces",
        "/api/v1/namespaces/kube-system/configmaps",
        "/api/v1/namespaces/default/services",
        "/apis/networking.k8s.io/v1/servicecidrs",
        "/apis/networking.k8s.io/v1/ipaddresses",
        "/apis/apiregistration.k8s.io/v1/apiservices",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ];
    let versions = |client: Client| async move {
        let mut all = Vec::new();
        for path in kept {
            let list = client.get(path).await.json();
            let version = |it: &Value| {
                (it.str_at(&["metadata", "name"]).to_owned(), it.str_at(&["metadata", "resourceVersion"]).to_owned())
            };
            all.push((path, list.array_at(&["items"]).iter().map(version).collect::<Vec<_>>()));
        }
        all
    };
    // The last that is written, after the server is ready.
    let client = daemon.client();
    eventually("all flow schemas have a status", || async {
        let list = client.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas").await.json();
        let items = list.array_at(&["items"]);
        items.len() == 11 && items.iter().all(|it| !it.array_at(&["status", "conditions"]).is_empty())
    })
    .await;
    let before = versions(daemon.client()).await;
    daemon.signal(libc::SIGTERM);
    daemon.ended().await;
    daemon.restart().await;
    assert_eq!(versions(daemon.client()).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_takes_away_of_the_systems_own_comes_back() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    eventually("it is there", || async { client.get(path).await.status == 200 }).await;
    let uid = client.get(path).await.json().str_at(&["metadata", "uid"]).to_owned();
    assert_eq!(client.delete(path).await.status, 200);
    eventually("it is there again", || async {
        let found = client.get(path).await;
        found.status == 200 && found.json().str_at(&["metadata", "uid"]) != uid
    })
    .await;
    let data = client.get(path).await.json();
    assert!(data.str_at(&["data", "client-ca-file"]).starts_with("-----BEGIN CERTIFICATE-----\n"));
    assert_eq!(client.get("/api/v1/namespaces/default/services/kubernetes").await.status, 200);
}
