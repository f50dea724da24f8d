//! Finds the watchers an event concerns without looking at the others.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    task::Waker,
};

use super::{
    entry::SharedAttrs,
    error::WatchEnd,
    event::WatchEvent,
    watcher::{Line, WatchScope},
};

type Bucket = BTreeMap<u64, Arc<Line>>;
type Buckets = HashMap<Box<str>, Bucket>;

/// All watchers of one resource; each is in exactly one bucket, the narrowest its scope allows.
#[derive(Default)]
pub(super) struct Watchers {
    all: Bucket,
    by_namespace: Buckets,
    by_name: Buckets,
    /// By `namespace/name`.
    by_path: Buckets,
    /// By field, then by its value.
    by_field: HashMap<Box<str>, Buckets>,
    len: usize,
}

/// What dispatching one event came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dispatched {
    pub(super) touches: usize,
    pub(super) slow: usize,
}

impl Watchers {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, line: Arc<Line>) {
        let scope = &line.scope;
        let bucket = match (&scope.index, &scope.namespace, &scope.name) {
            (Some((field, value)), _, _) => {
                self.by_field.entry(field.clone()).or_default().entry(value.clone()).or_default()
            }
            (None, Some(namespace), Some(name)) => self.by_path.entry(path(namespace, name)).or_default(),
            (None, Some(namespace), None) => self.by_namespace.entry(namespace.clone()).or_default(),
            (None, None, Some(name)) => self.by_name.entry(name.clone()).or_default(),
            (None, None, None) => &mut self.all,
        };
        if bucket.insert(line.id, line).is_none() {
            self.len += 1;
        }
    }

    /// Whether it was there; one that was ended is not.
    pub(super) fn remove(&mut self, line: &Line) -> Option<Arc<Line>> {
        let WatchScope { namespace, name, index } = &line.scope;
        let removed = match (index, namespace, name) {
            (Some((field, value)), _, _) => {
                let values = self.by_field.get_mut(field)?;
                let removed = remove_from(values, value, line.id);
                if values.is_empty() {
                    self.by_field.remove(field);
                }
                removed
            }
            (None, Some(namespace), Some(name)) => remove_from(&mut self.by_path, &path(namespace, name), line.id),
            (None, Some(namespace), None) => remove_from(&mut self.by_namespace, namespace, line.id),
            (None, None, Some(name)) => remove_from(&mut self.by_name, name, line.id),
            (None, None, None) => self.all.remove(&line.id),
        };
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// Gives the event to all it concerns. Those that are full are ended and removed.
    pub(super) fn dispatch(&mut self, event: &Arc<WatchEvent>, wakers: &mut Vec<Waker>) -> Dispatched {
        let mut push = Push { event, wakers, touches: 0, slow: Vec::new() };
        if let Some(entry) = event.subject() {
            push.to(Some(&self.all));
            push.to(find(&self.by_namespace, entry.namespace()));
            push.to(find(&self.by_name, entry.name()));
            push.to(find(&self.by_path, entry.path()));
        }
        if !self.by_field.is_empty() {
            let now = event.current().map(|entry| entry.attrs());
            let before = event.previous().map(|entry| entry.attrs());
            for (field, values) in &self.by_field {
                let now = now.as_ref().map(|attrs| field_of(attrs, field));
                let before = before.as_ref().map(|attrs| field_of(attrs, field));
                push.to(now.and_then(|value| values.get(value)));
                if before != now {
                    push.to(before.and_then(|value| values.get(value)));
                }
            }
        }
        let Push { touches, slow, .. } = push;
        for line in &slow {
            self.remove(line);
        }
        Dispatched { touches, slow: slow.len() }
    }

    /// Ends and removes all.
    pub(super) fn end_all(&mut self, end: &WatchEnd, wakers: &mut Vec<Waker>) {
        let watchers = std::mem::take(self);
        let maps = [watchers.by_namespace, watchers.by_name, watchers.by_path].into_iter();
        let buckets = maps.chain(watchers.by_field.into_values()).flat_map(HashMap::into_values);
        for line in buckets.chain([watchers.all]).flat_map(BTreeMap::into_values) {
            line.end(end.clone(), wakers);
        }
    }
}

struct Push<'a> {
    event: &'a Arc<WatchEvent>,
    wakers: &'a mut Vec<Waker>,
    touches: usize,
    slow: Vec<Arc<Line>>,
}

impl Push<'_> {
    fn to(&mut self, bucket: Option<&Bucket>) {
        let (Some(bucket), Some(entry)) = (bucket, self.event.subject()) else { return };
        for line in bucket.values() {
            self.touches += 1;
            // Only an index leaves names to be judged.
            if (line.scope.index.is_none() || line.scope.names(entry)) && !line.push(self.event, self.wakers) {
                self.slow.push(Arc::clone(line));
            }
        }
    }
}

fn path(namespace: &str, name: &str) -> Box<str> {
    if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }
}

fn find<'a>(buckets: &'a Buckets, key: &str) -> Option<&'a Bucket> {
    if buckets.is_empty() { None } else { buckets.get(key) }
}

fn field_of<'a>(attrs: &'a SharedAttrs, field: &str) -> &'a str {
    attrs.field(field).unwrap_or_default()
}

fn remove_from(buckets: &mut Buckets, key: &str, id: u64) -> Option<Arc<Line>> {
    let bucket = buckets.get_mut(key)?;
    let removed = bucket.remove(&id);
    if bucket.is_empty() {
        buckets.remove(key);
    }
    removed
}
