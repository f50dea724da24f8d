//! One process's server from the making of its chain to its end, in upstream's steps: create, `prepare_run`, `run`
//! (kubernetes `cmd/kube-apiserver/app/server.go`, `staging/src/k8s.io/apiserver/pkg/server/genericapiserver.go`).

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::{
    CLOSE_GRACE, admin_link, bind_admin,
    bootstrap::Controllers,
    commit,
    hooks::{self, Registered},
    limits, listener_specs, own_certificates,
    stop::{Stop, forward_hangup},
    supervisor,
};
use crate::{
    chain::{Generation, Shared, create_server_chain, custom::CustomRows, shared::StartError},
    options::{Invocation, ValidatedOptions},
    pki::newcomer::{Newcomer, Prepared},
    reload::{self, Reloader, Running, Trigger},
    server::{
        current::{Current, ServeFuture},
        http::Request,
        listen::{Bound, InheritedSockets, Listeners},
        respond,
    },
    telemetry::log,
};

/// The chain is made and the addresses are bound; nobody is served yet.
pub(super) struct Server {
    invocation: Invocation,
    options: ValidatedOptions,
    logs: log::LogHandle,
    shared: Arc<Shared>,
    own: Option<Newcomer>,
    registered: Registered,
    current: Current,
    generation: Generation,
    listeners: Listeners,
    bound: Bound,
}

/// Requests are served and the hooks run.
pub(super) struct PreparedServer {
    running: Running,
    asked: mpsc::Sender<Trigger>,
    triggers: mpsc::Receiver<Trigger>,
}

impl Server {
    pub(super) fn create(
        invocation: Invocation,
        options: ValidatedOptions,
        logs: log::LogHandle,
    ) -> Result<Self, StartError> {
        let shared = Shared::open(&options.storage)?;
        let own = own_certificates(&options)?.map(Prepared::write).transpose().map_err(start_error)?;
        // Until the first commit nothing listens, so nobody meets this.
        let current = Current::new(Arc::new(|_: Request| -> ServeFuture {
            Box::pin(async { respond::text_error(503, "starting") })
        }));
        let registered = hooks::register(&shared.hooks, &options);
        let generation = create_server_chain(&options, &shared, &current, own_ca(&own)).map_err(start_error)?;
        let inherited = InheritedSockets::from_environment().map_err(start_error)?;
        let listeners = Listeners::new(current.clone(), limits(&options), inherited);
        let bound = listeners.bind(listener_specs(&options, own.as_ref())?, limits(&options)).map_err(start_error)?;
        Ok(Self { invocation, options, logs, shared, own, registered, current, generation, listeners, bound })
    }

    /// Waits for the caches' first fill, serves, and starts the post-start hooks and what reloads.
    pub(super) async fn prepare_run(self) -> Result<PreparedServer, StartError> {
        let Self { invocation, options, logs, shared, own, registered, current, generation, listeners, bound } = self;
        filled(&shared, &options).await?;
        let custom = CustomRows::start(&shared);
        commit(&shared, &current, &generation);
        listeners.commit(bound).finish();
        let bootstrap = hooks::Bootstrap::start(&options, &shared, &current, own_ca(&own), &registered, custom);
        let mut controllers = Controllers::new(shared.clone(), &current, bootstrap);
        controllers.apply(&options, own.as_ref());
        let (asked, triggers) = mpsc::channel(reload::QUEUE);
        let admin = admin_socket(&options, &shared, &asked)?;
        let generation = Arc::new(generation);
        let running = Running { invocation, shared, current, listeners, admin, logs, generation, own, controllers };
        Ok(PreparedServer { running, asked, triggers })
    }
}

impl PreparedServer {
    /// Serves until the first stop signal, then ends in order.
    pub(super) async fn run(self, mut stop: Stop) -> Result<(), StartError> {
        let Self { running, asked, triggers } = self;
        forward_hangup(stop.hangup()?, asked);
        let shared = running.shared.clone();
        supervisor::ready(&shared, &running.listeners, running.own.as_ref(), &running.generation.options);
        let watchdog = tokio::spawn(supervisor::watchdog(shared.clone(), running.current.clone()));
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
}

fn start_error(error: impl ToString) -> StartError {
    StartError(error.to_string())
}

fn own_ca(own: &Option<Newcomer>) -> Option<&str> {
    own.as_ref().map(|own| own.authority_pem.as_str())
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
    admin_link::point(options, None);
    Ok(listeners)
}

/// Waits for the caches' first fill.
async fn filled(shared: &Shared, options: &ValidatedOptions) -> Result<(), StartError> {
    let limit = options.storage.initialization_timeout;
    tokio::time::timeout(limit, shared.cache.ready())
        .await
        .map_err(|_| StartError(format!("the caches were not filled within {}s", limit.as_secs())))
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
