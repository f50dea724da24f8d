//! What is shipped around the binary: README, units, examples.

use std::{
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::{Setup, binary, eventually, free_port};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn kubectl() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ORACLE_KUBECTL") {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|path| path.is_file())
}

#[test]
fn the_reload_demo_of_the_readme_works_as_written() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let demo = readme.split("<!-- demo -->").nth(1).expect("the demo is marked");
    let lines = demo.lines().filter(|line| !line.starts_with("```"));
    let kubectl = kubectl();
    // Without kubectl nobody watches.
    let lines = lines.filter(|line| kubectl.is_some() || !(line.starts_with("kubectl") || line.contains("demo/seen")));
    let script = lines.collect::<Vec<_>>().join("\n");
    let script = script
        .replace("target/release/kenter", binary())
        .replace("kubectl ", &format!("{} ", kubectl.as_deref().unwrap_or(Path::new("kubectl")).display()))
        .replace("7443", &free_port().to_string())
        .replace("7444", &free_port().to_string())
        .replace("run --config", "run --bind-address 127.0.0.1 --config");
    let folder = tempfile::tempdir().unwrap();
    let script = format!("set -m\ntrap 'kill $(jobs -p)' EXIT\n{script}\nwait %1\n");
    let output = Command::new("bash").arg("-c").arg(script).current_dir(folder.path()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let log = std::fs::read_to_string(folder.path().join("demo/log")).unwrap_or_default();
    assert!(text.contains("serving.max_requests_inflight: 100 → 200"), "{text}\n{log}");
    assert!(text.contains("kenter.toml:3:1") && text.contains("refused, as it should be"), "{text}\n{log}");
    assert!(text.contains("serving.secure_port: "), "{text}\n{log}");
    assert!(log.contains("apiserver is exiting"), "{text}\n{log}");
    if kubectl.is_some() {
        assert!(text.contains("configmap/seen-by-the-watch created"), "{text}\n{log}");
    }
}

#[test]
fn the_hardened_unit_is_scored_ok() {
    let folder = tempfile::tempdir().unwrap();
    let units = folder.path().join("etc/systemd/system");
    std::fs::create_dir_all(units.join("kenter.service.d")).unwrap();
    for file in ["kenter.service", "kenter.service.d/10-hardening.conf"] {
        std::fs::copy(root().join("systemd").join(file), units.join(file)).unwrap();
    }
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=yes", "--threshold=20", "--no-pager"]);
    let output = command.arg(format!("--root={}", folder.path().display())).arg("kenter.service").output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no systemd-analyze; the unit was not scored");
        return;
    };
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_wait_in_a_socket_of_the_supervisor_while_the_daemon_is_replaced() {
    let setup = Setup::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("an address").port();
    // Descriptor 3, as systemd hands it over, and the number of the process that it is meant for.
    let hand_over =
        format!("export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=https; exec \"$@\" 3<&{}", listener.as_raw_fd());
    // SAFETY: the descriptor is ours and open; without the flag a child keeps it.
    assert_eq!(unsafe { libc::fcntl(listener.as_raw_fd(), libc::F_SETFD, 0) }, 0);
    let start = || {
        let log = std::fs::File::options().create(true).append(true).open(setup.path("log")).expect("a log");
        let mut command = tokio::process::Command::new("bash");
        command.args(["-c", &hand_over, "bash", binary()]).args(setup.arguments()).arg(format!("--secure-port={port}"));
        command.stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn().expect("it starts")
    };
    let client = crate::support::Client::new(port, crate::support::ADMIN);
    let mut daemon = start();
    eventually("it serves", || async { client.try_get("/readyz").await.is_some_and(|answer| answer.status == 200) })
        .await;
    daemon.start_kill().expect("killed");
    daemon.wait().await.expect("it ends");
    // Nobody accepts now, and nobody is refused.
    let waiting = tokio::spawn({
        let client = crate::support::Client::new(port, crate::support::ADMIN);
        async move { client.get("/version").await.status }
    });
    let _daemon = start();
    assert_eq!(waiting.await.expect("no panic"), 200);
}
