//! The whole cache over a storage in memory.

mod durable;
mod feed;
mod model;
mod reads;
mod watches;

use std::{sync::Arc, time::Duration};

use super::{memory::Memory, *};

const PODS: &str = "/registry/pods/";

/// Reads the label `app` and the field `spec.nodeName` from texts made by [`pod`].
struct PodAttributes;

impl Attributes for PodAttributes {
    fn attributes(&self, value: &[u8]) -> Attrs {
        let text = std::str::from_utf8(value).unwrap_or_default();
        let part = |name: &str| text.split_once(name).and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default();
        Attrs::new([("app", part(r#""app":""#))], [("spec.nodeName", part(r#""nodeName":""#))])
    }
}

fn pod(name: &str, node: &str, text: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"{text}"}}}},"spec":{{"nodeName":"{node}"}}}}"#
    )
}

struct Setup {
    memory: Arc<Memory>,
    cache: Arc<Cache>,
    pods: Arc<ResourceCache>,
}

async fn setup_with(options: CacheOptions) -> Setup {
    let memory = Arc::new(Memory::default());
    let cache = Cache::start(memory.clone(), options).expect("a thread");
    let pods = cache.resource(PODS, Arc::new(PodAttributes));
    cache.ready().await;
    Setup { memory, cache, pods }
}

async fn setup() -> Setup {
    setup_with(CacheOptions::default()).await
}

impl Setup {
    fn put(&self, path: &str, node: &str, text: &str) -> Revision {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.memory.put(&format!("{PODS}{path}"), &pod(name, node, text))
    }

    fn delete(&self, path: &str) -> Revision {
        self.memory.delete(&format!("{PODS}{path}"))
    }

    async fn reach(&self, revision: Revision) {
        self.pods.not_older_than(revision).await.expect("comes");
    }
}

fn everything() -> WatchScope {
    WatchScope::default()
}

fn in_namespace(namespace: &str) -> WatchScope {
    WatchScope { namespace: Some(namespace.into()), ..WatchScope::default() }
}

fn on_node(node: &str) -> WatchScope {
    WatchScope { index: Some(("spec.nodeName".into(), node.into())), ..WatchScope::default() }
}

/// `KIND path @revision` of what comes until `revision` has been passed.
async fn seen_until(watcher: &mut Watcher, revision: Revision) -> Vec<String> {
    let mut seen = Vec::new();
    let mut events = Vec::new();
    while watcher.progress() < revision {
        let next = tokio::time::timeout(Duration::from_millis(50), watcher.next(&mut events)).await;
        if let Ok(next) = next {
            next.expect("not ended");
        }
        seen.extend(events.drain(..).map(|event| line(&event)));
    }
    seen
}

fn line(event: &WatchEvent) -> String {
    let path = event.subject().map(|entry| entry.path()).unwrap_or_default();
    format!("{} {path} @{}", event.kind().name(), event.revision())
}

fn paths(snapshot: &Snapshot) -> Vec<String> {
    snapshot.iter().map(|entry| entry.path().to_owned()).collect()
}

/// Polls until the condition holds; a test that waits for ever is ended by its runner.
async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
