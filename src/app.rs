//! The process: runtime, signals, supervisor status, root tasks. The only place that exits.

pub mod admin_link;
pub mod bootstrap;
pub mod hooks;
mod server;
mod stop;
pub mod supervisor;

use std::{os::unix::fs::DirBuilderExt, process::ExitCode, sync::Arc, time::Duration};

use self::{server::Server, stop::Stop};
use crate::{
    api::release,
    chain::{Generation, Shared, shared::StartError},
    object::DEEP_STACK,
    options::{self, Invocation, ValidatedOptions},
    pki::newcomer::{self, Newcomer, NewcomerOptions, Prepared},
    reload::catalogue::catalogue,
    server::{
        current::Current,
        listen::{Address, Bound, Limits, ListenError, ListenerSpec, Listeners, tls},
        stack::Served,
    },
    telemetry::log,
};

/// How long connections may take to end after the requests in them have.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// Runs the server until it is told to stop.
pub fn run(invocation: Invocation) -> ExitCode {
    let options = match options::read(&invocation, &catalogue()) {
        Ok(options) => options,
        Err(problems) => return failed(&problems.to_string()),
    };
    let logs = match log::init(&options.telemetry) {
        Ok(logs) => logs,
        Err(error) => return failed(&error.to_string()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(DEEP_STACK).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    let result = runtime.block_on(serve(invocation, options, logs));
    runtime.shutdown_timeout(CLOSE_GRACE);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(text: &str) -> ExitCode {
    tracing::error!("{text}");
    eprintln!("kenter: {text}");
    ExitCode::FAILURE
}

fn announce(options: &ValidatedOptions) {
    tracing::info!("{}", release::line());
    for (key, value, origin) in options::written(options) {
        tracing::info!(key, value, %origin, "option");
    }
    for warning in options.warnings() {
        tracing::warn!("{warning}");
    }
    let missing: Vec<_> =
        catalogue().admission_plugins.into_iter().filter(|it| it.on_by_default && !it.built).collect();
    if !missing.is_empty() {
        let plugins = missing.iter().map(|plugin| plugin.name.as_str()).collect::<Vec<_>>().join(", ");
        tracing::warn!(plugins, "these admission plugins run by default upstream and are not built here yet");
    }
}

/// Upstream's order: the chain is made, the run is prepared, the prepared server runs until it is told to stop.
async fn serve(invocation: Invocation, options: ValidatedOptions, logs: log::LogHandle) -> Result<(), StartError> {
    announce(&options);
    let mut stop = Stop::new()?;
    let server = Server::create(invocation, options, logs)?;
    let prepared = tokio::select! {
        prepared = server.prepare_run() => prepared?,
        () = stop.wait() => return Ok(()),
    };
    prepared.run(stop).await
}

/// Binds the admin socket of these options, where it is not open already.
pub fn bind_admin(listeners: &Listeners, options: &ValidatedOptions) -> Result<Bound, ListenError> {
    let socket = options.state.admin_socket.clone();
    let address = Address::Unix(socket.clone());
    if let Some(parent) = socket.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.map_err(|error| ListenError { address: address.clone(), reason: error.to_string() })?;
    }
    listeners.bind(vec![ListenerSpec::new(address, None)], limits(options))
}

/// Makes a generation the one that serves. Cannot fail.
pub fn commit(shared: &Shared, current: &Current, generation: &Generation) {
    shared.rights.store(generation.authorizer.clone());
    shared.note_generation(&generation.stack);
    current.store(Arc::new(Served(generation.stack.clone())));
    shared.lifecycle.paths_complete.fire();
}

/// Connection limits out of the options.
pub fn limits(options: &ValidatedOptions) -> Limits {
    Limits { connections: options.serving.connections.clone(), http2: options.serving.http2.clone() }
}

/// The certificates kenter makes for itself, where none were given; nothing is written yet.
pub fn own_certificates(options: &ValidatedOptions) -> Result<Option<Prepared>, StartError> {
    if options.serving.tls.certificate.is_some() {
        return Ok(None);
    }
    let mut addresses: Vec<std::net::IpAddr> = options.serving.secure.iter().map(|address| address.ip()).collect();
    addresses.extend(options.network.advertise_address);
    addresses.extend(options.network.service_cluster_ip_range.first().and_then(|range| range.hosts().next()));
    let port = options.serving.secure.first().map_or(6443, |address| address.port());
    let made = newcomer::prepare(&NewcomerOptions {
        directory: options.serving.tls.cert_dir.clone(),
        kubeconfig: options.state.kubeconfig.clone(),
        server_url: format!("https://127.0.0.1:{port}"),
        host_name: supervisor::host_name(),
        addresses,
        cluster_domain: "cluster.local".to_owned(),
    });
    made.map(Some).map_err(|error| StartError(error.to_string()))
}

/// The listeners of these options.
pub fn listener_specs(options: &ValidatedOptions, own: Option<&Newcomer>) -> Result<Vec<ListenerSpec>, StartError> {
    use crate::options::completed::InsecureAddress;
    let failed = |error: crate::pki::PkiError| StartError(error.to_string());
    let own = own
        .map(|own| crate::pki::check_pair(own.serving_pem.as_bytes(), own.serving_key_pem.as_bytes()))
        .transpose()
        .map_err(failed)?;
    let config =
        tls::server_config(&options.serving.tls, own.as_ref(), options.serving.http2.enabled).map_err(failed)?;
    let secure = options.serving.secure.iter().map(|address| {
        let mut spec = ListenerSpec::new(Address::Tcp(*address), Some(config.clone()));
        spec.share_port = options.serving.permit_port_sharing;
        spec
    });
    let plain = options.serving.insecure.iter().map(|address| {
        let address = match address {
            InsecureAddress::Tcp(address) => Address::Tcp(*address),
            InsecureAddress::Unix(path) => Address::Unix(path.clone()),
        };
        ListenerSpec::new(address, None)
    });
    Ok(secure.chain(plain).collect())
}
