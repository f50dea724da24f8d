//! The signals that end the process, and the one that asks for a reload.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use crate::{chain::shared::StartError, reload::Trigger};

/// SIGHUP asks for a reload.
pub(super) fn forward_hangup(mut hangup: Signal, asked: mpsc::Sender<Trigger>) {
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            // A full queue has an attempt that comes after this signal.
            let _ = asked.try_send(Trigger::Signal);
        }
    });
}

/// SIGTERM and SIGINT.
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(super) fn new() -> Result<Self, StartError> {
        let listen = |kind| signal(kind).map_err(|error| StartError(format!("cannot listen for signals: {error}")));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// SIGHUP, which asks for a reload.
    pub(super) fn hangup(&self) -> Result<Signal, StartError> {
        signal(SignalKind::hangup()).map_err(|error| StartError(format!("cannot listen for signals: {error}")))
    }

    pub(super) async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
