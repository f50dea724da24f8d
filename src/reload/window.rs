//! The first seconds of a new generation, the old one still whole.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::Running;
use crate::{app, chain::Generation, pki::newcomer::Newcomer, server::listen::Handover};

/// The listeners of both generations.
pub struct Hands {
    pub listeners: Handover,
    pub admin: Handover,
}

impl Hands {
    /// Closes what only the old one listened on.
    pub fn finish(self) {
        self.listeners.finish();
        self.admin.finish();
    }
}

pub struct Window {
    old: Arc<Generation>,
    own: Option<Newcomer>,
    hands: Hands,
    until: Instant,
}

impl Window {
    pub fn new(old: Arc<Generation>, own: Option<Newcomer>, hands: Hands, length: Duration) -> Self {
        Self { old, own, hands, until: Instant::now() + length }
    }

    /// Waits for the window's end; for ever where there is none.
    pub async fn over(window: &Option<Self>) {
        match window {
            Some(window) => tokio::time::sleep_until(window.until).await,
            None => std::future::pending().await,
        }
    }

    /// Retires the old generation: its listeners close, its requests end by themselves within its grace.
    pub fn finish(self) {
        self.hands.finish();
        retire(&self.old);
    }

    /// The old generation serves again; nothing is rebuilt, so this cannot fail.
    pub fn back(self, running: &mut Running) {
        self.hands.listeners.back();
        self.hands.admin.back();
        app::commit(&running.shared, &running.current, &self.old);
        let retired = std::mem::replace(&mut running.generation, self.old);
        retire(&retired);
        running.own = self.own;
    }
}

/// Requests that began in a generation have its grace to get their answer; what is longer (watches, streams) has left it
/// with its first byte.
pub fn retire(generation: &Generation) {
    let grace = generation.options.reload.grace;
    let stack = Arc::downgrade(&generation.stack);
    tokio::spawn(async move {
        tokio::time::sleep(grace).await;
        if let Some(stack) = stack.upgrade() {
            tracing::warn!("requests of a retired configuration are cut");
            stack.cut();
        }
    });
}
