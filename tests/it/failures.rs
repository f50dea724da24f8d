//! A configuration that cannot serve: the old one serves on, and everywhere an operator looks says why.

use std::fs;

use crate::support::{
    Daemon, Setup, free_port,
    notified::Notified,
    tls::{self, Key},
};

/// A daemon with certificate and token file, what it tells its supervisor, and the certificate it shows.
struct Subject {
    daemon: Daemon,
    notified: Notified,
    certificate: String,
}

impl Subject {
    async fn start() -> Self {
        let setup = Setup::new();
        let key = Key::new();
        let certificate = key.certificate("good");
        let write = |name: &str, text: &str| fs::write(setup.path(name), text).expect("written");
        write("tls.key", &key.pem());
        write("tls.crt", &certificate);
        write("kenter.toml", "[serving]\ntls_cert_file = 'tls.crt'\ntls_private_key_file = 'tls.key'\n");
        let notified = Notified::at(&setup.path("notify"));
        let socket = setup.path("notify").display().to_string();
        // Whoever looks is told by `kenter reload` alone.
        let setup = setup.environment("NOTIFY_SOCKET", &socket).environment("KENTER_RELOAD__WATCH", "false");
        Self { daemon: setup.start().await, notified, certificate }
    }

    /// Reloads, which has to fail for `reason`, and looks at all six reports; then mends it and looks again.
    async fn refuses(&self, reason: &str, mend: impl Fn(&Daemon)) {
        let daemon = &self.daemon;
        let (before, log) = (daemon.generation().await, daemon.log().len());
        let said = self.notified.lines().len();
        let (code, text) = daemon.reload().await;
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(reason) && text.contains("serves on"), "no {reason:?} in: {text}");
        let log = daemon.log().split_off(log);
        assert!(log.contains(reason) && log.contains("the old configuration serves on"), "no {reason:?} in: {log}");
        assert_eq!(daemon.metric("kenter_config_last_reload_successful").await as i64, 0);
        assert_eq!(daemon.metric("kenter_config_generation").await as i64, before);
        let report = daemon.report().await;
        assert_eq!(report.str_at(&["lastReload", "outcome"]), "failed");
        let problems = format!("{:?}", report.array_at(&["lastReload", "problems"]));
        assert!(problems.contains(&reason.replace('"', "\\\"")), "no {reason:?} in: {problems}");
        self.notified.heard(said, &["RELOADING=1", "MONOTONIC_USEC=*", "STATUS=reload failed: *", "READY=1"]).await;
        let status = self.notified.lines().into_iter().skip(said).find(|line| line.starts_with("STATUS=reload failed"));
        assert!(status.as_ref().is_some_and(|status| status.contains(reason)), "no {reason:?} in: {status:?}");
        // The old one serves on.
        assert_eq!(daemon.generation().await, before);
        assert!(tls::shows(daemon.port, &self.certificate).await, "the old certificate is shown");

        mend(daemon);
        let said = self.notified.lines().len();
        let (code, text) = daemon.reload().await;
        assert_eq!(code, 0, "{text}");
        assert_eq!(daemon.metric("kenter_config_last_reload_successful").await as i64, 1);
        assert_ne!(daemon.report().await.str_at(&["lastReload", "outcome"]), "failed");
        self.notified.heard(said, &["RELOADING=1", "STATUS=serving *", "READY=1"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failure_leaves_the_old_configuration_serving_and_every_report_right() {
    let subject = Subject::start().await;
    let daemon = &subject.daemon;
    let good = |name: &'static str| {
        let text = fs::read_to_string(daemon.path(name)).expect("readable");
        move |daemon: &Daemon| daemon.write(name, &text)
    };
    let no_drop_in = |daemon: &Daemon| fs::remove_file(daemon.path("kenter.d/50.toml")).expect("removed");

    daemon.write("kenter.d/50.toml", "[serving]\nmax_requests_inflight = = 4\n");
    subject.refuses("50.toml:2:25", no_drop_in).await;
    daemon.write("kenter.d/50.toml", "[serving]\nmax_requests_inflght = 4\n");
    subject.refuses("max_requests_inflight", no_drop_in).await;

    let mend = good("tls.crt");
    daemon.write("tls.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    subject.refuses("tls.crt", mend).await;
    let mend = good("tls.key");
    daemon.write("tls.key", &Key::new().pem());
    subject.refuses("private key does not belong", mend).await;

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = taken.local_addr().expect("an address").port();
    daemon.write("kenter.d/50.toml", &format!("[serving]\nsecure_port = {port}\n"));
    subject.refuses("address already in use", no_drop_in).await;

    // A pipe that nobody writes to: whoever opens it waits for ever.
    let mend = good("tokens.csv");
    let path = daemon.path("tokens.csv");
    fs::remove_file(&path).expect("removed");
    let name = std::ffi::CString::new(path.display().to_string()).expect("no zero");
    // SAFETY: the string ends in zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let path_again = path.clone();
    subject
        .refuses("not a regular file", move |daemon| {
            fs::remove_file(&path_again).expect("removed");
            mend(daemon);
        })
        .await;

    let mend = good("tokens.csv");
    fs::remove_file(&path).expect("removed");
    subject.refuses("no such file or directory", mend).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_was_noticed_by_itself_is_told_once_and_its_end_too() {
    let daemon = Daemon::start(&[]).await;
    let successful = || async { daemon.metric("kenter_config_last_reload_successful").await as i64 };
    daemon.write("kenter.d/50.toml", "[serving]\nmax_requests_inflight = 'many'\n");
    crate::support::eventually("the failure is told", || async { successful().await == 0 }).await;
    fs::remove_file(daemon.path("kenter.d/50.toml")).expect("removed");
    crate::support::eventually("its end is told", || async { successful().await == 1 }).await;
    assert_eq!(daemon.log().matches("the old configuration serves on").count(), 1, "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_candidate_leaves_no_trace() {
    let daemon = Daemon::start(&[]).await;
    let kubeconfig = || fs::read_to_string(daemon.path("state/admin.conf")).expect("readable");
    let before = kubeconfig();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let (free, port) = (free_port(), taken.local_addr().expect("an address").port());
    let text = format!("[serving]\nbind = ['127.0.0.1:{free}', '127.0.0.1:{port}']\n[storage]\npath = 'moved'\n");
    daemon.write("kenter.d/50.toml", &text);
    let (code, text) = daemon.reload().await;
    assert_eq!(code, 1, "{text}");
    assert_eq!(kubeconfig(), before, "the kubeconfig names a port that is not served");
    assert!(!daemon.path("kenter.d/moved").exists(), "the store was not moved");
    assert!(std::net::TcpListener::bind(("127.0.0.1", free)).is_ok(), "the port is still held");
}

#[tokio::test(flavor = "multi_thread")]
async fn kenter_reload_says_so_where_nobody_answers() {
    let setup = Setup::new();
    let state = setup.path("state").display().to_string();
    let output = std::process::Command::new(crate::support::binary()).args(["reload", "--state-dir", &state]).output();
    let output = output.expect("kenter runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("admin.sock"));
}
