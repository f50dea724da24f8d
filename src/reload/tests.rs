//! What cannot be brought about from outside: a configuration that turns bad after it went live.

use std::{collections::BTreeMap, path::Path};

use super::*;
use crate::{
    app,
    chain::create_server_chain,
    options,
    pki::newcomer::Prepared,
    server::{
        current::ServeFuture,
        http::Request,
        listen::{InheritedSockets, Listeners},
        respond,
    },
    telemetry::log,
};

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("kenter.toml"), format!("[telemetry]\nlog_filter = 'off'\n{text}")).unwrap();
}

fn invocation(folder: &Path) -> Invocation {
    let state = folder.join("state").display().to_string();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).unwrap().port();
    Invocation {
        command: "kenter run".into(),
        arguments: vec![
            "--state-dir".into(),
            state,
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={free}"),
        ],
        environment: BTreeMap::new(),
        directory: folder.to_owned(),
        root: false,
        host_address: None,
        default_config: folder.join("kenter.toml"),
    }
}

/// A reloader of a daemon that serves `folder`'s configuration, without the process around it.
async fn reloader(folder: &Path) -> Reloader {
    let invocation = invocation(folder);
    let options = options::read(&invocation, &catalogue::catalogue()).unwrap_or_else(|problems| panic!("{problems}"));
    // The process has one log.
    static LOGS: std::sync::OnceLock<LogHandle> = std::sync::OnceLock::new();
    let logs = LOGS.get_or_init(|| log::init(&options.telemetry).unwrap()).clone();
    let shared = Shared::open(&options.storage).unwrap();
    let own = app::own_certificates(&options).unwrap().map(|own| Prepared::write(own).unwrap());
    let current = Current::new(Arc::new(sick));
    let own_ca = own.as_ref().map(|own| own.authority_pem.as_str());
    let generation = Arc::new(create_server_chain(&options, &shared, &current, own_ca).unwrap());
    shared.cache.ready().await;
    app::commit(&shared, &current, &generation);
    let set = || Listeners::new(current.clone(), app::limits(&options), InheritedSockets::default());
    let registered = app::hooks::register(&shared.hooks, &options);
    let custom = crate::chain::custom::CustomRows::start(&shared);
    let bootstrap = app::hooks::Bootstrap::start(&options, &shared, &current, own_ca, &registered, custom);
    let controllers = Controllers::new(shared.clone(), &current, bootstrap);
    let (listeners, admin) = (set(), set());
    shared.hooks.wait_all().await;
    Reloader::new(Running { invocation, shared, current, listeners, admin, logs, generation, own, controllers })
}

fn sick(_: Request) -> ServeFuture {
    Box::pin(async { respond::text_error(500, "not well") })
}

#[tokio::test]
async fn a_key_file_that_hangs_costs_the_time_limit_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "");
    let mut reloader = reloader(folder.path()).await;
    let good = reloader.running.generation.options.clone();
    let pki = folder.path().join("pki");
    std::fs::create_dir(&pki).unwrap();
    let pipe = pki.join("ca.crt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    write(folder.path(), "[serving]\ncert_dir = 'pki'\n[reload]\nprobe_timeout = '200ms'\n");
    for _ in 0..2 {
        let (answer, report) = oneshot::channel();
        reloader.serve(vec![Trigger::Admin(answer)]).await;
        let report = report.await.unwrap();
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(report.lines[0].contains("did not prove itself within 0.2s"), "{:?}", report.lines);
    }
    assert_eq!(reloader.running.generation.options, good);
    // Whoever reads gets an end, so that the thread has one.
    drop(std::fs::File::options().write(true).open(&pipe).unwrap());
}

#[tokio::test]
async fn a_change_of_the_reserve_is_observed_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "");
    let mut reloader = reloader(folder.path()).await;
    write(folder.path(), "[storage]\nreserve = '1MiB'\n");
    reloader.serve(vec![Trigger::Files]).await;
    assert_eq!(reloader.last.outcome, Outcome::Applied, "{:?}", reloader.last.lines);
    assert!(reloader.window.is_some());
    reloader.running.current.store(Arc::new(sick));
    reloader.close_window().await;
    assert_eq!(reloader.last.outcome, Outcome::Reverted);

    write(folder.path(), "[storage]\npath = 'elsewhere'\n");
    reloader.serve(vec![Trigger::Files]).await;
    assert_eq!(reloader.last.outcome, Outcome::Applied, "{:?}", reloader.last.lines);
    assert!(reloader.window.is_none(), "what was moved is not moved back");
}

/// Lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn one_mistake_is_logged_once_whoever_finds_it_first() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "");
    let mut reloader = reloader(folder.path()).await;
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let told = || String::from_utf8_lossy(&lines.0.lock()).matches("the old configuration serves on").count();
    for (round, asked_first) in [(1, true), (2, false)] {
        write(folder.path(), &format!("[serving]\nmax_requests_inflight = -{round}\n"));
        for asks in [asked_first, !asked_first, asked_first] {
            let (answer, report) = oneshot::channel();
            reloader.serve(vec![if asks { Trigger::Admin(answer) } else { Trigger::Files }]).await;
            assert_eq!(reloader.last.outcome, Outcome::Failed);
            if asks {
                assert_eq!(report.await.unwrap().outcome, Outcome::Failed);
            }
        }
        assert_eq!(told(), round);
    }
}

#[tokio::test]
async fn a_configuration_that_turns_bad_in_its_first_seconds_is_taken_back_and_not_tried_again_unasked() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "");
    let mut reloader = reloader(folder.path()).await;
    let good = reloader.running.generation.options.clone();

    write(folder.path(), "[serving]\nmax_requests_inflight = 7\n");
    reloader.serve(vec![Trigger::Files]).await;
    assert_eq!(reloader.last.outcome, Outcome::Applied, "{:?}", reloader.last.lines);
    reloader.running.current.store(Arc::new(sick));
    reloader.close_window().await;
    assert_eq!(reloader.last.outcome, Outcome::Reverted);
    assert!(reloader.last.lines[0].contains("not well"), "{:?}", reloader.last.lines);
    assert_eq!(reloader.running.generation.options, good);
    assert_eq!(reloader.health().await, Ok(()));

    // The file is still there; a look alone does not try it again, somebody who asks does.
    let generation = reloader.running.current.generation();
    reloader.serve(vec![Trigger::Poll]).await;
    assert_eq!((reloader.last.outcome, reloader.running.current.generation()), (Outcome::Reverted, generation));
    let (answer, report) = oneshot::channel();
    reloader.serve(vec![Trigger::Admin(answer)]).await;
    assert_eq!(report.await.unwrap().outcome, Outcome::Applied);

    // A window that ends well leaves the new one serving.
    reloader.close_window().await;
    assert_eq!(reloader.last.outcome, Outcome::Applied);
    assert_eq!(reloader.running.generation.options.serving.max_requests_inflight, 7);
    assert!(reloader.window.is_none());
}
