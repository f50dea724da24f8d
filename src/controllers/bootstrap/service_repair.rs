//! Finds and mends what crashes leave between Services, their `IPAddress` objects and the node ports that are taken
//! (kubernetes `pkg/registry/core/service/{ipallocator,portallocator}/controller`).

use std::{net::IpAddr, sync::Arc, time::Duration};

use ipnet::IpNet;

use super::{
    Cluster,
    events::{Event, record},
};
use crate::{
    api::{ApiError, Meta, clock::now, ip::parse_ip},
    object::Value,
    registry::builtin::{
        core::service::{PortProblem, cluster_ips, contains, takes_address},
        ip_address::{ALLOCATOR, LABEL_FAMILY, LABEL_MANAGED_BY, of_service},
    },
};

pub const HOOK: &str = "start-service-ip-repair-controllers";

const PERIOD: Duration = Duration::from_secs(3 * 60);
const PATH: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const ADDRESSES: &str = "ipallocator-repair-controller";
const PORTS: &str = "portallocator-repair-controller";
/// An address is made before its Service; a write takes no longer than this.
const YOUNG: i64 = 60;

/// The first pass. Ends when it is done.
pub async fn ready(cluster: &Cluster) -> Result<(), String> {
    pass(cluster).await;
    Ok(())
}

pub async fn run(cluster: Cluster) {
    loop {
        tokio::time::sleep(PERIOD).await;
        pass(&cluster).await;
    }
}

async fn pass(cluster: &Cluster) {
    let services = cluster.reader.list("", "services", None);
    let problems = cluster.node_ports.rebuild(&services, &cluster.settings().node_ports);
    for (index, problem) in problems {
        let (reason, note) = match problem {
            PortProblem::NotAllocated(port) => ("PortNotAllocated", format!("Port {port} is not allocated; repairing")),
            PortProblem::AlreadyAllocated(port) => {
                let note = format!("Port {port} was assigned to multiple services; please recreate service");
                ("PortAlreadyAllocated", note)
            }
            PortProblem::OutOfRange(port, range) => {
                let note = format!("Port {port} is not within the port range {range}; please recreate service");
                ("PortOutOfRange", note)
            }
        };
        if let Some(service) = services.get(index) {
            record(cluster, service, Event { reason, action: "PortAllocation", note, reporter: PORTS }).await;
        }
    }
    for service in services.iter().filter(|service| takes_address(service)) {
        if let Err(error) = sync_service(cluster, service).await {
            tracing::warn!(controller = ADDRESSES, "cannot repair the addresses of a service: {}", error.message);
        }
    }
    for address in cluster.reader.list("networking.k8s.io", "ipaddresses", None) {
        if let Err(error) = sync_address(cluster, &address).await {
            tracing::warn!(controller = ADDRESSES, "cannot repair an address: {}", error.message);
        }
    }
}

fn networks(cluster: &Cluster) -> Vec<IpNet> {
    let cidrs = cluster.reader.list("networking.k8s.io", "servicecidrs", None);
    cidrs.iter().flat_map(|it| it.array_at(&["spec", "cidrs"])).filter_map(|it| it.as_str()?.parse().ok()).collect()
}

fn service(cluster: &Cluster, namespace: &str, name: &str) -> Option<Arc<Value>> {
    cluster.reader.get("", "services", namespace, name)
}

/// What is wrong between a Service and the object of one of its addresses.
enum Wrong {
    Nothing,
    /// With reason and text; nothing can be done.
    Told(&'static str, String),
    /// The object has to be made.
    Missing(String),
    /// The object has to be made anew, with something to tell or not.
    Remake(Option<String>),
}

async fn sync_service(cluster: &Cluster, service: &Value) -> Result<(), ApiError> {
    let networks = networks(cluster);
    let (namespace, name) = (Meta::of(service).namespace(), Meta::of(service).name());
    for ip in cluster_ips(service).into_iter().filter_map(parse_ip) {
        let (reason, note) = match judge(cluster, service, ip, &networks) {
            Wrong::Nothing => continue,
            Wrong::Told(reason, note) => (reason, note),
            Wrong::Missing(note) => {
                cluster.create(PATH, of_service(ip, namespace, name)).await?;
                ("ClusterIPNotAllocated", note)
            }
            Wrong::Remake(note) => {
                cluster.delete(format!("{PATH}/{ip}")).await?;
                cluster.create(PATH, of_service(ip, namespace, name)).await?;
                match note {
                    Some(note) => ("ClusterIPNotAllocated", note),
                    None => continue,
                }
            }
        };
        record(cluster, service, Event { reason, action: "ClusterIPAllocation", note, reporter: ADDRESSES }).await;
    }
    Ok(())
}

fn judge(cluster: &Cluster, of: &Value, ip: IpAddr, networks: &[IpNet]) -> Wrong {
    let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
    let (namespace, name) = (Meta::of(of).namespace(), Meta::of(of).name());
    if !networks.iter().any(|net| contains(net, ip)) {
        let note =
            format!("Cluster IP [{family}]: {ip} is not within any configured Service CIDR; please recreate service");
        return Wrong::Told("ClusterIPOutOfRange", note);
    }
    let Some(address) = cluster.reader.get("networking.k8s.io", "ipaddresses", "", &ip.to_string()) else {
        return Wrong::Missing(format!("Cluster IP [{family}]: {ip} is not allocated; repairing"));
    };
    let wrong_reference = || {
        Wrong::Remake(Some(format!(
            "the ClusterIP [{family}]: {ip} for Service {namespace}/{name} has a wrong reference; repairing"
        )))
    };
    let Some(parent) = Parent::of(&address) else { return wrong_reference() };
    if (parent.namespace, parent.name) != (namespace, name) {
        let Some(other) = service(cluster, parent.namespace, parent.name) else { return wrong_reference() };
        if cluster_ips(&other).contains(&Meta::of(&address).name()) {
            let note = format!("Cluster IP [{family}]:{ip} was assigned to multiple services; please recreate service");
            return Wrong::Told("ClusterIPAlreadyAllocated", note);
        }
    }
    let meta = Meta::of(&address);
    if meta.label(LABEL_FAMILY) != Some(family) || meta.label(LABEL_MANAGED_BY) != Some(ALLOCATOR) {
        return Wrong::Remake(None);
    }
    Wrong::Nothing
}

/// The Service that an `IPAddress` belongs to.
struct Parent<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Parent<'a> {
    /// `None` where it belongs to something else.
    fn of(address: &'a Value) -> Option<Self> {
        let text = |member: &str| address.str_at(&["spec", "parentRef", member]);
        (text("group").is_empty() && text("resource") == "services")
            .then(|| Self { namespace: text("namespace"), name: text("name") })
    }
}

/// Removes an address of the allocator that no Service has.
async fn sync_address(cluster: &Cluster, address: &Value) -> Result<(), ApiError> {
    let meta = Meta::of(address);
    if meta.label(LABEL_MANAGED_BY) != Some(ALLOCATOR) {
        return Ok(());
    }
    let name = meta.name();
    let age = meta.creation_timestamp().map_or(i64::MAX, |made| now().duration_since(made).as_secs());
    let (reason, note) = match Parent::of(address) {
        None => {
            let shown = address.at(&["spec", "parentRef"]).map(crate::object::to_string).unwrap_or_default();
            let note = format!(
                "IPAddress {name} appears to have been modified, not referencing a Service {shown}: cleaning up"
            );
            ("IPAddressNotAllocated", note)
        }
        Some(parent) => match service(cluster, parent.namespace, parent.name) {
            Some(service) if cluster_ips(&service).contains(&name) => return Ok(()),
            _ if age <= YOUNG => return Ok(()),
            Some(_) => {
                let note = format!(
                    "IPAddress: {name} for Service {}/{} has a wrong reference; cleaning up",
                    parent.namespace, parent.name
                );
                ("IPAddressWrongReference", note)
            }
            None => {
                let note = format!(
                    "IPAddress: {name} for Service {}/{} appears to have leaked: cleaning up",
                    parent.namespace, parent.name
                );
                ("IPAddressNotAllocated", note)
            }
        },
    };
    record(cluster, address, Event { reason, action: "IPAddressAllocation", note, reporter: ADDRESSES }).await;
    cluster.delete(format!("{PATH}/{name}")).await
}
