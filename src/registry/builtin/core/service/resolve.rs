//! Where to send what is for a Service (apiserver `pkg/util/proxy`, kubernetes `pkg/registry/core/service/storage`).

use std::sync::Arc;

use super::view::Family;
use crate::{
    api::{ApiError, Meta, field::quote, status::GroupResource, unique},
    object::Value,
    registry::reader::ObjectReader,
};

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// An address in text and a port.
pub type HostPort = (String, u16);

fn missing(service: &str) -> ApiError {
    ApiError::not_found(GroupResource::new("", "services"), service)
}

fn no_endpoints(service: &str) -> ApiError {
    ApiError::service_unavailable(format!("no endpoints available for service {}", quote(service)))
}

fn no_port(port: i64, service: &str) -> ApiError {
    ApiError::service_unavailable(format!("no service port {port} found for service {}", quote(service)))
}

/// A pod behind a Service, as `services/proxy` finds it. `port`: the name of a port, its number, or nothing.
///
/// # Errors
/// NotFound for a Service that is asked for a port by number and is not there; ServiceUnavailable for everything that
/// leads nowhere.
pub fn proxied(reader: &dyn ObjectReader, namespace: &str, name: &str, port: &str) -> Result<HostPort, ApiError> {
    let mut port_name = port.to_owned();
    let service = reader.get("", "services", namespace, name);
    let preferred = service.as_deref().map_or(Family::V4, family_of);
    if let Ok(number) = port.parse::<i64>() {
        let service = service.ok_or_else(|| missing(name))?;
        let found = service.array_at(&["spec", "ports"]).iter().find(|it| it.i64_at(&["port"]) == Some(number));
        port_name = found.ok_or_else(|| no_port(number, name))?.str_at(&["name"]).to_owned();
    }
    let is_pod = |endpoint: &Value| is_pod(reader, namespace, endpoint);
    random_endpoint(reader, namespace, name, &port_name, preferred, &is_pod)
}

/// An endpoint of a Service that a server is registered under (APIServices, webhooks).
///
/// # Errors
/// NotFound, ServiceUnavailable, or 500 for a Service that has no endpoints by its type.
pub fn endpoint(reader: &dyn ObjectReader, namespace: &str, name: &str, port: i64) -> Result<HostPort, ApiError> {
    let service = reader.get("", "services", namespace, name);
    let service = service.ok_or_else(|| missing(name))?;
    let kind = service.str_at(&["spec", "type"]);
    if !matches!(kind, "ClusterIP" | "LoadBalancer" | "NodePort") {
        return Err(ApiError::unmapped(format!("unsupported service type {}", quote(kind))));
    }
    let found = service.array_at(&["spec", "ports"]).iter().find(|it| it.i64_at(&["port"]) == Some(port));
    let port_name = found.ok_or_else(|| no_port(port, name))?.str_at(&["name"]);
    random_endpoint(reader, namespace, name, port_name, family_of(&service), &|_| true)
}

fn family_of(service: &Value) -> Family {
    let first = service.array_at(&["spec", "ipFamilies"]).first().and_then(Value::as_str);
    first.and_then(Family::named).unwrap_or(Family::V4)
}

/// A random endpoint that is ready, of the preferred family where there is one.
fn random_endpoint(
    reader: &dyn ObjectReader,
    namespace: &str,
    service: &str,
    port_name: &str,
    preferred: Family,
    accept: &dyn Fn(&Value) -> bool,
) -> Result<HostPort, ApiError> {
    let all = reader.list("discovery.k8s.io", "endpointslices", Some(namespace));
    let mut slices: Vec<Arc<Value>> =
        all.into_iter().filter(|slice| Meta::of(slice).label(SERVICE_NAME) == Some(service)).collect();
    if !slices.is_empty() {
        let start = unique::below(slices.len() as u64) as usize;
        slices.rotate_left(start);
    }
    slices.sort_by_key(|slice| slice.str_at(&["addressType"]) != preferred.as_str());
    for slice in &slices {
        let endpoints = slice.array_at(&["endpoints"]);
        let named = slice.array_at(&["ports"]).iter().filter(|port| port.str_at(&["name"]) == port_name);
        for port in named.filter_map(|port| u16::try_from(port.i64_at(&["port"])?).ok()) {
            let start = unique::below(endpoints.len().max(1) as u64) as usize;
            let from_there = endpoints.iter().skip(start).chain(endpoints.iter().take(start));
            let mut usable = from_there.filter(|it| it.at(&["conditions", "ready"]) != Some(&Value::Bool(false)));
            let address = |it: &Value| it.array_at(&["addresses"]).first().and_then(Value::as_str).map(str::to_owned);
            if let Some(address) = usable.find(|it| accept(it)).and_then(address) {
                return Ok((address, port));
            }
        }
    }
    Err(no_endpoints(service))
}

/// Whether the address is that of a pod of the same namespace: the server must not be made to call anything else.
fn is_pod(reader: &dyn ObjectReader, namespace: &str, endpoint: &Value) -> bool {
    let text = |member: &str| endpoint.str_at(&["targetRef", member]);
    if text("name").is_empty() || text("namespace") != namespace {
        return false;
    }
    let Some(pod) = reader.get("", "pods", namespace, text("name")) else { return false };
    let address = endpoint.array_at(&["addresses"]).first().and_then(Value::as_str).unwrap_or("");
    pod.array_at(&["status", "podIPs"]).iter().any(|it| it.str_at(&["ip"]) == address)
}
