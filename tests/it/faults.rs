//! What happens to a real process: kills, a full disk, a damaged file, a second daemon, signals.

use std::{
    collections::BTreeMap,
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::support::{CONFIG_MAPS, Client, Daemon, Setup, config_map, eventually, tls::Begun};

const KILLS: usize = 100;
const WRITERS: usize = 4;

/// Creates objects until the daemon is gone; the names that were acknowledged.
async fn storm(client: Client, round: usize, writer: usize, acknowledged: Arc<AtomicUsize>) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let name = format!("r{round}-{writer}-{}", names.len());
        let answer = client.call("POST", CONFIG_MAPS, "application/json", Some(&config_map(&name, &name))).await;
        match answer {
            Some(answer) => assert_eq!(answer.status, 201, "{}", answer.text()),
            None => return names,
        }
        names.push(name);
        acknowledged.fetch_add(1, Ordering::Release);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_kills_in_a_storm_of_writes_lose_nothing_and_leave_nothing_half() {
    let mut daemon = Daemon::start(&[]).await;
    let mut there = std::collections::BTreeSet::new();
    for round in 0..KILLS {
        let client = daemon.client();
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(storm(client.clone(), round, writer, acknowledged.clone())))
            .collect();
        // Another moment each time.
        let enough = 1 + round * 7 % 23;
        eventually("some writes were acknowledged", || async { acknowledged.load(Ordering::Acquire) >= enough }).await;
        daemon.kill().await;
        for writer in writers {
            there.extend(writer.await.expect("every answer was a success"));
        }
        daemon.restart().await;
        let list = daemon.client().get(CONFIG_MAPS).await.json();
        let mut found = BTreeMap::new();
        for item in list.array_at(&["items"]) {
            let name = item.str_at(&["metadata", "name"]);
            if name.starts_with('r') {
                let whole = item.str_at(&["data", "k"]) == name && item.str_at(&["data", "l"]) == name;
                assert!(whole, "half of {name} is there: {item:?}");
            }
            found.insert(name.to_owned(), ());
        }
        for name in &there {
            assert!(found.contains_key(name), "{name} was acknowledged before kill {round} and is gone");
        }
    }
    assert!(daemon.log().matches("kenter: ").count() == 0, "{}", daemon.log());
}

/// A small disk, unmounted with its handle.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// `None` where mounting is not allowed.
    fn mount(at: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).ok()?;
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the daemon may still have files open.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_writes_alone_and_its_end_is_noticed() {
    let setup = Setup::new();
    let Some(disk) = SmallDisk::mount(&setup.path("disk"), "24m") else {
        eprintln!("SKIPPED: no right to mount a small disk; the full disk was not tried");
        return;
    };
    let text = format!("[storage]\npath = '{}'\nreserve = '1MiB'\n", disk.0.join("data").display());
    std::fs::write(setup.path("kenter.toml"), text).expect("written");
    let daemon = setup.start().await;
    daemon.make_namespace().await;
    let client = daemon.client();
    assert_eq!(client.post(CONFIG_MAPS, &config_map("before", "x")).await.status, 201);

    let filler = disk.0.join("filler");
    fill(&filler);
    let mut names = 0;
    let refused = loop {
        let answer = client.post(CONFIG_MAPS, &config_map(&format!("f{names}"), &"x".repeat(100_000))).await;
        if answer.status != 201 {
            break answer;
        }
        names += 1;
        fill(&filler);
    };
    let status = refused.json();
    assert_eq!(status.str_at(&["kind"]), "Status", "{status:?}");
    assert!(refused.status >= 500, "{status:?}");
    let message = status.str_at(&["message"]).to_lowercase();
    assert!(message.contains("full") || message.contains("space"), "{status:?}");
    // Reads go on, also consistent ones.
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/before")).await.status, 200);
    let list = client.get(CONFIG_MAPS).await.json();
    let there = list.array_at(&["items"]).iter().filter(|item| item.str_at(&["metadata", "name"]).starts_with('f'));
    assert_eq!(there.count(), names);

    std::fs::remove_file(&filler).expect("removed");
    let n = AtomicUsize::new(0);
    eventually("writes go on without a restart", || async {
        let name = format!("after{}", n.fetch_add(1, Ordering::Relaxed));
        client.post(CONFIG_MAPS, &config_map(&name, "x")).await.status == 201
    })
    .await;
    assert_eq!(client.get("/readyz").await.status, 200);
}

/// Takes what is left of the disk.
fn fill(path: &Path) {
    let mut file = std::fs::File::options().create(true).append(true).open(path).expect("opened");
    for size in [64 * 1024, 4096] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_named_and_refused_at_start() {
    let mut daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    let marker = "damage-me-".repeat(20);
    for n in 0..50 {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(&format!("d{n}"), &marker)).await.status, 201);
    }
    daemon.signal(libc::SIGTERM);
    assert!(daemon.ended().await.success());
    damage(&daemon.path("state/store.db"), marker.as_bytes());
    let (code, text) = daemon.fails_to_restart().await;
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("store.db is damaged") && text.contains("/registry/configmaps/it/d"), "{text}");
}

/// Flips one byte in the middle of the first place where `marker` is.
fn damage(file: &Path, marker: &[u8]) {
    let mut file = std::fs::File::options().read(true).write(true).open(file).expect("opened");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("read");
    let at = bytes.windows(marker.len()).position(|window| window == marker).expect("the marker is in the file");
    file.seek(SeekFrom::Start(at as u64 + 5)).expect("there");
    file.write_all(b"#").expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_on_the_same_data_is_refused_and_the_first_serves_on() {
    let first = Daemon::start(&[]).await;
    let setup = Setup::new();
    let state = first.path("state").display().to_string();
    let mut second = tokio::process::Command::new(crate::support::binary());
    second.args(setup.arguments()).args(["--state-dir", &state]).env_clear().kill_on_drop(true);
    let output =
        tokio::time::timeout(crate::support::PATIENCE, second.output()).await.expect("in time").expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("in use by another kenter (process {})", first.pid())), "{text}");
    assert_eq!(first.client().post(CONFIG_MAPS, &config_map("a", "1")).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_signal_lets_running_requests_finish() {
    let mut daemon = Daemon::start(&["--shutdown-delay-duration=0s"]).await;
    let client = daemon.client();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (client, stop) = (client.clone(), stop.clone());
            tokio::spawn(async move {
                let mut names = Vec::new();
                while !stop.load(Ordering::Acquire) {
                    let name = format!("s{writer}-{}", names.len());
                    match client.call("POST", CONFIG_MAPS, "application/json", Some(&config_map(&name, "x"))).await {
                        Some(answer) if answer.status == 201 => names.push(name),
                        // Refused, or the door was closed already.
                        _ => break,
                    }
                }
                names
            })
        })
        .collect();
    eventually("writes are going on", || async {
        !client.get(&format!("{CONFIG_MAPS}?limit=1")).await.json().array_at(&["items"]).is_empty()
    })
    .await;
    daemon.signal(libc::SIGTERM);
    let status = daemon.ended().await;
    assert!(status.success(), "{status}: {}", daemon.log());
    stop.store(true, Ordering::Release);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.expect("no panic"));
    }
    daemon.restart().await;
    let list = daemon.client().get(CONFIG_MAPS).await.json();
    let found: Vec<&str> = list.array_at(&["items"]).iter().map(|item| item.str_at(&["metadata", "name"])).collect();
    for name in acknowledged {
        assert!(found.contains(&name.as_str()), "{name} is gone");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_running_when_the_stop_signal_came_is_answered() {
    let mut daemon = Daemon::start(&["--shutdown-delay-duration=0s"]).await;
    let body = kenter::object::to_string(&config_map("late", "x"));
    let begun = Begun::post(daemon.port, CONFIG_MAPS, &body).await;
    let metric = "apiserver_current_inflight_requests{request_kind=\"mutating\"}";
    eventually("the request is running", || async { daemon.metric(metric).await >= 1.0 }).await;
    daemon.signal(libc::SIGTERM);
    let stopping = || async { daemon.client().try_get("/readyz").await.is_none_or(|answer| answer.status != 200) };
    eventually("it is stopping", stopping).await;
    assert_eq!(begun.finish().await, 201);
    assert!(daemon.ended().await.success());
    daemon.restart().await;
    assert_eq!(daemon.client().get(&format!("{CONFIG_MAPS}/late")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_means_now() {
    let mut daemon = Daemon::start(&["--shutdown-delay-duration=1h"]).await;
    daemon.signal(libc::SIGTERM);
    let client = daemon.client();
    eventually("it is stopping", || async {
        client.try_get("/readyz").await.is_none_or(|answer| answer.status == 500)
    })
    .await;
    assert!(daemon.child.try_wait().expect("asked").is_none(), "it waits out its hour");
    daemon.signal(libc::SIGINT);
    assert!(daemon.ended().await.success());
}
