//! A change of the configuration, seen from outside.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use kenter::json;

use crate::support::{CONFIG_MAPS, Daemon, Watch, config_map, tokens};

fn limit(daemon: &Daemon, value: u32) {
    std::fs::write(daemon.path("kenter.d/10.toml"), format!("[serving]\nmax_requests_inflight = {value}\n"))
        .expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_applied_told_and_served() {
    let daemon = Daemon::start(&[]).await;
    let before = daemon.generation().await;
    limit(&daemon, 123);
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("serving.max_requests_inflight"), "{text}");
    assert!(daemon.generation().await > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_whose_user_lost_its_right_ends_with_a_status() {
    let daemon = Daemon::start(&[]).await;
    let mode = |mode: &str| {
        let text = format!("[authorization]\nauthorization_mode = [\"{mode}\"]\n");
        std::fs::write(daemon.path("kenter.toml"), text).expect("written");
    };
    daemon.write("tokens.csv", &tokens(&["other"]));
    mode("AlwaysAllow");
    assert_eq!(daemon.reload().await.0, 0);
    let other = daemon.client_as("other-token");
    let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion=1");
    let (mut lost, mut kept) = (other.watch(&watch).await, daemon.client().watch(&watch).await);
    mode("RBAC");
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    let end = loop {
        let event = lost.next().await.expect("a last event");
        if event.str_at(&["type"]) == "ERROR" {
            break event;
        }
    };
    assert_eq!(end.i64_at(&["object", "code"]), Some(403), "{end:?}");
    assert!(lost.next().await.is_none(), "the watch is over");
    assert_eq!(other.get(CONFIG_MAPS).await.status, 403);
    assert_eq!(daemon.client().post(CONFIG_MAPS, &config_map("after", "x")).await.status, 201);
    while kept.next().await.expect("this one goes on").str_at(&["object", "metadata", "name"]) != "after" {}
}

const WATCHES: usize = 1000;
const RELOADS: u32 = 100;
const LAST: &str = "the-last";

/// Follows one watch until it has seen the last object; how many events came, in order and once each.
async fn follow(mut watch: Watch, last: Arc<AtomicU64>, done: Arc<AtomicBool>) -> Result<u64, String> {
    let (mut seen, mut newest) = (0, 0);
    loop {
        if done.load(Ordering::Acquire) && newest >= last.load(Ordering::Acquire) {
            return Ok(seen);
        }
        let Some(event) = watch.next().await else { return Err(format!("closed after {seen} events")) };
        let revision: u64 =
            event.str_at(&["object", "metadata", "resourceVersion"]).parse().map_err(|_| format!("{event:?}"))?;
        if event.str_at(&["type"]) == "BOOKMARK" {
            continue;
        }
        if revision <= newest {
            return Err(format!("revision {revision} after {newest}"));
        }
        newest = revision;
        let name = event.str_at(&["object", "metadata", "name"]);
        if name == LAST {
            continue;
        }
        // There is one writer, so each event has one place.
        if name != format!("w{seen}") {
            return Err(format!("{name} instead of w{seen}"));
        }
        seen += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_watches_live_through_a_hundred_reloads_and_miss_nothing() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    let start = client.get(CONFIG_MAPS).await.json().str_at(&["metadata", "resourceVersion"]).to_owned();
    let (last, done) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicBool::new(false)));
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let watch = client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}&timeoutSeconds=3600")).await;
        watches.push(tokio::spawn(follow(watch, last.clone(), done.clone())));
    }
    let writer = tokio::spawn({
        let (client, done) = (client.clone(), done.clone());
        async move {
            let (mut written, mut newest) = (0u64, 0);
            while !done.load(Ordering::Acquire) {
                let answer = client.post(CONFIG_MAPS, &config_map(&format!("w{written}"), "x")).await;
                assert_eq!(answer.status, 201, "{}", answer.text());
                newest = answer.json().str_at(&["metadata", "resourceVersion"]).parse().unwrap_or(0);
                written += 1;
            }
            (written, newest)
        }
    });
    for n in 0..RELOADS {
        limit(&daemon, 400 + n);
        let (code, text) = daemon.reload().await;
        assert_eq!(code, 0, "reload {n}: {text}");
    }
    done.store(true, Ordering::Release);
    let (written, newest): (u64, u64) = writer.await.expect("no request failed");
    last.store(newest, Ordering::Release);
    // One more event for those who wait for one after the end was known.
    let end = client.post(CONFIG_MAPS, &json!({ "metadata": { "name": LAST } })).await;
    assert_eq!(end.status, 201);
    for watch in watches {
        let seen = watch.await.expect("no panic").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(seen, written);
    }
    let metrics = client.get("/metrics").await.text();
    let alive =
        metrics.lines().find_map(|line| line.strip_prefix("kenter_config_generations_alive ")).expect("the metric");
    assert!(alive.parse::<u64>().expect("a number") <= 2, "{alive} generations are alive");
}

#[tokio::test]
async fn a_reload_that_moves_the_admin_socket_finds_the_daemon_before_and_after() {
    let daemon = Daemon::start(&[]).await;
    let socket = daemon.path("moved.sock");
    let text = format!("[reload]\nwatch = false\n[state]\nadmin_socket = {:?}\n", socket.display().to_string());
    std::fs::write(daemon.path("kenter.toml"), "[reload]\nwatch = false\n").expect("written");
    assert_eq!(daemon.reload().await.0, 0);
    std::fs::write(daemon.path("kenter.toml"), text).expect("written");
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("applied"), "{text}");
    assert!(socket.exists());
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    // And back again, asked from the configuration that does not know the socket.
    std::fs::write(daemon.path("kenter.toml"), "[reload]\nwatch = false\n").expect("written");
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("applied"), "{text}");
}
