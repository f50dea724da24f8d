//! Whom a pod's streams go to.

use super::{super::dialer::NodeAddress, NodeStreams};
use std::sync::Arc;

use crate::{
    api::{ApiError, Meta, Reason, status::GroupResource},
    object::Value,
    server::endpoints::Scope,
};

/// A node's kubelet.
pub struct Target {
    pub addresses: Vec<NodeAddress>,
    /// 0: the node's status names none.
    pub port: u16,
}

impl NodeStreams {
    pub(super) fn pod(&self, scope: &Scope<'_>) -> Result<Arc<Value>, ApiError> {
        self.reader
            .get("", "pods", scope.namespace, scope.name)
            .ok_or_else(|| ApiError::not_found(scope.gr(), scope.name))
    }

    /// The kubelet of a pod; `None` where the pod has no node and `required` is not asked.
    pub(super) fn node_of(&self, pod: &Value, required: bool) -> Result<Option<Target>, ApiError> {
        let name = pod.str_at(&["spec", "nodeName"]);
        if name.is_empty() {
            let text = format!("pod {} does not have a host assigned", Meta::of(pod).name());
            return if required { Err(ApiError::bad_request(text)) } else { Ok(None) };
        }
        // A node that is gone is told of pods, whose storage looks for it upstream.
        let gone = |error: ApiError| match error.reason {
            Reason::NotFound => ApiError::not_found(GroupResource::new("", "pods"), name),
            _ => error,
        };
        self.node(name).map(Some).map_err(gone)
    }

    pub(super) fn node(&self, name: &str) -> Result<Target, ApiError> {
        let node = self.reader.get("", "nodes", "", name);
        let node = node.ok_or_else(|| ApiError::not_found(GroupResource::new("", "nodes"), name))?;
        let addresses = node.array_at(&["status", "addresses"]).iter().map(|address| NodeAddress {
            kind: address.str_at(&["type"]).to_owned(),
            address: address.str_at(&["address"]).to_owned(),
        });
        let port = node.i64_at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).unwrap_or(0);
        Ok(Target { addresses: addresses.collect(), port: u16::try_from(port).unwrap_or(0) })
    }
}

/// The container that is meant: the named one, or the only one.
pub fn container(pod: &Value, wanted: &str) -> Result<String, ApiError> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    let all: Vec<&str> =
        kinds.iter().flat_map(|kind| pod.array_at(&["spec", kind])).map(|it| it.str_at(&["name"])).collect();
    if wanted.is_empty() {
        let name = Meta::of(pod).name();
        // Init and ephemeral containers are named, and do not make the choice an open one.
        return match pod.array_at(&["spec", "containers"]) {
            [only] => Ok(only.str_at(&["name"]).to_owned()),
            [] => Err(ApiError::bad_request(format!("a container name must be specified for pod {name}"))),
            _ => {
                let all = all.join(" ");
                let text = format!("a container name must be specified for pod {name}, choose one of: [{all}]");
                Err(ApiError::bad_request(text))
            }
        };
    }
    if all.contains(&wanted) {
        return Ok(wanted.to_owned());
    }
    Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {}", Meta::of(pod).name())))
}

/// `?a=b&c=d`, escaped; nothing for nothing.
pub fn query(pairs: &[(String, String)]) -> String {
    let escape = |text: &str| {
        text.bytes().fold(String::new(), |mut out, byte| {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
                other => out.push_str(&format!("%{other:02X}")),
            }
            out
        })
    };
    let joined: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    if joined.is_empty() { String::new() } else { format!("?{}", joined.join("&")) }
}
