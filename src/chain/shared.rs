//! What outlives a generation: the store, its cache, listeners, the lifecycle, custom rows, metrics.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::reader::CacheReader;
use crate::{
    auth::authz::{AlwaysDeny, Rbac, Union},
    object::Value,
    options::completed::{EmbeddedStore, StorageBackend},
    registry::{builtin::core::service::NodePorts, catalog::Catalog, resource::Resource, store::Store},
    server::{generic::Rows, lifecycle::Lifecycle, rights::Rights, stack::Stack},
    storage::{
        Storage,
        cache::{Attributes, Cache, CacheOptions, ResourceCache},
        embedded::{Embedded, EmbeddedOptions},
    },
    telemetry::{Metrics, metrics},
};

/// Why the process cannot start.
#[derive(Debug)]
pub struct StartError(pub String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for StartError {}

pub struct Shared {
    pub embedded: Arc<Embedded>,
    pub storage: Arc<dyn Storage>,
    pub cache: Arc<Cache>,
    pub reader: Arc<CacheReader>,
    pub lifecycle: Arc<Lifecycle>,
    pub rights: Arc<Rights>,
    /// What roles and bindings say; keeps what it has read.
    pub rbac: Arc<Rbac>,
    pub metrics: &'static Metrics,
    /// When the process began.
    pub started: std::time::SystemTime,
    /// Which node ports Services have.
    pub node_ports: Arc<NodePorts>,
    /// Rows of custom resources: data, not configuration.
    pub custom: Rows,
    pub hooks: Arc<crate::server::hooks::Hooks>,
    /// What `/kenter/config` shows; written by the reloader.
    pub config_report: Arc<ArcSwap<Value>>,
    /// Chains that served or serve, as long as somebody holds them.
    generations: Mutex<Vec<Weak<Stack>>>,
}

impl Shared {
    /// Opens the store and begins to fill the cache.
    ///
    /// # Errors
    /// A store that cannot be opened, with its own words.
    pub fn open(storage: &crate::options::completed::Storage) -> Result<Arc<Self>, StartError> {
        let embedded = match &storage.backend {
            StorageBackend::Embedded(store) => Embedded::open(embedded_options(store, storage.compaction_interval)),
        }
        .map_err(|error| StartError(error.to_string()))?;
        let backend: Arc<dyn Storage> = embedded.clone();
        let cache =
            Cache::start(backend.clone(), CacheOptions::default()).map_err(|error| StartError(error.to_string()))?;
        let nobody: Arc<dyn crate::auth::authz::Authorizer> = Arc::new(AlwaysDeny);
        let reader = Arc::<CacheReader>::default();
        Ok(Arc::new(Self {
            embedded,
            storage: backend,
            cache,
            rbac: Arc::new(Rbac::new(reader.clone())),
            reader,
            lifecycle: Arc::default(),
            rights: Arc::new(Rights::new(Arc::new(Union::new(vec![("AlwaysDeny".to_owned(), nobody)])))),
            metrics: metrics(),
            started: std::time::SystemTime::now(),
            node_ports: Arc::default(),
            custom: Arc::new(ArcSwap::from_pointee(Catalog::default())),
            hooks: Arc::default(),
            config_report: Arc::new(ArcSwap::from_pointee(Value::Null)),
            generations: Mutex::default(),
        }))
    }

    /// Remembers a chain that begins to serve, to be counted.
    pub fn note_generation(&self, stack: &Arc<Stack>) {
        let mut generations = self.generations.lock();
        generations.retain(|known| known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(stack)));
        generations.push(Arc::downgrade(stack));
    }

    /// How many chains are in memory.
    pub fn generations_alive(&self) -> usize {
        self.generations.lock().iter().filter(|stack| stack.strong_count() > 0).count()
    }

    /// The store of a row over the shared cache; also makes the row's objects readable by name.
    pub fn store_of(&self, resource: Arc<Resource>, attributes: Arc<dyn Attributes>) -> Store {
        let cache: Arc<ResourceCache> = self.cache.resource(&resource.prefix, attributes);
        self.reader.register(&resource.group, &resource.plural, cache.clone());
        Store::new(resource, cache, self.storage.clone())
    }
}

fn embedded_options(store: &EmbeddedStore, retention: std::time::Duration) -> EmbeddedOptions {
    let mut options = EmbeddedOptions::new(&store.path);
    options.reserve_bytes = store.reserve;
    options.retention = retention;
    options.on_commit = |rows, took| {
        metrics().storage_commit_writes.observe(rows as f64);
        metrics().storage_commit_seconds.observe(took.as_secs_f64());
    };
    options
}
