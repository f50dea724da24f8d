//! The named moments of the process's life and who waits for them
//! (apiserver `pkg/server/lifecycle_signals.go`).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

/// A moment: fires once, and everyone who waits or asks later sees it.
pub struct Moment {
    name: &'static str,
    fired: watch::Sender<bool>,
}

impl Moment {
    fn new(name: &'static str) -> Self {
        Self { name, fired: watch::Sender::new(false) }
    }

    pub fn fire(&self) {
        if !self.fired.send_replace(true) {
            tracing::debug!(moment = self.name, "lifecycle");
        }
    }

    pub fn is_fired(&self) -> bool {
        *self.fired.borrow()
    }

    pub async fn wait(&self) {
        let mut fired = self.fired.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = fired.wait_for(|fired| *fired).await;
    }
}

/// The moments of one process, shared by all generations.
pub struct Lifecycle {
    /// All paths that are known at start are served.
    pub paths_complete: Moment,
    /// `/readyz` has said yes once.
    pub has_been_ready: Moment,
    /// The stop signal came; `/readyz` fails from here on.
    pub shutdown_initiated: Moment,
    /// The delay is over and the pre-shutdown hooks have run.
    pub not_accepting_new_request: Moment,
    /// No short request is left, and watches have ended or been given up.
    pub in_flight_drained: Moment,
    running: AtomicUsize,
    idle: watch::Sender<()>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            paths_complete: Moment::new("MuxAndDiscoveryComplete"),
            has_been_ready: Moment::new("HasBeenReady"),
            shutdown_initiated: Moment::new("ShutdownInitiated"),
            not_accepting_new_request: Moment::new("NotAcceptingNewRequest"),
            in_flight_drained: Moment::new("InFlightRequestsDrained"),
            running: AtomicUsize::new(0),
            idle: watch::Sender::new(()),
        }
    }
}

/// One request that shutdown waits for, until this is dropped.
pub struct Counted(Arc<Lifecycle>);

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.send_replace(());
        }
    }
}

impl Lifecycle {
    pub fn enter(self: &Arc<Self>) -> Counted {
        self.running.fetch_add(1, Ordering::AcqRel);
        Counted(self.clone())
    }

    /// Waits until no counted request runs, at most `limit`; whether it was so.
    pub async fn drained(&self, limit: Duration) -> bool {
        let mut idle = self.idle.subscribe();
        let wait = async {
            while self.running.load(Ordering::Acquire) > 0 {
                if idle.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shutdown_waits_for_counted_requests_and_no_longer_than_its_limit() {
        let lifecycle = Arc::new(Lifecycle::default());
        let counted = lifecycle.enter();
        assert!(!lifecycle.drained(Duration::from_millis(10)).await);
        let waiting = tokio::spawn({
            let lifecycle = lifecycle.clone();
            async move { lifecycle.drained(Duration::from_secs(30)).await }
        });
        drop(counted);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn a_moment_is_seen_by_who_waits_and_by_who_asks_later() {
        let lifecycle = Arc::new(Lifecycle::default());
        let waiting = tokio::spawn({
            let lifecycle = lifecycle.clone();
            async move { lifecycle.shutdown_initiated.wait().await }
        });
        lifecycle.shutdown_initiated.fire();
        waiting.await.unwrap();
        assert!(lifecycle.shutdown_initiated.is_fired());
    }
}
