//! Rows of services, endpoints, ingresses, policies and addresses.

use std::collections::BTreeSet;

use super::{
    Cells, cells,
    text::{NONE, age, joined, label_map, label_selector, name, number, or, some_of, text_or, texts},
};
use crate::{api::Meta, object::Value, registry::printer::Printer};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Service" => Printer::new(service),
        "Endpoints" => Printer::new(endpoints),
        "EndpointSlice" => Printer::new(endpoint_slice),
        "Ingress" => Printer::new(ingress),
        "IngressClass" => Printer::new(ingress_class),
        "NetworkPolicy" => Printer::new(network_policy),
        "ServiceCIDR" => Printer::new(service_cidr),
        "IPAddress" => Printer::new(ip_address),
        _ => return None,
    })
}

fn service(it: &Value) -> Cells {
    let ports: Vec<String> = it.array_at(&["spec", "ports"]).iter().map(port).collect();
    cells![
        name(it),
        it.str_at(&["spec", "type"]),
        texts(it, &["spec", "clusterIPs"]).next().unwrap_or(NONE),
        external_ip(it),
        or(&ports.join(","), NONE),
        age(it),
        label_map(it.object_at(&["spec", "selector"])),
    ]
}

fn port(it: &Value) -> String {
    let (port, protocol) = (number(it, &["port"]), it.str_at(&["protocol"]));
    match number(it, &["nodePort"]) {
        node if node > 0 => format!("{port}:{node}/{protocol}"),
        _ => format!("{port}/{protocol}"),
    }
}

fn external_ip(it: &Value) -> String {
    let own = joined(it, &["spec", "externalIPs"]);
    match it.str_at(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => or(&own, NONE).to_owned(),
        "LoadBalancer" => {
            let balancer = balancer(it);
            let both = [balancer, own].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(",");
            or(&both, "<pending>").to_owned()
        }
        "ExternalName" => it.str_at(&["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Where a load balancer is reached: addresses, or names where there are none; each once and sorted.
fn balancer(it: &Value) -> String {
    let points = it.array_at(&["status", "loadBalancer", "ingress"]).iter();
    let points = points.map(|point| or(point.str_at(&["ip"]), point.str_at(&["hostname"])));
    let points: BTreeSet<&str> = points.filter(|point| !point.is_empty()).collect();
    points.into_iter().collect::<Vec<_>>().join(",")
}

fn endpoints(it: &Value) -> Cells {
    const MOST: usize = 3;
    let subsets = it.array_at(&["subsets"]);
    if subsets.is_empty() {
        return cells![name(it), NONE, age(it)];
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ports = subset.array_at(&["ports"]);
        let addresses = || subset.array_at(&["addresses"]).iter().map(|address| address.str_at(&["ip"]));
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = number(port, &["port"]);
            all.extend(
                addresses().map(|ip| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }),
            );
        }
    }
    // Subsets without ready addresses show nothing at all.
    let text = if all.is_empty() { String::new() } else { some_of(&all, MOST) };
    cells![name(it), text, age(it)]
}

fn endpoint_slice(it: &Value) -> Cells {
    let port = |it: &Value| match it.i64_at(&["port"]) {
        Some(number) => number.to_string(),
        None => text_or(it, &["name"], "*").to_owned(),
    };
    let ports: Vec<String> = it.array_at(&["ports"]).iter().map(port).collect();
    let addresses = it.array_at(&["endpoints"]).iter().flat_map(|endpoint| texts(endpoint, &["addresses"]));
    let addresses: Vec<String> = addresses.map(str::to_owned).collect();
    cells![name(it), it.str_at(&["addressType"]), some_of(&ports, 3), some_of(&addresses, 3), age(it)]
}

fn ingress(it: &Value) -> Cells {
    let ports = if it.array_at(&["spec", "tls"]).is_empty() { "80" } else { "80, 443" };
    let class = text_or(it, &["spec", "ingressClassName"], NONE);
    cells![name(it), class, hosts(it.array_at(&["spec", "rules"])), balancer(it), ports, age(it)]
}

/// Up to three hosts. Upstream counts what is left by the rules, not by the hosts.
fn hosts(rules: &[Value]) -> String {
    const MOST: usize = 3;
    let mut shown = Vec::new();
    let mut more = false;
    for host in rules.iter().map(|rule| rule.str_at(&["host"])) {
        more |= shown.len() == MOST;
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match shown.join(",") {
        none if none.is_empty() => "*".to_owned(),
        some if more => format!("{some} + {} more...", rules.len().saturating_sub(MOST)),
        all => all,
    }
}

fn ingress_class(it: &Value) -> Cells {
    let mut shown = name(it).to_owned();
    if Meta::of(it).annotation("ingressclass.kubernetes.io/is-default-class") == Some("true") {
        shown.push_str(" (default)");
    }
    let parameters = it.at(&["spec", "parameters"]).filter(|it| !it.is_null()).map(|parameters| {
        let kind = parameters.str_at(&["kind"]);
        let name = parameters.str_at(&["name"]);
        match parameters.at(&["apiGroup"]).and_then(Value::as_str) {
            Some(group) => format!("{kind}.{group}/{name}"),
            None => format!("{kind}/{name}"),
        }
    });
    cells![shown, it.str_at(&["spec", "controller"]), parameters.unwrap_or_else(|| NONE.to_owned()), age(it)]
}

fn network_policy(it: &Value) -> Cells {
    // A selector that is not given selects everything.
    let everything = Value::object();
    let selector = it.at(&["spec", "podSelector"]).filter(|it| !it.is_null()).unwrap_or(&everything);
    cells![name(it), label_selector(Some(selector)), age(it)]
}

fn service_cidr(it: &Value) -> Cells {
    cells![name(it), joined(it, &["spec", "cidrs"]), age(it)]
}

/// Three cells, although the table has two columns.
fn ip_address(it: &Value) -> Cells {
    let parent = it.at(&["spec", "parentRef"]).filter(|it| !it.is_null()).map(|parent| {
        let part = |field: &str| parent.str_at(&[field]);
        let mut text = part("resource").to_lowercase();
        if !part("group").is_empty() {
            text.push_str(&format!(".{}", part("group").to_lowercase()));
        }
        if !part("namespace").is_empty() {
            text.push_str(&format!("/{}", part("namespace")));
        }
        format!("{text}/{}", part("name"))
    });
    cells![name(it), parent.unwrap_or_else(|| NONE.to_owned()), age(it)]
}
