//! Notices changes of the configuration and replaces the running generation: read → complete → validate → diff → build
//! aside → probe → commit → watch its first seconds → retire.
//!
//! One reload at a time; triggers that come meanwhile are one more attempt after it. Until the commit nobody can
//! notice anything; a failure at any step leaves what serves and is told wherever an operator looks.

pub mod admin;
mod attempt;
pub mod catalogue;
pub mod client;
pub mod diff;
mod report;
mod watcher;
mod window;

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

pub use report::{Outcome, Report};
use window::Window;

use crate::{
    app::bootstrap::Controllers,
    chain::{Generation, Shared},
    options::Invocation,
    pki::newcomer::Newcomer,
    server::{current::Current, listen::Listeners},
    telemetry::log::LogHandle,
};

/// Why an attempt is made.
pub enum Trigger {
    /// Something in a watched folder changed.
    Files,
    /// SIGHUP.
    Signal,
    /// The slow look, in case an event was lost.
    Poll,
    /// `kenter reload`, which waits for the answer.
    Admin(oneshot::Sender<Report>),
}

/// Attempts that wait; more are refused to the asker, since one more attempt covers them all.
pub const QUEUE: usize = 16;

/// What the daemon is made of, as far as a reload replaces or asks it.
pub struct Reloader {
    pub invocation: Invocation,
    pub shared: Arc<Shared>,
    pub current: Current,
    pub listeners: Listeners,
    pub logs: LogHandle,
    pub generation: Arc<Generation>,
    pub own: Option<Newcomer>,
    pub controllers: Controllers,
    window: Option<Window>,
    watcher: watcher::FileWatcher,
    /// Generations that may still be held by requests, to be counted.
    alive: Vec<std::sync::Weak<crate::server::stack::Stack>>,
}

impl Reloader {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        invocation: Invocation,
        shared: Arc<Shared>,
        current: Current,
        listeners: Listeners,
        logs: LogHandle,
        generation: Arc<Generation>,
        own: Option<Newcomer>,
        controllers: Controllers,
    ) -> Self {
        let watcher = watcher::FileWatcher::new(&generation.options);
        let alive = vec![Arc::downgrade(&generation.stack)];
        let reloader = Self { invocation, shared, current, listeners, logs, generation, own, controllers, window: None, watcher, alive };
        reloader.publish(&Report::started(reloader.current.generation(), &reloader.generation.options));
        reloader
    }

    /// Serves triggers until the channel closes.
    pub async fn run(mut self, mut triggers: mpsc::Receiver<Trigger>) {
        loop {
            let poll = self.generation.options.reload.poll_interval;
            let trigger = tokio::select! {
                trigger = triggers.recv() => match trigger {
                    Some(trigger) => trigger,
                    None => break,
                },
                () = self.watcher.settled() => Trigger::Files,
                () = after(poll) => Trigger::Poll,
                () = Window::over(&self.window) => {
                    self.close_window().await;
                    continue;
                }
            };
            self.serve(trigger).await;
        }
    }

    async fn serve(&mut self, trigger: Trigger) {
        let quiet = matches!(trigger, Trigger::Poll | Trigger::Files);
        let report = self.attempt().await;
        // A look that found nothing is no event.
        if !(quiet && report.outcome == Outcome::Unchanged) {
            self.publish(&report);
        }
        if let Trigger::Admin(answer) = trigger {
            // Whoever asked may have gone.
            let _ = answer.send(report);
        }
    }

    /// The old generation is no longer needed; or, where the new one turned bad, it serves again.
    async fn close_window(&mut self) {
        let Some(window) = self.window.take() else { return };
        match self.health().await {
            Ok(()) => window.finish(),
            Err(cause) => {
                let (generation, own) = window.back(&self.shared, &self.current);
                self.generation = generation;
                self.own = own;
                self.controllers.apply(&self.generation.options);
                let report = Report::reverted(self.current.generation(), &self.generation.options, &cause);
                self.publish(&report);
            }
        }
    }

    /// Tells everyone: log, metrics, `/kenter/config`, the supervisor.
    fn publish(&self, report: &Report) {
        report.publish(&self.shared, self.alive.iter().filter(|stack| stack.strong_count() > 0).count());
    }
}

/// Zero is never.
async fn after(interval: Duration) {
    if interval.is_zero() { std::future::pending().await } else { tokio::time::sleep(interval).await }
}
