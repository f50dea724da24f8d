//! `IPAddress` objects of Services, made through the whole chain as the server itself.

use std::net::IpAddr;

use ::http::Method;

use super::client::{InProcess, SERVER_AGENT};
use crate::{
    api::Reason,
    controllers::ApiClient,
    registry::builtin::{
        core::service::{AddressFuture, Addresses, ClaimError},
        ip_address::of_service,
    },
    server::current::Current,
};

const PATH: &str = "/apis/networking.k8s.io/v1/ipaddresses";

/// Through whatever serves when an address is taken.
pub struct ClientAddresses(InProcess);

impl ClientAddresses {
    pub fn new(current: Current) -> Self {
        Self(InProcess::new(current, SERVER_AGENT))
    }
}

impl Addresses for ClientAddresses {
    fn claim<'a>(&'a self, ip: IpAddr, namespace: &'a str, name: &'a str) -> AddressFuture<'a, Result<(), ClaimError>> {
        Box::pin(async move {
            match self.0.call(Method::POST, PATH.to_owned(), Some(of_service(ip, namespace, name))).await {
                Ok(_) => Ok(()),
                Err(error) if error.reason == Reason::AlreadyExists => Err(ClaimError::Taken),
                Err(error) => Err(ClaimError::Other(error.message.clone())),
            }
        })
    }

    fn release(&self, ip: IpAddr) -> AddressFuture<'_, ()> {
        Box::pin(async move {
            match self.0.call(Method::DELETE, format!("{PATH}/{ip}"), None).await {
                Err(error) if error.reason != Reason::NotFound => {
                    // The repair finds it.
                    tracing::warn!(%ip, error = error.message, "a cluster IP could not be given back");
                }
                _ => {}
            }
        })
    }
}
