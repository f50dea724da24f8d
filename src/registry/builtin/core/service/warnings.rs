//! What is taken and should not be relied on (kubernetes `pkg/api/service/warnings.go`).

use super::view::{NONE, cluster_ips, is_external_name, kind, text, texts};
use crate::{
    api::{Meta, Path},
    object::Value,
    registry::validation::address::{cidr_warnings, ip_warnings},
};

pub const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
pub const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

const SPEC: Path<'static> = Path::new("spec");

pub fn of_service(service: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if Meta::of(service).annotation(TOPOLOGY_HINTS).is_some() {
        warnings.push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    if !matches!(text(service, "clusterIP"), "" | NONE) {
        warnings.extend(each(&cluster_ips(service), "clusterIPs", ip_warnings));
    }
    let headless = kind(service) == "ClusterIP" && text(service, "clusterIP") == NONE;
    let external_ips = texts(service, "externalIPs");
    if headless {
        for (ignored, name) in [
            (!text(service, "loadBalancerIP").is_empty(), "loadBalancerIP"),
            (!external_ips.is_empty(), "externalIPs"),
            (text(service, "sessionAffinity") != "None", "SessionAffinity"),
        ] {
            if ignored {
                warnings.push(format!("spec.{name} is ignored for headless services"));
            }
        }
    }
    warnings.extend(each(&external_ips, "externalIPs", ip_warnings));
    if !external_ips.is_empty() && !headless && !is_external_name(service) {
        warnings.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    warnings.extend(ip_warnings(text(service, "loadBalancerIP"), &SPEC.child("loadBalancerIP")));
    warnings.extend(each(&texts(service, "loadBalancerSourceRanges"), "loadBalancerSourceRanges", cidr_warnings));
    if is_external_name(service) && !external_ips.is_empty() {
        warnings.push(r#"spec.externalIPs is ignored when spec.type is "ExternalName""#.to_owned());
    }
    if !is_external_name(service) && !text(service, "externalName").is_empty() {
        warnings.push(r#"spec.externalName is ignored when spec.type is not "ExternalName""#.to_owned());
    }
    if text(service, "trafficDistribution") == "PreferClose" {
        let text = r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#;
        warnings.push(text.to_owned());
    }
    warnings
}

fn each(values: &[&str], name: &str, warn: fn(&str, &Path<'_>) -> Vec<String>) -> Vec<String> {
    let path = SPEC.child(name);
    values.iter().enumerate().flat_map(|(index, value)| warn(value, &path.index(index))).collect()
}

/// Of a status: addresses of the load balancer.
pub fn of_status(service: &Value) -> Vec<String> {
    let status = Path::new("status");
    let balancer = status.child("loadBalancer");
    let path = balancer.child("ingress");
    let ingress = service.array_at(&["status", "loadBalancer", "ingress"]).iter().enumerate();
    ingress.flat_map(|(index, it)| ip_warnings(it.str_at(&["ip"]), &path.index(index))).collect()
}
