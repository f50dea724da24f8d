//! Keeps the rows of custom resources in step with their definitions.
//!
//! One task follows the definitions and changes the row of the one that changed, nothing else. Rows are data: they
//! outlive reloads. A row whose schemas changed revives what was stored before; once nobody writes through the old row
//! any more, what is written from then on is taken as it is stored.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::RwLock;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::Shared;
use crate::{
    api::Meta,
    controllers::{
        crd::Definitions,
        feed::{Change, Feed},
    },
    object::{Value, parse, parse_without},
    registry::{
        catalog::{Catalog, Row},
        dynamic::{self, Made, Pool, Standing, definition},
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
        let mut keeper = Keeper::new(shared.clone(), rows.clone());
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
    /// Definitions with rows of earlier schemas, or whose schemas are not settled.
    unsettled: HashSet<Arc<str>>,
    schemas: Pool,
    /// How many rows were made.
    made: u64,
}

/// A row and what it was made of.
struct Kept {
    content: Content,
    standing: Standing,
    made: Made,
    row: Arc<Row>,
    /// Rows of earlier schemas that somebody may still write through.
    old: Vec<Weak<Row>>,
    /// There are none left; settled at the next look, when also what they had begun to write is written.
    drained: bool,
}

/// What a row is made of, in short: each change of a definition's spec counts its generation up.
#[derive(PartialEq)]
struct Content {
    uid: String,
    generation: i64,
    names: Value,
}

impl Content {
    fn of(crd: &Value) -> Self {
        Self {
            uid: crd.str_at(&["metadata", "uid"]).to_owned(),
            generation: Meta::of(crd).generation(),
            names: crd.at(&["status", "acceptedNames"]).cloned().unwrap_or_default(),
        }
    }
}

impl Keeper {
    fn new(shared: Arc<Shared>, rows: Arc<CustomRows>) -> Self {
        Self { shared, rows, kept: HashMap::new(), unsettled: HashSet::new(), schemas: Pool::default(), made: 0 }
    }

    async fn follow(&mut self, mut feed: Feed) {
        let mut look = interval_at(Instant::now() + SETTLE, SETTLE);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                changes = feed.next() => match changes {
                    Some(changes) => self.apply(changes),
                    None => tokio::time::sleep(RETRY).await,
                },
                _ = look.tick(), if !self.unsettled.is_empty() => self.settle().await,
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
        // Most changes are of the status alone. The spec, which is nearly all of a definition, is read when it is needed.
        let Ok(head) = parse_without(entry.value_bytes(), "spec") else { return false };
        let (content, standing) = (Content::of(&head), Standing::of(&head));
        let mut changed = false;
        let served = definition::is_served(&head);
        if self.kept.get(entry.name()).is_some_and(|kept| kept.content.uid != content.uid) || !served {
            changed = self.remove(entry.name(), catalog);
        }
        if !served {
            return changed;
        }
        let before = self.kept.get(entry.name());
        let same = before.filter(|kept| kept.content == content);
        if same.is_some_and(|kept| kept.standing == standing) {
            return changed;
        }
        self.made += 1;
        let made = match same {
            Some(kept) => Some(kept.made.with_standing(standing, self.made)),
            None => self.make(entry, before.map_or(entry.mod_revision(), |_| Revision::MAX)),
        };
        let Some(made) = made else { return changed };
        if same.is_none() && before.is_some() {
            ended.push(made.resource.prefix.clone());
        }
        self.keep(entry.name().into(), made, content, standing, catalog);
        true
    }

    /// The row of a definition as it is now. `None` where its objects would lie where built-in ones lie.
    fn make(&self, entry: &Entry, settled: Revision) -> Option<Made> {
        let crd = parse(entry.value_bytes()).ok()?;
        if definition::overlaps_built_in(&crd) {
            return None;
        }
        dynamic::make(&crd, self.made, settled, &self.schemas)
    }

    fn keep(&mut self, name: Arc<str>, made: Made, content: Content, standing: Standing, catalog: &mut Catalog) {
        let store = self.shared.store_of(made.resource.clone(), made.attributes.clone());
        let row = Arc::new(Row { resource: made.resource.clone(), store: Some(Arc::new(store)) });
        let (mut old, mut drained) = (Vec::new(), false);
        if let Some(before) = self.kept.remove(&name) {
            (old, drained) = (before.old, before.drained);
            old.push(Arc::downgrade(&before.row));
            self.unsettled.insert(name.clone());
        }
        if row.resource.versions.is_empty() {
            catalog.remove(&row.resource.group, &row.resource.plural);
        } else {
            catalog.insert(row.clone());
        }
        self.rows.rows.write().insert(name.clone(), (content.uid.clone(), row.clone()));
        self.kept.insert(name, Kept { content, standing, made, row, old, drained });
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
        let kept = &mut self.kept;
        self.unsettled.retain(|name| {
            let Some(kept) = kept.get_mut(name) else { return false };
            kept.old.retain(|row| row.strong_count() > 0);
            let schemas = &kept.made.schemas;
            match (&now, kept.old.is_empty(), kept.drained) {
                (_, false, _) => kept.drained = false,
                (Ok(now), true, true) => {
                    schemas.settle(*now);
                    kept.drained = false;
                }
                (_, true, _) => kept.drained = schemas.settled() == Revision::MAX,
            }
            !kept.old.is_empty() || kept.drained
        });
    }
}
