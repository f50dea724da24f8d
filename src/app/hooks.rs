//! The post-start hooks, in kube-apiserver's order and under its names, and what goes on after them: the loops that keep
//! what every cluster has.
//!
//! Everything runs at once; what is needed first (namespaces before what is in them, the ServiceCIDR before Services) is
//! waited for. Hooks whose work is done here before anything listens are finished at once, each with its reason.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::supervisor::host_name;
use crate::{
    chain::{
        Shared,
        build::group_versions,
        client::{InProcess, SERVER_AGENT},
        custom::{CustomRows, definitions},
    },
    controllers::{
        ApiClient,
        bootstrap::{
            Cluster, Settings,
            api_services::{self, Registration},
            authentication_info::{self, RequestHeaders},
            flowcontrol, identity, kubernetes_service, namespaces, priority_classes, service_cidr, service_repair,
            token_tracking,
        },
        crd::DefinitionController,
        crd_versions::GroupVersions,
        rbac_bootstrap,
    },
    options::{
        ValidatedOptions,
        completed::{AuthorizationMode, CaBundle, EndpointReconciler},
    },
    registry::builtin::core::service::PortRange,
    server::{current::Current, health::Check, hooks::Hooks},
};

/// Hooks that have nothing left to do once the server listens.
const DONE_BEFORE: [&str; 17] = [
    // Admission plugins get what they need when a generation is built.
    "start-apiserver-admission-initializer",
    // The caches are full before the first listener is bound to a chain (the check `informer-sync` asks them).
    "generic-apiserver-start-informers",
    // Limits are a layer of the generation.
    "priority-and-fairness-filter",
    // Sizes are counted by the cache, and read when metrics are.
    "storage-object-count-tracker-hook",
    // One cache serves the three servers.
    "start-apiextensions-informers",
    // Rows of custom resources are made before the first commit and follow the cache from then on.
    "start-apiextensions-controllers",
    "crd-informer-synced",
    // Nothing starts to listen before the caches are filled, or `storage.initialization_timeout` ends the start.
    "storage-readiness",
    // The certificate is read when a generation is built; a changed file makes a new one.
    "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers",
    // A local APIService is available from its creation on.
    "apiservice-status-local-available-controller",
    // Whether a remote server answers is asked by its loop.
    "apiservice-status-remote-available-controller",
    // The aggregator looks APIServices up in the cache with each request: there is nothing to register.
    "apiservice-registration-controller",
    // Discovery is made out of rows and APIServices when it is asked for, or they have changed.
    "apiservice-discovery-controller",
    // So are the documents of the schema.
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
    // The record is written together with the address of the server (`bootstrap-controller`).
    kubernetes_service::PEER_HOOK,
];

/// The check that stands behind the hook of the same work.
const COMPLETION: &str = "autoregister-completion";

/// What is registered before anything serves and known only later.
#[derive(Clone, Default)]
pub struct Registered {
    registration: Arc<OnceLock<Arc<Registration>>>,
}

/// Makes the hooks known, in upstream's order.
pub fn register(hooks: &Hooks, options: &ValidatedOptions) -> Registered {
    let registered = Registered::default();
    let rbac = options.authorization.modes.contains(&AuthorizationMode::Rbac);
    let proxy = options.network.proxy_client.is_some();
    for (name, wanted) in [
        ("start-apiserver-admission-initializer", true),
        ("generic-apiserver-start-informers", true),
        (flowcontrol::CONSUMER_HOOK, true),
        ("priority-and-fairness-filter", true),
        ("storage-object-count-tracker-hook", true),
        ("start-apiextensions-informers", true),
        ("start-apiextensions-controllers", true),
        ("crd-informer-synced", true),
        (namespaces::HOOK, true),
        (kubernetes_service::PEER_HOOK, true),
        (authentication_info::HOOK, true),
        (identity::HOOK, true),
        (identity::GARBAGE_HOOK, true),
        ("storage-readiness", true),
        (token_tracking::HOOK, true),
        (service_repair::HOOK, true),
        (rbac_bootstrap::HOOK, rbac),
        (priority_classes::HOOK, true),
        (flowcontrol::PRODUCER_HOOK, true),
        (kubernetes_service::HOOK, true),
        (service_cidr::HOOK, true),
        ("aggregator-reload-proxy-client-cert", proxy),
        ("start-kube-aggregator-informers", true),
        ("apiservice-status-local-available-controller", true),
        ("apiservice-status-remote-available-controller", true),
        ("apiservice-registration-controller", true),
        ("apiservice-discovery-controller", true),
        (api_services::HOOK, true),
    ] {
        if wanted {
            hooks.register(name);
        }
    }
    let registration = registered.registration.clone();
    hooks.register_check(Check::immediate(COMPLETION, move || match registration.get() {
        Some(registration) => registration.complete(),
        None => Err("not started".to_owned()),
    }));
    hooks.register("apiservice-openapi-controller");
    hooks.register("apiservice-openapiv3-controller");
    registered
}

/// What goes on after the hooks.
pub struct Bootstrap {
    cluster: Cluster,
    /// Keeps the endpoints of the `kubernetes` Service.
    publishing: Mutex<Option<JoinHandle<()>>>,
    loops: Mutex<Vec<JoinHandle<()>>>,
}

impl Bootstrap {
    /// Starts the hooks' work and the loops after it. `own_ca`: the CA that kenter made for itself, where it did.
    pub fn start(
        options: &ValidatedOptions,
        shared: &Arc<Shared>,
        current: &Current,
        own_ca: Option<&str>,
        registered: &Registered,
        custom: Arc<CustomRows>,
    ) -> Arc<Self> {
        let client: Arc<dyn ApiClient> = Arc::new(InProcess::new(current.clone(), SERVER_AGENT));
        let cluster = Cluster {
            client: client.clone(),
            reader: shared.reader.clone(),
            changes: shared.reader.clone(),
            storage: shared.storage.clone(),
            node_ports: shared.node_ports.clone(),
            settings: Arc::new(ArcSwap::from_pointee(settings(options, own_ca))),
        };
        let this = Arc::new(Self { cluster, publishing: Mutex::default(), loops: Mutex::default() });
        let hooks = &shared.hooks;
        DONE_BEFORE.iter().for_each(|name| hooks.finish(name));
        if options.authorization.modes.contains(&AuthorizationMode::Rbac) {
            hooks.run(rbac_bootstrap::HOOK, Box::pin(async move { rbac_bootstrap::bootstrap_roles(&*client).await }));
        }
        let client = this.cluster.client.clone();
        let group_versions = Arc::<GroupVersions>::default();
        let conditions = DefinitionController {
            cache: definitions(shared),
            group_versions: group_versions.clone(),
            definitions: custom,
            client,
        };
        this.keep(conditions.run());
        this.start_cluster_scoped(hooks);
        this.start_namespaced(hooks);
        this.start_registration(hooks, registered, group_versions);
        this
    }

    /// A loop that runs until the process ends.
    fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.loops.lock().push(tokio::spawn(work));
    }

    fn start_cluster_scoped(&self, hooks: &Arc<Hooks>) {
        let cluster = || self.cluster.clone();
        hooks.run(priority_classes::HOOK, Box::pin(priority_classes::run(cluster())));
        let levels = cluster();
        hooks.run(flowcontrol::PRODUCER_HOOK, Box::pin(async move { flowcontrol::ready(&levels).await }));
        self.keep(flowcontrol::run(cluster()));
        self.keep(flowcontrol::consume(cluster()));
        hooks.finish(flowcontrol::CONSUMER_HOOK);
    }

    fn start_namespaced(&self, hooks: &Arc<Hooks>) {
        let cluster = || self.cluster.clone();
        let first = cluster();
        let namespaces = async move { namespaces::ready(&first).await }.boxed().shared();
        let first = cluster();
        let cidr = async move { service_cidr::ready(&first).await }.boxed().shared();
        let (waited, waited_too) = (namespaces.clone(), cidr.clone());
        hooks.run(namespaces::HOOK, Box::pin(waited.map(Ok)));
        hooks.run(service_cidr::HOOK, Box::pin(waited_too.map(Ok)));
        self.keep(after(namespaces.clone(), namespaces::run(cluster())));
        self.keep(after(cidr.clone(), service_cidr::run(cluster())));
        // What is in a namespace waits for it; upstream's hooks of these are done when their loops have started, too.
        self.keep(after(namespaces.clone(), authentication_info::run(cluster())));
        hooks.finish(authentication_info::HOOK);
        self.keep(after(namespaces.clone(), token_tracking::run(cluster())));
        hooks.finish(token_tracking::HOOK);
        self.keep(after(namespaces.clone(), identity::run(cluster())));
        hooks.finish(identity::HOOK);
        self.keep(identity::collect_garbage(cluster()));
        hooks.finish(identity::GARBAGE_HOOK);
        let (first, waited) = (cluster(), cidr.clone());
        let repaired = async move {
            waited.await;
            service_repair::ready(&first).await
        };
        hooks.run(service_repair::HOOK, Box::pin(repaired));
        self.keep(service_repair::run(cluster()));
        let service = cluster();
        let ready = async move {
            kubernetes_service::remove_stale(&service).await;
            tokio::join!(namespaces, cidr);
            kubernetes_service::ready(&service).await;
            Ok(())
        };
        hooks.run(kubernetes_service::HOOK, Box::pin(ready));
        // Nobody is sent here before the server is ready.
        let (hooks, service) = (hooks.clone(), cluster());
        let publish = async move {
            hooks.wait_all().await;
            kubernetes_service::run(service).await;
        };
        *self.publishing.lock() = Some(tokio::spawn(publish));
    }

    fn start_registration(&self, hooks: &Arc<Hooks>, registered: &Registered, custom: Arc<GroupVersions>) {
        let registration =
            registered.registration.get_or_init(|| Registration::new(self.cluster.clone(), custom)).clone();
        self.keep(async move {
            registration.ready().await;
            registration.run().await;
        });
        hooks.finish(api_services::HOOK);
    }

    /// What the loops do from now on follows these options.
    pub fn apply(&self, options: &ValidatedOptions, own_ca: Option<&str>) {
        self.cluster.settings.store(Arc::new(settings(options, own_ca)));
    }

    /// Takes this server out of the endpoints of the `kubernetes` Service (upstream's pre-shutdown hooks).
    pub async fn stop(&self) {
        let publishing = self.publishing.lock().take();
        if let Some(publishing) = publishing {
            publishing.abort();
            // Ended either way; a pass that was under way is over.
            let _ = publishing.await;
        }
        let limit = std::time::Duration::from_secs(20);
        if tokio::time::timeout(limit, kubernetes_service::stop(&self.cluster)).await.is_err() {
            tracing::warn!("the endpoints of the kubernetes service could not be removed in time");
        }
    }
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        self.loops.lock().iter().chain(self.publishing.lock().iter()).for_each(JoinHandle::abort);
    }
}

fn after(
    first: impl Future<Output = ()> + Send + 'static,
    then: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        first.await;
        then.await;
    })
}

fn pem(bundle: &CaBundle) -> String {
    String::from_utf8_lossy(&bundle.pem).into_owned()
}

/// What the loops want to know of the options.
fn settings(options: &ValidatedOptions, own_ca: Option<&str>) -> Settings {
    let (network, authentication) = (&options.network, &options.authentication);
    let request_header = authentication.request_header.as_ref().map(|header| RequestHeaders {
        client_ca: pem(&header.client_ca),
        allowed_names: header.allowed_names.clone(),
        username_headers: header.username_headers.clone(),
        uid_headers: header.uid_headers.clone(),
        group_headers: header.group_headers.clone(),
        extra_headers_prefix: header.extra_headers_prefix.clone(),
    });
    Settings {
        service_ranges: network.service_cluster_ip_range.clone(),
        node_ports: PortRange(network.service_node_port_range.clone()),
        kubernetes_node_port: network.kubernetes_service_node_port,
        advertise_address: network.advertise_address,
        publish_endpoints: network.endpoint_reconciler != EndpointReconciler::None,
        secure_port: options.serving.secure.first().map_or(0, |address| address.port()),
        host_name: host_name(),
        client_ca: authentication.client_ca.as_ref().map(pem).or_else(|| own_ca.map(str::to_owned)),
        request_header,
        group_versions: group_versions(options),
    }
}
