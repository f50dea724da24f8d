//! The libraries that programs use, against a server whose configuration changes five times a second: nothing is missed,
//! and nobody has to try again.

use std::{
    future::Future,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kenter::object::{Value, parse};

use crate::support::{ADMIN, Daemon, PATIENCE, Setup, binary};

mod kube_rs;

/// How long the server is kept busy.
const LOAD: Duration = Duration::from_secs(10);

/// Time from the end of one reload to the next.
const PAUSE: Duration = Duration::from_millis(200);

/// Writes a configuration unlike the one before: limits, logs, lifetimes, authorizers, gates, admission by turns.
fn change(daemon: &Daemon, n: u32) {
    let limit = format!("[serving]\nmax_requests_inflight = {}\n", 400 + n);
    let rest = match n % 6 {
        0 => "[telemetry]\nv = 4\n".to_owned(),
        1 => format!("[api]\nevent_ttl = \"{}m\"\n", 60 + n),
        2 => "[authorization]\nauthorization_mode = [\"Node\", \"RBAC\"]\n".to_owned(),
        3 => "[features.feature_gates]\nAPIResponseCompression = false\n".to_owned(),
        4 => "[admission]\ndisable_admission_plugins = [\"Priority\"]\n".to_owned(),
        _ => "[telemetry]\nlog_filter = \"info\"\n".to_owned(),
    };
    daemon.write("kenter.d/10-changing.toml", &(limit + &rest));
}

/// Runs `work` while the configuration is changed and reloaded again and again; the count of reloads.
async fn while_reloaded<T>(daemon: &Daemon, work: impl Future<Output = T>) -> (T, u32) {
    let done = AtomicBool::new(false);
    let before = daemon.generation().await;
    let work = async {
        let result = work.await;
        done.store(true, Ordering::Release);
        result
    };
    let reloads = async {
        let mut n = 0;
        while !done.load(Ordering::Acquire) {
            change(daemon, n);
            let (code, text) = daemon.reload().await;
            assert_eq!(code, 0, "reload {n}: {text}");
            n += 1;
            tokio::time::sleep(PAUSE).await;
        }
        n
    };
    let (result, reloads) = tokio::join!(work, reloads);
    let changed = daemon.generation().await - before;
    assert!(changed >= i64::from(reloads), "{reloads} reloads made {changed} configurations");
    (result, reloads)
}

fn go(folder: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new("go").args(arguments).current_dir(folder).stdin(Stdio::null()).output()
}

/// Builds the Go program in a folder beside this file; the reason when this machine cannot.
fn built(name: &str) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
    if go(&source, &["version"]).is_err() {
        return Err("Go is not installed".into());
    }
    let fetched = go(&source, &["mod", "download"]).map_err(|error| error.to_string())?;
    if !fetched.status.success() {
        return Err(format!("its Go modules cannot be had: {}", String::from_utf8_lossy(&fetched.stderr)));
    }
    let output =
        go(&source, &["build", "-o", &target.display().to_string(), "."]).map_err(|error| error.to_string())?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(target)
}

/// The Go program, unless this machine cannot have it.
async fn program(name: &'static str) -> Option<tokio::process::Command> {
    match tokio::task::spawn_blocking(move || built(name)).await.expect("no panic") {
        Ok(program) => Some(tokio::process::Command::new(program)),
        Err(reason) => {
            eprintln!("SKIPPED: tests/clients/{name} did not run: {reason}");
            None
        }
    }
}

/// Runs a program and waits for its end: whether it succeeded, what it printed and what it complained of.
async fn run(mut command: tokio::process::Command) -> (bool, String, String) {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(4 * PATIENCE, output).await.expect("it ends in time").expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn client_go_misses_nothing_while_the_configuration_changes() {
    let Some(mut command) = program("go").await else { return };
    // Dynamic clients that may ask for CBOR prefer it.
    let daemon = Setup::new().flags(&["--feature-gates=CBORServingAndStorage=true"]).start().await;
    command.arg("-server").arg(format!("https://127.0.0.1:{}", daemon.port)).arg("-token").arg(ADMIN);
    command.arg("-ca").arg(daemon.path("state/pki/ca.crt")).arg("-load").arg(format!("{}ms", LOAD.as_millis()));
    command.env("KUBE_FEATURE_ClientsAllowCBOR", "true");
    let ((succeeded, summary, complaints), reloads) = while_reloaded(&daemon, run(command)).await;
    assert!(succeeded, "{summary}\n{complaints}\n{}", daemon.log());
    assert!(reloads >= 5, "only {reloads} reloads happened");
    let summary: Value = parse(summary.as_bytes()).expect("the summary is JSON");
    let done = |what: &str| summary.i64_at(&[what]).unwrap_or(0);
    // Each of these asserted about itself; that it happened at all is asserted here.
    let rounds = ["typed json", "typed protobuf", "contended", "dynamic", "discovery", "terms", "late informers"];
    for what in ["adds", "updates", "deletes", "events"].into_iter().chain(rounds) {
        assert!(done(what) > 0, "no {what}: {summary:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_runtime_starts_kenter_in_place_of_kube_apiserver_and_reconciles() {
    let Some(mut command) = program("controller-runtime").await else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    command.arg("-kenter").arg(binary()).arg("-state").arg(folder.path());
    let (succeeded, said, complaints) = run(command).await;
    assert!(succeeded && said == "reconciled\n", "{said}\n{complaints}");
}
