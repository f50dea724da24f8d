//! What the tests start and ask. Four lines start a daemon and a client:
//!
//! ```ignore
//! let daemon = Daemon::start(&[]).await;
//! let client = daemon.client();
//! let answer = client.get("/api/v1/namespaces").await;
//! assert_eq!(answer.status, 200);
//! ```

use std::{
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

pub mod bounds;
pub mod notified;
pub mod tls;

use bytes::Bytes;
use futures_util::StreamExt;
use kenter::{
    chain::dialer::{Authority, Client as Http, ClientTls, Peer},
    object::{Value, parse, to_vec},
    server::http::{Body, BodyStream},
};
use tokio::process::{Child, Command};

/// Longest wait for a condition; a machine under load is slow, a hang is a failure.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// ConfigMaps of the namespace that each daemon starts with.
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/it/configmaps";

/// The token of a member of `system:masters`.
pub const ADMIN: &str = "admin-token";

/// A running kenter, ended with its handle.
pub struct Daemon {
    pub folder: tempfile::TempDir,
    pub port: u16,
    pub child: Child,
    setup: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A port nobody listens on; another process may take it before it is used, so starting tries again.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr()).expect("loopback has free ports").port()
}

pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_kenter")
}

/// A daemon that is about to be: an empty configuration file, an admin token, a drop-in with the port.
pub struct Setup {
    pub folder: tempfile::TempDir,
    port: u16,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Setup {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("tokens.csv", &tokens(&[]));
        write("kenter.toml", "");
        std::fs::create_dir(folder.path().join("kenter.d")).expect("made");
        // Not a flag: a flag could not be changed by a reload.
        write("kenter.d/00-port.toml", &format!("[serving]\nsecure_port = {port}\n"));
        Self { folder, port, flags: Vec::new(), environment: Vec::new() }
    }

    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it is called with.
    pub fn arguments(&self) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let mut arguments = vec!["run".into(), "--config".into(), path("kenter.toml")];
        // A test's own state directory comes later and wins.
        arguments.extend(["--state-dir".into(), path("state"), "--bind-address=127.0.0.1".into()]);
        arguments.extend(["--token-auth-file".into(), path("tokens.csv")]);
        arguments.extend(self.flags.iter().cloned());
        arguments
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self) -> Daemon {
        let (setup, environment) = (self.arguments(), self.environment.clone());
        let child = spawn(&setup, &environment, self.folder.path());
        let mut daemon = Daemon { folder: self.folder, port: self.port, child, setup, environment };
        daemon.ready().await;
        daemon
    }
}

/// A token file with the admin's line and these users, whose token is `<name>-token`.
pub fn tokens(users: &[&str]) -> String {
    let lines = users.iter().enumerate().map(|(n, user)| format!("{user}-token,{user},{}\n", n + 2));
    format!("{ADMIN},admin,1,\"system:masters\"\n{}", lines.collect::<String>())
}

impl Daemon {
    /// Starts a daemon with an empty configuration file, the admin token, `flags` and the namespace `it`, and waits until
    /// it is ready.
    pub async fn start(flags: &[&str]) -> Self {
        let daemon = Setup::new().flags(flags).start().await;
        daemon.make_namespace().await;
        daemon
    }

    /// Makes the namespace `it` and waits until controllers have put into it what they put into each.
    pub async fn make_namespace(&self) {
        let client = self.client();
        let namespace = kenter::json!({ "metadata": { "name": "it" } });
        assert_eq!(client.post("/api/v1/namespaces", &namespace).await.status, 201);
        let given = format!("{CONFIG_MAPS}/kube-root-ca.crt");
        eventually("the namespace has its authority", || async { client.get(&given).await.status == 200 }).await;
    }

    /// Starts the process again in the same folder, after it was ended.
    pub async fn restart(&mut self) {
        self.child = spawn(&self.setup, &self.environment, self.folder.path());
        self.ready().await;
    }

    /// Starts the process again, which is expected to end by itself: its exit code and what it said.
    pub async fn fails_to_restart(&mut self) -> (i32, String) {
        let before = self.log().len();
        self.child = spawn(&self.setup, &self.environment, self.folder.path());
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("in time").expect("it ends");
        (status.code().unwrap_or(-1), self.log().split_off(before))
    }

    /// Ends it as the kernel does when memory is short.
    pub async fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        self.child.wait().await.expect("it ends");
    }

    /// Waits for the process to end.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("in time").expect("it ends")
    }

    /// Writes a file of the configuration in place.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn ready(&mut self) {
        let client = self.client();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("kenter ended with {status}: {}", self.log());
            }
            if client.try_get("/readyz").await.is_some_and(|answer| answer.status == 200) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "kenter did not become ready: {}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn client(&self) -> Client {
        Client::new(self.port, ADMIN)
    }

    pub fn client_as(&self, token: &str) -> Client {
        Client::new(self.port, token)
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id().expect("the process runs")).expect("pids fit")
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// The value of a metric without labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.client().get("/metrics").await.text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no metric {name} in:\n{text}"))
    }

    /// What `/kenter/config` shows.
    pub async fn report(&self) -> Value {
        self.client().get("/kenter/config").await.json()
    }

    /// The number of the configuration that serves.
    pub async fn generation(&self) -> i64 {
        self.report().await.i64_at(&["generation"]).expect("a number")
    }

    /// What `kenter reload` does, without a process: the answer on the admin socket.
    pub async fn reload_by_socket(&self) -> (u16, Value) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream =
            tokio::net::UnixStream::connect(self.path("state/admin.sock")).await.expect("the admin socket");
        stream.write_all(b"POST /reload HTTP/1.1\r\nhost: kenter\r\nconnection: close\r\n\r\n").await.expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        (status, parse(body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {answer}")))
    }

    /// `kenter reload` against this daemon: exit code and everything printed.
    pub async fn reload(&self) -> (i32, String) {
        let mut command = Command::new(binary());
        command.arg("reload").arg("--state-dir").arg(self.path("state")).arg("--config").arg(self.path("kenter.toml"));
        let output = command.env_remove("KENTER_CONFIG").output().await.expect("kenter reload runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }
}

fn spawn(arguments: &[String], environment: &[(String, String)], folder: &Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).expect("a log file");
    let mut command = Command::new(binary());
    command.args(arguments).stdout(log.try_clone().expect("a handle")).stderr(log).stdin(Stdio::null());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).kill_on_drop(true);
    command.envs(environment.iter().cloned());
    command.spawn().expect("kenter starts")
}

pub struct Answer {
    pub status: u16,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        parse(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A client of one daemon with one token.
#[derive(Clone)]
pub struct Client {
    http: Http,
    authority: Authority,
    token: String,
}

impl Client {
    pub fn new(port: u16, token: &str) -> Self {
        let tls = ClientTls { peer: Peer::Anyone, identity: None, server_name: None };
        let http = Http::new(Some(tls), PATIENCE).expect("a client");
        Self { http, authority: Authority { host: "127.0.0.1".into(), port }, token: token.into() }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: Option<Vec<u8>>,
    ) -> Option<http::Response<BodyStream>> {
        let mut request = http::Request::builder().method(method).uri(path).header("user-agent", "it/1");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        if body.is_some() {
            request = request.header("content-type", kind);
        }
        let body = body.map_or(Body::Empty, |body| Body::Full(body.into()));
        self.http.send(&self.authority, request.body(body).expect("a request")).await.ok()
    }

    pub async fn call(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Option<Answer> {
        Self::whole(self.send(method, path, kind, body.map(to_vec)).await?).await
    }

    /// The same with any bytes for a body; none for none.
    pub async fn call_with(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> Option<Answer> {
        Self::whole(self.send(method, path, kind, Some(body).filter(|body| !body.is_empty())).await?).await
    }

    async fn whole(response: http::Response<BodyStream>) -> Option<Answer> {
        let (parts, mut stream) = response.into_parts();
        let mut bytes = Vec::new();
        while let Some(piece) = stream.next().await {
            bytes.extend_from_slice(&piece.ok()?);
        }
        Some(Answer { status: parts.status.as_u16(), body: bytes.into() })
    }

    pub async fn try_get(&self, path: &str) -> Option<Answer> {
        self.call("GET", path, "", None).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.try_get(path).await.expect("the daemon answers")
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, "application/json", Some(body)).await.expect("the daemon answers")
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.call("PATCH", path, "application/merge-patch+json", Some(body)).await.expect("the daemon answers")
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, "", None).await.expect("the daemon answers")
    }

    /// A watch: events as trees, in order.
    pub async fn watch(&self, path: &str) -> Watch {
        let response = self.send("GET", path, "", None).await.expect("the daemon answers");
        assert_eq!(response.status(), 200, "{path}");
        Watch { stream: response.into_body(), rest: Vec::new() }
    }
}

pub struct Watch {
    stream: BodyStream,
    rest: Vec<u8>,
}

impl Watch {
    /// The next event; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                return Some(parse(&line).expect("an event is JSON"));
            }
            match tokio::time::timeout(PATIENCE, self.stream.next()).await.expect("an event or the end in time") {
                Some(Ok(piece)) => self.rest.extend_from_slice(&piece),
                Some(Err(_)) | None => return None,
            }
        }
    }
}

/// Waits until `condition` holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "it never came true that {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A name and two equal values, so that half of an object is noticed.
pub fn config_map(name: &str, value: &str) -> Value {
    kenter::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": value, "l": value } })
}
