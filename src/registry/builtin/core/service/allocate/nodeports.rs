//! Node ports and the health check's port of one write.

use std::collections::{HashMap, HashSet};

use super::{
    super::{
        ports::{PortError, PortOperation},
        view::{self, health_port, needs_health_port, node_ports_of, number, ports, ports_mut, spec},
    },
    invalid_one,
};
use crate::{
    api::{ApiError, FieldError, Path},
    object::Value,
};

/// Puts back node ports that the client left out.
pub(super) fn patch(new: &mut Value, old: &Value) {
    if wants_ports(old) && wants_ports(new) {
        let before: HashSet<i64> = node_ports_of(old).into_iter().collect();
        let after: HashSet<i64> = node_ports_of(new).into_iter().collect();
        // The last of several with one name counts.
        let known: HashMap<&str, i64> =
            ports(old).iter().map(|port| (port.str_at(&["name"]), number(port, "nodePort"))).collect();
        for port in ports_mut(new) {
            let unset = port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) == 0;
            let name = port.get("name").and_then(Value::as_str).unwrap_or("");
            let found = known.get(name).copied().unwrap_or(0);
            let used = before.contains(&found) && after.contains(&found);
            if unset && found != 0 && !used {
                port.insert("nodePort", found);
            }
        }
    }
    if needs_health_port(old) && needs_health_port(new) && health_port(new) == 0 && health_port(old) != 0 {
        spec(new).insert("healthCheckNodePort", health_port(old));
    }
}

/// Whether its ports get node ports by themselves.
fn wants_ports(service: &Value) -> bool {
    match view::kind(service) {
        "NodePort" => true,
        "LoadBalancer" => view::set(service, "allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

fn may_have_ports(service: &Value) -> bool {
    matches!(view::kind(service), "NodePort" | "LoadBalancer")
}

/// Takes what the new object wants and gives up what the old one had.
pub(super) fn allocate(new: &mut Value, old: Option<&Value>, operation: &mut PortOperation) -> Result<(), ApiError> {
    match old {
        None if may_have_ports(new) => first(new, operation)?,
        Some(old) if may_have_ports(new) => change(new, old, operation)?,
        Some(old) if may_have_ports(old) && matches!(view::kind(new), "ExternalName" | "ClusterIP") => {
            node_ports_of(old).into_iter().for_each(|port| operation.give_up(port));
        }
        _ => {}
    }
    match (old.is_some_and(needs_health_port), needs_health_port(new)) {
        (false, true) => allocate_health_port(new, operation),
        (true, false) => {
            operation.give_up(old.map_or(0, health_port));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn refused(service: &Value, index: usize, port: i64, error: &PortError) -> ApiError {
    let spec = Path::new("spec");
    let ports = spec.child("ports");
    let port_path = ports.index(index);
    invalid_one(service, FieldError::invalid(&port_path.child("nodePort"), port, &error.to_string()))
}

fn none_left(error: PortError) -> ApiError {
    ApiError::internal(format!("failed to allocate a nodePort: {error}"))
}

fn set_node_port(service: &mut Value, index: usize, node_port: i64) {
    if let Some(port) = ports_mut(service).nth(index) {
        port.insert("nodePort", node_port);
    }
}

/// A new object's: ports of one number (in different protocols) share one node port.
fn first(new: &mut Value, operation: &mut PortOperation) -> Result<(), ApiError> {
    let all: Vec<(i64, i64)> = ports(new).iter().map(|port| (number(port, "port"), number(port, "nodePort"))).collect();
    let mut wanted: HashMap<i64, i64> = HashMap::new();
    for (port, asked) in all.iter().copied().filter(|(_, asked)| *asked != 0) {
        wanted.entry(port).or_insert(asked);
    }
    let mut given: HashMap<i64, i64> = HashMap::new();
    for (index, (port, asked)) in all.iter().copied().enumerate() {
        if asked == 0 && !wants_ports(new) {
            continue;
        }
        match given.get(&port).copied() {
            None => {
                let node_port = match wanted.get(&port).copied() {
                    Some(wanted) => {
                        operation.take(wanted).map_err(|error| refused(new, index, wanted, &error))?;
                        wanted
                    }
                    None => operation.take_any().map_err(none_left)?,
                };
                set_node_port(new, index, node_port);
                given.insert(port, node_port);
            }
            Some(shared) if asked == 0 => set_node_port(new, index, shared),
            Some(shared) if asked != shared => {
                operation.take(asked).map_err(|error| refused(new, index, asked, &error))?;
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A changed object's: what it had it keeps.
fn change(new: &mut Value, old: &Value, operation: &mut PortOperation) -> Result<(), ApiError> {
    let before: HashSet<i64> = node_ports_of(old).into_iter().collect();
    let all: Vec<(String, i64)> =
        ports(new).iter().map(|port| (port.str_at(&["protocol"]).to_owned(), number(port, "nodePort"))).collect();
    let mut taken = HashSet::new();
    let mut seen: HashSet<(String, i64)> = HashSet::new();
    for (index, (protocol, asked)) in all.into_iter().enumerate() {
        if asked == 0 && !wants_ports(new) {
            continue;
        }
        let node_port = if asked == 0 {
            let node_port = operation.take_any().map_err(none_left)?;
            set_node_port(new, index, node_port);
            node_port
        } else {
            if !before.contains(&asked) && !taken.contains(&asked) {
                operation.take(asked).map_err(|error| refused(new, index, asked, &error))?;
                taken.insert(asked);
            }
            asked
        };
        if !seen.insert((protocol.clone(), node_port)) {
            return Err(ApiError::unmapped(format!("duplicate nodePort: {{{protocol} {node_port}}}")));
        }
    }
    let after: HashSet<i64> = node_ports_of(new).into_iter().collect();
    before.into_iter().filter(|port| !after.contains(port)).for_each(|port| operation.give_up(port));
    Ok(())
}

fn allocate_health_port(new: &mut Value, operation: &mut PortOperation) -> Result<(), ApiError> {
    match health_port(new) {
        0 => {
            let port = operation
                .take_any()
                .map_err(|error| ApiError::internal(format!("failed to allocate a HealthCheck NodePort 0: {error}")))?;
            spec(new).insert("healthCheckNodePort", port);
            Ok(())
        }
        asked => operation.take(asked).map_err(|error| {
            ApiError::internal(format!("failed to allocate requested HealthCheck NodePort {asked}: {error}"))
        }),
    }
}
