//! Subresources that stream to somewhere else: logs, exec, attach and port-forward through kubelets, proxies to pods,
//! services and nodes (kubernetes `pkg/registry/core/pod/{rest,strategy.go}`, `pkg/registry/core/{node,service}/proxy`).

mod log;
mod proxy;
mod target;

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Request as HttpRequest, StatusCode, header};

use super::{
    Shared,
    dialer::{Client, ClientTls, DialError, NodeDialer, Peer},
};
use crate::{
    api::{ApiError, Reason},
    options::ValidatedOptions,
    pki::PkiError,
    registry::reader::ObjectReader,
    server::{
        context::Exchange,
        endpoints::{Connect, Scope},
        http::{Body, Response},
        respond,
        stack::LayerFuture,
    },
};

use target::Target;

/// The connector to kubelets (upstream CreateNodeDialer).
pub fn create_node_dialer(options: &ValidatedOptions) -> Result<NodeDialer, PkiError> {
    NodeDialer::new(&options.network.kubelet)
}

/// How pods and services are reached by the proxy subresources (upstream's proxy transport): whatever certificate they
/// show, as upstream.
fn create_proxy_transport(options: &ValidatedOptions) -> Result<(Client, Client), PkiError> {
    let timeout = options.network.kubelet.timeout;
    let tls = ClientTls { peer: Peer::Anyone, identity: None, server_name: None };
    Ok((Client::new(None, timeout)?, Client::new(Some(tls), timeout)?))
}

pub struct NodeStreams {
    reader: Arc<dyn ObjectReader>,
    dialer: NodeDialer,
    plain: Client,
    tls: Client,
}

impl NodeStreams {
    /// # Errors
    /// A configured kubelet certificate or key that is unusable.
    pub fn new(options: &ValidatedOptions, shared: &Arc<Shared>) -> Result<Self, PkiError> {
        let (plain, tls) = create_proxy_transport(options)?;
        Ok(Self { reader: shared.reader.clone(), dialer: create_node_dialer(options)?, plain, tls })
    }

    async fn answer(&self, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        // What was acknowledged a moment ago is found, as by a GET; and what it names was written before it.
        self.reader.caught_up("", &scope.resource.plural).await;
        match (&*scope.resource.plural, scope.subresource_name()) {
            ("pods", "log") => self.log(cx, scope).await,
            ("pods", "exec") => self.stream(cx, scope, "exec").await,
            ("pods", "attach") => self.stream(cx, scope, "attach").await,
            ("pods", "portforward") => self.port_forward(cx, scope).await,
            (_, "proxy") => self.proxy(cx, scope).await,
            (_, other) => Err(ApiError::method_not_supported(scope.gr(), other)),
        }
    }

    /// exec and attach: the kubelet's own protocol, bytes through.
    async fn stream(&self, cx: &mut Exchange, scope: &Scope<'_>, what: &str) -> Result<Response, ApiError> {
        let pod = self.pod(scope)?;
        let container = target::container(&pod, cx.query.first("container").unwrap_or(""))?;
        let node = self.node_of(&pod, true)?.ok_or_else(|| ApiError::internal("the pod has no node"))?;
        let mut query: Vec<(String, String)> = Vec::new();
        for (option, kubelet) in [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")] {
            if cx.query.first(option).is_some_and(crate::server::query::is_true) {
                query.push((kubelet.to_owned(), "1".to_owned()));
            }
        }
        query.extend(cx.query.all("command").map(|word| ("command".to_owned(), word.to_owned())));
        let path = format!("/{what}/{}/{}/{container}{}", scope.namespace, scope.name, target::query(&query));
        self.upgraded(cx, &node, &path).await
    }

    async fn port_forward(&self, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let pod = self.pod(scope)?;
        let node = self.node_of(&pod, true)?.ok_or_else(|| ApiError::internal("the pod has no node"))?;
        let ports: Vec<&str> = cx.query.all("ports").collect();
        let query = if ports.is_empty() { Vec::new() } else { vec![("port".to_owned(), ports.join(","))] };
        let path = format!("/portForward/{}/{}{}", scope.namespace, scope.name, target::query(&query));
        self.upgraded(cx, &node, &path).await
    }

    async fn upgraded(&self, cx: &mut Exchange, node: &Target, path: &str) -> Result<Response, ApiError> {
        let Some(front) = cx.upgrade.take() else { return Err(ApiError::bad_request("Upgrade request required")) };
        let mut request = HttpRequest::builder().method(cx.parts.method.clone()).uri(path);
        if let Some(headers) = request.headers_mut() {
            *headers = forwarded(&cx.parts.headers);
            ask_for_upgrade(headers, &cx.parts.headers);
        }
        let request = request.body(Body::Empty).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let answer = self.dialer.upgrade(&node.addresses, node.port, request).await.map_err(dial_failed)?;
        Ok(joined(answer, front))
    }
}

impl Connect for NodeStreams {
    fn connect<'a>(&'a self, cx: &'a mut Exchange, scope: &'a Scope<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            match self.answer(cx, scope).await {
                Ok(response) => response,
                Err(error) => respond::error(cx, &error),
            }
        })
    }
}

/// The answer of an upgrade: with 101 the two streams become one.
fn joined(
    (answer, back): (::http::Response<crate::server::http::BodyStream>, Option<hyper::upgrade::OnUpgrade>),
    front: hyper::upgrade::OnUpgrade,
) -> Response {
    let (parts, body) = answer.into_parts();
    let Some(back) = back else { return Response::from_parts(parts, Body::Stream(body)) };
    tokio::spawn(async move {
        if let (Ok(front), Ok(back)) = (front.await, back.await) {
            let (mut front, mut back) = (hyper_util::rt::TokioIo::new(front), hyper_util::rt::TokioIo::new(back));
            // Peers that go without a word end a stream like any other.
            let _ = tokio::io::copy_bidirectional(&mut front, &mut back).await;
        }
    });
    let mut response = Response::from_parts(parts, Body::Empty);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response
}

/// Headers that may go on: none that are about this connection, and no credentials (authentication has taken those).
fn forwarded(headers: &HeaderMap) -> HeaderMap {
    const HOP: [&str; 9] = [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
    ];
    headers
        .iter()
        .filter(|(name, _)| !HOP.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Asks the next server for what the client asked for. Whatever else its `Connection` headers said was for us.
fn ask_for_upgrade(headers: &mut HeaderMap, asked: &HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    for protocol in asked.get_all(header::UPGRADE) {
        headers.append(header::UPGRADE, protocol.clone());
    }
}

fn dial_failed(error: DialError) -> ApiError {
    if let DialError::NoAddress(_) = error {
        // Nothing was dialled: upstream finds this while it looks for the node, and gives the bare text.
        return ApiError::unmapped(error.to_string());
    }
    ApiError::internal(format!("error dialing backend: {error}"))
}

/// A plain-text answer that streams.
fn streamed(body: crate::server::http::BodyStream) -> Response {
    respond::response(200, "text/plain", Body::Stream(body))
}

/// An answer of a kubelet that is no success, in upstream's words.
fn kubelet_refused(status: u16, text: &str) -> ApiError {
    match status {
        400 => ApiError::bad_request(text),
        500 => ApiError::internal(text),
        404 => ApiError::new(
            404,
            Reason::NotFound,
            format!("the server could not find the requested resource ( pods/log {text})"),
        ),
        other => ApiError::new(other, Reason::Unknown, text),
    }
}

/// Marks an answer as not to be sniffed.
fn unsniffed(mut response: Response) -> Response {
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
