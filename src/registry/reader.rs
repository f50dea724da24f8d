//! The narrow read side for authorization, admission and built-in controllers: objects as they are in the cache
//! now, parsed once per version, never a wait. What stands behind it is the watch cache.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};

use crate::object::Value;

/// Reads cached objects in their storage version.
pub trait ObjectReader: Send + Sync {
    /// The object, or `None` where the cache has none. `namespace` is `""` for cluster-scoped kinds.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// The objects of one namespace, or of all for `None`, in key order. Shares the objects, copies none.
    fn list(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;

    /// Ends when the resource's objects are as new as the store was at the call. Only for decisions that an
    /// acknowledged write must not be missing from; what is asked for next is read as ever.
    fn caught_up<'a>(&'a self, _group: &'a str, _resource: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Whether a namespace has no object of the resource; `None` where the cache does not know the resource.
    fn is_empty(&self, _group: &str, _resource: &str, _namespace: &str) -> Option<bool> {
        None
    }

    /// A number that changes whenever any object of the resource does, and never comes back.
    fn version(&self, group: &str, resource: &str) -> u64;
}
