//! A kubelet for tests: real sockets and TLS, made-up answers.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures_util::stream;
use http::{StatusCode, header};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    options::completed::{CaBundle, CertPair, ConnectionLimits, Http2, Kubelet, Tls, TlsVersion},
    options::types::SecretBytes,
    pki::{self, NewcomerOptions},
    server::{
        current::{Current, Serve, ServeFuture},
        http::{Body, Request, Response},
        listen::{Address, InheritedSockets, Limits, ListenerSpec, Listeners, tls},
    },
};

/// Serves `/containerLogs/...` (three lines, in pieces), `/echo` (an upgrade that repeats what it hears) and 404.
pub(crate) struct FakeKubelet {
    pub address: SocketAddr,
    /// `METHOD path client-name` of every request, in order.
    pub seen: Arc<Mutex<Vec<String>>>,
    pub listeners: Listeners,
    directory: tempfile::TempDir,
}

impl FakeKubelet {
    /// Listens on a free loopback port.
    pub fn start(http2: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let made = pki::newcomer::ensure(&NewcomerOptions {
            directory: directory.path().to_owned(),
            kubeconfig: directory.path().join("admin.conf"),
            server_url: String::new(),
            host_name: "node".into(),
            addresses: vec![],
            cluster_domain: "cluster.local".into(),
        })
        .unwrap();
        let pair = pki::check_pair(made.serving_pem.as_bytes(), made.serving_key_pem.as_bytes()).unwrap();
        let settings = Tls {
            certificate: None,
            cert_dir: "".into(),
            sni: vec![],
            min_version: TlsVersion::Tls12,
            cipher_suites: vec![],
            curve_preferences: vec![],
        };
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let serve: Arc<dyn Serve> = Arc::new({
            let seen = seen.clone();
            move |request: Request| -> ServeFuture {
                let who =
                    request.conn.certificates.first().map(|der| pki::parse_client_identity(der).unwrap().common_name);
                seen.lock().push(format!("{} {} {}", request.parts.method, request.parts.uri, who.unwrap_or_default()));
                Box::pin(async move { answer(request) })
            }
        });
        let listeners = Listeners::new(Current::new(serve), limits(), InheritedSockets::default());
        let config = tls::server_config(&settings, Some(&pair), http2).unwrap();
        let spec = ListenerSpec::new(Address::Tcp("127.0.0.1:0".parse().unwrap()), Some(config));
        listeners.commit(listeners.bind(vec![spec], limits()).unwrap()).finish();
        Self { address: listeners.addresses()[0], seen, listeners, directory }
    }

    /// Options that reach it, with the kubelet's own authority and the client certificate it knows.
    pub fn options(&self) -> Kubelet {
        let read = |name: &str| -> Arc<[u8]> { std::fs::read(self.directory.path().join(name)).unwrap().into() };
        let (authority, certificate) = (read("ca.crt"), read("admin.crt"));
        Kubelet {
            client: Some(CertPair {
                cert_file: "admin.crt".into(),
                key_file: "admin.key".into(),
                chain: pki::pair::read_certificates(&certificate).unwrap(),
                cert_pem: certificate,
                key_pem: SecretBytes::new(read("admin.key")),
            }),
            certificate_authority: Some(CaBundle {
                file: "ca.crt".into(),
                certificates: pki::pair::read_certificates(&authority).unwrap(),
                pem: authority,
            }),
            preferred_address_types: ["Hostname", "InternalIP"].map(str::to_owned).to_vec(),
            timeout: Duration::from_secs(5),
            port: self.address.port(),
        }
    }
}

fn answer(mut request: Request) -> Response {
    let path = request.parts.uri.path();
    if path.starts_with("/containerLogs/") {
        let lines = ["one\n", "two\n", "three\n"].map(|line| Ok(bytes::Bytes::from_static(line.as_bytes())));
        return Response::new(Body::Stream(Box::pin(stream::iter(lines))));
    }
    if let (true, Some(upgrade)) = (path == "/echo", request.upgrade.take()) {
        tokio::spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.unwrap());
            let mut four = [0; 4];
            stream.read_exact(&mut four).await.unwrap();
            stream.write_all(&four).await.unwrap();
        });
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert(header::CONNECTION, "Upgrade".parse().unwrap());
        response.headers_mut().insert(header::UPGRADE, "echo".parse().unwrap());
        return response;
    }
    let mut response = Response::new(Body::Full("not here".into()));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn limits() -> Limits {
    Limits {
        connections: ConnectionLimits {
            max_connections: 100,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            max_header_bytes: 1 << 20,
            max_body_bytes: 3 << 20,
        },
        http2: Http2 {
            enabled: true,
            max_streams_per_connection: 250,
            stream_window: 256 * 1024,
            connection_window: 1 << 20,
            max_frame_size: 256 * 1024,
            keep_alive_interval: Duration::ZERO,
            keep_alive_timeout: Duration::from_secs(15),
        },
    }
}
