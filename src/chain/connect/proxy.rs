//! Requests handed on to pods, services and nodes (apimachinery `pkg/util/proxy`).

use std::net::IpAddr;

use ::http::Request as HttpRequest;

use super::{super::dialer::Authority, NodeStreams, ask_for_upgrade, dial_failed, forwarded, joined, unsniffed};
use crate::{
    api::ApiError,
    object::Value,
    registry::builtin::core::service::resolve,
    server::{
        context::Exchange,
        endpoints::Scope,
        http::{Body, Response},
    },
};

/// Where a proxied request goes.
struct Destination {
    tls: bool,
    authority: Authority,
    /// Through the kubelet's identity instead of the plain transport.
    node: bool,
}

impl NodeStreams {
    pub(super) async fn proxy(&self, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let (scheme, name, port) = split(scope.name).ok_or_else(|| {
            let kind = scope.resource.singular.to_string();
            ApiError::bad_request(format!("invalid {kind} request {}", crate::api::field::quote(scope.name)))
        })?;
        let destination = match &*scope.resource.plural {
            "pods" => self.pod_destination(scope, scheme, name, port)?,
            "services" => self.service_destination(scope, scheme, name, port)?,
            _ => self.node_destination(name, port)?,
        };
        let path = below(cx, scope);
        let mut request = HttpRequest::builder().method(cx.parts.method.clone()).uri(&path);
        if let Some(headers) = request.headers_mut() {
            *headers = forwarded(&cx.parts.headers);
        }
        let upgrade = cx.upgrade.take();
        let body = match (&upgrade, cx.body.take()) {
            (None, Some(body)) => Body::Stream(body),
            _ => Body::Empty,
        };
        let mut request = request.body(body).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let client = if destination.tls { &self.tls } else { &self.plain };
        if let Some(front) = upgrade {
            ask_for_upgrade(request.headers_mut(), &cx.parts.headers);
            let answer = client.upgrade(&destination.authority, request).await.map_err(failed)?;
            return Ok(joined(answer, front));
        }
        let answer = if destination.node {
            self.dialer.send_to(&destination.authority, request).await.map_err(dial_failed)?
        } else {
            client.send(&destination.authority, request).await.map_err(failed)?
        };
        let (parts, body) = answer.into_parts();
        Ok(unsniffed(Response::from_parts(parts, Body::Stream(body))))
    }

    fn pod_destination(
        &self,
        scope: &Scope<'_>,
        scheme: &str,
        name: &str,
        port: &str,
    ) -> Result<Destination, ApiError> {
        let pod =
            self.reader.get("", "pods", scope.namespace, name).ok_or_else(|| ApiError::not_found(scope.gr(), name))?;
        let ip = pod.str_at(&["status", "podIP"]);
        let port = if port.is_empty() { first_port(&pod) } else { port.parse().ok() };
        destination(scheme, ip, port.unwrap_or(80))
    }

    fn service_destination(
        &self,
        scope: &Scope<'_>,
        scheme: &str,
        name: &str,
        port: &str,
    ) -> Result<Destination, ApiError> {
        let (ip, port) = resolve::proxied(&*self.reader, scope.namespace, name, port)?;
        destination(scheme, &ip, port)
    }

    fn node_destination(&self, name: &str, port: &str) -> Result<Destination, ApiError> {
        let node = self.node(name)?;
        let port = port.parse().unwrap_or(node.port);
        let authority = self.dialer.kubelet(&node.addresses, port).map_err(dial_failed)?;
        Ok(Destination { tls: true, authority, node: true })
    }
}

fn failed(error: super::super::dialer::DialError) -> ApiError {
    ApiError::service_unavailable(format!("error trying to reach service: {error}"))
}

/// `[scheme:]name[:port]`.
fn split(id: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = id.split(':').collect();
    match parts.as_slice() {
        [name] => Some(("", *name, "")),
        [name, port] => Some(("", *name, *port)),
        [scheme @ ("http" | "https" | ""), name, port] => Some((*scheme, *name, *port)),
        _ => None,
    }
}

fn first_port(pod: &Value) -> Option<u16> {
    let ports = pod.array_at(&["spec", "containers"]).iter().flat_map(|container| container.array_at(&["ports"]));
    ports.filter_map(|port| port.i64_at(&["containerPort"])).next().and_then(|port| u16::try_from(port).ok())
}

/// Only addresses out in the network: a pod must not make the server call itself or its host's metadata.
fn destination(scheme: &str, ip: &str, port: u16) -> Result<Destination, ApiError> {
    let allowed = ip.parse::<IpAddr>().is_ok_and(|ip| match ip {
        IpAddr::V4(ip) => {
            !(ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || ip.is_unspecified() || ip.is_broadcast())
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback() || ip.is_multicast() || ip.is_unspecified() || (ip.segments()[0] & 0xffc0) == 0xfe80)
        }
    });
    if !allowed {
        return Err(ApiError::bad_request("address not allowed"));
    }
    Ok(Destination { tls: scheme == "https", authority: Authority { host: ip.to_owned(), port }, node: false })
}

/// The path below `…/proxy`, with the request's query.
fn below(cx: &Exchange, scope: &Scope<'_>) -> String {
    let marker = format!("/{}/proxy", scope.name);
    let path = cx.path();
    let rest = path.find(&marker).map_or("", |at| &path[at + marker.len()..]);
    let path = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    match cx.parts.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}
