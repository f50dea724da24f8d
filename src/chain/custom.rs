//! Keeps the rows of custom resources in step with their definitions.
//!
//! One task follows the definitions and changes the row of the one that changed, nothing else. Rows are data: they
//! outlive reloads. A row whose schemas changed revives what was stored before; once nobody writes through the old row
//! any more, what is written from then on is taken as it is stored.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::RwLock;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::Shared;
use crate::{
    controllers::{
        crd::Definitions,
        feed::{Change, Feed},
    },
    object::{Value, parse, to_vec},
    registry::{
        catalog::{Catalog, Row},
        dynamic::{self, Schemas, definition},
        store::Store,
    },
    storage::{
        Revision,
        cache::{Entry, NoAttributes},
    },
};

/// Where definitions are stored.
const PREFIX: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
/// How often it is looked whether old rows have come to their end.
const SETTLE: Duration = Duration::from_secs(1);
/// How long to wait before definitions that cannot be read are tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Rows of definitions by their names, served or not.
#[derive(Default)]
pub struct CustomRows {
    rows: RwLock<HashMap<Arc<str>, (String, Arc<Row>)>>,
    /// Everything the definitions said up to this revision is served.
    applied: watch::Sender<Revision>,
}

impl CustomRows {
    /// Makes the rows of the definitions there are, then follows them for as long as the process lives. The cache has to
    /// be filled.
    pub fn start(shared: &Arc<Shared>) -> Arc<Self> {
        let rows = Arc::new(Self::default());
        let cache = definitions(shared);
        let mut keeper = Keeper { shared: shared.clone(), rows: rows.clone(), kept: HashMap::new(), made: 0 };
        let mut feed = Feed::new(cache);
        keeper.apply(feed.begin().unwrap_or_default());
        tokio::spawn(async move { keeper.follow(feed).await });
        rows
    }
}

/// The cache of the definitions. It is there also where no generation serves them.
pub fn definitions(shared: &Shared) -> Arc<crate::storage::cache::ResourceCache> {
    let known = shared.reader.cache(definition::GROUP, definition::RESOURCE);
    known.unwrap_or_else(|| shared.cache.resource(PREFIX, Arc::new(NoAttributes)))
}

impl Definitions for CustomRows {
    fn store(&self, name: &str, uid: &str) -> Option<Arc<Store>> {
        let rows = self.rows.read();
        let (_, row) = rows.get(name).filter(|(of, _)| of == uid)?;
        row.store.clone()
    }

    fn served(&self) -> watch::Receiver<Revision> {
        self.applied.subscribe()
    }
}

struct Keeper {
    shared: Arc<Shared>,
    rows: Arc<CustomRows>,
    kept: HashMap<Arc<str>, Kept>,
    /// How many rows were made.
    made: u64,
}

/// A row and what it was made of.
struct Kept {
    uid: String,
    content: [u8; 32],
    terminating: bool,
    row: Arc<Row>,
    schemas: Arc<Schemas>,
    /// Rows of earlier schemas that somebody may still write through.
    old: Vec<Weak<Row>>,
    /// There are none left; settled at the next look, when also what they had begun to write is written.
    drained: bool,
}

impl Keeper {
    async fn follow(&mut self, mut feed: Feed) {
        let mut look = interval_at(Instant::now() + SETTLE, SETTLE);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                changes = feed.next() => match changes {
                    Some(changes) => self.apply(changes),
                    None => tokio::time::sleep(RETRY).await,
                },
                _ = look.tick(), if self.kept.values().any(|kept| !kept.old.is_empty() || kept.drained) => self.settle().await,
            }
        }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        let mut catalog = Catalog::clone(&self.shared.custom.load());
        let (mut changed, mut newest) = (false, 0);
        let mut ended = Vec::new();
        for change in changes {
            match change {
                Change::Put(entry) => {
                    newest = newest.max(entry.mod_revision());
                    changed |= self.put(&entry, &mut catalog, &mut ended);
                }
                Change::Gone(key) => changed |= self.remove(key.rsplit('/').next().unwrap_or(""), &mut catalog),
            }
        }
        if changed {
            self.shared.custom.store(Arc::new(catalog));
        }
        // Whoever comes again meets the new row.
        ended.iter().for_each(|prefix| self.shared.cache.end_watches(prefix));
        self.rows.applied.send_modify(|applied| *applied = newest.max(*applied));
    }

    /// Brings the row of a definition up to date; whether it changed. `ended` takes prefixes whose watches have to end.
    fn put(&mut self, entry: &Entry, catalog: &mut Catalog, ended: &mut Vec<Arc<str>>) -> bool {
        let Ok(crd) = parse(entry.value_bytes()) else { return false };
        let uid = crd.str_at(&["metadata", "uid"]);
        let content = content(&crd);
        let terminating = definition::is_terminating(&crd);
        let mut changed = false;
        if self.kept.get(entry.name()).is_some_and(|kept| kept.uid != uid) || !is_served(&crd) {
            changed = self.remove(entry.name(), catalog);
        }
        if !is_served(&crd) {
            return changed;
        }
        let before = self.kept.get(entry.name());
        let same = before.is_some_and(|kept| kept.content == content);
        if before.is_some_and(|kept| same && kept.terminating == terminating) {
            return changed;
        }
        let settled = match before {
            None => entry.mod_revision(),
            Some(kept) if same => kept.schemas.settled(),
            Some(_) => Revision::MAX,
        };
        self.made += 1;
        let Some(made) = dynamic::make(&crd, self.made, settled) else { return changed };
        let prefix = made.resource.prefix.clone();
        let store = self.shared.store_of(made.resource.clone(), made.attributes);
        let row = Arc::new(Row { resource: made.resource, store: Some(Arc::new(store)) });
        let (mut old, mut drained) = (Vec::new(), false);
        if let Some(before) = self.kept.remove(entry.name()) {
            (old, drained) = (before.old, before.drained);
            if !same {
                old.push(Arc::downgrade(&before.row));
                ended.push(prefix);
            }
        }
        if row.resource.versions.is_empty() {
            catalog.remove(&row.resource.group, &row.resource.plural);
        } else {
            catalog.insert(row.clone());
        }
        let name: Arc<str> = entry.name().into();
        self.rows.rows.write().insert(name.clone(), (uid.to_owned(), row.clone()));
        let kept = Kept { uid: uid.to_owned(), content, terminating, row, schemas: made.schemas, old, drained };
        self.kept.insert(name, kept);
        true
    }

    /// Takes the row of a definition away; whether there was one.
    fn remove(&mut self, name: &str, catalog: &mut Catalog) -> bool {
        let Some(kept) = self.kept.remove(name) else { return false };
        let resource = &kept.row.resource;
        catalog.remove(&resource.group, &resource.plural);
        self.rows.rows.write().remove(name);
        self.shared.reader.forget(&resource.group, &resource.plural);
        self.shared.cache.drop_resource(&resource.prefix);
        true
    }

    /// Where nobody writes through an old row any more, everything from now on is written through the new one.
    async fn settle(&mut self) {
        let now = self.shared.storage.current_revision().await;
        for kept in self.kept.values_mut() {
            kept.old.retain(|row| row.strong_count() > 0);
            match (&now, kept.old.is_empty(), kept.drained) {
                (_, false, _) => kept.drained = false,
                (Ok(now), true, true) => {
                    kept.schemas.settle(*now);
                    kept.drained = false;
                }
                (_, true, _) => kept.drained = kept.schemas.settled() == Revision::MAX,
            }
        }
    }
}

/// Whether a definition has a row. One whose objects would lie where built-in ones lie has none.
fn is_served(crd: &Value) -> bool {
    definition::is_served(crd) && !definition::overlaps_built_in(crd)
}

/// What a row is made of, in short.
fn content(crd: &Value) -> [u8; 32] {
    let parts = [crd.get("spec"), crd.at(&["status", "acceptedNames"])];
    let bytes: Vec<u8> = parts.into_iter().flatten().flat_map(to_vec).collect();
    digest(&SHA256, &bytes).as_ref().try_into().unwrap_or_default()
}
