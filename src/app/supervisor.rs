//! What the supervisor and the person at the terminal are told.

use std::path::Path;

use crate::{
    chain::Shared,
    options::ValidatedOptions,
    pki::newcomer::Newcomer,
    server::listen::Listeners,
};

/// The server listens.
pub fn ready(shared: &Shared, listeners: &Listeners, own: Option<&Newcomer>, options: &ValidatedOptions) {
    shared.lifecycle.has_been_ready.fire();
    let addresses = listeners.addresses();
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    tracing::info!(addresses = shown.join(", "), "serving");
    if let Some(own) = own {
        println!("{}", hint(&own.kubeconfig));
    }
    notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status(&format!("serving on {} ({})", shown.join(", "), options.hash()))]);
}

/// The line a newcomer needs.
fn hint(kubeconfig: &Path) -> String {
    format!("kubectl --kubeconfig {} get ns", kubeconfig.display())
}

/// One line for `systemctl status`.
pub fn status(text: &str) {
    notify(&[sd_notify::NotifyState::Status(text)]);
}

pub fn stopping() {
    notify(&[sd_notify::NotifyState::Stopping]);
}

fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the supervisor could not be told");
    }
}

/// The machine's name, or "localhost".
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
