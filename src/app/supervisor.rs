//! What the supervisor (systemd's notify protocol) and the person at the terminal are told. Without `NOTIFY_SOCKET` the
//! former is silence.

use std::{
    ffi::OsStr,
    io::{self, Write as _},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    path::Path,
    time::Duration,
};

use sd_notify::NotifyState;

use crate::{
    chain::{Shared, client::InProcess},
    controllers::ApiClient,
    options::ValidatedOptions,
    pki::newcomer::Newcomer,
    server::{current::Current, listen::Listeners},
};

/// A supervisor that does not read must not hold us up.
const SEND_LIMIT: Duration = Duration::from_secs(1);

/// The server listens.
pub fn ready(shared: &Shared, listeners: &Listeners, own: Option<&Newcomer>, options: &ValidatedOptions) {
    shared.lifecycle.has_been_ready.fire();
    let addresses = listeners.addresses();
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    tracing::info!(addresses = shown.join(", "), "serving");
    if let Some(own) = own {
        // Nobody may be reading any more.
        let _ = writeln!(io::stdout(), "{}", hint(&own.kubeconfig));
    }
    let status = format!("serving on {} ({})", shown.join(", "), options.hash());
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The line a newcomer needs.
fn hint(kubeconfig: &Path) -> String {
    format!("kubectl --kubeconfig {} get ns", kubeconfig.display())
}

/// The configuration is being replaced; [`reloaded`] has to follow.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "there is no monotonic clock"),
    }
}

/// The end of [`reloading`], good or bad: what serves is ready.
pub fn reloaded() {
    notify(&[NotifyState::Ready]);
}

/// One line for `systemctl status`.
pub fn status(text: &str) {
    notify(&[NotifyState::Status(text.lines().next().unwrap_or(""))]);
}

pub fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Tells the supervisor that we live, twice in its interval, as long as that is so: the chain answers and the store's
/// writer answers, be it with an error. What is wrong with a disk is not mended by a restart; what hangs is.
pub async fn watchdog(shared: std::sync::Arc<Shared>, current: Current) {
    let Some(interval) = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero()) else { return };
    let client = InProcess::new(current, "kenter/watchdog");
    let mut beat = tokio::time::interval(interval / 2);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        match tokio::time::timeout(interval / 2, well(&shared, &client)).await {
            Ok(Ok(())) => notify(&[NotifyState::Watchdog]),
            Ok(Err(reason)) => tracing::error!(reason, "not well: the supervisor's watchdog is not told"),
            Err(_) => tracing::error!("no answer from ourselves: the supervisor's watchdog is not told"),
        }
    }
}

async fn well(shared: &Shared, client: &InProcess) -> Result<(), String> {
    // An answer is what counts, not which.
    let _ = shared.storage.health().await;
    let path = "/livez?exclude=etcd".to_owned();
    client.call(::http::Method::GET, path, None).await.map(drop).map_err(|error| error.message.clone())
}

fn notify(states: &[NotifyState<'_>]) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    let text: String = states.iter().map(|state| format!("{state}\n")).collect();
    if let Err(error) = send(&socket, text.as_bytes()) {
        tracing::warn!(%error, "the supervisor could not be told");
    }
}

/// One datagram to a path or, after an `@`, to an abstract name.
fn send(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let datagram = UnixDatagram::unbound()?;
    datagram.set_write_timeout(Some(SEND_LIMIT))?;
    let sent = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => datagram.send_to_addr(message, &SocketAddr::from_abstract_name(name)?)?,
        None => datagram.send_to(message, Path::new(socket))?,
    };
    if sent == message.len() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::WriteZero, "incomplete datagram")) }
}

/// The machine's name, or "localhost".
pub fn host_name() -> String {
    let mut buffer = [0_u8; 256];
    // SAFETY: the kernel writes at most the given length, and the last byte stays the zero that ends the text.
    let done = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let name = std::ffi::CStr::from_bytes_until_nul(&buffer).ok().and_then(|name| name.to_str().ok());
    name.filter(|name| done == 0 && !name.is_empty()).unwrap_or("localhost").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_the_name_that_the_kernel_says() {
        let said = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(host_name(), said.trim());
    }

    #[test]
    fn paths_and_abstract_names_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let on_disk = UnixDatagram::bind(&path).unwrap();
        let name = format!("kenter-test-{}", std::process::id());
        let abstract_one = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let mut buffer = [0; 64];
        send(path.as_os_str(), b"READY=1\n").unwrap();
        send(OsStr::new(&format!("@{name}")), b"STOPPING=1\n").unwrap();
        assert_eq!(on_disk.recv(&mut buffer).map(|n| buffer[..n].to_vec()).unwrap(), b"READY=1\n");
        assert_eq!(abstract_one.recv(&mut buffer).map(|n| buffer[..n].to_vec()).unwrap(), b"STOPPING=1\n");
        assert!(send(OsStr::new("/nowhere/at/all"), b"x").is_err());
    }
}
