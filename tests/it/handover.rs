//! Changes of what a daemon holds: listeners, the store, limits; and that a hundred of them leave nothing behind.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kenter::json;

use crate::support::{CONFIG_MAPS, Client, Daemon, config_map, eventually, free_port, tls::Begun};

#[tokio::test(flavor = "multi_thread")]
async fn a_port_changes_while_both_serve_and_nothing_is_closed() {
    let mut daemon = Daemon::start(&[]).await;
    let old = daemon.client();
    let mut watch = old.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1")).await;
    let (before, after) = (daemon.port, free_port());
    // Both serve as long as the new one is being watched.
    daemon.write("kenter.d/50.toml", &format!("[serving]\nsecure_port = {after}\n[reload]\nobserve = '10m'\n"));
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("serving.secure_port") && text.contains("rebind"), "{text}");
    for port in [before, after] {
        daemon.port = port;
        assert_eq!(daemon.client().get("/readyz").await.status, 200, "port {port}");
    }
    let kubeconfig = std::fs::read_to_string(daemon.path("state/admin.conf")).expect("readable");
    assert!(kubeconfig.contains(&format!(":{after}\n")), "{kubeconfig}");
    // The next commit ends the watching of this one.
    daemon.write("kenter.d/50.toml", &format!("[serving]\nsecure_port = {after}\n"));
    assert_eq!(daemon.reload().await.0, 0);
    daemon.port = before;
    let gone = daemon.client();
    eventually("the old port is closed", || async { gone.try_get("/readyz").await.is_none() }).await;
    daemon.port = after;
    assert_eq!(daemon.client().post(CONFIG_MAPS, &config_map("a", "1")).await.status, 201);
    while watch.next().await.expect("the watch goes on").str_at(&["object", "metadata", "name"]) != "a" {}
    assert_eq!(old.get(CONFIG_MAPS).await.status, 200, "an open connection goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_socket_moves() {
    let daemon = Daemon::start(&[]).await;
    let socket = daemon.path("admin/here.sock");
    daemon.write("kenter.toml", &format!("[state]\nadmin_socket = '{}'\n[reload]\nobserve = '0s'\n", socket.display()));
    eventually("it is there", || async { socket.exists() }).await;
    eventually("the old one is gone", || async { !daemon.path("state/admin.sock").exists() }).await;
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
}

/// Writes objects until told to stop; every one has to be acknowledged. How many there were.
fn write_steadily(client: Client, stop: Arc<AtomicBool>) -> tokio::task::JoinHandle<usize> {
    tokio::spawn(async move {
        let mut written = 0;
        while !stop.load(Ordering::Acquire) {
            let answer = client.post(CONFIG_MAPS, &config_map(&format!("w{written}"), "x")).await;
            assert_eq!(answer.status, 201, "{}", answer.text());
            written += 1;
        }
        written
    })
}

async fn names(client: &Client) -> usize {
    let list = client.get(CONFIG_MAPS).await.json();
    list.array_at(&["items"]).iter().filter(|item| item.str_at(&["metadata", "name"]).starts_with('w')).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_moves_under_steady_writes_and_is_where_it_was_told_to_be() {
    let mut daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    let mut watch =
        client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1&fieldSelector=metadata.name%3Dlast")).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = write_steadily(client.clone(), stop.clone());
    for place in ["one", "two", "three"] {
        let folder = daemon.path(place);
        daemon.write("kenter.toml", &format!("[storage]\npath = '{}'\n", folder.display()));
        let (code, text) = daemon.reload().await;
        assert_eq!(code, 0, "{text}");
        assert!(folder.join("store.db").exists(), "{text}");
    }
    stop.store(true, Ordering::Release);
    let written = writer.await.expect("every write was acknowledged");
    assert!(written > 0);
    assert_eq!(client.post(CONFIG_MAPS, &config_map("last", "x")).await.status, 201);
    assert_eq!(watch.next().await.expect("the watch goes on").str_at(&["type"]), "ADDED");
    assert!(!daemon.path("two/store.db").exists(), "a stale store was left");
    daemon.kill().await;
    daemon.restart().await;
    assert_eq!(names(&daemon.client()).await, written);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_counts_with_the_next_request() {
    let daemon = Daemon::start(&[]).await;
    let big = config_map("big", &"x".repeat(20_000));
    assert_eq!(daemon.client().post(CONFIG_MAPS, &big).await.status, 201);
    daemon.write("kenter.toml", "[serving]\nmax_request_bytes = '8KiB'\n");
    assert_eq!(daemon.reload().await.0, 0);
    let refused =
        daemon.client().patch(&format!("{CONFIG_MAPS}/big"), &json!({ "data": { "m": ("y".repeat(20_000)) } })).await;
    assert_eq!(refused.status, 413);
    daemon.write("kenter.toml", "");
    assert_eq!(daemon.reload().await.0, 0);
    assert_eq!(daemon.client().patch(&format!("{CONFIG_MAPS}/big"), &big).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_level_and_admission_change_without_a_restart() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    daemon.write(
        "kenter.toml",
        "[telemetry]\naccess_log = true\n[admission]\ndisable_admission_plugins = ['NamespaceLifecycle']\n",
    );
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    assert_eq!(client.get("/api/v1/nodes?limit=7").await.status, 200);
    eventually("requests are logged", || async {
        daemon.log().contains("limit=7") || daemon.log().contains("/api/v1/nodes")
    })
    .await;
    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    assert_eq!(client.post(nowhere, &config_map("a", "1")).await.status, 201);
    daemon.write("kenter.toml", "");
    assert_eq!(daemon.reload().await.0, 0);
    assert_eq!(client.post(nowhere, &config_map("b", "1")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_on_in_the_configuration_it_began_in_until_that_ones_grace_is_over() {
    let daemon = Daemon::start(&[]).await;
    let running = || async { daemon.metric("apiserver_current_inflight_requests{request_kind=\"mutating\"}").await };
    let body = kenter::object::to_string(&config_map("slow", "x"));
    daemon.write("kenter.toml", "[reload]\nobserve = '0s'\n");
    assert_eq!(daemon.reload().await.0, 0);
    let begun = Begun::post(daemon.port, CONFIG_MAPS, &body).await;
    eventually("the request is running", || async { running().await >= 1.0 }).await;
    // The grace of the one it runs in is a minute.
    daemon.write("kenter.toml", "[reload]\nobserve = '0s'\ngrace = '0s'\n");
    assert_eq!(daemon.reload().await.0, 0);
    assert_eq!(begun.finish().await, 201);
    // And now there is none.
    let begun = Begun::post(daemon.port, CONFIG_MAPS, &body).await;
    eventually("the request is running", || async { running().await >= 1.0 }).await;
    daemon.write("kenter.toml", "[reload]\nobserve = '0s'\n");
    assert_eq!(daemon.reload().await.0, 0);
    assert_eq!(begun.answer().await, 503);
}

const WARM_UP: u32 = 30;
const RELOADS: u32 = 100;
/// What a hundred reloads may leave behind; a kept generation costs some megabytes each.
const BOUND: f64 = 24e6;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_reloads_leave_memory_where_it_was_and_never_more_than_two_generations() {
    let daemon = Daemon::start(&[]).await;
    let reload = async |n: u32| {
        daemon.write("kenter.d/50.toml", &format!("[serving]\nmax_requests_inflight = {}\n", 500 + n));
        let (status, report) = daemon.reload_by_socket().await;
        assert_eq!(status, 200, "{report:?}");
        let alive = daemon.metric("kenter_config_generations_alive").await;
        assert!(alive <= 2.0, "{alive} generations are alive");
    };
    for n in 0..WARM_UP {
        reload(n).await;
    }
    let (memory, files) =
        (daemon.metric("process_resident_memory_bytes").await, daemon.metric("process_open_fds").await);
    for n in WARM_UP..WARM_UP + RELOADS {
        reload(n).await;
    }
    let grown = daemon.metric("process_resident_memory_bytes").await - memory;
    assert!(grown < BOUND, "{grown} bytes more than before, {memory}");
    let files_after = daemon.metric("process_open_fds").await;
    assert!(files_after <= files + 4.0, "{files_after} open files, {files} before");
}
