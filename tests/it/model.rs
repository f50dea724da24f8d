//! Random operations against the daemon and a plain model of what it must answer: optimistic locking holds, versions only
//! grow, a watch gives every later change once and in order, and a list is what a watch replays to.
//!
//! `KENTER_PROPERTY_SECONDS` says how long each test goes on (10 unless it is set). A failure is shrunk and tells its seed;
//! `KENTER_PROPERTY_SEED` plays it again.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kenter::{json, object::Value};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};

use crate::support::{Answer, Client, Daemon, Setup, Watch};

const FINALIZER: &str = "example.com/hold";

pub fn seconds() -> Duration {
    let given = std::env::var("KENTER_PROPERTY_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(10))
}

pub fn seed() -> u64 {
    let given = std::env::var("KENTER_PROPERTY_SEED").ok().and_then(|text| text.parse().ok());
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    given.unwrap_or_else(|| now().as_nanos() as u64 >> 10)
}

/// Without controllers nobody else writes.
async fn start() -> Daemon {
    Setup::new().flags(&["--controllers="]).start().await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ConfigMap,
    /// Has a generation.
    Deployment,
}

impl Kind {
    fn path(self, namespace: &str) -> String {
        match self {
            Self::ConfigMap => format!("/api/v1/namespaces/{namespace}/configmaps"),
            Self::Deployment => format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
        }
    }

    fn body(self, name: &str, label: &str, value: i64) -> Value {
        let metadata = json!({ "name": name, "labels": { "l": label } });
        match self {
            Self::ConfigMap => {
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "v": (value.to_string()) } })
            }
            Self::Deployment => json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
                "replicas": value,
                "selector": { "matchLabels": { "app": "x" } },
                "template": {
                    "metadata": { "labels": { "app": "x" } },
                    "spec": { "containers": [{ "name": "c", "image": "i" }] }
                }
            } }),
        }
    }

    fn set(self, object: &mut Value, label: &str, value: i64) {
        object.set(&["metadata", "labels", "l"], label);
        match self {
            Self::ConfigMap => object.set(&["data", "v"], value.to_string()),
            Self::Deployment => object.set(&["spec", "replicas"], value),
        }
    }

    fn value(self, object: &Value) -> i64 {
        match self {
            Self::ConfigMap => object.str_at(&["data", "v"]).parse().unwrap_or(-1),
            Self::Deployment => object.i64_at(&["spec", "replicas"]).unwrap_or(-1),
        }
    }
}

/// Which version a write says that it has seen.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Nothing,
    Newest,
    /// The one before the newest.
    Older,
}

#[derive(Clone, Copy, Debug)]
enum Only {
    All,
    Label(&'static str),
    Name(usize),
}

impl Only {
    fn query(self) -> String {
        match self {
            Self::All => String::new(),
            Self::Label(label) => format!("&labelSelector=l%3D{label}"),
            Self::Name(at) => format!("&fieldSelector=metadata.name%3D{}", name(at)),
        }
    }

    fn matches(self, object: &Object) -> bool {
        match self {
            Self::All => true,
            Self::Label(label) => object.label == label,
            Self::Name(at) => object.name == name(at),
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Create(usize, &'static str, i64),
    Update(usize, &'static str, i64, Seen),
    Patch(usize, &'static str, i64, Seen),
    JsonPatch(usize, i64, bool),
    Apply(usize, &'static str, i64, &'static str, bool),
    Hold(usize, bool),
    /// With a precondition: of the version or the uid, right or wrong.
    Delete(usize, Option<(bool, bool)>),
    DeleteCollection(Only),
    List(Only, usize),
    /// A list as it was at some time.
    ListThen(usize),
    /// A watch from some list on, or with everything there is first.
    Watch(Only, Option<usize>),
}

const OBJECTS: usize = 5;

fn name(at: usize) -> String {
    format!("o{at}")
}

fn operations() -> impl Strategy<Value = (bool, Vec<Operation>)> {
    let (at, value) = (0..OBJECTS, 0..4i64);
    let label = prop::sample::select(vec!["a", "b"]);
    let seen = prop::sample::select(vec![Seen::Nothing, Seen::Newest, Seen::Newest, Seen::Older]);
    let only = prop_oneof![Just(Only::All), label.clone().prop_map(Only::Label), at.clone().prop_map(Only::Name),];
    let precondition = prop::option::of((any::<bool>(), any::<bool>()));
    let manager = prop::sample::select(vec!["one", "two"]);
    let operation = prop_oneof![
        4 => (at.clone(), label.clone(), value.clone()).prop_map(|(at, l, v)| Operation::Create(at, l, v)),
        3 => (at.clone(), label.clone(), value.clone(), seen.clone()).prop_map(|(at, l, v, s)| Operation::Update(at, l, v, s)),
        3 => (at.clone(), label.clone(), value.clone(), seen).prop_map(|(at, l, v, s)| Operation::Patch(at, l, v, s)),
        1 => (at.clone(), value.clone(), any::<bool>()).prop_map(|(at, v, t)| Operation::JsonPatch(at, v, t)),
        3 => (at.clone(), label, value, manager, any::<bool>()).prop_map(|(at, l, v, m, f)| Operation::Apply(at, l, v, m, f)),
        2 => (at.clone(), any::<bool>()).prop_map(|(at, on)| Operation::Hold(at, on)),
        3 => (at, precondition).prop_map(|(at, p)| Operation::Delete(at, p)),
        1 => only.clone().prop_map(Operation::DeleteCollection),
        2 => (only.clone(), 0..4usize).prop_map(|(only, limit)| Operation::List(only, limit)),
        1 => any::<usize>().prop_map(Operation::ListThen),
        2 => (only, prop::option::of(any::<usize>())).prop_map(|(only, from)| Operation::Watch(only, from)),
    ];
    (any::<bool>(), prop::collection::vec(operation, 1..60))
}

/// An object as the model knows it.
#[derive(Clone, Debug, PartialEq)]
struct Object {
    name: String,
    uid: String,
    version: u64,
    generation: i64,
    label: String,
    value: i64,
    held: bool,
    deleting: bool,
}

impl Object {
    fn of(kind: Kind, object: &Value) -> Result<Self, String> {
        let version = object.str_at(&["metadata", "resourceVersion"]);
        Ok(Self {
            name: object.str_at(&["metadata", "name"]).into(),
            uid: object.str_at(&["metadata", "uid"]).into(),
            version: version.parse().map_err(|_| format!("no version: {version:?}"))?,
            generation: object.i64_at(&["metadata", "generation"]).unwrap_or(0),
            label: object.str_at(&["metadata", "labels", "l"]).into(),
            value: kind.value(object),
            held: !object.array_at(&["metadata", "finalizers"]).is_empty(),
            deleting: !object.str_at(&["metadata", "deletionTimestamp"]).is_empty(),
        })
    }
}

type State = BTreeMap<String, Object>;

/// What happened to one object; a version that nobody was told is none.
#[derive(Clone, Debug)]
struct Change {
    old: Option<Object>,
    new: Option<Object>,
}

/// A list that was seen: its version, how much had happened then, and what there was.
struct Checkpoint {
    version: u64,
    at: usize,
    state: State,
}

/// A watch that runs, and what it has to show.
struct Running {
    watch: Watch,
    only: Only,
    /// It shows what happened from here on.
    from: usize,
    /// What it shows before that.
    initial: Option<State>,
}

struct Player<'a> {
    client: &'a Client,
    kind: Kind,
    path: String,
    /// Each object as it was last seen, and as it was seen before.
    trees: BTreeMap<String, (Value, Option<Value>)>,
    state: State,
    /// Changes in their order; those of one deletion of a collection come in any order.
    history: Vec<Vec<Change>>,
    checkpoints: Vec<Checkpoint>,
    watches: Vec<Running>,
    newest: u64,
}

type Played<T = ()> = Result<T, String>;

fn wanted(answer: &Answer, statuses: &[u16]) -> Played {
    match statuses.contains(&answer.status) {
        true => Ok(()),
        false => Err(format!("answered {}, not {statuses:?}: {}", answer.status, answer.text())),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Played {
    if got == expected { Ok(()) } else { Err(format!("{what} is {got:?}, not {expected:?}")) }
}

impl Player<'_> {
    async fn play(&mut self, operation: &Operation) -> Played {
        match operation {
            Operation::Create(at, label, value) => self.create(&name(*at), label, *value).await,
            Operation::Update(at, label, value, seen) => self.update(&name(*at), label, *value, *seen).await,
            Operation::Patch(at, label, value, seen) => self.patch(&name(*at), label, *value, *seen).await,
            Operation::JsonPatch(at, value, right) => self.json_patch(&name(*at), *value, *right).await,
            Operation::Apply(at, label, value, manager, force) => {
                self.apply(&name(*at), label, *value, manager, *force).await
            }
            Operation::Hold(at, on) => self.hold(&name(*at), *on).await,
            Operation::Delete(at, precondition) => self.delete(&name(*at), *precondition).await,
            Operation::DeleteCollection(only) => self.delete_collection(*only).await,
            Operation::List(only, limit) => self.list(*only, *limit).await,
            Operation::ListThen(which) => self.list_then(*which).await,
            Operation::Watch(only, from) => self.watch(*only, *from).await,
        }
    }

    async fn call(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Played<Answer> {
        self.client.call(method, path, kind, body).await.ok_or_else(|| "no answer".to_owned())
    }

    /// Takes down what an answer says that an object is now, where it differs from before.
    fn settle(&mut self, tree: Value, expected: impl FnOnce(Option<&Object>, &mut Object)) -> Played {
        let new = Object::of(self.kind, &tree)?;
        let old = self.state.get(&new.name).cloned();
        // What is expected is what is there with the operation's changes made to it.
        let mut wished = old.clone().unwrap_or_else(|| new.clone());
        expected(old.as_ref(), &mut wished);
        wished.version = new.version;
        let changed = old.as_ref().is_none_or(|old| old.version != new.version);
        if let Some(old) = &old {
            let different = Object { version: 0, ..old.clone() } != Object { version: 0, ..new.clone() };
            if different && !changed {
                return Err(format!("changed without a new version: {old:?} to {new:?}"));
            }
        }
        if self.kind == Kind::Deployment {
            let marked = |object: &Object| object.deleting;
            let bumps = old
                .as_ref()
                .map_or(1, |old| i64::from(old.value != new.value) + i64::from(!marked(old) && marked(&new)));
            wished.generation = old.as_ref().map_or(0, |old| old.generation) + bumps;
        }
        same("the object", &new, &wished)?;
        if changed {
            if new.version <= self.newest {
                return Err(format!("version {} after {}", new.version, self.newest));
            }
            self.newest = new.version;
            let gone = new.deleting && !new.held;
            let change = Change { old, new: (!gone).then(|| new.clone()) };
            self.history.push(vec![change]);
            let before = self.trees.remove(&new.name).map(|(tree, _)| tree);
            if gone {
                self.state.remove(&new.name);
            } else {
                self.trees.insert(new.name.clone(), (tree, before));
                self.state.insert(new.name.clone(), new);
            }
        }
        Ok(())
    }

    async fn create(&mut self, name: &str, label: &str, value: i64) -> Played {
        let answer =
            self.call("POST", &self.path, "application/json", Some(&self.kind.body(name, label, value))).await?;
        if self.state.contains_key(name) {
            return wanted(&answer, &[409]);
        }
        wanted(&answer, &[201])?;
        let tree = answer.json();
        let uid = tree.str_at(&["metadata", "uid"]).to_owned();
        if uid.is_empty()
            || self.history.iter().flatten().any(|change| change.old.as_ref().is_some_and(|it| it.uid == uid))
        {
            return Err(format!("uid {uid:?} is not a new one"));
        }
        self.settle(tree, |_, new| {
            (new.label, new.value) = (label.into(), value);
            (new.held, new.deleting) = (false, false);
        })
    }

    /// The tree to write, the newest or an older one; whether that is really older.
    fn seen(&self, name: &str, seen: Seen) -> Option<(Value, bool)> {
        let (newest, older) = self.trees.get(name)?;
        Some(match (seen, older) {
            (Seen::Older, Some(older)) => (older.clone(), true),
            _ => (newest.clone(), false),
        })
    }

    async fn update(&mut self, name: &str, label: &str, value: i64, seen: Seen) -> Played {
        let path = format!("{}/{name}", self.path);
        let Some((mut tree, older)) = self.seen(name, seen) else {
            let answer = self.call("PUT", &path, "application/json", Some(&self.kind.body(name, label, value))).await?;
            return wanted(&answer, &[404]);
        };
        self.kind.set(&mut tree, label, value);
        if matches!(seen, Seen::Nothing) {
            tree.remove_at(&["metadata", "resourceVersion"]);
        }
        let answer = self.call("PUT", &path, "application/json", Some(&tree)).await?;
        if older {
            return wanted(&answer, &[409]);
        }
        wanted(&answer, &[200])?;
        self.written(answer, label, value)
    }

    /// After a write by which nothing else changes.
    fn written(&mut self, answer: Answer, label: &str, value: i64) -> Played {
        let tree = answer.json();
        let new = Object::of(self.kind, &tree)?;
        if let Some(old) = self.state.get(&new.name)
            && (old.label.as_str(), old.value) == (label, value)
        {
            same("the version after nothing changed", new.version, old.version)?;
        }
        self.settle(tree, |_, new| (new.label, new.value) = (label.into(), value))
    }

    async fn patch(&mut self, name: &str, label: &str, value: i64, seen: Seen) -> Played {
        let mut patch = json!({});
        self.kind.set(&mut patch, label, value);
        let tree = self.seen(name, seen);
        if let (Some((tree, _)), Seen::Newest | Seen::Older) = (&tree, seen) {
            patch.set(&["metadata", "resourceVersion"], tree.str_at(&["metadata", "resourceVersion"]));
        }
        let path = format!("{}/{name}", self.path);
        let answer = self.call("PATCH", &path, "application/merge-patch+json", Some(&patch)).await?;
        match tree {
            None => wanted(&answer, &[404]),
            Some((_, true)) => wanted(&answer, &[409]),
            Some(_) => {
                wanted(&answer, &[200])?;
                self.written(answer, label, value)
            }
        }
    }

    /// A patch with a test that holds or does not.
    async fn json_patch(&mut self, name: &str, value: i64, right: bool) -> Played {
        let label = self.state.get(name).map_or("a", |object| &object.label).to_owned();
        let tested = if right { label.as_str() } else { "other" };
        let place = if self.kind == Kind::ConfigMap { "/data/v" } else { "/spec/replicas" };
        let value_there = if self.kind == Kind::ConfigMap { Value::from(value.to_string()) } else { value.into() };
        let patch = json!([
            { "op": "test", "path": "/metadata/labels/l", "value": tested },
            { "op": "replace", "path": place, "value": value_there }
        ]);
        let path = format!("{}/{name}", self.path);
        let answer = self.call("PATCH", &path, "application/json-patch+json", Some(&patch)).await?;
        match self.state.contains_key(name) {
            false => wanted(&answer, &[404]),
            true if !right => wanted(&answer, &[422]),
            true => {
                wanted(&answer, &[200])?;
                self.written(answer, &label, value)
            }
        }
    }

    async fn apply(&mut self, name: &str, label: &str, value: i64, manager: &str, force: bool) -> Played {
        let path = format!("{}/{name}?fieldManager={manager}&force={force}", self.path);
        let body = self.kind.body(name, label, value);
        let answer = self.call("PATCH", &path, "application/apply-patch+yaml", Some(&body)).await?;
        let known = self.state.get(name);
        match known {
            None => wanted(&answer, &[201])?,
            Some(_) if force => wanted(&answer, &[200])?,
            // A conflict needs something that differs.
            Some(old) if answer.status == 409 => {
                return match (old.label.as_str(), old.value) == (label, value) {
                    true => Err(format!("a conflict about nothing: {}", answer.text())),
                    false => Ok(()),
                };
            }
            Some(_) => wanted(&answer, &[200])?,
        }
        // Owners may change where the object does not.
        self.settle(answer.json(), |old, new| {
            (new.label, new.value) = (label.into(), value);
            if old.is_none() {
                (new.held, new.deleting) = (false, false);
            }
        })
    }

    async fn hold(&mut self, name: &str, on: bool) -> Played {
        let finalizers = if on { json!([FINALIZER]) } else { Value::Null };
        let mut patch = json!({});
        patch.set(&["metadata", "finalizers"], finalizers);
        let path = format!("{}/{name}", self.path);
        let answer = self.call("PATCH", &path, "application/merge-patch+json", Some(&patch)).await?;
        let Some(old) = self.state.get(name).cloned() else { return wanted(&answer, &[404]) };
        wanted(&answer, &[200])?;
        let tree = answer.json();
        if old.deleting && !on {
            // That was what it waited for; nobody is told the version at which it went.
            let change = Change { old: Some(old), new: None };
            self.history.push(vec![change]);
            self.state.remove(name);
            self.trees.remove(name);
            return Ok(());
        }
        if old.held == on {
            same("the version after nothing changed", Object::of(self.kind, &tree)?.version, old.version)?;
        }
        self.settle(tree, |_, new| new.held = on)
    }

    async fn delete(&mut self, name: &str, precondition: Option<(bool, bool)>) -> Played {
        let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
        let known = self.state.get(name).cloned();
        let (mut version, mut uid) = ("1".to_owned(), "11111111-1111-1111-1111-111111111111".to_owned());
        let right = precondition.is_none_or(|(_, right)| right);
        if right && let Some(object) = &known {
            (version, uid) = (object.version.to_string(), object.uid.clone());
        }
        match precondition {
            Some((true, _)) => options.set(&["preconditions", "resourceVersion"], version),
            Some((false, _)) => options.set(&["preconditions", "uid"], uid),
            None => {}
        }
        let path = format!("{}/{name}", self.path);
        let answer = self.call("DELETE", &path, "application/json", Some(&options)).await?;
        let Some(old) = known else { return wanted(&answer, &[404]) };
        if !right {
            return wanted(&answer, &[409]);
        }
        wanted(&answer, &[200])?;
        if !old.held {
            self.history.push(vec![Change { old: Some(old), new: None }]);
            self.state.remove(name);
            self.trees.remove(name);
            return Ok(());
        }
        self.settle(answer.json(), |_, new| new.deleting = true)
    }

    async fn delete_collection(&mut self, only: Only) -> Played {
        let path = format!("{}?{}", self.path, only.query());
        let answer = self.call("DELETE", &path, "", None).await?;
        wanted(&answer, &[200])?;
        let chosen: Vec<Object> = self.state.values().filter(|object| only.matches(object)).cloned().collect();
        let mut group = Vec::new();
        for old in chosen {
            if !old.held {
                self.state.remove(&old.name);
                self.trees.remove(&old.name);
                group.push(Change { old: Some(old), new: None });
                continue;
            }
            let answer = self.call("GET", &format!("{}/{}", self.path, old.name), "", None).await?;
            wanted(&answer, &[200])?;
            let (tree, before) = (answer.json(), self.history.len());
            self.settle(tree, |_, new| new.deleting = true)?;
            // It is one of the group.
            group.extend(self.history.drain(before..).flatten());
            // Versions within a group grow in any order.
            self.newest = self.newest.saturating_sub(1).max(old.version);
        }
        self.newest = group
            .iter()
            .filter_map(|change| change.new.as_ref())
            .map(|it| it.version)
            .chain([self.newest])
            .max()
            .unwrap_or(0);
        if !group.is_empty() {
            self.history.push(group);
        }
        Ok(())
    }

    /// All pages of a list.
    async fn pages(&self, query: &str, limit: usize) -> Played<(u64, State)> {
        let (mut version, mut state, mut token) = (None, State::new(), String::new());
        loop {
            let page = if limit > 0 { format!("&limit={limit}") } else { String::new() };
            let more = if token.is_empty() { query.to_owned() } else { format!("&continue={token}") };
            let answer = self.call("GET", &format!("{}?{page}{more}", self.path), "", None).await?;
            wanted(&answer, &[200])?;
            let list = answer.json();
            let own =
                list.str_at(&["metadata", "resourceVersion"]).parse::<u64>().map_err(|error| error.to_string())?;
            same("a page's version", own, *version.get_or_insert(own))?;
            let items = list.array_at(&["items"]);
            if limit > 0 && items.len() > limit {
                return Err(format!("{} items of {limit}", items.len()));
            }
            for item in items {
                let object = Object::of(self.kind, item)?;
                if state.last_key_value().is_some_and(|(last, _)| *last >= object.name) {
                    return Err(format!("{} comes after {:?}", object.name, state.keys()));
                }
                state.insert(object.name.clone(), object);
            }
            token = list.str_at(&["metadata", "continue"]).to_owned();
            if token.is_empty() {
                return Ok((own, state));
            }
            // The selector goes with the token.
            if let Some(selector) = query.split('&').find(|part| part.contains("Selector")) {
                token = format!("{token}&{selector}");
            }
        }
    }

    async fn list(&mut self, only: Only, limit: usize) -> Played {
        let (version, state) = self.pages(&only.query(), limit).await?;
        let expected: State =
            self.state.iter().filter(|(_, it)| only.matches(it)).map(|(name, it)| (name.clone(), it.clone())).collect();
        same("the list", &state, &expected)?;
        if version < self.newest {
            return Err(format!("the list is of {version}, the newest write of {}", self.newest));
        }
        self.newest = version;
        self.checkpoints.push(Checkpoint { version, at: self.history.len(), state: self.state.clone() });
        Ok(())
    }

    async fn list_then(&mut self, which: usize) -> Played {
        if self.checkpoints.is_empty() {
            return Ok(());
        }
        let Checkpoint { version, state, .. } = &self.checkpoints[which % self.checkpoints.len()];
        let query = format!("&resourceVersion={version}&resourceVersionMatch=Exact");
        let (own, found) = self.pages(&query, 0).await?;
        same("the version of an exact list", own, *version)?;
        same("the list as it was", &found, state)
    }

    async fn watch(&mut self, only: Only, from: Option<usize>) -> Played {
        let checkpoint = from.and_then(|at| self.checkpoints.get(at.checked_rem(self.checkpoints.len())?));
        let (query, from, initial) = match checkpoint {
            Some(checkpoint) => (format!("&resourceVersion={}", checkpoint.version), checkpoint.at, None),
            None => {
                let query = "&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
                let there = self.state.iter().filter(|(_, object)| only.matches(object));
                let there = there.map(|(name, object)| (name.clone(), object.clone())).collect();
                (query.to_owned(), self.history.len(), Some(there))
            }
        };
        let watch = self.client.watch(&format!("{}?watch=1{query}{}", self.path, only.query())).await;
        self.watches.push(Running { watch, only, from, initial });
        Ok(())
    }

    /// Reads all watches up to the last change; two objects are made so that each has something at the end.
    async fn finish(mut self) -> Played {
        self.create("end-a", "a", 0).await?;
        self.create("end-b", "b", 0).await?;
        for at in 0..OBJECTS {
            // Watches of a name end with that name.
            if !self.state.contains_key(&name(at)) {
                self.create(&name(at), "a", 0).await?;
            } else {
                let value = self.state[&name(at)].value;
                self.patch(&name(at), "a", value + 10, Seen::Nothing).await?;
            }
        }
        self.list(Only::All, 3).await?;
        for running in std::mem::take(&mut self.watches) {
            let what = format!("watch of {:?} from {}", running.only, running.from);
            self.replay(running).await.map_err(|error| format!("{what}: {error}"))?;
        }
        Ok(())
    }

    async fn replay(&self, mut running: Running) -> Played {
        let mut last = 0;
        if let Some(initial) = &running.initial {
            let mut state = State::new();
            loop {
                let event = running.watch.next().await.ok_or("ended")?;
                let object = event.get("object").cloned().unwrap_or_default();
                match event.str_at(&["type"]) {
                    "ADDED" => {
                        let object = Object::of(self.kind, &object)?;
                        state.insert(object.name.clone(), object);
                    }
                    "BOOKMARK" => {
                        same(
                            "the end of what is there",
                            object.str_at(&["metadata", "annotations", "k8s.io/initial-events-end"]),
                            "true",
                        )?;
                        last = object.str_at(&["metadata", "resourceVersion"]).parse().map_err(|_| "no version")?;
                        break;
                    }
                    other => return Err(format!("{other} among what is there")),
                }
            }
            same("what is there", &state, initial)?;
        }
        for group in self.history.get(running.from..).unwrap_or_default() {
            let shown = |object: &Option<Object>| object.as_ref().is_some_and(|object| running.only.matches(object));
            let mut expected: Vec<(&str, &Change)> = group
                .iter()
                .filter_map(|change| match (shown(&change.old), shown(&change.new)) {
                    (false, true) => Some(("ADDED", change)),
                    (true, true) => Some(("MODIFIED", change)),
                    (true, false) => Some(("DELETED", change)),
                    (false, false) => None,
                })
                .collect();
            while !expected.is_empty() {
                let event = running.watch.next().await.ok_or("ended")?;
                if event.str_at(&["type"]) == "BOOKMARK" {
                    continue;
                }
                let object = Object::of(self.kind, event.get("object").ok_or("no object")?)?;
                if object.version <= last {
                    return Err(format!("{} after {last}", object.version));
                }
                last = object.version;
                let name = |change: &Change| change.new.as_ref().or(change.old.as_ref()).map(|it| it.name.clone());
                let Some(at) = expected.iter().position(|(_, change)| name(change).as_deref() == Some(&object.name))
                else {
                    return Err(format!("{event:?} instead of one of {expected:?}"));
                };
                let (kind, change) = expected.swap_remove(at);
                same("the event", event.str_at(&["type"]), kind)?;
                match (&change.new, kind) {
                    // What left the selector is shown as it became.
                    (Some(new), _) => same("the version", object.version, new.version)?,
                    (None, _) => {
                        let old = change.old.as_ref().ok_or("nothing was there")?;
                        let as_it_was = Object {
                            version: object.version,
                            generation: object.generation,
                            held: old.held,
                            deleting: old.deleting,
                            ..old.clone()
                        };
                        let shown = Object { held: old.held, deleting: old.deleting, ..object };
                        same("the last state", &shown, &as_it_was)?;
                    }
                }
            }
        }
        Ok(())
    }
}

async fn play(client: &Client, namespace: &str, kind: Kind, operations: &[Operation]) -> Played {
    let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    wanted(&client.post("/api/v1/namespaces", &body).await, &[201])?;
    let mut player = Player {
        client,
        kind,
        path: kind.path(namespace),
        trees: BTreeMap::new(),
        state: State::new(),
        history: Vec::new(),
        checkpoints: Vec::new(),
        watches: Vec::new(),
        newest: 0,
    };
    for (at, operation) in operations.iter().enumerate() {
        player.play(operation).await.map_err(|error| format!("operation {at}, {operation:?}: {error}"))?;
    }
    player.finish().await
}

#[test]
fn random_operations_are_answered_as_the_model_says() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let daemon = runtime.block_on(start());
    let client = daemon.client();
    let (seed, until) = (seed(), Instant::now() + seconds());
    let (namespaces, mut round) = (std::cell::Cell::new(0), 0u64);
    while Instant::now() < until {
        let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(seed + round).to_le_bytes());
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let outcome = runner.run(&operations(), |(deployments, operations)| {
            namespaces.set(namespaces.get() + 1);
            let kind = if deployments { Kind::Deployment } else { Kind::ConfigMap };
            let namespace = format!("n{}", namespaces.get());
            let played = play(&client, &namespace, kind, &operations);
            runtime.block_on(played).map_err(TestCaseError::fail)
        });
        match outcome {
            Ok(()) => round += 1,
            Err(TestError::Fail(why, (deployments, operations))) => panic!(
                "KENTER_PROPERTY_SEED={}: {why}\nwith deployments: {deployments}, the least that fails: {operations:#?}",
                seed + round
            ),
            Err(other) => panic!("KENTER_PROPERTY_SEED={}: {other}", seed + round),
        }
    }
    eprintln!("{round} cases");
}

/// A small generator of numbers (xorshift), so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What one client did: how often it counted up each object, by uid.
type Counted = BTreeMap<String, i64>;

/// Reads, counts up, writes with the version it read; makes and deletes objects now and then.
async fn work(client: Client, path: String, mut random: Random, until: Instant) -> Counted {
    let mut counted = Counted::new();
    while Instant::now() < until {
        let name = format!("o{}", random.below(3));
        let at = format!("{path}/{name}");
        match random.below(12) {
            0 => drop(client.post(&path, &Kind::ConfigMap.body(&name, "a", 0)).await),
            1 if random.below(3) == 0 => drop(client.delete(&at).await),
            2 => {
                // A patch without a version tries again until it fits.
                let patch = json!({ "metadata": { "annotations": { "n": (random.below(1_000_000).to_string()) } } });
                let answer = client.patch(&at, &patch).await;
                assert!([200, 404, 409].contains(&answer.status), "{}", answer.text());
            }
            _ => {
                let answer = client.get(&at).await;
                if answer.status != 200 {
                    continue;
                }
                let mut object = answer.json();
                let next = Kind::ConfigMap.value(&object) + 1;
                Kind::ConfigMap.set(&mut object, "a", next);
                let uid = object.str_at(&["metadata", "uid"]).to_owned();
                let answer = client.call("PUT", &at, "application/json", Some(&object)).await.expect("an answer");
                assert!([200, 404, 409].contains(&answer.status), "{}", answer.text());
                if answer.status == 200 {
                    *counted.entry(uid).or_default() += 1;
                }
            }
        }
    }
    counted
}

/// Type, name and version of each event, and what all clients together must have counted each object up to.
async fn follow(mut watch: Watch, path: String) -> (Vec<(String, String, u64)>, Counted, State) {
    let (mut events, mut counted, mut state) = (Vec::new(), Counted::new(), State::new());
    let mut last = 0;
    while let Some(event) = watch.next().await {
        let kind = event.str_at(&["type"]).to_owned();
        if kind == "BOOKMARK" {
            continue;
        }
        let object = Object::of(Kind::ConfigMap, event.get("object").expect("an object")).expect("whole");
        assert!(object.version > last, "{path}: {} after {last}", object.version);
        last = object.version;
        let before = state.get(&object.name);
        match kind.as_str() {
            "ADDED" => assert_eq!(before, None, "{path}"),
            "MODIFIED" => {
                let before = before.expect("it was there");
                assert_eq!(before.uid, object.uid, "{path}");
                assert!((0..=1).contains(&(object.value - before.value)), "{path}: {before:?} became {object:?}");
                *counted.entry(object.uid.clone()).or_default() += object.value - before.value;
            }
            "DELETED" => assert_eq!(before.map(|it| &it.uid), Some(&object.uid), "{path}"),
            other => panic!("{path}: {other}"),
        }
        events.push((kind.clone(), object.name.clone(), object.version));
        if object.name == "end" {
            break;
        }
        match kind.as_str() {
            "DELETED" => drop(state.remove(&object.name)),
            _ => drop(state.insert(object.name.clone(), object)),
        }
    }
    (events, counted, state)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_count_at_the_same_time_lose_nothing_and_every_watch_sees_it_all() {
    let daemon = start().await;
    let client = daemon.client();
    let (seed, until) = (seed(), Instant::now() + seconds());
    eprintln!("KENTER_PROPERTY_SEED={seed}");
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    assert_eq!(client.post("/api/v1/namespaces", &namespace).await.status, 201);
    let path = Kind::ConfigMap.path("n");
    let list = client.get(&path).await.json();
    let version = list.str_at(&["metadata", "resourceVersion"]).to_owned();
    let watch_from = |version: &str| format!("{path}?watch=1&resourceVersion={version}&allowWatchBookmarks=true");
    let mut watchers = Vec::new();
    for _ in 0..3 {
        watchers.push(tokio::spawn(follow(client.watch(&watch_from(&version)).await, path.clone())));
    }
    let workers: Vec<_> =
        (0..4).map(|n| tokio::spawn(work(daemon.client(), path.clone(), Random(seed + n + 1), until))).collect();
    let mut counted = Counted::new();
    for worker in workers {
        for (uid, times) in worker.await.expect("it works") {
            *counted.entry(uid).or_default() += times;
        }
    }
    assert_eq!(client.post(&path, &Kind::ConfigMap.body("end", "a", 0)).await.status, 201);
    // One that begins when all is over sees the same.
    watchers.push(tokio::spawn(follow(client.watch(&watch_from(&version)).await, path.clone())));
    let last = client.get(&path).await.json();
    let listed: Arc<State> = Arc::new(
        last.array_at(&["items"])
            .iter()
            .map(|item| Object::of(Kind::ConfigMap, item).expect("whole"))
            .filter(|object| object.name != "end")
            .map(|object| (object.name.clone(), object))
            .collect(),
    );
    let mut first = None;
    for watcher in watchers {
        let (events, seen, state) = watcher.await.expect("it follows");
        assert_eq!(state, *listed, "a list is what a watch replays to");
        let nonzero = |counted: &Counted| {
            counted.iter().filter(|(_, n)| **n > 0).map(|(uid, n)| (uid.clone(), *n)).collect::<Counted>()
        };
        assert_eq!(nonzero(&seen), nonzero(&counted), "every write that was acknowledged is there once");
        assert_eq!(&events, first.get_or_insert_with(|| events.clone()), "all watches show the same");
    }
    eprintln!("{} events", first.map_or(0, |events| events.len()));
}
