//! The first seconds of a new generation, the old one still whole.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    app,
    chain::{Generation, Shared},
    pki::newcomer::Newcomer,
    server::{current::Current, listen::Handover},
};

pub struct Window {
    old: Arc<Generation>,
    own: Option<Newcomer>,
    handover: Handover,
    until: Instant,
}

impl Window {
    pub fn new(old: Arc<Generation>, own: Option<Newcomer>, handover: Handover, length: Duration) -> Self {
        Self { old, own, handover, until: Instant::now() + length }
    }

    /// Waits for the window's end; for ever where there is none.
    pub async fn over(window: &Option<Self>) {
        match window {
            Some(window) => tokio::time::sleep_until(window.until).await,
            None => std::future::pending().await,
        }
    }

    /// Retires the old generation: its listeners close, its requests end by themselves.
    pub fn finish(self) {
        self.handover.finish();
    }

    /// The old generation serves again; nothing is rebuilt, so this cannot fail.
    pub fn back(self, shared: &Shared, current: &Current) -> (Arc<Generation>, Option<Newcomer>) {
        self.handover.back();
        app::commit(shared, current, &self.old);
        (self.old, self.own)
    }
}
