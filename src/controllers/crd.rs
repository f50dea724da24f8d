//! Conditions of CustomResourceDefinitions: whether their names are free, whether they are served, what is wrong with
//! their schemas and their approval (apiextensions-apiserver `pkg/controller/{status,establish,apiapproval,
//! nonstructuralschema}`). Belongs to the server itself and always runs.
//!
//! One loop decides, definition by definition, since names are given in order; writes run beside it.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{BoxFuture, FutureExt},
    stream::FuturesUnordered,
};
use http::Method;
use tokio::sync::watch;

use super::{
    ApiClient,
    crd_finalizer::{Outcome, finalize},
    crd_names::{Names, Pool},
    crd_versions::GroupVersions,
    feed::{Change, Feed},
};
use crate::{
    api::{ApiError, Reason, clock, duration::format_time, meta::Meta},
    json,
    object::{Value, parse, parse_without},
    registry::{
        builtin::apiextensions::{approval, non_structural},
        dynamic::definition::{self, CLEANUP, ESTABLISHED, GROUP, NAMES_ACCEPTED, RESOURCE},
        store::Store,
    },
    storage::{
        Revision,
        cache::{Entry, ResourceCache},
    },
};

/// How many writes run at once.
const MOST_WRITES: usize = 32;
/// How many definitions' objects are deleted at once.
const MOST_FINALIZED: usize = 64;
/// How long a write that failed waits for its next try.
const RETRY: Duration = Duration::from_secs(1);
/// How long after a change by somebody else a deletion goes on.
const AGAIN: Duration = Duration::from_millis(50);
/// The longest wait between two tries to delete a definition's objects.
const SLOWEST: Duration = Duration::from_secs(60);

/// What serves custom resources, as these controllers see it.
pub trait Definitions: Send + Sync {
    /// The store of a definition's objects.
    fn store(&self, name: &str, uid: &str) -> Option<Arc<Store>>;

    /// The revision up to which everything that definitions say is served.
    fn served(&self) -> watch::Receiver<Revision>;
}

/// Writes a definition's status, and its metadata.
pub async fn write_status(client: &dyn ApiClient, mut crd: Value) -> Result<Value, ApiError> {
    crd.set(&["apiVersion"], "apiextensions.k8s.io/v1");
    crd.set(&["kind"], "CustomResourceDefinition");
    let name = Meta::of(&crd).name();
    let path = format!("/apis/{GROUP}/v1/{RESOURCE}/{name}/status?fieldManager=kube-apiserver");
    client.call(Method::PUT, path, Some(crd)).await
}

/// Writes what `head` says of its status, the names among it that are not there any more included. The rest of the
/// definition, which may be large, is neither sent nor answered.
async fn merge_status(client: &dyn ApiClient, head: &Value) -> Result<(), ApiError> {
    let meta = Meta::of(head);
    let mut status = head.get("status").cloned().unwrap_or_default();
    for name in Names::OPTIONAL {
        if status.at(&["acceptedNames", name]).is_none() {
            status.set(&["acceptedNames", name], Value::Null);
        }
    }
    let path = format!("/apis/{GROUP}/v1/{RESOURCE}/{}/status?fieldManager=kube-apiserver", meta.name());
    let patch = json!({"metadata": {"resourceVersion": (meta.resource_version())}, "status": status});
    client.merge(path, patch).await
}

/// Waits until what was written at `revision` is served.
pub async fn until_served(mut served: watch::Receiver<Revision>, revision: Revision) {
    // The sender is as old as the process; where it ends there is nothing left to serve.
    let _ = served.wait_for(|served| *served >= revision).await;
}

pub struct DefinitionController {
    pub cache: Arc<ResourceCache>,
    /// Told of the groups and versions that definitions have, established or not.
    pub group_versions: Arc<GroupVersions>,
    pub definitions: Arc<dyn Definitions>,
    pub client: Arc<dyn ApiClient>,
}

impl DefinitionController {
    /// Runs until it is dropped.
    pub async fn run(self) {
        let mut feed = Feed::new(self.cache.clone());
        let mut work = Work::new(&self);
        let mut running: FuturesUnordered<BoxFuture<'_, Done>> = FuturesUnordered::new();
        loop {
            work.start(&mut running);
            tokio::select! {
                changes = feed.next() => match changes {
                    Some(changes) => {
                        changes.into_iter().for_each(|change| work.observe(change));
                        self.group_versions.fill();
                    }
                    None => tokio::time::sleep(RETRY).await,
                },
                Some(done) = running.next(), if !running.is_empty() => work.finish(done, &mut running),
            }
        }
    }
}

/// What came to its end.
enum Done {
    Written(Arc<str>, Result<(), ApiError>),
    Finalized(Arc<str>, Outcome),
    /// Time to look at this one again.
    Again(Arc<str>),
    /// Time to go on deleting this one's objects.
    Doomed(Arc<str>),
}

/// A definition as it was last seen.
struct Known {
    entry: Arc<Entry>,
    /// Everything but its spec, until it is looked at.
    head: Option<Value>,
    spec: Arc<Spec>,
    /// The names it holds, or will hold when its write is done.
    held: Names,
    /// What the write that runs was made from.
    writing: Option<Revision>,
    finalizing: bool,
    /// How often its deletion failed.
    failures: u32,
    /// The generation whose schemas were judged last.
    judged: Option<i64>,
}

/// What of a definition's spec is asked for again and again. It changes with the generation alone.
struct Spec {
    generation: i64,
    group: String,
    names: Names,
    invalid_ca_bundle: bool,
    /// Names of the versions it serves.
    served: Vec<String>,
    /// What its schemas are not, as the condition NonStructuralSchema says it.
    problem: Option<(&'static str, &'static str, String)>,
}

impl Spec {
    fn of(crd: &Value) -> Self {
        Self {
            generation: Meta::of(crd).generation(),
            group: crd.str_at(&["spec", "group"]).to_owned(),
            names: Names::of(crd.at(&["spec", "names"])),
            invalid_ca_bundle: definition::has_invalid_ca_bundle(crd),
            served: definition::versions(crd)
                .iter()
                .filter(|version| version.bool_at(&["served"]))
                .map(|version| version.str_at(&["name"]).to_owned())
                .collect(),
            problem: non_structural(crd),
        }
    }
}

/// A definition without its spec: what changes often is little, whatever the schemas are.
fn head(entry: &Entry) -> Option<Value> {
    parse_without(entry.value_bytes(), "spec").ok()
}

struct Work<'a> {
    controller: &'a DefinitionController,
    known: HashMap<Arc<str>, Known>,
    pools: HashMap<String, Group>,
    queue: VecDeque<Arc<str>>,
    doomed: VecDeque<Arc<str>>,
    writing: usize,
    finalizing: usize,
}

#[derive(Default)]
struct Group {
    taken: Pool,
    /// Definitions that did not get their names.
    waiting: BTreeSet<Arc<str>>,
}

impl<'a> Work<'a> {
    fn new(controller: &'a DefinitionController) -> Self {
        Self {
            controller,
            known: HashMap::new(),
            pools: HashMap::new(),
            queue: VecDeque::new(),
            doomed: VecDeque::new(),
            writing: 0,
            finalizing: 0,
        }
    }

    fn observe(&mut self, change: Change) {
        match change {
            Change::Put(entry) => self.put(entry),
            Change::Gone(key) => {
                let name = key.rsplit('/').next().unwrap_or("");
                if let Some(gone) = self.known.remove(name) {
                    self.controller.group_versions.replace(&gone.spec.group, &gone.spec.served, &[]);
                    self.hold(name, &gone.spec.group, &gone.held, &Names::default());
                    if let Some(group) = self.pools.get_mut(&gone.spec.group) {
                        group.waiting.remove(name);
                    }
                    if self.pools.get(&gone.spec.group).is_some_and(|group| group.taken.is_empty()) {
                        self.pools.remove(&gone.spec.group);
                    }
                }
            }
        }
    }

    fn put(&mut self, entry: Arc<Entry>) {
        let name: Arc<str> = entry.name().into();
        if self.known.get(&name).is_some_and(|known| known.entry.mod_revision() >= entry.mod_revision()) {
            return;
        }
        let Some(head) = head(&entry) else { return };
        let held = Names::of(head.at(&["status", "acceptedNames"]));
        let doomed = is_doomed(&head);
        let generation = Meta::of(&head).generation();
        let same = |known: &&Known| {
            known.spec.generation == generation && known.entry.create_revision() == entry.create_revision()
        };
        let spec = match self.known.get(&name).filter(same) {
            Some(known) => known.spec.clone(),
            None => match parse(entry.value_bytes()) {
                Ok(crd) => Arc::new(Spec::of(&crd)),
                Err(_) => return,
            },
        };
        let before = self.known.remove(&name);
        if before.as_ref().is_none_or(|known| !Arc::ptr_eq(&known.spec, &spec)) {
            let old = before.as_ref().map_or(&[][..], |known| &known.spec.served);
            self.controller.group_versions.replace(&spec.group, old, &spec.served);
        }
        let old = before.as_ref().map(|known| known.held.clone()).unwrap_or_default();
        self.hold(&name, &spec.group, &old, &held);
        let known = match before {
            Some(before) => Known { entry, head: Some(head), spec, held, ..before },
            None => Known {
                entry,
                head: Some(head),
                spec,
                held,
                writing: None,
                finalizing: false,
                failures: 0,
                judged: None,
            },
        };
        let idle = doomed && !known.finalizing && known.failures == 0;
        self.known.insert(name.clone(), known);
        if idle {
            self.doomed.push_back(name.clone());
        }
        self.queue.push_back(name);
    }

    /// Notes which names a definition holds instead of others; who waits for these is looked at again.
    fn hold(&mut self, name: &str, group: &str, old: &Names, new: &Names) {
        if old == new {
            return;
        }
        let group = self.pools.entry(group.to_owned()).or_default();
        group.taken.remove(old);
        group.taken.add(new);
        self.queue.extend(group.waiting.iter().filter(|it| &***it != name).cloned());
    }

    /// Begins what can be begun.
    fn start(&mut self, running: &mut FuturesUnordered<BoxFuture<'a, Done>>) {
        while self.writing < MOST_WRITES
            && let Some(name) = self.queue.pop_front()
        {
            if let Some(write) = self.decide(&name) {
                self.writing += 1;
                running.push(write);
            }
        }
        while self.finalizing < MOST_FINALIZED
            && let Some(name) = self.doomed.pop_front()
        {
            let idle = |known: &&mut Known| !known.finalizing && head(&known.entry).is_some_and(|crd| is_doomed(&crd));
            let Some(known) = self.known.get_mut(&name).filter(idle) else { continue };
            known.finalizing = true;
            self.finalizing += 1;
            let (controller, entry) = (self.controller, known.entry.clone());
            running.push(Box::pin(async move {
                Done::Finalized(name, finalize(&*controller.client, &*controller.definitions, &entry).await)
            }));
        }
    }

    /// The write that a definition needs next.
    fn decide(&mut self, name: &Arc<str>) -> Option<BoxFuture<'a, Done>> {
        let known = self.known.get_mut(name).filter(|known| known.writing.is_none())?;
        let revision = known.entry.mod_revision();
        let mut crd = known.head.take().or_else(|| head(&known.entry))?;
        let spec = known.spec.clone();
        let group = self.pools.entry(spec.group.clone()).or_default();
        let now = format_time(clock::now_seconds());
        let mut wait = false;
        let mut write = accept_names(&mut crd, &spec.names, &group.taken, &now);
        if definition::is_true(&crd, NAMES_ACCEPTED) {
            group.waiting.remove(name);
        } else {
            group.waiting.insert(name.clone());
        }
        if !write {
            write = establish(&mut crd, spec.invalid_ca_bundle, &now);
            wait = write;
        }
        write = write
            || note_approval(&mut crd, &spec.group, &now)
            || note_schemas(&mut crd, &spec, &mut known.judged, &now);
        if !write {
            return None;
        }
        known.writing = Some(revision);
        let (old, new) = (known.held.clone(), Names::of(crd.at(&["status", "acceptedNames"])));
        known.held = new.clone();
        self.hold(name, &spec.group, &old, &new);
        let (controller, name) = (self.controller, name.clone());
        Some(Box::pin(async move {
            if wait {
                until_served(controller.definitions.served(), revision).await;
            }
            Done::Written(name, merge_status(&*controller.client, &crd).await)
        }))
    }

    fn finish(&mut self, done: Done, running: &mut FuturesUnordered<BoxFuture<'a, Done>>) {
        match done {
            Done::Written(name, result) => {
                self.writing -= 1;
                let known = self.known.get_mut(&name);
                let newer = known.is_some_and(|known| known.writing.take() < Some(known.entry.mod_revision()));
                match result {
                    Ok(()) => {}
                    // Somebody was quicker: that change is seen soon, if it was not already.
                    Err(error) if matches!(error.reason, Reason::Conflict | Reason::NotFound) => self.give_back(&name),
                    Err(error) => {
                        tracing::warn!(
                            definition = &*name,
                            "cannot write the status of a CustomResourceDefinition: {error}"
                        );
                        self.give_back(&name);
                        running.push(later(RETRY, Done::Again(name.clone())));
                    }
                }
                if newer {
                    self.queue.push_back(name);
                }
            }
            Done::Finalized(name, outcome) => {
                self.finalizing -= 1;
                let Some(known) = self.known.get_mut(&name) else { return };
                known.finalizing = false;
                match outcome {
                    Outcome::Done => known.failures = 0,
                    Outcome::Changed => running.push(later(AGAIN, Done::Doomed(name))),
                    Outcome::Failed(why) => {
                        tracing::warn!(
                            definition = &*name,
                            "cannot delete the objects of a CustomResourceDefinition: {why}"
                        );
                        known.failures += 1;
                        let wait = RETRY.saturating_mul(1 << known.failures.min(6)).min(SLOWEST);
                        running.push(later(wait, Done::Doomed(name)));
                    }
                }
            }
            Done::Again(name) => self.queue.push_back(name),
            Done::Doomed(name) => self.doomed.push_back(name),
        }
    }

    /// A write was not made: the names it would have taken are what was stored. Looks again at what came meanwhile.
    fn give_back(&mut self, name: &Arc<str>) {
        let Some(known) = self.known.get_mut(name) else { return };
        let Some(crd) = head(&known.entry) else { return };
        let stored = Names::of(crd.at(&["status", "acceptedNames"]));
        known.judged = None;
        let (spec, old) = (known.spec.clone(), std::mem::replace(&mut known.held, stored.clone()));
        self.hold(name, &spec.group, &old, &stored);
    }
}

fn later(wait: Duration, what: Done) -> BoxFuture<'static, Done> {
    tokio::time::sleep(wait).map(|()| what).boxed()
}

fn is_doomed(crd: &Value) -> bool {
    !crd.str_at(&["metadata", "deletionTimestamp"]).is_empty() && Meta::of(crd).has_finalizer(CLEANUP)
}

/// Gives a definition what of its names is free; whether that changes it.
fn accept_names(crd: &mut Value, requested: &Names, taken: &Pool, now: &str) -> bool {
    let accepted = Names::of(crd.at(&["status", "acceptedNames"]));
    if *requested == accepted {
        return false;
    }
    let (names, conflict) = taken.accept(requested, &accepted);
    let (status, reason, message) = match &conflict {
        Some((reason, message)) => ("False", *reason, message.as_str()),
        None => ("True", "NoConflicts", "no conflicts found"),
    };
    let same = |condition: &Value| {
        [("status", status), ("reason", reason), ("message", message)]
            .iter()
            .all(|(key, it)| condition.str_at(&[key]) == *it)
    };
    if names == accepted && definition::condition(crd, NAMES_ACCEPTED).is_some_and(same) {
        return false;
    }
    crd.set(&["status", "acceptedNames"], names.to_value());
    let established = definition::condition(crd, ESTABLISHED).map(|it| it.str_at(&["status"]).to_owned());
    definition::set_condition(crd, NAMES_ACCEPTED, status, reason, message, now);
    match established.as_deref() {
        Some("True") => {}
        _ if status == "True" => {
            definition::set_condition(
                crd,
                ESTABLISHED,
                "False",
                "Installing",
                "the initial names have been accepted",
                now,
            );
        }
        None => {
            definition::set_condition(crd, ESTABLISHED, "False", "NotAccepted", "not all names are accepted", now);
        }
        Some(_) => {}
    }
    true
}

/// Establishes a definition whose names are accepted; whether that changes it.
fn establish(crd: &mut Value, invalid_ca_bundle: bool, now: &str) -> bool {
    if !definition::is_true(crd, NAMES_ACCEPTED) || definition::is_true(crd, ESTABLISHED) {
        return false;
    }
    if invalid_ca_bundle {
        let why = "The conversion webhook CABundle is invalid";
        return definition::set_condition(crd, ESTABLISHED, "False", "InvalidCABundle", why, now);
    }
    let why = "the initial names have been accepted";
    definition::set_condition(crd, ESTABLISHED, "True", "InitialNamesAccepted", why, now)
}

fn note_approval(crd: &mut Value, group: &str, now: &str) -> bool {
    let Some(approval) = approval::approval_in(group, crd) else { return false };
    let (status, reason) = match approval.state {
        approval::State::Invalid => ("False", "InvalidAnnotation"),
        approval::State::Missing => ("False", "MissingAnnotation"),
        approval::State::Approved => ("True", "ApprovedAnnotation"),
        approval::State::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    definition::set_condition(crd, "KubernetesAPIApprovalPolicyConformant", status, reason, &approval.reason, now)
}

fn note_schemas(crd: &mut Value, spec: &Spec, judged: &mut Option<i64>, now: &str) -> bool {
    const KIND: &str = "NonStructuralSchema";
    if judged.is_some_and(|judged| spec.generation <= judged) {
        return false;
    }
    *judged = Some(spec.generation);
    match &spec.problem {
        Some((status, reason, message)) => definition::set_condition(crd, KIND, status, reason, message, now),
        None => definition::remove_condition(crd, KIND),
    }
}
