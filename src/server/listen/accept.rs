//! One accept loop per socket.

use std::{io, sync::Arc, sync::atomic::Ordering, time::Duration};

use super::{
    Listener, Shared, connection,
    socket::{Socket, Stream},
};

/// One more open connection, for as long as this lives.
pub(super) struct Slot(Arc<Shared>);

impl Slot {
    fn take(shared: &Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        Self(shared.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
        self.0.freed.notify_waiters();
    }
}

/// Accepts until told to stop, then takes what the kernel has already completed, then closes the socket.
pub(super) async fn run(shared: Arc<Shared>, listener: Arc<Listener>, socket: Socket) {
    let mut stop = listener.stop.subscribe();
    let mut trouble = Trouble::default();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = next(&shared, &socket) => accepted,
        };
        match accepted {
            Ok(stream) => {
                trouble = Trouble::default();
                spawn(&shared, &listener, stream);
            }
            Err(error) => trouble.pause(&listener, &error).await,
        }
    }
    while let Some(Ok(stream)) = futures_util::FutureExt::now_or_never(socket.accept()) {
        spawn(&shared, &listener, stream);
    }
}

async fn next(shared: &Shared, socket: &Socket) -> io::Result<Stream> {
    below_limit(shared).await;
    socket.accept().await
}

/// Waits until there is room for one more connection; meanwhile they queue up in the kernel.
async fn below_limit(shared: &Shared) {
    loop {
        let freed = shared.freed.notified();
        tokio::pin!(freed);
        freed.as_mut().enable();
        let limit = usize::try_from(shared.limits.load().connections.max_connections).unwrap_or(usize::MAX);
        if shared.connections.load(Ordering::Relaxed) < limit.max(1) {
            return;
        }
        freed.await;
    }
}

fn spawn(shared: &Arc<Shared>, listener: &Listener, stream: Stream) {
    let slot = Slot::take(shared);
    let id = shared.next_connection.fetch_add(1, Ordering::Relaxed);
    let limits = shared.limits.load_full();
    let tls = listener.tls.load_full();
    let accepted = connection::Accepted { shared: shared.clone(), slot, id, limits };
    let transport = match (&stream, &tls) {
        (Stream::Unix(_), _) => "unix",
        (Stream::Tcp(..), Some(_)) => "tls",
        (Stream::Tcp(..), None) => "plain",
    };
    crate::telemetry::metrics().connections_total.with([transport]).inc();
    match (stream, tls) {
        (Stream::Tcp(stream, peer), Some(tls)) => drop(tokio::spawn(connection::tls(accepted, stream, peer, tls))),
        (Stream::Tcp(stream, peer), None) => drop(tokio::spawn(connection::plain(accepted, stream, peer))),
        (Stream::Unix(stream), _) => drop(tokio::spawn(connection::unix(accepted, stream))),
    }
}

/// Accepting has failed: how often in a row.
#[derive(Default)]
struct Trouble(u32);

impl Trouble {
    /// Errors of one connection cost nothing; running out of descriptors or memory waits for others to give some back.
    async fn pause(&mut self, listener: &Listener, error: &io::Error) {
        if matches!(
            error.kind(),
            io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::Interrupted
        ) {
            return;
        }
        // 5 ms doubling to 1 s, as Go's server.
        let wait = Duration::from_millis(5u64 << self.0.min(8)).min(Duration::from_secs(1));
        if self.0.is_multiple_of(16) {
            tracing::error!(address = %listener.key.address, %error, "cannot accept connections, trying again");
        }
        self.0 = self.0.saturating_add(1);
        tokio::time::sleep(wait).await;
    }
}
