//! ComponentStatuses: the health of scheduler, controller manager and storage, asked when somebody looks (kubernetes
//! `pkg/registry/core/componentstatus`, `pkg/registry/core/rest/storage_core.go`).

use std::{sync::Arc, time::Duration};

use ::http::Request as HttpRequest;
use futures_util::future::BoxFuture;

use super::dialer::{Authority, Client, ClientTls, Peer};
use crate::{
    json,
    object::Value,
    pki::PkiError,
    registry::resource::Compute,
    server::http::{Body, beginning},
    storage::Storage,
};

const PATIENCE: Duration = Duration::from_secs(20);
/// The most of an answer that is shown (upstream's prober reads as much).
const SHOWN_BYTES: usize = 10 * 1024;
/// Components that listen on this machine, by the ports they are known for.
const LOCAL: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];
/// Upstream's name of the storage.
const STORAGE: &str = "etcd-0";

pub struct Components {
    client: Client,
    storage: Arc<dyn Storage>,
}

/// What a probe found: the condition's status, message and error.
struct Found(&'static str, String, String);

impl Components {
    /// # Errors
    /// The TLS library refuses to work.
    pub fn new(storage: Arc<dyn Storage>) -> Result<Self, PkiError> {
        let tls = ClientTls { peer: Peer::Anyone, identity: None, server_name: None };
        Ok(Self { client: Client::new(Some(tls), PATIENCE)?, storage })
    }

    async fn storage(&self) -> Found {
        match tokio::time::timeout(PATIENCE, self.storage.health()).await {
            Ok(Ok(())) => Found("True", "ok".to_owned(), String::new()),
            Ok(Err(error)) => Found("False", String::new(), error.to_string()),
            Err(_) => Found("False", String::new(), "context deadline exceeded".to_owned()),
        }
    }

    async fn local(&self, port: u16) -> Found {
        let authority = Authority { host: "127.0.0.1".to_owned(), port };
        let url = format!("https://{authority}/healthz");
        let Ok(request) = HttpRequest::get("/healthz").body(Body::Empty) else {
            return Found("Unknown", String::new(), "failed to construct probe request".to_owned());
        };
        // Upstream's prober takes whatever goes wrong on the way for a failure and not for an error.
        match tokio::time::timeout(PATIENCE, self.client.send(&authority, request)).await {
            Err(_) => Found("False", format!("Get \"{url}\": context deadline exceeded"), String::new()),
            Ok(Err(error)) => Found("False", format!("Get \"{url}\": {error}"), String::new()),
            Ok(Ok(answer)) => {
                let (parts, body) = answer.into_parts();
                let text = beginning(body, SHOWN_BYTES).await;
                match parts.status.as_u16() {
                    200..400 => Found("True", text, String::new()),
                    code => Found("False", format!("HTTP probe failed with statuscode: {code}"), String::new()),
                }
            }
        }
    }

    async fn status(&self, name: &str) -> Option<Value> {
        let found = match LOCAL.iter().find(|(known, _)| *known == name) {
            Some((_, port)) => self.local(*port).await,
            None if name == STORAGE => self.storage().await,
            None => return None,
        };
        let Found(status, message, error) = found;
        let mut condition = json!({"type": "Healthy", "status": status});
        for (member, text) in [("message", message), ("error", error)] {
            if !text.is_empty() {
                condition.set(&[member], text);
            }
        }
        Some(json!({
            "apiVersion": "v1",
            "kind": "ComponentStatus",
            "metadata": {"name": name},
            "conditions": [condition]
        }))
    }
}

impl Compute for Components {
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Value>> {
        Box::pin(self.status(name))
    }

    fn list(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(async {
            let (manager, scheduler, storage) =
                tokio::join!(self.status(LOCAL[0].0), self.status(LOCAL[1].0), self.status(STORAGE));
            [manager, scheduler, storage].into_iter().flatten().collect()
        })
    }
}
