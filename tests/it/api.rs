//! The API over the wire.

use crate::support::{CONFIG_MAPS, Daemon, config_map};

#[tokio::test(flavor = "multi_thread")]
async fn an_object_lives_from_create_to_delete_and_watches_see_it_all() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Da")).await;

    let created = client.post(CONFIG_MAPS, &config_map("a", "1")).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let patched = client.patch(&format!("{CONFIG_MAPS}/a"), &kenter::json!({ "data": { "k": "2" } })).await;
    assert_eq!(patched.status, 200, "{}", patched.text());
    assert_eq!(client.delete(&format!("{CONFIG_MAPS}/a")).await.status, 200);
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/a")).await.status, 404);

    for (kind, value) in [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")] {
        let event = watch.next().await.expect("an event");
        assert_eq!((event.str_at(&["type"]), event.str_at(&["object", "data", "k"])), (kind, value));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_being_deleted_reports_its_status_until_it_is_gone() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    let pods = "/api/v1/namespaces/it/pods";
    let pod = kenter::json!({
        "metadata": { "name": "p" },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "example.com/image" }] },
    });
    let created = client.post(pods, &pod).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let path = format!("{pods}/p");
    assert_eq!(client.delete(&path).await.status, 200);
    let stopping =
        client.patch(&format!("{path}/status"), &kenter::json!({ "status": { "message": "stopping" } })).await;
    assert_eq!(stopping.status, 200, "{}", stopping.text());
    let pod = client.get(&path).await.json();
    assert_eq!(pod.str_at(&["status", "message"]), "stopping");
    assert!(!pod.str_at(&["metadata", "deletionTimestamp"]).is_empty());
    assert_eq!(pod.i64_at(&["metadata", "deletionGracePeriodSeconds"]), Some(30));
    assert_eq!(client.delete(&format!("{path}?gracePeriodSeconds=0")).await.status, 200);
    assert_eq!(client.get(&path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_token_is_refused_and_nobody_sees_only_health() {
    let daemon = Daemon::start(&[]).await;
    assert_eq!(daemon.client_as("nope").get("/api/v1/namespaces").await.status, 401);
    let anonymous = daemon.client_as("");
    assert_eq!(anonymous.get("/readyz").await.status, 200);
    assert_eq!(anonymous.get("/version").await.status, 200);
    assert!([401, 403].contains(&anonymous.get("/api/v1/secrets").await.status));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_acknowledged_is_there_after_a_kill() {
    let mut daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    for n in 0..50 {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(&format!("c{n}"), "x")).await.status, 201);
    }
    daemon.signal(libc::SIGKILL);
    let _ = daemon.ended().await;
    daemon.restart().await;
    let list = daemon.client().get(CONFIG_MAPS).await.json();
    let names =
        list.array_at(&["items"]).iter().filter(|item| item.str_at(&["metadata", "name"]).starts_with('c')).count();
    assert_eq!(names, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_signal_fails_readiness_and_ends_watches_and_process() {
    let mut daemon = Daemon::start(&["--shutdown-delay-duration=1s"]).await;
    let client = daemon.client();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1")).await;
    daemon.signal(libc::SIGTERM);
    crate::support::eventually("readiness fails first", || async {
        client.try_get("/readyz").await.is_none_or(|answer| answer.status == 500)
    })
    .await;
    while watch.next().await.is_some() {}
    let status =
        tokio::time::timeout(crate::support::PATIENCE, daemon.child.wait()).await.expect("in time").expect("ends");
    assert!(status.success(), "{status}: {}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subresource_that_is_not_there_gets_no_label_in_the_metrics() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    assert_eq!(client.get("/api/v1/namespaces/default/pods/a/invented").await.status, 404);
    let metrics = client.get("/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(!metrics.text().contains("invented"));
}
