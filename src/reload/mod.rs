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
pub mod probe;
mod report;
#[cfg(test)]
mod tests;
mod watcher;
mod window;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use report::Applied;
pub use report::{Outcome, Report};
use window::Window;

use crate::{
    app::{self, bootstrap::Controllers, supervisor},
    chain::{Generation, Shared},
    options::{Invocation, Problem, Problems, ValidatedOptions},
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

impl Trigger {
    /// Whether somebody asked, so that also "nothing to do" is an answer.
    fn asked(&self) -> bool {
        matches!(self, Self::Signal | Self::Admin(_))
    }
}

/// Askers that wait; more wait for a place. One attempt answers all of them.
pub const QUEUE: usize = 16;

/// What the daemon is made of, as far as a reload replaces or asks it.
pub struct Running {
    pub invocation: Invocation,
    pub shared: Arc<Shared>,
    pub current: Current,
    pub listeners: Listeners,
    /// The socket of `kenter reload`.
    pub admin: Listeners,
    pub logs: LogHandle,
    pub generation: Arc<Generation>,
    /// The certificates that kenter made for itself, where it did.
    pub own: Option<Newcomer>,
    pub controllers: Controllers,
}

pub struct Reloader {
    running: Running,
    window: Option<Window>,
    watcher: watcher::FileWatcher,
    /// A reading and a building that took too long and are still at it.
    reading: Option<JoinHandle<Result<ValidatedOptions, Problems>>>,
    building: Option<JoinHandle<Result<attempt::Candidate, Box<Problem>>>>,
    /// What was applied and taken back; only somebody who asks gets it tried again.
    rejected: Option<ValidatedOptions>,
    last: Report,
    applied: Option<Applied>,
    /// The supervisor has been told that a reload is going on.
    announced: bool,
}

impl Reloader {
    pub fn new(running: Running) -> Self {
        let options = &running.generation.options;
        let last = Report::started(running.current.generation(), options);
        last.publish(&running.shared, options, true);
        let watcher = watcher::FileWatcher::new(options);
        Self {
            running,
            window: None,
            watcher,
            reading: None,
            building: None,
            rejected: None,
            last,
            applied: None,
            announced: false,
        }
    }

    /// Serves triggers until `end` is dropped or sent to; gives back what serves then.
    pub async fn run(mut self, mut triggers: mpsc::Receiver<Trigger>, mut end: oneshot::Receiver<()>) -> Running {
        loop {
            let poll = self.running.generation.options.reload.poll_interval;
            let trigger = tokio::select! {
                biased;
                _ = &mut end => break,
                trigger = triggers.recv() => match trigger {
                    Some(trigger) => trigger,
                    None => break,
                },
                () = Window::over(&self.window) => {
                    self.close_window().await;
                    continue;
                }
                () = self.watcher.settled() => Trigger::Files,
                () = after(poll) => Trigger::Poll,
            };
            let mut waiting = vec![trigger];
            while let Ok(trigger) = triggers.try_recv() {
                waiting.push(trigger);
            }
            self.serve(waiting).await;
        }
        if let Some(window) = self.window.take() {
            window.finish();
        }
        self.running
    }

    /// One attempt, which answers everybody who waits.
    async fn serve(&mut self, waiting: Vec<Trigger>) {
        let asked = waiting.iter().any(Trigger::asked);
        if asked {
            self.announce();
        }
        let mut report = self.attempt(asked).await;
        if report.outcome == Outcome::Applied {
            self.applied = Some(Applied { at: report.at, lines: report.lines.clone() });
        }
        report.last_applied.clone_from(&self.applied);
        // A look that found nothing is no event, unless something was wrong before; nor is the same failure again, which
        // is logged once though it is told to everybody who asks.
        let nothing = report.outcome == Outcome::Unchanged && self.last.outcome.good();
        let same = report.tells_the_same_as(&self.last);
        if asked || !(nothing || same) {
            let again = same && !report.outcome.good();
            report.publish(&self.running.shared, &self.running.generation.options, !again);
            self.last = report.clone();
        }
        if std::mem::take(&mut self.announced) {
            supervisor::reloaded();
        }
        for trigger in waiting {
            if let Trigger::Admin(answer) = trigger {
                // Whoever asked may have gone.
                let _ = answer.send(report.clone());
            }
        }
    }

    /// Tells the supervisor, once an attempt, that a reload is going on.
    fn announce(&mut self) {
        if !std::mem::replace(&mut self.announced, true) {
            supervisor::reloading();
        }
    }

    /// The old generation is no longer needed; or, where the new one turned bad, it serves again.
    async fn close_window(&mut self) {
        let Some(window) = self.window.take() else { return };
        let cause = match self.health().await {
            Ok(()) => return window.finish(),
            Err(cause) => cause,
        };
        let new = self.running.generation.options.clone();
        window.back(&mut self.running);
        app::admin_link::point(&self.running.generation.options, Some(&new));
        let old = self.running.generation.options.clone();
        if let Err(error) = self.running.logs.apply(&old.telemetry) {
            tracing::error!(%error, "the log filter could not be changed back");
        }
        if let Err(problem) = self.tune(&old).await {
            tracing::error!(%problem, "the store could not be tuned back");
        }
        self.running.controllers.apply(&old, self.running.own.as_ref());
        self.watcher.follow(&old, Some(new.watch()));
        self.rejected = Some(new);
        self.publish(Report::reverted(self.running.current.generation(), &old, &cause));
    }

    /// Tells everyone: log, metrics, `/kenter/config`, the supervisor.
    fn publish(&mut self, report: Report) {
        report.publish(&self.running.shared, &self.running.generation.options, true);
        self.last = report;
    }
}

/// Zero is never.
async fn after(interval: Duration) {
    if interval.is_zero() { std::future::pending().await } else { tokio::time::sleep(interval).await }
}
