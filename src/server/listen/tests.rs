use std::{
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::atomic::AtomicBool,
};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, StatusCode, header};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, sign::CertifiedKey};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::{
    options::completed::{Tls, TlsVersion},
    pki::{self, NewcomerOptions},
    server::{
        current::{Serve, ServeFuture},
        http::{Body, Request, Response},
    },
};

/// Certificates of a throw-away cluster.
struct Pki {
    _directory: tempfile::TempDir,
    newcomer: pki::Newcomer,
    admin: (String, String),
}

impl Pki {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let newcomer = pki::newcomer::ensure(&NewcomerOptions {
            directory: directory.path().join("pki"),
            kubeconfig: directory.path().join("admin.conf"),
            server_url: "https://127.0.0.1:6443".into(),
            host_name: "tester".into(),
            addresses: vec![],
            cluster_domain: "cluster.local".into(),
        })
        .unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join("pki").join(name)).unwrap();
        let admin = (read("admin.crt"), read("admin.key"));
        Self { newcomer, admin, _directory: directory }
    }

    fn pair(&self) -> CertifiedKey {
        pki::check_pair(self.newcomer.serving_pem.as_bytes(), self.newcomer.serving_key_pem.as_bytes()).unwrap()
    }

    fn server(&self) -> Arc<ServerConfig> {
        tls::server_config(&plain_tls(), Some(&self.pair()), true).unwrap()
    }

    fn client(&self, with_certificate: bool, alpn: &[&[u8]]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        for certificate in pki::pair::read_certificates(self.newcomer.authority_pem.as_bytes()).unwrap() {
            roots.add(certificate).unwrap();
        }
        let builder = ClientConfig::builder_with_provider(pki::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = if with_certificate {
            let chain = pki::pair::read_certificates(self.admin.0.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, pki::pair::read_key(self.admin.1.as_bytes()).unwrap()).unwrap()
        } else {
            builder.with_no_client_auth()
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config
    }
}

fn plain_tls() -> Tls {
    Tls {
        certificate: None,
        cert_dir: "".into(),
        sni: vec![],
        min_version: TlsVersion::Tls12,
        cipher_suites: vec![],
        curve_preferences: vec![],
    }
}

fn limits() -> Limits {
    Limits {
        connections: ConnectionLimits {
            max_connections: 1000,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            max_header_bytes: 1 << 20,
            max_body_bytes: 3 << 20,
        },
        http2: Http2 {
            enabled: true,
            max_streams_per_connection: 100,
            stream_window: 256 * 1024,
            connection_window: 100 * 256 * 1024,
            max_frame_size: 256 * 1024,
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(15),
        },
    }
}

fn hurried() -> Limits {
    let mut limits = limits();
    limits.connections.header_timeout = Duration::from_millis(150);
    limits.connections.idle_timeout = Duration::from_millis(300);
    limits
}

fn serving<F, A>(answer: F) -> Arc<dyn Serve>
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    Arc::new(move |request: Request| -> ServeFuture { Box::pin(answer(request)) })
}

fn text(text: impl Into<String>) -> Response {
    Response::new(Body::Full(Bytes::from(text.into())))
}

/// Answers with what it knows of the connection.
fn describing() -> Current {
    Current::new(serving(|request| async move {
        let conn = &request.conn;
        let who = conn.certificates.first().map(|der| pki::parse_client_identity(der).unwrap().common_name);
        text(format!("{:?} http2={} {:?} who={who:?}", request.parts.version, conn.http2, conn.transport))
    }))
}

fn listeners(current: Current) -> Listeners {
    Listeners::new(current, limits(), InheritedSockets::default())
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn any_port() -> Address {
    Address::Tcp(SocketAddr::new(LOOPBACK, 0))
}

/// Listens on a free loopback port.
fn listen(listeners: &Listeners, tls: Option<Arc<ServerConfig>>, limits: Limits) -> SocketAddr {
    listeners.commit(listeners.bind(vec![ListenerSpec::new(any_port(), tls)], limits).unwrap()).finish();
    listeners.addresses()[0]
}

async fn connect(address: SocketAddr, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let tcp = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::IpAddress(LOOPBACK.into()), tcp).await
}

type Sender1 = hyper::client::conn::http1::SendRequest<http_body_util::Full<Bytes>>;
type Sender2 = hyper::client::conn::http2::SendRequest<http_body_util::Full<Bytes>>;

async fn http1(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static) -> Sender1 {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    sender
}

async fn http2(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static) -> Sender2 {
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(path: &str) -> http::Request<http_body_util::Full<Bytes>> {
    request(Method::GET, path, Bytes::new())
}

fn request(method: Method, path: &str, body: Bytes) -> http::Request<http_body_util::Full<Bytes>> {
    let uri = format!("https://server{path}");
    http::Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "server")
        .body(http_body_util::Full::new(body))
        .unwrap()
}

async fn body(response: http::Response<hyper::body::Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Waits for a condition that has no event of its own.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn tls_serves_both_protocols_and_shows_the_clients_certificate_where_there_is_one() {
    let pki = Pki::new();
    let listeners = listeners(describing());
    let address = listen(&listeners, Some(pki.server()), limits());

    let mut h2 = http2(connect(address, pki.client(true, &[b"h2", b"http/1.1"])).await.unwrap()).await;
    assert_eq!(
        body(h2.send_request(get("/")).await.unwrap()).await,
        "HTTP/2.0 http2=true Tls who=Some(\"kubernetes-admin\")"
    );
    let mut h1 = http1(connect(address, pki.client(false, &[b"http/1.1"])).await.unwrap()).await;
    assert_eq!(body(h1.send_request(get("/")).await.unwrap()).await, "HTTP/1.1 http2=false Tls who=None");
    let mut none = http1(connect(address, pki.client(true, &[])).await.unwrap()).await;
    assert_eq!(
        body(none.send_request(get("/")).await.unwrap()).await,
        "HTTP/1.1 http2=false Tls who=Some(\"kubernetes-admin\")"
    );
}

#[tokio::test]
async fn a_request_has_a_path_in_its_uri_and_its_host_in_a_header_over_either_protocol() {
    let current = Current::new(serving(|request| async move {
        text(format!(
            "{:?} {}",
            request.parts.headers.get_all(header::HOST).iter().collect::<Vec<_>>(),
            request.parts.uri
        ))
    }));
    let pki = Pki::new();
    let listeners = listeners(current);
    let address = listen(&listeners, Some(pki.server()), limits());
    let mut h2 = http2(connect(address, pki.client(false, &[b"h2"])).await.unwrap()).await;
    let mut h1 = http1(connect(address, pki.client(false, &[b"http/1.1"])).await.unwrap()).await;
    let mut without = get("/a%2Fb?x=1");
    without.headers_mut().remove(header::HOST);
    for response in [h2.send_request(without).await, h1.send_request(get("/a%2Fb?x=1")).await] {
        assert_eq!(body(response.unwrap()).await, "[\"server\"] /a%2Fb?x=1");
    }
}

#[tokio::test]
async fn an_older_tls_version_than_the_minimum_is_refused() {
    let pki = Pki::new();
    let only13 = Tls { min_version: TlsVersion::Tls13, ..plain_tls() };
    let server = tls::server_config(&only13, Some(&pki.pair()), true).unwrap();
    let listeners = listeners(describing());
    let address = listen(&listeners, Some(server), limits());
    let mut roots = RootCertStore::empty();
    roots.add(pki::pair::read_certificates(pki.newcomer.authority_pem.as_bytes()).unwrap().remove(0)).unwrap();
    let client = ClientConfig::builder_with_provider(pki::provider())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    assert!(connect(address, client).await.is_err());
    assert!(connect(address, pki.client(false, &[])).await.is_ok());
}

#[tokio::test]
async fn a_resumed_session_still_shows_its_certificate_and_is_judged_by_the_bundle_of_today() {
    let (pki, stranger) = (Pki::new(), Pki::new());
    let seen = Arc::new(Mutex::new(None));
    let current = Current::new(serving({
        let seen = seen.clone();
        move |request| {
            *seen.lock() = Some(request.conn.clone());
            async { text("") }
        }
    }));
    let listeners = listeners(current);
    let address = listen(&listeners, Some(pki.server()), limits());
    let config = pki.client(true, &[b"http/1.1"]);
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let stream = connect(address, config.clone()).await.unwrap();
        kinds.push(stream.get_ref().1.handshake_kind().unwrap());
        let mut sender = http1(stream).await;
        body(sender.send_request(get("/")).await.unwrap()).await;
    }
    assert_eq!(kinds[1], rustls::HandshakeKind::Resumed);
    let conn = seen.lock().take().unwrap();
    let trusted = pki::TrustBundle::from_pem(pki.newcomer.authority_pem.as_bytes()).unwrap();
    let other = pki::TrustBundle::from_pem(stranger.newcomer.authority_pem.as_bytes()).unwrap();
    assert_eq!(trusted.judge(&conn.certificates, &conn.verdict).unwrap().common_name, "kubernetes-admin");
    let refused = other.judge(&conn.certificates, &conn.verdict).unwrap_err();
    assert!(refused.contains("x509: certificate signed by unknown authority"), "{refused}");
}

#[tokio::test]
async fn plain_connections_speak_both_protocols_unless_http2_is_off() {
    let listeners = listeners(describing());
    let address = listen(&listeners, None, limits());
    let tcp = || async move { TcpStream::connect(address).await.unwrap() };
    let describe = "Plain who=None";
    let answer = http1(tcp().await).await.send_request(get("/")).await.unwrap();
    assert_eq!(body(answer).await, format!("HTTP/1.1 http2=false {describe}"));
    let answer = http2(tcp().await).await.send_request(get("/")).await.unwrap();
    assert_eq!(body(answer).await, format!("HTTP/2.0 http2=true {describe}"));

    let off = Limits { http2: Http2 { enabled: false, ..limits().http2 }, ..limits() };
    listeners.commit(listeners.bind(vec![ListenerSpec::new(any_port(), None)], off).unwrap()).finish();
    assert!(http2(tcp().await).await.send_request(get("/")).await.is_err());
    assert_eq!(http1(tcp().await).await.send_request(get("/")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn hundreds_of_headers_pass_and_too_many_bytes_of_them_are_refused() {
    let listeners = listeners(Current::new(serving(|request| async move {
        text(request.parts.headers.get_all("impersonate-group").iter().count().to_string())
    })));
    let address = listen(&listeners, None, limits());
    for second in [false, true] {
        let tcp = TcpStream::connect(address).await.unwrap();
        let mut many = get("/");
        for number in 0..900 {
            many.headers_mut().append("impersonate-group", format!("group-{number}").parse().unwrap());
        }
        let mut fat = get("/");
        fat.headers_mut().insert("x-fat", "x".repeat(2 << 20).parse().unwrap());
        let (passed, refused) = if second {
            let mut sender = http2(tcp).await;
            (sender.send_request(many).await, sender.send_request(fat).await)
        } else {
            let mut sender = http1(tcp).await;
            (sender.send_request(many).await, sender.send_request(fat).await)
        };
        assert_eq!(body(passed.unwrap()).await, "900");
        // On HTTP/1.1 the answer may be lost, because the rest of the headers is never read.
        assert!(
            refused.is_err()
                || refused.is_ok_and(|response| response.status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        );
    }
}

#[tokio::test]
async fn plain_http_on_a_tls_port_is_told_so() {
    let pki = Pki::new();
    let listeners = listeners(describing());
    let address = listen(&listeners, Some(pki.server()), limits());
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap_or_default();
    assert_eq!(answer, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
}

#[tokio::test]
async fn silent_slow_and_idle_clients_are_closed() {
    let pki = Pki::new();
    let listeners = listeners(describing());
    let quick = Limits {
        connections: ConnectionLimits { handshake_timeout: Duration::from_millis(150), ..hurried().connections },
        ..hurried()
    };
    let specs = vec![ListenerSpec::new(any_port(), Some(pki.server())), ListenerSpec::new(any_port(), None)];
    // The same address twice is refused, so the second one is another loopback address.
    let specs = specs.into_iter().zip([1, 2]).map(|(spec, last)| ListenerSpec {
        address: Address::Tcp(SocketAddr::new(Ipv4Addr::new(127, 0, 0, last).into(), 0)),
        ..spec
    });
    listeners.commit(listeners.bind(specs.collect(), quick).unwrap()).finish();
    let [secure, plain] = listeners.addresses()[..] else { panic!("two listeners") };
    let mut rest = Vec::new();

    let mut no_handshake = TcpStream::connect(secure).await.unwrap();
    assert_eq!(no_handshake.read_to_end(&mut rest).await.unwrap_or(0), 0);
    for alpn in [&b"http/1.1"[..], b"h2"] {
        let mut silent = connect(secure, pki.client(false, &[alpn])).await.unwrap();
        let _ = silent.read_to_end(&mut rest).await;
    }
    let mut half = connect(secure, pki.client(false, &[b"http/1.1"])).await.unwrap();
    half.write_all(b"GET / HT").await.unwrap();
    let _ = half.read_to_end(&mut rest).await;
    for first in [&b""[..], b"GET / HTTP/1.1\r\nho"] {
        let mut slow = TcpStream::connect(plain).await.unwrap();
        slow.write_all(first).await.unwrap();
        let _ = slow.read_to_end(&mut rest).await;
    }
    let mut used = http1(connect(secure, pki.client(false, &[b"http/1.1"])).await.unwrap()).await;
    body(used.send_request(get("/")).await.unwrap()).await;
    let mut used2 = http2(connect(secure, pki.client(false, &[b"h2"])).await.unwrap()).await;
    body(used2.send_request(get("/")).await.unwrap()).await;
    until(|| used.is_closed() && used2.is_closed()).await;
    until(|| listeners.connections() == 0).await;
}

#[tokio::test]
async fn a_second_request_whose_headers_stop_halfway_is_closed_before_the_idle_time_is_over() {
    let listeners = listeners(describing());
    let mut limits = hurried();
    limits.connections.idle_timeout = Duration::from_secs(3600);
    let address = listen(&listeners, None, limits);
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    tcp.read_exact(&mut first).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nho").await.unwrap();
    let _ = tcp.read_to_end(&mut Vec::new()).await;
    until(|| listeners.connections() == 0).await;
}

#[tokio::test]
async fn a_long_answer_outlives_header_and_idle_times() {
    let (chunks, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let receiver = Mutex::new(Some(receiver));
    let current = Current::new(serving(move |_| {
        let receiver = receiver.lock().take().unwrap();
        async move {
            let stream = futures_util::stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|bytes| (Ok(bytes), receiver))
            });
            // An mpsc receiver is Sync; what `unfold` makes of it is not.
            Response::new(Body::Stream(Box::pin(SyncStream(Mutex::new(Box::pin(stream))))))
        }
    }));
    let listeners = listeners(current);
    let pki = Pki::new();
    let address = listen(&listeners, Some(pki.server()), hurried());
    let mut sender = http2(connect(address, pki.client(false, &[b"h2"])).await.unwrap()).await;
    let mut response = sender.send_request(get("/")).await.unwrap();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        chunks.send(Bytes::from_static(b"tick")).await.unwrap();
        assert_eq!(response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "tick");
    }
}

type Pieces = std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<Bytes, crate::server::http::BodyError>> + Send>>;

struct SyncStream(Mutex<Pieces>);

impl futures_util::Stream for SyncStream {
    type Item = Result<Bytes, crate::server::http::BodyError>;
    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.lock().as_mut().poll_next(cx)
    }
}

#[tokio::test]
async fn connection_close_on_http2_becomes_a_goaway_after_which_open_streams_finish() {
    let release = Arc::new(tokio::sync::Semaphore::new(0));
    let current = Current::new(serving({
        let release = release.clone();
        move |request| {
            let release = release.clone();
            async move {
                if request.parts.uri.path() == "/slow" {
                    release.acquire().await.unwrap().forget();
                    return text("slow");
                }
                let mut response = text("bye");
                response.headers_mut().insert(header::CONNECTION, "close".parse().unwrap());
                response
            }
        }
    }));
    let pki = Pki::new();
    let listeners = listeners(current);
    let address = listen(&listeners, Some(pki.server()), limits());
    let mut sender = http2(connect(address, pki.client(false, &[b"h2"])).await.unwrap()).await;
    let slow = tokio::spawn(sender.send_request(get("/slow")));
    let response = sender.send_request(get("/")).await.unwrap();
    assert_eq!(response.headers().get(header::CONNECTION), None);
    assert_eq!(body(response).await, "bye");
    // New streams are refused from here on, by the client's own end.
    while sender.ready().await.is_ok() && sender.send_request(get("/")).await.is_ok() {}
    assert!(!slow.is_finished());
    release.add_permits(1);
    assert_eq!(body(slow.await.unwrap().unwrap()).await, "slow");
    until(|| listeners.connections() == 0).await;
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_new_handshakes_and_old_connections_go_on() {
    let (before, after) = (Pki::new(), Pki::new());
    let listeners = listeners(describing());
    let address = listen(&listeners, Some(before.server()), limits());
    let mut old = http2(connect(address, before.client(false, &[b"h2"])).await.unwrap()).await;
    body(old.send_request(get("/")).await.unwrap()).await;

    let handover =
        listeners.commit(listeners.bind(vec![ListenerSpec::new(any_port(), Some(after.server()))], limits()).unwrap());
    assert_eq!(listeners.addresses(), [address]);
    assert!(connect(address, before.client(false, &[b"h2"])).await.is_err());
    let mut new = http2(connect(address, after.client(false, &[b"h2"])).await.unwrap()).await;
    body(new.send_request(get("/")).await.unwrap()).await;
    body(old.send_request(get("/")).await.unwrap()).await;

    handover.back();
    assert!(connect(address, before.client(false, &[b"h2"])).await.is_ok());
    assert!(connect(address, after.client(false, &[b"h2"])).await.is_err());
}

#[tokio::test]
async fn both_sets_serve_during_a_hand_over_and_connections_outlive_their_listener() {
    let listeners = listeners(describing());
    let old = listen(&listeners, None, limits());
    let mut kept = http1(TcpStream::connect(old).await.unwrap()).await;
    body(kept.send_request(get("/")).await.unwrap()).await;

    let second = Address::Tcp(SocketAddr::new(Ipv4Addr::new(127, 0, 0, 2).into(), 0));
    let bound = listeners.bind(vec![ListenerSpec::new(second, None)], limits()).unwrap();
    assert_eq!(bound.fresh(), 1);
    assert_eq!(listeners.addresses(), [old], "bound is not open");
    let handover = listeners.commit(bound);
    let new = listeners.addresses()[1];
    for address in [old, new] {
        let mut sender = http1(TcpStream::connect(address).await.unwrap()).await;
        assert_eq!(sender.send_request(get("/")).await.unwrap().status(), 200);
    }
    handover.finish();
    while TcpStream::connect(old).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(listeners.addresses(), [new]);
    assert_eq!(kept.send_request(get("/")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_hand_over_taken_back_closes_the_new_and_keeps_the_old() {
    let listeners = listeners(describing());
    let old = listen(&listeners, None, limits());
    let second = Address::Tcp(SocketAddr::new(Ipv4Addr::new(127, 0, 0, 2).into(), 0));
    let handover = listeners.commit(listeners.bind(vec![ListenerSpec::new(second, None)], limits()).unwrap());
    let new = listeners.addresses()[1];
    handover.back();
    while TcpStream::connect(new).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(listeners.addresses(), [old]);
    assert_eq!(http1(TcpStream::connect(old).await.unwrap()).await.send_request(get("/")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn every_address_may_become_one_address_on_the_same_port() {
    let listeners = listeners(describing());
    let everywhere = Address::Tcp("0.0.0.0:0".parse().unwrap());
    let tls = Some(Pki::new().server());
    listeners.commit(listeners.bind(vec![ListenerSpec::new(everywhere, tls)], limits()).unwrap()).finish();
    let port = listeners.addresses()[0].port();
    let one = Address::Tcp(SocketAddr::new(LOOPBACK, port));
    let handover = listeners.commit(listeners.bind(vec![ListenerSpec::new(one, None)], limits()).unwrap());
    handover.finish();
    // The newcomer is the more exact one, so loopback connections are its own from the first.
    let mut sender = http1(TcpStream::connect((LOOPBACK, port)).await.unwrap()).await;
    assert_eq!(sender.send_request(get("/")).await.unwrap().status(), 200);
    let stranger = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    stranger.set_reuse_address(true).unwrap();
    assert!(stranger.bind(&SocketAddr::new(LOOPBACK, port).into()).is_err());
}

#[tokio::test]
async fn a_taken_port_is_an_error_that_leaves_the_old_set_serving() {
    let listeners = listeners(describing());
    let old = listen(&listeners, None, limits());
    let occupied = std::net::TcpListener::bind("127.0.0.3:0").unwrap();
    let wanted = vec![
        ListenerSpec::new(Address::Tcp("127.0.0.2:0".parse().unwrap()), None),
        ListenerSpec::new(Address::Tcp(occupied.local_addr().unwrap()), None),
    ];
    let error = listeners.bind(wanted, limits()).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!("failed to listen on {}: address already in use", occupied.local_addr().unwrap())
    );
    assert_eq!(listeners.addresses(), [old]);
    assert_eq!(http1(TcpStream::connect(old).await.unwrap()).await.send_request(get("/")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn plain_http_is_refused_on_addresses_others_can_reach() {
    let listeners = listeners(describing());
    let error = listeners
        .bind(vec![ListenerSpec::new(Address::Tcp("0.0.0.0:0".parse().unwrap()), None)], limits())
        .err()
        .unwrap();
    assert!(error.to_string().contains("loopback"), "{error}");
}

#[tokio::test]
async fn draining_lets_requests_finish_closes_the_idle_and_cuts_what_takes_too_long() {
    let release = Arc::new(tokio::sync::Semaphore::new(0));
    let arrived = Arc::new(tokio::sync::Semaphore::new(0));
    let current = Current::new(serving({
        let (release, arrived) = (release.clone(), arrived.clone());
        move |request| {
            let (release, arrived) = (release.clone(), arrived.clone());
            async move {
                if request.parts.uri.path() == "/slow" {
                    arrived.add_permits(1);
                    release.acquire().await.unwrap().forget();
                }
                text("done")
            }
        }
    }));
    let pki = Pki::new();
    let listeners = listeners(current);
    let address = listen(&listeners, Some(pki.server()), limits());
    let mut idle = http1(connect(address, pki.client(false, &[b"http/1.1"])).await.unwrap()).await;
    body(idle.send_request(get("/")).await.unwrap()).await;
    let mut busy2 = http2(connect(address, pki.client(false, &[b"h2"])).await.unwrap()).await;
    let slow2 = tokio::spawn(busy2.send_request(get("/slow")));
    let mut busy1 = http1(connect(address, pki.client(false, &[b"http/1.1"])).await.unwrap()).await;
    let slow1 = tokio::spawn(async move { busy1.send_request(get("/slow")).await });
    arrived.acquire_many(2).await.unwrap().forget();

    let draining = tokio::spawn({
        let listeners = listeners.clone();
        async move { listeners.drain(Duration::from_secs(60)).await }
    });
    until(|| idle.is_closed()).await;
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!draining.is_finished());
    release.add_permits(2);
    assert_eq!(body(slow2.await.unwrap().unwrap()).await, "done");
    assert_eq!(body(slow1.await.unwrap().unwrap()).await, "done");
    assert_eq!(draining.await.unwrap(), 0);

    // And once more with a request that never ends.
    let waiting = arrived.clone();
    let stuck = Current::new(serving(move |_| {
        arrived.add_permits(1);
        std::future::pending()
    }));
    let again = Listeners::new(stuck, limits(), InheritedSockets::default());
    let address = listen(&again, Some(pki.server()), limits());
    let mut stuck = http2(connect(address, pki.client(false, &[b"h2"])).await.unwrap()).await;
    let answer = tokio::spawn(stuck.send_request(get("/")));
    waiting.acquire().await.unwrap().forget();
    assert_eq!(again.drain(Duration::from_millis(50)).await, 1);
    assert!(answer.await.unwrap().is_err());
}

#[tokio::test]
async fn a_panic_ends_one_connection_and_no_other() {
    let listeners = listeners(Current::new(serving(|request| async move {
        assert!(request.parts.uri.path() != "/panic", "asked to");
        text("fine")
    })));
    let address = listen(&listeners, None, limits());
    let mut other = http1(TcpStream::connect(address).await.unwrap()).await;
    body(other.send_request(get("/")).await.unwrap()).await;
    let mut victim = http1(TcpStream::connect(address).await.unwrap()).await;
    assert!(victim.send_request(get("/panic")).await.is_err());
    assert_eq!(body(other.send_request(get("/")).await.unwrap()).await, "fine");
    drop((other, victim));
    until(|| listeners.connections() == 0).await;
}

#[tokio::test]
async fn known_lengths_are_announced_and_head_has_no_body_in_both_protocols() {
    let current = Current::new(serving(|request| async move {
        match request.parts.uri.path() {
            "/chunks" => {
                Response::new(Body::Chunks(vec![Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"cde")]))
            }
            "/empty" => Response::new(Body::Empty),
            "/stream" => {
                let pieces = ["x", "yz"].map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
                Response::new(Body::Stream(Box::pin(futures_util::stream::iter(pieces))))
            }
            _ => text("hello"),
        }
    }));
    let pki = Pki::new();
    let listeners = listeners(current);
    let address = listen(&listeners, Some(pki.server()), limits());
    let mut h2 = http2(connect(address, pki.client(false, &[b"h2"])).await.unwrap()).await;
    let mut h1 = http1(connect(address, pki.client(false, &[b"http/1.1"])).await.unwrap()).await;
    for (method, path, length, expected) in [
        (Method::GET, "/full", Some("5"), "hello"),
        (Method::GET, "/chunks", Some("5"), "abcde"),
        (Method::GET, "/stream", None, "xyz"),
        (Method::HEAD, "/full", Some("5"), ""),
        (Method::HEAD, "/chunks", Some("5"), ""),
        (Method::HEAD, "/stream", None, ""),
    ] {
        for second in [true, false] {
            let request = request(method.clone(), path, Bytes::new());
            let response =
                if second { h2.send_request(request).await } else { h1.send_request(request).await }.unwrap();
            let announced =
                response.headers().get(header::CONTENT_LENGTH).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(announced.as_deref(), length, "{method} {path} http2={second}");
            assert_eq!(body(response).await, expected, "{method} {path} http2={second}");
        }
    }
    assert_eq!(body(h2.send_request(get("/empty")).await.unwrap()).await, "");
}

#[tokio::test]
async fn a_body_larger_than_a_stream_window_arrives_whole_over_http2() {
    let current = Current::new(serving(|mut request| async move {
        let mut bytes = 0;
        while let Some(piece) = request.body.next().await {
            bytes += piece.unwrap().len();
        }
        text(bytes.to_string())
    }));
    let pki = Pki::new();
    let listeners = listeners(current);
    let address = listen(&listeners, Some(pki.server()), limits());
    let mut sender = http2(connect(address, pki.client(false, &[b"h2"])).await.unwrap()).await;
    let response = sender.send_request(request(Method::POST, "/", Bytes::from(vec![7; 3_000_000]))).await.unwrap();
    assert_eq!(body(response).await, "3000000");
}

#[tokio::test]
async fn an_upgrade_becomes_a_stream_after_101() {
    let current = Current::new(serving(|request| async move {
        let upgrade = request.upgrade.expect("asked for");
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
        response
    }));
    let pki = Pki::new();
    let listeners = listeners(current);
    let address = listen(&listeners, Some(pki.server()), limits());
    let mut sender = http1(connect(address, pki.client(false, &[b"http/1.1"])).await.unwrap()).await;
    let mut request = get("/");
    request.headers_mut().insert(header::CONNECTION, "Upgrade".parse().unwrap());
    request.headers_mut().insert(header::UPGRADE, "echo".parse().unwrap());
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    stream.write_all(b"ping").await.unwrap();
    let mut four = [0; 4];
    stream.read_exact(&mut four).await.unwrap();
    assert_eq!(&four, b"ping");
}

#[tokio::test]
async fn connections_above_the_limit_wait_until_one_ends() {
    let listeners = listeners(describing());
    let mut few = limits();
    few.connections.max_connections = 1;
    let address = listen(&listeners, None, few);
    let mut first = http1(TcpStream::connect(address).await.unwrap()).await;
    body(first.send_request(get("/")).await.unwrap()).await;
    let answered = Arc::new(AtomicBool::new(false));
    let second = tokio::spawn({
        let answered = answered.clone();
        async move {
            let mut second = http1(TcpStream::connect(address).await.unwrap()).await;
            body(second.send_request(get("/")).await.unwrap()).await;
            answered.store(true, Ordering::SeqCst);
        }
    });
    body(first.send_request(get("/")).await.unwrap()).await;
    assert!(!answered.load(Ordering::SeqCst));
    drop(first);
    second.await.unwrap();
}

#[tokio::test]
async fn a_unix_socket_is_private_knows_its_peer_and_replaces_only_a_dead_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin.sock");
    let current = Current::new(serving(|request| async move {
        text(format!("{:?} {:?}", request.conn.transport, request.conn.peer_uid))
    }));
    let first = listeners(current.clone());
    let spec = || vec![ListenerSpec::new(Address::Unix(path.clone()), None)];
    // A socket nobody listens on any more.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    first.commit(first.bind(spec(), limits()).unwrap()).finish();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut sender = http1(UnixStream::connect(&path).await.unwrap()).await;
    let uid =
        std::fs::metadata(directory.path()).map(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata)).unwrap();
    assert_eq!(body(sender.send_request(get("/")).await.unwrap()).await, format!("Unix Some({uid})"));

    let second = listeners(current);
    assert!(second.bind(spec(), limits()).err().unwrap().to_string().ends_with("address already in use"));
    let file = directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(second.bind(vec![ListenerSpec::new(Address::Unix(file.clone()), None)], limits()).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");

    first.stop_accepting();
    until(|| !Path::new(&path).exists()).await;
    second.commit(second.bind(spec(), limits()).unwrap()).finish();
    http1(UnixStream::connect(&path).await.unwrap()).await.send_request(get("/")).await.unwrap();
}

#[tokio::test]
async fn sockets_that_were_handed_over_are_served_by_name_and_survive_being_let_go() {
    let handed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = handed.local_addr().unwrap();
    let inherited = InheritedSockets::from_sockets(vec![("https".into(), handed.into())]);
    let listeners = Listeners::new(describing(), limits(), inherited);
    let spec = |name: &str| vec![ListenerSpec::new(Address::Inherited(name.into()), None)];
    assert!(listeners.bind(spec("metrics"), limits()).is_err());
    // By its name, then by its address, which is taken for anyone else.
    for spec in [spec("https"), vec![ListenerSpec::new(Address::Tcp(address), None)]] {
        listeners.commit(listeners.bind(spec, limits()).unwrap()).finish();
        let mut sender = http1(TcpStream::connect(address).await.unwrap()).await;
        assert_eq!(sender.send_request(get("/")).await.unwrap().status(), 200);
        listeners.commit(listeners.bind(vec![], limits()).unwrap()).finish();
    }
}

#[tokio::test]
async fn the_certificate_of_the_asked_name_is_shown() {
    let (default, named) = (Pki::new(), Pki::new());
    let pair = crate::options::completed::CertPair {
        cert_file: "".into(),
        key_file: "".into(),
        cert_pem: named.newcomer.serving_pem.as_bytes().into(),
        key_pem: crate::options::types::SecretBytes::new(named.newcomer.serving_key_pem.as_bytes().into()),
        chain: vec![],
    };
    let sni = crate::options::completed::SniCertificate { pair, names: vec!["*.example.com".into()] };
    let config = Tls { sni: vec![sni], ..plain_tls() };
    let server = tls::server_config(&config, Some(&default.pair()), true).unwrap();
    let listeners = listeners(describing());
    let address = listen(&listeners, Some(server), limits());
    let shown = async |name: &str| {
        let tcp = TcpStream::connect(address).await.unwrap();
        let mut config = default.client(false, &[]);
        config.dangerous().set_certificate_verifier(Arc::new(Curious));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    };
    let (first, second) = (default.pair().cert[0].to_vec(), named.pair().cert[0].to_vec());
    assert_eq!(shown("api.example.com").await, second);
    assert_eq!(shown("a.b.example.com").await, first);
    assert_eq!(shown("localhost").await, first);
}

/// Accepts any server certificate.
#[derive(Debug)]
struct Curious;

impl rustls::client::danger::ServerCertVerifier for Curious {
    fn verify_server_cert(
        &self,
        _: &rustls_pki_types::CertificateDer<'_>,
        _: &[rustls_pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls_pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls_pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls_pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        pki::provider().signature_verification_algorithms.supported_schemes()
    }
}
