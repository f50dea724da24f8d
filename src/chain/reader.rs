//! The narrow reader over the watch cache: objects as trees, parsed once a version, never a wait.

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt, future::BoxFuture, stream, stream::BoxStream};
use parking_lot::RwLock;

use crate::{
    controllers::{ChangeSource, ObjectName},
    object::{Value, parse},
    registry::reader::ObjectReader,
    storage::{
        Revision,
        cache::{Entry, ResourceCache, WatchEvent, WatchScope, WatchStart, Watcher},
    },
};

/// Parsed objects kept at once. What is read here is policy (roles, namespaces, classes), which is little.
const KEPT: usize = 20_000;

/// Bytes of the largest object that is kept as a tree. A tree takes several times its text.
const LARGEST_KEPT: usize = 64 << 10;

/// Changes that may wait for a controller before it has to look at everything again.
const FOLLOWED: usize = 4096;

/// How soon a cache that was not there is asked for again.
const NOT_READY: std::time::Duration = std::time::Duration::from_millis(50);

/// A tree and the revision it was parsed at.
type Parsed = (Revision, Arc<Value>);

/// Group and plural.
type Name = (String, String);

#[derive(Default)]
pub struct CacheReader {
    caches: RwLock<HashMap<Name, Arc<ResourceCache>>>,
    parsed: RwLock<HashMap<Arc<str>, Parsed>>,
}

impl CacheReader {
    /// Makes a resource readable by its names.
    pub fn register(&self, group: &str, resource: &str, cache: Arc<ResourceCache>) {
        self.caches.write().insert((group.to_owned(), resource.to_owned()), cache);
    }

    pub fn forget(&self, group: &str, resource: &str) {
        self.caches.write().remove(&(group.to_owned(), resource.to_owned()));
    }

    pub fn cache(&self, group: &str, resource: &str) -> Option<Arc<ResourceCache>> {
        self.caches.read().get(&(group.to_owned(), resource.to_owned())).cloned()
    }

    /// All readable resources by group and plural.
    pub fn caches(&self) -> Vec<((String, String), Arc<ResourceCache>)> {
        self.caches.read().iter().map(|(name, cache)| (name.clone(), cache.clone())).collect()
    }

    /// `None` for a damaged object, which its own reads report.
    fn parsed(&self, entry: &Entry) -> Option<Arc<Value>> {
        if let Some((revision, value)) = self.parsed.read().get(entry.key())
            && *revision == entry.mod_revision()
        {
            return Some(value.clone());
        }
        let value = Arc::new(parse(entry.value_bytes()).ok()?);
        if entry.size() > LARGEST_KEPT {
            return Some(value);
        }
        let mut parsed = self.parsed.write();
        if parsed.len() >= KEPT {
            parsed.clear();
        }
        parsed.insert(entry.key().clone(), (entry.mod_revision(), value.clone()));
        Some(value)
    }
}

impl ObjectReader for CacheReader {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let snapshot = self.cache(group, resource)?.any().ok()?;
        self.parsed(snapshot.find(namespace, name)?)
    }

    fn list(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let snapshot = self.cache(group, resource).and_then(|cache| cache.any().ok());
        let Some(snapshot) = snapshot else { return Vec::new() };
        snapshot.range(namespace, "").filter_map(|entry| self.parsed(entry)).collect()
    }

    fn caught_up<'a>(&'a self, group: &'a str, resource: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(cache) = self.cache(group, resource) {
                // A store that does not answer leaves the reader as old as it is.
                let _ = cache.consistent().await;
            }
        })
    }

    fn is_empty(&self, group: &str, resource: &str, namespace: &str) -> Option<bool> {
        let snapshot = self.cache(group, resource)?.any().ok()?;
        let empty = snapshot.range(Some(namespace), "").next().is_none();
        Some(empty)
    }

    fn version(&self, group: &str, resource: &str) -> u64 {
        self.cache(group, resource).map_or(0, |cache| cache.last_change())
    }
}

impl ChangeSource for CacheReader {
    fn changed(&self, group: &'static str, resource: &'static str, seen: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(cache) = self.cache(group, resource) else { return std::future::pending().await };
            // Watching first, so that a change in between is not missed.
            let watcher = cache.watch(WatchStart::Now, WatchScope::default(), 1);
            if cache.last_change() != seen {
                return;
            }
            if let Ok(mut watcher) = watcher {
                let _ = watcher.next(&mut Vec::new()).await;
            }
        })
    }

    fn follow<'a>(
        &'a self,
        group: &'static str,
        resource: &'static str,
        name: Option<&'static str>,
    ) -> BoxStream<'a, Vec<ObjectName>> {
        let begin = Following { reader: self, group, resource, name, watcher: None, events: Vec::new() };
        stream::unfold(begin, |mut following| async move {
            let names = following.next().await;
            Some((names, following))
        })
        .boxed()
    }
}

/// A watch that begins with what is there, and begins anew whenever it ends.
struct Following<'a> {
    reader: &'a CacheReader,
    group: &'static str,
    resource: &'static str,
    name: Option<&'static str>,
    watcher: Option<Watcher>,
    events: Vec<Arc<WatchEvent>>,
}

impl Following<'_> {
    async fn next(&mut self) -> Vec<ObjectName> {
        loop {
            let Some(watcher) = &mut self.watcher else {
                match self.begin() {
                    Some(names) => return names,
                    None => tokio::time::sleep(NOT_READY).await,
                }
                continue;
            };
            match watcher.next(&mut self.events).await {
                Ok(()) => {
                    let events = self.events.drain(..);
                    return events
                        .filter_map(|event| Some(object_name(event.current().or(event.previous())?)))
                        .collect();
                }
                // Too slow, or the cache was filled anew: what is there now says it all.
                Err(_) => self.watcher = None,
            }
        }
    }

    fn begin(&mut self) -> Option<Vec<ObjectName>> {
        let cache = self.reader.cache(self.group, self.resource)?;
        let scope = WatchScope { name: self.name.map(Into::into), ..WatchScope::default() };
        let (snapshot, watcher) = cache.list_and_watch(scope, FOLLOWED).ok()?;
        self.watcher = Some(watcher);
        let entries = snapshot.iter().filter(|entry| self.name.is_none_or(|name| name == entry.name()));
        Some(entries.map(|entry| object_name(entry)).collect())
    }
}

fn object_name(entry: &Entry) -> ObjectName {
    ObjectName { namespace: entry.namespace().into(), name: entry.name().into() }
}
