//! Reading Services. Every function takes the whole object and counts missing members as Go's zero values.

use std::net::IpAddr;

use crate::{
    api::ip::parse_ip,
    object::{Map, Value},
};

/// The address of a Service without one.
pub const NONE: &str = "None";

/// An address family, as `spec.ipFamilies` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The family of an address in text; what is no IPv6 address counts as IPv4.
    pub fn of_text(ip: &str) -> Self {
        parse_ip(ip).map_or(Self::V4, Self::of)
    }

    pub fn named(name: &str) -> Option<Self> {
        match name {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

/// `spec.<name>` as text.
pub fn text<'a>(service: &'a Value, name: &str) -> &'a str {
    service.str_at(&["spec", name])
}

/// `spec.<name>` as a list of texts.
pub fn texts<'a>(service: &'a Value, name: &str) -> Vec<&'a str> {
    service.array_at(&["spec", name]).iter().map(|it| it.as_str().unwrap_or("")).collect()
}

/// `spec.<name>`, unless it is null.
pub fn set<'a>(service: &'a Value, name: &str) -> Option<&'a Value> {
    service.at(&["spec", name]).filter(|it| !it.is_null())
}

/// The list `spec.<name>` as messages show it: null where there is none.
pub fn shown(service: &Value, name: &str) -> Value {
    set(service, name).cloned().unwrap_or_default()
}

pub fn kind(service: &Value) -> &str {
    text(service, "type")
}

pub fn is_external_name(service: &Value) -> bool {
    kind(service) == "ExternalName"
}

pub fn is_load_balancer(service: &Value) -> bool {
    kind(service) == "LoadBalancer"
}

pub fn cluster_ips(service: &Value) -> Vec<&str> {
    texts(service, "clusterIPs")
}

pub fn ports(service: &Value) -> &[Value] {
    service.array_at(&["spec", "ports"])
}

/// Whether `clusterIPs` says that there is no address.
pub fn is_headless(service: &Value) -> bool {
    cluster_ips(service) == [NONE]
}

pub fn has_selector(service: &Value) -> bool {
    service.object_at(&["spec", "selector"]).is_some_and(|it| !it.is_empty())
}

/// The number of a port; 0 where there is none.
pub fn number(port: &Value, name: &str) -> i64 {
    port.i64_at(&[name]).unwrap_or(0)
}

/// Node ports of the Service's ports, in their order.
pub fn node_ports_of(service: &Value) -> Vec<i64> {
    ports(service).iter().map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}

pub fn health_port(service: &Value) -> i64 {
    service.i64_at(&["spec", "healthCheckNodePort"]).unwrap_or(0)
}

/// Whether kube-proxy answers health checks for it.
pub fn needs_health_port(service: &Value) -> bool {
    is_load_balancer(service) && text(service, "externalTrafficPolicy") == "Local"
}

/// Whether it is reached from outside the cluster.
pub fn externally_accessible(service: &Value) -> bool {
    match kind(service) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !service.array_at(&["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}

/// Whether its cluster IPs are addresses that were taken from a range.
pub fn takes_address(service: &Value) -> bool {
    !is_external_name(service) && cluster_ips(service).first().is_some_and(|ip| *ip != NONE)
}

/// Two lists, of which a missing one is empty.
pub fn same_list(a: &Value, b: &Value, name: &str) -> bool {
    a.array_at(&["spec", name]) == b.array_at(&["spec", name])
}

/// `spec`, made where it is missing.
pub fn spec(service: &mut Value) -> &mut Map {
    service.make(&["spec"]).make_object()
}

/// The ports as objects.
pub fn ports_mut(service: &mut Value) -> impl Iterator<Item = &mut Map> {
    let ports = service.at_mut(&["spec", "ports"]).and_then(Value::as_array_mut).map_or(&mut [][..], |it| it);
    ports.iter_mut().filter_map(Value::as_object_mut)
}
