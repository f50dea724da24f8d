//! The Lease by which other servers know this one, and the end of those whose server is gone (kubernetes
//! `pkg/controlplane/apiserver/server.go`, `pkg/controlplane/controller/apiserverleasegc`).

use std::time::Duration;

use super::{Cluster, every, until_done};
use crate::{
    api::{
        ApiError, Meta,
        clock::now,
        duration::{format_micro_time, parse_micro_time},
        unique,
    },
    json,
    object::Value,
};

pub const HOOK: &str = "start-kube-apiserver-identity-lease-controller";
pub const GARBAGE_HOOK: &str = "start-kube-apiserver-identity-lease-garbage-collector";

const GROUP: &str = "coordination.k8s.io";
const NAMESPACE: &str = "kube-system";
const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const IDENTITY: &str = "apiserver.kubernetes.io/identity";
const PEER_ADDRESS: &str = "kubernetes.io/peer-advertise-address";
const DURATION_SECONDS: i64 = 3600;
const PERIOD: Duration = Duration::from_secs(10);

/// The server's name among others: what upstream makes of the host's name.
pub fn server_identity(host_name: &str) -> String {
    let mut hashed = Vec::new();
    for part in [host_name, "kube-apiserver"] {
        hashed.extend_from_slice(&u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        hashed.extend_from_slice(part.as_bytes());
    }
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &hashed);
    format!("apiserver-{}", base32(digest.as_ref().get(..16).unwrap_or_default()))
}

/// RFC 4648 in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut text = String::new();
    let (mut held, mut bits) = (0u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(held >> bits) as usize & 31]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(held << (5 - bits)) as usize & 31]));
    }
    text
}

/// Keeps this server's Lease. The process is a holder of its own.
pub async fn run(cluster: Cluster) {
    let name = server_identity(&cluster.settings().host_name);
    let holder = format!("{name}_{}", unique::uuid());
    let _ = until_done(super::FOREVER, HOOK, || renew(&cluster, &name, &holder)).await;
    every(PERIOD, HOOK, || renew(&cluster, &name, &holder)).await;
}

async fn renew(cluster: &Cluster, name: &str, holder: &str) -> Result<(), ApiError> {
    let settings = cluster.settings();
    let found = cluster.reader.get(GROUP, "leases", NAMESPACE, name);
    let mut lease = found.as_deref().cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": NAMESPACE}
        })
    });
    lease.set(&["metadata", "labels", IDENTITY], "kube-apiserver");
    lease.set(&["metadata", "labels", "kubernetes.io/hostname"], settings.host_name.clone());
    if let Some(address) = settings.advertise_address {
        let peer = std::net::SocketAddr::new(address, settings.secure_port).to_string();
        lease.set(&["metadata", "annotations", PEER_ADDRESS], peer);
    }
    lease.set(&["spec", "holderIdentity"], holder);
    lease.set(&["spec", "leaseDurationSeconds"], DURATION_SECONDS);
    lease.set(&["spec", "renewTime"], format_micro_time(now()));
    match found {
        None => cluster.create(PATH, lease).await,
        Some(_) => cluster.replace(format!("{PATH}/{name}"), lease).await,
    }
}

/// Removes Leases of servers that have not renewed them.
pub async fn collect_garbage(cluster: Cluster) {
    every(Duration::from_secs(3600), GARBAGE_HOOK, || async {
        for lease in cluster.reader.list(GROUP, "leases", Some(NAMESPACE)) {
            if Meta::of(&lease).label(IDENTITY) == Some("kube-apiserver") && is_expired(&lease) {
                cluster.delete(format!("{PATH}/{}", Meta::of(&lease).name())).await?;
            }
        }
        Ok(())
    })
    .await;
}

/// A Lease that does not say is nobody's.
fn is_expired(lease: &Value) -> bool {
    let seconds = lease.i64_at(&["spec", "leaseDurationSeconds"]);
    let (Ok(renewed), Some(seconds)) = (parse_micro_time(lease.str_at(&["spec", "renewTime"])), seconds) else {
        return true;
    };
    let age = now().duration_since(renewed);
    age > jiff::SignedDuration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_upstreams() {
        assert_eq!(base32(b"foobar"), "mzxw6ytboi");
        assert_eq!(base32(b"f"), "my");
        let name = server_identity("host");
        assert_eq!(name.len(), "apiserver-".len() + 26);
        assert_ne!(name, server_identity("other"));
    }

    #[test]
    fn a_lease_is_over_when_its_time_is() {
        let lease = |ago: i64| {
            let renewed = now() - jiff::SignedDuration::from_secs(ago);
            json!({"spec": {"leaseDurationSeconds": 3600, "renewTime": (format_micro_time(renewed))}})
        };
        assert!(!is_expired(&lease(3500)));
        assert!(is_expired(&lease(3700)));
        assert!(is_expired(&json!({"spec": {}})));
    }
}
