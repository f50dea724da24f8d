//! kube-rs: a reflector, a controller that applies what it owns, a custom resource.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    config::AuthInfo,
    core::{GroupVersionKind, Object},
    runtime::{
        controller::{Action, Controller},
        finalizer::{self, Event as Finalizer, finalizer},
        reflector::{self, Store, store::Writer},
        wait::{await_condition, conditions},
        watcher::{self, Event, watcher},
    },
};
use serde::{Deserialize, Serialize};

use super::{LOAD, while_reloaded};
use crate::support::{ADMIN, Daemon, PATIENCE, Setup, eventually};

/// The namespace everything is in.
const NAMESPACE: &str = "kube-rs";

/// Who the controller says it is.
const MANAGER: &str = "gadget-controller";

/// The custom resource: a number that its controller copies into a ConfigMap of its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct GadgetSpec {
    n: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct GadgetStatus {
    observed: u64,
}

type Gadget = Object<GadgetSpec, GadgetStatus>;

fn gadgets() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("kube-rs.example.com", "v1", "Gadget"))
}

fn definition() -> CustomResourceDefinition {
    let number = |name: &str| {
        let properties = BTreeMap::from([(name, serde_json::json!({ "type": "integer", "format": "int64" }))]);
        serde_json::json!({ "type": "object", "properties": properties })
    };
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "spec": number("n"), "status": number("observed") },
    });
    let version = serde_json::json!({
        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": schema },
    });
    let definition = serde_json::json!({
        "metadata": { "name": "gadgets.kube-rs.example.com" },
        "spec": {
            "group": "kube-rs.example.com", "scope": "Namespaced", "versions": [version],
            "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget" },
        },
    });
    serde_json::from_value(definition).expect("a definition")
}

fn client(daemon: &Daemon) -> Client {
    let mut config = Config::new(format!("https://127.0.0.1:{}", daemon.port).parse().expect("an address"));
    config.root_cert_file = Some(daemon.path("state/pki/ca.crt"));
    config.auth_info = AuthInfo { token: Some(ADMIN.to_owned().into()), ..AuthInfo::default() };
    config.default_namespace = NAMESPACE.into();
    Client::try_from(config).expect("a client")
}

/// The namespace and the custom resource, served.
async fn prepare(client: &Client) {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(NAMESPACE.into()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("the namespace is made");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = definitions.create(&PostParams::default(), &definition()).await.expect("the CRD is made");
    await_condition(definitions, &definition.name_any(), conditions::is_crd_established()).await.expect("established");
}

/// What a watcher has told.
#[derive(Default)]
struct Told {
    starts: AtomicU64,
    applied: AtomicU64,
    deleted: AtomicU64,
}

/// Keeps a store by a watcher, which may not fail or start again.
fn reflect<K>(
    stream: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    kind: K::DynamicType,
) -> (Store<K>, Arc<Told>)
where
    K: Resource + Clone + std::fmt::Debug + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
{
    let (writer, told) = (Writer::new(kind), Arc::new(Told::default()));
    let (store, count) = (writer.as_reader(), told.clone());
    let mut events = Box::pin(reflector::reflector(writer, stream));
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let counter = match event.expect("the watcher goes on") {
                Event::Init => &count.starts,
                Event::Apply(_) | Event::InitApply(_) => &count.applied,
                Event::Delete(_) => &count.deleted,
                Event::InitDone => continue,
            };
            counter.fetch_add(1, Ordering::AcqRel);
        }
    });
    (store, told)
}

struct Context {
    client: Client,
    cleaned: AtomicU64,
    failures: parking_lot::Mutex<Vec<String>>,
}

type Failure = finalizer::Error<kube::Error>;

fn status(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether the controller was merely behind: its store did not have yet what it had changed itself.
fn is_behind(failure: &Failure) -> bool {
    match failure {
        Failure::AddFinalizer(error) | Failure::RemoveFinalizer(error) => matches!(status(error), Some(404 | 422)),
        _ => false,
    }
}

async fn reconcile(gadget: Arc<Gadget>, context: Arc<Context>) -> Result<Action, Failure> {
    let api: Api<Gadget> = Api::namespaced_with(context.client.clone(), NAMESPACE, &gadgets());
    finalizer(&api, "kube-rs.example.com/child", gadget, |event| async {
        match event {
            Finalizer::Apply(gadget) => apply(&gadget, &context.client, &api).await,
            Finalizer::Cleanup(gadget) => {
                let children: Api<ConfigMap> = Api::namespaced(context.client.clone(), NAMESPACE);
                match children.delete(&gadget.name_any(), &DeleteParams::default()).await {
                    Ok(_) => _ = context.cleaned.fetch_add(1, Ordering::AcqRel),
                    Err(error) if status(&error) == Some(404) => {}
                    Err(error) => return Err(error),
                }
                Ok(Action::await_change())
            }
        }
    })
    .await
}

/// Applies the child of a gadget, then says so in its status.
async fn apply(gadget: &Gadget, client: &Client, api: &Api<Gadget>) -> Result<Action, kube::Error> {
    let children: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let (name, as_manager) = (gadget.name_any(), PatchParams::apply(MANAGER).force());
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(BTreeMap::from([("of".into(), "gadget".into())])),
            owner_references: gadget.controller_owner_ref(&gadgets()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("n".into(), gadget.spec.n.to_string())])),
        ..ConfigMap::default()
    };
    children.patch(&name, &as_manager, &Patch::Apply(&child)).await?;
    let status = serde_json::json!({
        "apiVersion": "kube-rs.example.com/v1", "kind": "Gadget", "status": { "observed": gadget.spec.n },
    });
    api.patch_status(&name, &as_manager, &Patch::Apply(&status)).await?;
    Ok(Action::await_change())
}

fn control(context: Arc<Context>) {
    let api: Api<Gadget> = Api::namespaced_with(context.client.clone(), NAMESPACE, &gadgets());
    let children: Api<ConfigMap> = Api::namespaced(context.client.clone(), NAMESPACE);
    let again = |_: Arc<Gadget>, error: &Failure, context: Arc<Context>| {
        if !is_behind(error) {
            context.failures.lock().push(error.to_string());
        }
        Action::requeue(Duration::from_millis(100))
    };
    let runs = Controller::new_with(api, watcher::Config::default(), gadgets())
        .owns(children, watcher::Config::default())
        .run(reconcile, again, context)
        .for_each(|_| std::future::ready(()));
    tokio::spawn(runs);
}

/// Gadgets are made, changed and every third is deleted while there is load; how many were made and how many are left,
/// with the number each ended with.
async fn write(api: &Api<Gadget>) -> (u64, BTreeMap<String, u64>) {
    const CHANGES: u64 = 4;
    let (mut made, mut left) = (0, BTreeMap::new());
    let end = tokio::time::Instant::now() + LOAD;
    while tokio::time::Instant::now() < end {
        let name = format!("g{made}");
        let gadget = Gadget::new(&name, &gadgets(), GadgetSpec { n: 0 });
        api.create(&PostParams::default(), &gadget).await.expect("made");
        for n in 1..=CHANGES {
            let change = serde_json::json!({ "spec": { "n": n } });
            api.patch(&name, &PatchParams::default(), &Patch::Merge(&change)).await.expect("changed");
        }
        if made % 3 == 0 {
            let controlled = |it: Option<&Gadget>| it.is_some_and(|it| !it.finalizers().is_empty());
            let controlled = tokio::time::timeout(PATIENCE, await_condition(api.clone(), &name, controlled));
            controlled.await.expect("in time").expect("watched");
            api.delete(&name, &DeleteParams::default()).await.expect("deleted");
        } else {
            left.insert(name, CHANGES);
        }
        made += 1;
    }
    (made, left)
}

/// The numbers in what a store has, by name.
fn numbers<K: Resource<DynamicType: Eq + std::hash::Hash + Clone> + Clone>(
    store: &Store<K>,
    number: impl Fn(&K) -> Option<u64>,
) -> BTreeMap<String, u64> {
    store.state().iter().filter_map(|it| Some((it.name_any(), number(it)?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_rs_misses_nothing_while_the_configuration_changes() {
    let daemon = Setup::new().start().await;
    let client = client(&daemon);
    prepare(&client).await;
    let api: Api<Gadget> = Api::namespaced_with(client.clone(), NAMESPACE, &gadgets());
    let children: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let of_gadgets = watcher::Config::default().labels("of=gadget");
    let streamed = watcher(children.clone(), of_gadgets.clone().streaming_lists());
    let (stored, told) = reflect(streamed, ());
    let (stored_gadgets, told_gadgets) = reflect(watcher(api.clone(), watcher::Config::default()), gadgets());
    let context = Arc::new(Context {
        client: client.clone(),
        cleaned: AtomicU64::default(),
        failures: parking_lot::Mutex::default(),
    });
    control(context.clone());

    let ((made, left), reloads) = while_reloaded(&daemon, write(&api)).await;
    assert!(reloads >= 5 && made > 0, "{reloads} reloads, {made} objects");
    let observed = |gadget: &Gadget| gadget.status.as_ref().map(|it| it.observed);
    let copied = |child: &ConfigMap| child.data.as_ref()?.get("n")?.parse().ok();
    eventually("every gadget has its status and its child", || async {
        numbers(&stored_gadgets, observed) == left && numbers(&stored, copied) == left
    })
    .await;

    let deleted = made - u64::try_from(left.len()).expect("few");
    assert_eq!(context.cleaned.load(Ordering::Acquire), deleted);
    assert_eq!(*context.failures.lock(), Vec::<String>::new());
    for told in [&told, &told_gadgets] {
        assert_eq!(told.starts.load(Ordering::Acquire), 1, "a watcher had to start again");
        assert_eq!(told.deleted.load(Ordering::Acquire), deleted);
        assert!(told.applied.load(Ordering::Acquire) >= made);
    }
    // The lists, in pages, are what the stores have.
    let page = ListParams::default().labels("of=gadget").limit(3);
    let mut listed = BTreeMap::new();
    let mut next = Some(page.clone());
    while let Some(parameters) = next {
        let list = children.list(&parameters).await.expect("a page");
        let goes_on = list.metadata.continue_.filter(|token| !token.is_empty());
        listed.extend(list.items.into_iter().map(|it| (it.name_any(), it)));
        next = goes_on.map(|token| page.clone().continue_token(&token));
    }
    let stored: BTreeMap<_, _> = stored.state().iter().map(|it| (it.name_any(), ConfigMap::clone(it))).collect();
    assert_eq!(stored, listed);
    let managers = |it: &ConfigMap| it.managed_fields().iter().map(|it| it.manager.clone()).collect::<Vec<_>>();
    for child in listed.values() {
        assert_eq!(managers(child), [Some(MANAGER.to_owned())]);
    }
}
