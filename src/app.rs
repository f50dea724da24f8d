//! The process: runtime, signals, supervisor status, root tasks. The only place that exits.

pub mod bootstrap;
pub mod hooks;
pub mod supervisor;

use std::{os::unix::fs::DirBuilderExt, process::ExitCode, sync::Arc, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot},
};

use self::bootstrap::Controllers;

use crate::{
    api::release,
    chain::{Generation, Shared, create_server_chain, custom::CustomRows, shared::StartError},
    options::{self, Invocation, ValidatedOptions},
    pki::newcomer::{self, Newcomer, NewcomerOptions, Prepared},
    reload::{self, Reloader, Running, Trigger, catalogue::catalogue},
    server::{
        current::Current,
        listen::{Address, Bound, InheritedSockets, Limits, ListenError, ListenerSpec, Listeners, tls},
        stack::Served,
    },
    telemetry::log,
};

/// Stack of worker threads: walks over documents of the deepest nesting that is accepted recurse.
const WORKER_STACK: usize = 8 << 20;

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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(WORKER_STACK).build();
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
}

async fn serve(invocation: Invocation, options: ValidatedOptions, logs: log::LogHandle) -> Result<(), StartError> {
    announce(&options);
    let mut stop = Stop::new()?;
    let shared = Shared::open(&options.storage)?;
    let own =
        own_certificates(&options)?.map(Prepared::write).transpose().map_err(|error| StartError(error.to_string()))?;
    // Until the first commit nothing listens, so nobody meets this.
    let current = Current::new(Arc::new(|_: crate::server::http::Request| -> crate::server::current::ServeFuture {
        Box::pin(async { crate::server::respond::text_error(503, "starting") })
    }));
    let registered = hooks::register(&shared.hooks, &options);
    let own_ca = own.as_ref().map(|own| own.authority_pem.as_str());
    let generation =
        create_server_chain(&options, &shared, &current, own_ca).map_err(|error| StartError(error.to_string()))?;
    let inherited = InheritedSockets::from_environment().map_err(|error| StartError(error.to_string()))?;
    let listeners = Listeners::new(current.clone(), limits(&options), inherited);
    let bound = listeners
        .bind(listener_specs(&options, own.as_ref())?, limits(&options))
        .map_err(|error| StartError(error.to_string()))?;
    tokio::select! {
        filled = ready(&shared, &options) => filled?,
        () = stop.wait() => return Ok(()),
    }
    let custom = CustomRows::start(&shared);
    commit(&shared, &current, &generation);
    listeners.commit(bound).finish();
    let bootstrap = hooks::Bootstrap::start(&options, &shared, &current, own_ca, &registered, custom);
    let mut controllers = Controllers::new(shared.clone(), &current, bootstrap);
    controllers.apply(&options, own.as_ref());
    let (asked, triggers) = mpsc::channel(reload::QUEUE);
    let admin = admin_socket(&options, &shared, &asked)?;
    forward_hangup(stop.hangup()?, asked);
    supervisor::ready(&shared, &listeners, own.as_ref(), &options);
    let watchdog = tokio::spawn(supervisor::watchdog(shared.clone(), current.clone()));
    let generation = Arc::new(generation);
    let running =
        Running { invocation, shared: shared.clone(), current, listeners, admin, logs, generation, own, controllers };
    let (end, ended) = oneshot::channel();
    let mut reloading = tokio::spawn(Reloader::new(running).run(triggers, ended));
    tokio::select! {
        () = stop.wait() => {}
        // It ends when it is told to; anything else is a panic in it.
        ended = &mut reloading => return Err(StartError(format!("reloading ended: {:?}", ended.err()))),
    }
    // From here on the configuration stays what it is; an attempt that has begun comes to its end.
    drop(end);
    let running = tokio::select! {
        running = reloading => running.map_err(|error| StartError(format!("reloading ended: {error}")))?,
        () = stop.wait() => return Ok(()),
    };
    shut_down(&running, &mut stop).await;
    watchdog.abort();
    shared.cache.stop();
    shared.embedded.close();
    tracing::info!("[graceful-termination] apiserver is exiting");
    Ok(())
}

/// Where `kenter reload` asks.
fn admin_socket(
    options: &ValidatedOptions,
    shared: &Arc<Shared>,
    asked: &mpsc::Sender<Trigger>,
) -> Result<Listeners, StartError> {
    let serve = reload::admin::Admin { triggers: asked.clone(), shared: shared.clone() };
    let listeners = Listeners::new(Current::new(Arc::new(serve)), limits(options), InheritedSockets::default());
    let bound = bind_admin(&listeners, options).map_err(|error| StartError(error.to_string()))?;
    listeners.commit(bound).finish();
    Ok(listeners)
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

/// SIGHUP asks for a reload.
fn forward_hangup(mut hangup: Signal, asked: mpsc::Sender<Trigger>) {
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            // A full queue has an attempt that comes after this signal.
            let _ = asked.try_send(Trigger::Signal);
        }
    });
}

/// Waits for the caches' first fill.
async fn ready(shared: &Shared, options: &ValidatedOptions) -> Result<(), StartError> {
    let limit = options.storage.initialization_timeout;
    tokio::time::timeout(limit, shared.cache.ready())
        .await
        .map_err(|_| StartError(format!("the caches were not filled within {}s", limit.as_secs())))
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

/// Readiness fails first, then requests drain, then watches end (kubernetes: graceful termination).
async fn shut_down(running: &Running, stop: &mut Stop) {
    let Running { listeners, admin, controllers, .. } = running;
    let (options, lifecycle) = (&running.generation.options, &running.shared.lifecycle);
    admin.stop_accepting();
    lifecycle.shutdown_initiated.fire();
    supervisor::stopping();
    let orderly = async {
        tokio::join!(tokio::time::sleep(options.serving.shutdown_delay_duration), controllers.stop());
        lifecycle.not_accepting_new_request.fire();
        if !options.serving.shutdown_send_retry_after {
            listeners.stop_accepting();
        }
        lifecycle.drained(options.serving.request_timeout).await;
        lifecycle.in_flight_drained.fire();
        listeners.drain(CLOSE_GRACE.max(options.serving.shutdown_watch_termination_grace_period)).await;
    };
    tokio::select! {
        () = orderly => {}
        // A second signal means now.
        () = stop.wait() => tracing::warn!("a second signal: not waiting for requests any longer"),
    }
}

/// SIGTERM and SIGINT.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> Result<Self, StartError> {
        let listen = |kind| signal(kind).map_err(|error| StartError(format!("cannot listen for signals: {error}")));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// SIGHUP, which asks for a reload.
    fn hangup(&self) -> Result<Signal, StartError> {
        signal(SignalKind::hangup()).map_err(|error| StartError(format!("cannot listen for signals: {error}")))
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
