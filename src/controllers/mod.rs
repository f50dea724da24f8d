//! Built-in loops behind switches: in-process clients of what serves now.
//!
//! They go through the same chain as any client, never around it, as the server's own user.

use std::sync::Arc;

use futures_util::{future::BoxFuture, stream::BoxStream};

use crate::api::ApiError;
use crate::object::Value;

pub mod bootstrap;
pub mod crd;
mod crd_finalizer;
mod crd_names;
pub mod crd_versions;
pub mod feed;
pub mod namespace;
mod namespaces;
pub mod rbac_aggregation;
pub mod rbac_bootstrap;
pub mod rbac_reconcile;
pub mod root_ca;
pub mod service_account;
#[cfg(test)]
pub mod testing;
pub mod work;

/// The API as an in-process client sees it. What stands behind it is the whole chain of the generation that serves
/// when the call is made; the user is the server itself (`system:apiserver` in `system:masters`).
pub trait ApiClient: Send + Sync {
    /// One request with a JSON body (none for reads). `path` may have a query. The answer is the object; everything
    /// that is no success is the Status it came with.
    fn call(&self, method: http::Method, path: String, body: Option<Value>) -> BoxFuture<'_, Result<Value, ApiError>>;

    /// A JSON merge patch whose answer nobody reads.
    fn merge(&self, path: String, patch: Value) -> BoxFuture<'_, Result<(), ApiError>> {
        Box::pin(async move { self.call(http::Method::PATCH, path, Some(patch)).await.map(drop) })
    }

    /// Server-side apply; `path` has the query with `fieldManager` and `force`. Whoever tells kinds of patches apart has
    /// its own.
    fn apply(&self, path: String, body: Value) -> BoxFuture<'_, Result<Value, ApiError>> {
        self.call(http::Method::PATCH, path, Some(body))
    }
}

/// Tells controllers when to look again. What stands behind it is the watch cache's feed.
pub trait ChangeSource: Send + Sync {
    /// Ends when the resource's version (`ObjectReader::version`) is not `seen` any more; at once where it is not.
    fn changed(&self, group: &'static str, resource: &'static str, seen: u64) -> BoxFuture<'_, ()>;

    /// The names of all objects of a resource that are there (in batches), then of each that changes or goes; of those
    /// with this name only, where one is given. Never ends.
    fn follow<'a>(
        &'a self,
        group: &'static str,
        resource: &'static str,
        name: Option<&'static str>,
    ) -> BoxStream<'a, Vec<ObjectName>>;
}

/// Which object changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}
