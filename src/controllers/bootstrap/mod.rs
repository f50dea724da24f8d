//! What every cluster has from its first second on: system namespaces, priority classes, the default ServiceCIDR, the
//! `kubernetes` Service, flow schemas, APIServices, and the records this server keeps of itself (kubernetes
//! `pkg/controlplane`).
//!
//! Each file is one post-start hook's work: a pass that makes things as they must be, and a loop that repeats it. Passes
//! are idempotent, read the cache, and write through the whole chain only what is missing or wrong. What depends on
//! options reads [`Settings`] at the beginning of each pass, so a reload needs no restart of a loop.

pub mod api_services;
pub mod authentication_info;
mod events;
pub mod flowcontrol;
pub mod identity;
pub mod kubernetes_service;
pub mod namespaces;
pub mod priority_classes;
pub mod service_cidr;
pub mod service_repair;
pub mod token_tracking;

use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::Method;
use ipnet::IpNet;

use super::{ApiClient, ChangeSource};
use crate::{
    api::{ApiError, Reason},
    object::Value,
    registry::{
        builtin::core::service::{NodePorts, PortRange},
        reader::ObjectReader,
    },
    storage::Storage,
};

/// What the options say, as far as anything here asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `--service-cluster-ip-range`.
    pub service_ranges: Vec<IpNet>,
    pub node_ports: PortRange,
    /// Node port of the `kubernetes` Service; 0: it has none.
    pub kubernetes_node_port: u16,
    /// Where others reach this server; `None`: it is not published.
    pub advertise_address: Option<IpAddr>,
    /// Whether the endpoints of the `kubernetes` Service are kept.
    pub publish_endpoints: bool,
    pub secure_port: u16,
    pub host_name: String,
    /// PEM of whoever signs client certificates.
    pub client_ca: Option<String>,
    pub request_header: Option<authentication_info::RequestHeaders>,
    /// Built-in groups and versions that are served.
    pub group_versions: Vec<(String, String)>,
}

/// The handles of everything here.
#[derive(Clone)]
pub struct Cluster {
    pub client: Arc<dyn ApiClient>,
    pub reader: Arc<dyn ObjectReader>,
    pub changes: Arc<dyn ChangeSource>,
    pub storage: Arc<dyn Storage>,
    pub node_ports: Arc<NodePorts>,
    pub settings: Arc<ArcSwap<Settings>>,
}

/// How long a loop waits at least before it looks at what changed.
const QUIET: Duration = Duration::from_millis(100);

impl Cluster {
    fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Makes an object, whoever makes it first. `path` is the collection's.
    async fn create(&self, path: &str, object: Value) -> Result<(), ApiError> {
        match self.client.call(Method::POST, path.to_owned(), Some(object)).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether an object is there now, asked of the server and not of the reader.
    async fn exists(&self, path: &str) -> Result<bool, ApiError> {
        match self.client.call(Method::GET, path.to_owned(), None).await {
            Ok(_) => Ok(true),
            Err(error) if error.reason == Reason::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces an object. Where somebody else was quicker, the next pass sees what they wrote.
    async fn replace(&self, path: String, object: Value) -> Result<(), ApiError> {
        match self.client.call(Method::PUT, path, Some(object)).await {
            Err(error) if !matches!(error.reason, Reason::Conflict | Reason::NotFound) => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes an object that may be gone already.
    async fn delete(&self, path: String) -> Result<(), ApiError> {
        match self.client.call(Method::DELETE, path, None).await {
            Err(error) if error.reason != Reason::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Runs `pass` again and again: when a resource changes, and after `period` at the latest.
    async fn keep<F, W>(
        &self,
        (group, resource): (&'static str, &'static str),
        period: Duration,
        name: &str,
        mut pass: F,
    ) where
        F: FnMut() -> W,
        W: Future<Output = Result<(), ApiError>>,
    {
        loop {
            let seen = self.reader.version(group, resource);
            if let Err(error) = pass().await {
                tracing::warn!(controller = name, "{}", error.message);
            }
            tokio::time::sleep(QUIET).await;
            let _ = tokio::time::timeout(period, self.changes.changed(group, resource, seen)).await;
        }
    }
}

/// Runs `pass` every `period`, the first time after one.
async fn every<F, W>(period: Duration, name: &str, mut pass: F)
where
    F: FnMut() -> W,
    W: Future<Output = Result<(), ApiError>>,
{
    loop {
        tokio::time::sleep(period).await;
        if let Err(error) = pass().await {
            tracing::warn!(controller = name, "{}", error.message);
        }
    }
}

/// Runs `pass` until it succeeds, `patience` at most.
///
/// # Errors
/// What the last pass said.
async fn until_done<F, W>(patience: Duration, name: &str, mut pass: F) -> Result<(), ApiError>
where
    F: FnMut() -> W,
    W: Future<Output = Result<(), ApiError>>,
{
    let since = tokio::time::Instant::now();
    let mut wait = Duration::from_millis(10);
    loop {
        match pass().await {
            Ok(()) => return Ok(()),
            Err(error) if since.elapsed() + wait > patience => return Err(error),
            Err(error) => tracing::debug!(hook = name, "{}, trying again", error.message),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(1));
    }
}

/// Long enough for whatever is not there yet to come.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);
