use futures_util::StreamExt;
use http::header;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{fake_kubelet::FakeKubelet, *};

const LOGS: &str = "/containerLogs/default/web/app?follow=true&tailLines=3";

fn address(kind: &str, address: &str) -> NodeAddress {
    NodeAddress { kind: kind.into(), address: address.into() }
}

fn node() -> Vec<NodeAddress> {
    vec![address("ExternalIP", "192.0.2.1"), address("InternalIP", "127.0.0.1")]
}

async fn text(response: http::Response<BodyStream>) -> String {
    let pieces: Vec<_> = response.into_body().collect().await;
    String::from_utf8(pieces.into_iter().flat_map(|piece| piece.unwrap()).collect()).unwrap()
}

#[tokio::test]
async fn logs_are_streamed_with_our_certificate_over_either_protocol() {
    for http2 in [true, false] {
        let kubelet = FakeKubelet::start(http2);
        let dialer = NodeDialer::new(&kubelet.options()).unwrap();
        for _ in 0..3 {
            let response = dialer.stream_get(&node(), 0, LOGS).await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(text(response).await, "one\ntwo\nthree\n");
        }
        assert_eq!(*kubelet.seen.lock(), vec![format!("GET {LOGS} kubernetes-admin"); 3]);
        assert_eq!(kubelet.listeners.connections(), 1, "the connection is used again");
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    for http2 in [true, false] {
        let kubelet = FakeKubelet::start(http2);
        let mut options = kubelet.options();
        options.port = 1;
        let dialer = NodeDialer::new(&options).unwrap();
        let port = kubelet.address.port();
        assert_eq!(dialer.stream_get(&node(), port, "/nothing").await.unwrap().status(), 404);
        let status = dialer.stream_get(&node(), port, "/nothing").await.unwrap().status();
        assert_eq!(status, 404);
        kubelet.listeners.drain(std::time::Duration::ZERO).await;
        let error = dialer.stream_get(&node(), port, LOGS).await.err().unwrap();
        assert!(matches!(error, DialError::Connect { .. }), "{error}");
    }
}

#[tokio::test]
async fn the_most_preferred_kind_of_address_is_used_and_none_is_an_error() {
    let kubelet = FakeKubelet::start(true);
    let dialer = NodeDialer::new(&kubelet.options()).unwrap();
    let both = [address("InternalIP", "10.0.0.1"), address("Hostname", "node-1"), address("Hostname", "other")];
    assert_eq!(dialer.kubelet(&both, 0).unwrap().to_string(), format!("node-1:{}", kubelet.address.port()));
    assert_eq!(dialer.kubelet(&[address("InternalIP", "fd00::1")], 10250).unwrap().to_string(), "[fd00::1]:10250");
    let error = dialer.stream_get(&[address("ExternalIP", "192.0.2.1")], 0, LOGS).await.err().unwrap();
    assert_eq!(error.to_string(), "no preferred addresses found; known addresses: [{ExternalIP 192.0.2.1}]");
}

#[tokio::test]
async fn a_kubelet_of_another_authority_is_refused_and_without_one_any_is_taken() {
    let (kubelet, other) = (FakeKubelet::start(true), FakeKubelet::start(true));
    let mut options = kubelet.options();
    options.certificate_authority = other.options().certificate_authority;
    let error = NodeDialer::new(&options).unwrap().stream_get(&node(), 0, LOGS).await.err().unwrap();
    assert!(matches!(error, DialError::Handshake { .. }), "{error}");
    options.certificate_authority = None;
    assert_eq!(NodeDialer::new(&options).unwrap().stream_get(&node(), 0, LOGS).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_times_out() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = FakeKubelet::start(true).options();
    options.timeout = std::time::Duration::from_millis(50);
    let dialer = NodeDialer::new(&options).unwrap();
    let error = dialer.stream_get(&node(), silent.local_addr().unwrap().port(), LOGS).await.err().unwrap();
    assert!(matches!(error, DialError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn an_upgrade_gives_the_stream_and_a_refusal_the_answer() {
    let kubelet = FakeKubelet::start(true);
    let dialer = NodeDialer::new(&kubelet.options()).unwrap();
    let request = |path: &str| {
        let request = http::Request::post(path).header(header::CONNECTION, "Upgrade").header(header::UPGRADE, "echo");
        request.body(Body::Empty).unwrap()
    };
    let (response, upgrade) = dialer.upgrade(&node(), 0, request("/echo")).await.unwrap();
    assert_eq!(response.status(), 101);
    let mut stream = TokioIo::new(upgrade.unwrap().await.unwrap());
    stream.write_all(b"ping").await.unwrap();
    let mut four = [0; 4];
    stream.read_exact(&mut four).await.unwrap();
    assert_eq!(&four, b"ping");

    let (response, upgrade) = dialer.upgrade(&node(), 0, request("/nothing")).await.unwrap();
    assert!(upgrade.is_none());
    assert_eq!((response.status().as_u16(), text(response).await.as_str()), (404, "not here"));
}

#[tokio::test]
async fn bodies_of_every_form_are_sent() {
    let kubelet = FakeKubelet::start(false);
    let dialer = NodeDialer::new(&kubelet.options()).unwrap();
    let pieces = || [bytes::Bytes::from_static(b"a"), bytes::Bytes::from_static(b"b")];
    for body in [
        Body::Full(pieces()[0].clone()),
        Body::Chunks(pieces().to_vec()),
        Body::Stream(Box::pin(futures_util::stream::iter(pieces().map(Ok)))),
    ] {
        let response = dialer.send(&node(), 0, http::Request::put("/x").body(body).unwrap()).await.unwrap();
        assert_eq!(text(response).await, "not here");
    }
}
