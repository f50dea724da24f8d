//! Validated options and what is shared, made into a chain. No side effect on what serves: a generation that is not
//! committed can be dropped.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{
    Shared,
    addresses::ClientAddresses,
    aggregator::{AggregatorServer, Outermost},
    components::Components,
    connect::NodeStreams,
    delegate::Delegate,
    extensions::ExtensionsServer,
    kube::KubeServer,
    not_found::NotFound,
    reader::CacheReader,
};
use crate::{
    admission,
    auth::{self, authn::Authenticators, authz::Union, impersonation::Impersonator, issuer::Issuer},
    options::{ValidatedOptions, completed::Authentication, show_flags},
    pki::SigningKey,
    registry::{
        builtin::{
            self, Wiring,
            core::{
                pod::PodPolicy,
                service::{Allocation, PortRange},
            },
        },
        catalog::{Catalog, Row},
        resource::{Behaviour, Resource},
        selectable::FieldAttributes,
    },
    server::{
        current::Current,
        discovery::{self, Documents},
        endpoints::Endpoints,
        generic::{GenericApiServer, Rows},
        health::Check,
        layers,
        stack::{Stack, StackParts},
    },
};

/// One immutable running configuration: options, chain, and what a commit has to hand out.
pub struct Generation {
    pub options: ValidatedOptions,
    pub stack: Arc<Stack>,
    pub authorizer: Arc<Union>,
}

/// What could not be built, and from which option.
#[derive(Debug)]
pub struct BuildError {
    /// The option's key, for the report.
    pub key: &'static str,
    pub reason: String,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}
impl std::error::Error for BuildError {}

/// Everything the three servers have in common (upstream's generic config).
struct KubeApiServerConfig {
    endpoints: Arc<Endpoints>,
    wiring: Wiring,
    authorizer: Arc<Union>,
    authenticators: Arc<Authenticators>,
}

/// Builds the chain: aggregator → kube → extensions → not found.
///
/// `own_ca`: the CA that kenter made for itself, where it did.
pub fn create_server_chain(
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
    current: &Current,
    own_ca: Option<&str>,
) -> Result<Generation, BuildError> {
    let config = create_kube_apiserver_config(options, shared, current, own_ca)?;
    let extensions_config = create_api_extensions_config(&config, options, shared);
    let extensions = create_api_extensions_server(extensions_config, Box::new(NotFound));
    let extension_rows = extensions.server.rows.load_full();
    let kube = create_kube_apiserver(&config, options, shared, Box::new(extensions));
    let delegates =
        DelegateDocuments { rows: vec![kube.server.rows.load_full(), extension_rows], checks: kube.checks.clone() };
    let aggregator_config = create_aggregator_config(&config, options, shared, delegates);
    let aggregator = create_aggregator_server(aggregator_config, Box::new(kube));
    let stack = layers_around(&config, options, shared, aggregator);
    Ok(Generation { options: options.clone(), stack: Arc::new(stack), authorizer: config.authorizer })
}

fn create_kube_apiserver_config(
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
    current: &Current,
    own_ca: Option<&str>,
) -> Result<KubeApiServerConfig, BuildError> {
    let authorizer = Arc::new(auth::build::authorizer(&options.authorization, &shared.rbac));
    let authenticators = Arc::new(authenticators(&options.authentication, own_ca)?);
    let admission = admission::build(&admission::Parts { options: &options.admission, reader: shared.reader.clone() });
    let connect = NodeStreams::new(options, shared)
        .map_err(|error| BuildError { key: "network.kubelet_client_certificate", reason: error.to_string() })?;
    let components = Components::new(shared.storage.clone())
        .map_err(|error| BuildError { key: "network", reason: error.to_string() })?;
    let endpoints = Endpoints {
        admission: Arc::new(admission),
        current: current.clone(),
        rights: shared.rights.clone(),
        rbac: shared.rbac.clone(),
        metrics: shared.metrics,
        lifecycle: shared.lifecycle.clone(),
        event_ttl: options.api.event_ttl,
        min_request_timeout: options.serving.min_request_timeout,
        connect: Arc::new(connect),
    };
    let wiring = Wiring {
        reader: shared.reader.clone(),
        authorizer: authorizer.clone(),
        authenticators: authenticators.clone(),
        components: Arc::new(components),
        pods: PodPolicy { allow_privileged: options.api.allow_privileged },
        services: Allocation {
            ranges: options.network.service_cluster_ip_range.clone(),
            node_ports: PortRange(options.network.service_node_port_range.clone()),
            addresses: Arc::new(ClientAddresses::new(current.clone())),
            ports: shared.node_ports.clone(),
        },
        issuer: issuer(&options.authentication)?,
        stores: Arc::default(),
    };
    Ok(KubeApiServerConfig { endpoints: Arc::new(endpoints), wiring, authorizer, authenticators })
}

/// What building would find wrong that reading has not: authorities and keys that cannot be used.
pub fn check_authorities(options: &ValidatedOptions, own_ca: Option<&str>) -> Result<(), BuildError> {
    issuer(&options.authentication)?;
    authenticators(&options.authentication, own_ca).map(drop)
}

/// Who signs service account tokens, where there is a key for it.
fn issuer(options: &Authentication) -> Result<Option<Arc<Issuer>>, BuildError> {
    let accounts = &options.service_account;
    let (Some(file), Some(name)) = (&accounts.signing_key, accounts.issuers.first()) else { return Ok(None) };
    let key = SigningKey::from_pem(file.pem.reveal()).map_err(|error| BuildError {
        key: "authentication.service_account_signing_key_file",
        reason: format!("{}: {error}", file.file.display()),
    })?;
    Ok(Some(Arc::new(Issuer { name: name.clone(), key, api_audiences: accounts.api_audiences.clone() })))
}

fn authenticators(options: &Authentication, own_ca: Option<&str>) -> Result<Authenticators, BuildError> {
    auth::build::authenticators(options, own_ca)
        .map_err(|bad| BuildError { key: bad.key, reason: bad.error.to_string() })
}

/// The built-in groups and versions that are served.
pub fn group_versions(options: &ValidatedOptions) -> Vec<(String, String)> {
    let config = &options.api.runtime_config;
    builtin::group_versions(&|group, version, plural, default| config.resource_enabled(group, version, plural, default))
}

const EXTENSIONS: &str = "apiextensions.k8s.io";
const REGISTRATION: &str = "apiregistration.k8s.io";

/// The rows of the groups for which `mine` says so, with their stores.
fn rows_of(
    config: &KubeApiServerConfig,
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
    mine: impl Fn(&str) -> bool,
) -> Catalog {
    let wanted = |group: &str, version: &str, plural: &str, default: bool| {
        mine(group) && options.api.runtime_config.resource_enabled(group, version, plural, default)
    };
    let rows = builtin::rows(&config.wiring, &wanted);
    Catalog::new(rows.into_iter().map(|resource| Arc::new(row(shared, resource))))
}

fn row(shared: &Arc<Shared>, resource: Resource) -> Row {
    let resource = Arc::new(resource);
    let stored = matches!(resource.behaviour, Behaviour::Stored { .. }) && !resource.prefix.is_empty();
    let store = stored.then(|| Arc::new(shared.store_of(resource.clone(), Arc::new(FieldAttributes::of(&resource)))));
    Row { resource, store }
}

fn server(name: &'static str, config: &KubeApiServerConfig, rows: Catalog) -> GenericApiServer {
    GenericApiServer { name, rows: Arc::new(ArcSwap::from_pointee(rows)), endpoints: config.endpoints.clone() }
}

/// What the extensions server is made of: the generic part, with its own group, and the custom rows.
struct ApiExtensionsConfig {
    server: GenericApiServer,
    custom: Rows,
}

fn create_api_extensions_config(
    config: &KubeApiServerConfig,
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
) -> ApiExtensionsConfig {
    let rows = rows_of(config, options, shared, |group| group == EXTENSIONS);
    ApiExtensionsConfig { server: server("apiextensions-server", config, rows), custom: shared.custom.clone() }
}

fn create_api_extensions_server(config: ApiExtensionsConfig, delegate: Box<dyn Delegate>) -> ExtensionsServer {
    ExtensionsServer { server: config.server, custom: config.custom, delegate }
}

fn create_kube_apiserver(
    config: &KubeApiServerConfig,
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
    delegate: Box<dyn Delegate>,
) -> KubeServer {
    let rows = rows_of(config, options, shared, |group| group != EXTENSIONS && group != REGISTRATION);
    config.wiring.stores.fill(&rows);
    let observed = shared.clone();
    KubeServer {
        server: server("kube-apiserver", config, rows),
        checks: checks(options, shared).into(),
        metrics: shared.metrics,
        profiling: options.telemetry.profiling,
        config_report: shared.config_report.clone(),
        observe: Arc::new(move |metrics| super::observe::observe(&observed, metrics)),
        delegate,
    }
}

/// What the aggregator has to know of the servers behind it to speak for all of them.
struct DelegateDocuments {
    rows: Vec<Arc<Catalog>>,
    checks: Arc<[Check]>,
}

/// What the aggregator is made of: the generic part, with its own group, and the documents of the whole chain.
struct AggregatorConfig {
    server: GenericApiServer,
    reader: Arc<CacheReader>,
    documents: Documents,
}

fn create_aggregator_config(
    config: &KubeApiServerConfig,
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
    delegates: DelegateDocuments,
) -> AggregatorConfig {
    let server = server("kube-aggregator", config, rows_of(config, options, shared, |group| group == REGISTRATION));
    let mut built_in = delegates.rows;
    built_in.push(server.rows.load_full());
    let port = options.serving.secure.first().map_or(0, |address| address.port());
    let documents = Documents::new(discovery::Sources {
        built_in,
        custom: shared.custom.clone(),
        reader: shared.reader.clone(),
        address: format!("{}:{port}", options.network.external_hostname),
        checks: delegates.checks,
        facts: facts(options, shared, port),
    });
    AggregatorConfig { server, reader: shared.reader.clone(), documents }
}

fn create_aggregator_server(config: AggregatorConfig, delegate: Box<dyn Delegate>) -> AggregatorServer {
    let AggregatorConfig { server, reader, documents } = config;
    AggregatorServer { server, reader, documents, delegate }
}

fn facts(options: &ValidatedOptions, shared: &Arc<Shared>, port: u16) -> discovery::Facts {
    let accounts = &options.authentication.service_account;
    let pems = accounts.signing_key.iter().chain(&accounts.key_files).map(|file| file.pem.reveal());
    let host = &options.network.external_hostname;
    let keys_url = format!("https://{host}:{port}/openid/v1/jwks");
    let issuer = accounts.issuers.first().map_or("", String::as_str);
    discovery::Facts {
        started: shared.started,
        flags: show_flags(options),
        openid: discovery::OpenId::new(issuer, pems, &keys_url),
    }
}

/// The checks in upstream's order (kubernetes: `/readyz?verbose`).
fn checks(options: &ValidatedOptions, shared: &Arc<Shared>) -> Vec<Check> {
    let storage = |name: &'static str| {
        let storage = shared.storage.clone();
        Check::new(name, move || {
            let storage = storage.clone();
            Box::pin(async move {
                match tokio::time::timeout(std::time::Duration::from_secs(2), storage.health()).await {
                    Ok(result) => result.map_err(|error| error.to_string()),
                    Err(_) => Err("timed out".to_owned()),
                }
            })
        })
    };
    let cache = shared.cache.clone();
    let lifecycle = shared.lifecycle.clone();
    let mut checks = vec![
        Check::immediate("ping", || Ok(())),
        Check::immediate("log", || Ok(())),
        // What stands for it here is not certified: the server asks itself without a connection.
        Check::immediate("loopback-serving-certificate", || Ok(())).not_ready(),
        storage("etcd"),
        storage("etcd-readiness").ready_only(),
        Check::immediate("informer-sync", move || {
            if cache.is_ready() { Ok(()) } else { Err("caches are not synced".to_owned()) }
        })
        .ready_only(),
    ];
    let grace_ends = shared.started + options.serving.livez_grace_period;
    checks.extend(shared.hooks.checks().into_iter().map(|check| check.with_grace(grace_ends)));
    checks.push(
        Check::immediate("shutdown", move || {
            if lifecycle.shutdown_initiated.is_fired() { Err("process is shutting down".to_owned()) } else { Ok(()) }
        })
        .ready_only(),
    );
    checks
}

fn layers_around(
    config: &KubeApiServerConfig,
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
    chain: AggregatorServer,
) -> Stack {
    let serving = &options.serving;
    let parts = StackParts {
        hsts: layers::Hsts::new(&serving.strict_transport_security_directives),
        goaway: (serving.goaway_chance > 0.0).then_some(layers::Goaway(serving.goaway_chance)),
        lifecycle: shared.lifecycle.clone(),
        send_retry_after: serving.shutdown_send_retry_after,
        request_timeout: serving.request_timeout,
        cors: layers::Cors::new(&serving.cors_allowed_origins),
        authentication: layers::Authentication::new(config.authenticators.clone(), shared.metrics),
        impersonation: layers::Impersonation {
            impersonator: Arc::new(Impersonator::default()),
            authorizer: config.authorizer.clone(),
        },
        in_flight: layers::InFlight::new(
            serving.max_requests_inflight,
            serving.max_mutating_requests_inflight,
            shared.metrics,
        ),
        authorization: layers::Authorization::new(config.authorizer.clone(), shared.metrics),
        metrics: shared.metrics,
        access_log: options.telemetry.access_log,
        max_body_bytes: usize::try_from(serving.connections.max_body_bytes).unwrap_or(usize::MAX),
        formats: match options.features.enabled("CBORServingAndStorage") {
            true => crate::codec::Format::WITH_CBOR,
            false => crate::codec::Format::USUAL,
        },
    };
    Stack::new(parts, Box::new(Outermost(chain)))
}
