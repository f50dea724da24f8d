//! Sockets, TLS and connections: everything between the kernel and [`Current`].
//!
//! [`Listeners`] outlive generations. A reload calls [`Listeners::bind`] with the set it wants: new sockets are bound
//! but nobody accepts from them, and an address that is taken is an error that leaves all as it was. [`Listeners::commit`]
//! cannot fail: new sockets begin to accept, certificates and limits change for new connections, and the sockets that are
//! no longer wanted go on accepting until the [`Handover`] is finished, or taken back. Connections belong to no generation:
//! each request takes what serves at its moment, so they outlive the listener that accepted them and any number of
//! reloads, and end when they are idle, told to by a response, or drained at shutdown.
//!
//! Every connection has its own task; a panic in it ends that connection. This module knows no chain and no users: client
//! certificates are asked for and handed on, trust is judged by the authenticator.

use std::{
    fmt,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::sync::{Notify, watch};

use super::current::Current;
use crate::options::completed::{ConnectionLimits, Http2, InsecureAddress, Serving};

mod accept;
mod connection;
mod service;
mod socket;
pub mod tls;

#[cfg(test)]
mod tests;

pub use socket::InheritedSockets;

/// Where to listen. An address that a socket of the service manager is bound to already is served on that socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// An unspecified address (`0.0.0.0` or `[::]`) means every address of both families, as with kube-apiserver.
    Tcp(SocketAddr),
    /// A unix socket, mode 0600; its folder must exist. A dead socket in its place is replaced, a living one is an error.
    Unix(PathBuf),
    /// All sockets that systemd handed over under this name (`FileDescriptorName=`).
    Inherited(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(name) => write!(f, "inherited:{name}"),
        }
    }
}

/// One listener as it shall be.
#[derive(Clone, Debug)]
pub struct ListenerSpec {
    pub address: Address,
    /// `None` is plain HTTP, refused on anything but a loopback address or a unix socket.
    pub tls: Option<Arc<ServerConfig>>,
    /// SO_REUSEPORT: other processes of the same user may listen on the same port. SO_REUSEADDR is always on, as Go has it.
    pub share_port: bool,
}

impl ListenerSpec {
    pub fn new(address: Address, tls: Option<Arc<ServerConfig>>) -> Self {
        Self { address, tls, share_port: false }
    }

    /// The listeners that the options ask for. Address sharing needs nothing: it is always on.
    pub fn of(serving: &Serving, tls: &Arc<ServerConfig>) -> Vec<Self> {
        let secure = serving.secure.iter().map(|address| (Address::Tcp(*address), Some(tls.clone())));
        let plain = serving.insecure.iter().map(|address| match address {
            InsecureAddress::Tcp(address) => (Address::Tcp(*address), None),
            InsecureAddress::Unix(path) => (Address::Unix(path.clone()), None),
        });
        let spec = |(address, tls)| Self { address, tls, share_port: serving.permit_port_sharing };
        secure.chain(plain).map(spec).collect()
    }

    fn key(&self) -> Key {
        Key { address: self.address.clone(), tls: self.tls.is_some(), share_port: self.share_port }
    }
}

/// What makes two specifications the same socket. Certificates are not part of it: they change on a living one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    address: Address,
    tls: bool,
    share_port: bool,
}

/// Limits of connections; new ones take the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: ConnectionLimits,
    pub http2: Http2,
}

impl Limits {
    pub fn of(serving: &Serving) -> Self {
        Self { connections: serving.connections.clone(), http2: serving.http2.clone() }
    }
}

/// Why a listener could not be had.
#[derive(Debug)]
pub struct ListenError {
    pub address: Address,
    pub reason: String,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to listen on {}: {}", self.address, self.reason)
    }
}

impl std::error::Error for ListenError {}

/// All sockets of one handle to what serves. Clones are the same set.
#[derive(Clone)]
pub struct Listeners(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    inherited: InheritedSockets,
    open: Mutex<Vec<Arc<Listener>>>,
    epoch: AtomicU64,
}

/// What every accept loop and connection refers to.
struct Shared {
    filter: service::Entry,
    limits: ArcSwap<Limits>,
    phase: watch::Sender<Phase>,
    connections: AtomicUsize,
    next_connection: AtomicU64,
    /// Told whenever a connection ends or limits change.
    freed: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Connections end as soon as their requests have.
    Draining,
    /// Connections end.
    Killed,
}

struct Listener {
    key: Key,
    local: Vec<socket::Local>,
    tls: ArcSwapOption<ServerConfig>,
    /// 0, or the hand-over at whose end this one closes. Written under the lock of `open`.
    leaving: AtomicU64,
    /// The hand-over that opened this one.
    since: u64,
    stop: watch::Sender<bool>,
}

/// A set that could be had: sockets bound, none accepting. Dropping it closes the new ones.
pub struct Bound {
    wanted: Vec<Wanted>,
    limits: Limits,
}

enum Wanted {
    Kept(Arc<Listener>, Option<Arc<ServerConfig>>),
    New(ListenerSpec, Vec<socket::Socket>),
}

impl Bound {
    /// How many sockets of the set were not there before.
    pub fn fresh(&self) -> usize {
        self.wanted.iter().filter(|wanted| matches!(wanted, Wanted::New(..))).count()
    }
}

impl Listeners {
    /// A set with nothing in it, whose requests will go to `current`.
    pub fn new(current: Current, limits: Limits, inherited: InheritedSockets) -> Self {
        let shared = Arc::new(Shared {
            filter: service::entry(current),
            limits: ArcSwap::from_pointee(limits),
            phase: watch::Sender::new(Phase::Serving),
            connections: AtomicUsize::new(0),
            next_connection: AtomicU64::new(1),
            freed: Notify::new(),
        });
        Self(Arc::new(Inner { shared, inherited, open: Mutex::default(), epoch: AtomicU64::new(0) }))
    }

    /// Binds what is in `wanted` and not open yet. Needs a tokio runtime. On an error nothing has changed.
    pub fn bind(&self, wanted: Vec<ListenerSpec>, limits: Limits) -> Result<Bound, ListenError> {
        let open = self.0.open.lock().clone();
        let mut bound = Bound { wanted: Vec::with_capacity(wanted.len()), limits };
        let mut keys: Vec<Key> = Vec::with_capacity(wanted.len());
        for spec in wanted {
            let key = spec.key();
            if keys.iter().any(|other| other.address == key.address) {
                return Err(ListenError { address: spec.address, reason: "listed twice".to_owned() });
            }
            match open.iter().find(|listener| listener.key == key) {
                Some(listener) => bound.wanted.push(Wanted::Kept(listener.clone(), spec.tls)),
                None => {
                    let sockets = self.sockets(&spec, &open)?;
                    bound.wanted.push(Wanted::New(spec, sockets));
                }
            }
            keys.push(key);
        }
        Ok(bound)
    }

    fn sockets(&self, spec: &ListenerSpec, open: &[Arc<Listener>]) -> Result<Vec<socket::Socket>, ListenError> {
        let ours: Vec<&socket::Local> = open.iter().flat_map(|listener| &listener.local).collect();
        let sockets = match &spec.address {
            Address::Inherited(name) => self.0.inherited.take(name),
            address if let Some(socket) = self.0.inherited.bound_to(address) => socket.map(|socket| vec![socket]),
            address => socket::bind(address, spec.share_port, &ours).map(|socket| vec![socket]),
        };
        let sockets = sockets.map_err(|reason| ListenError { address: spec.address.clone(), reason })?;
        if spec.tls.is_some() && sockets.iter().any(|socket| socket.local().tcp().is_none()) {
            let reason = "unix sockets are served without TLS".to_owned();
            return Err(ListenError { address: spec.address.clone(), reason });
        }
        if spec.tls.is_none() && sockets.iter().any(|socket| !socket.local().is_private()) {
            let reason = "plain HTTP is served on loopback addresses and unix sockets alone".to_owned();
            return Err(ListenError { address: spec.address.clone(), reason });
        }
        Ok(sockets)
    }

    /// Makes `bound` the set: what is new accepts, what is kept gets its certificates, limits count for new connections.
    /// What is no longer wanted accepts until the hand-over ends.
    pub fn commit(&self, bound: Bound) -> Handover {
        let mut open = self.0.open.lock();
        let epoch = self.0.epoch.fetch_add(1, Ordering::Relaxed) + 1;
        let mut handover = Handover {
            listeners: self.clone(),
            epoch,
            limits: self.0.shared.limits.swap(Arc::new(bound.limits)),
            kept: Vec::new(),
            done: false,
        };
        for listener in open.iter() {
            let _ = listener.leaving.compare_exchange(0, epoch, Ordering::Relaxed, Ordering::Relaxed);
        }
        for wanted in bound.wanted {
            match wanted {
                Wanted::Kept(listener, tls) => {
                    let before = listener.leaving.swap(0, Ordering::Relaxed);
                    handover.kept.push((listener.clone(), listener.tls.swap(tls), before));
                }
                Wanted::New(spec, sockets) => open.push(self.start(spec, sockets, epoch)),
            }
        }
        self.0.shared.freed.notify_waiters();
        handover
    }

    fn start(&self, spec: ListenerSpec, sockets: Vec<socket::Socket>, epoch: u64) -> Arc<Listener> {
        let listener = Arc::new(Listener {
            key: spec.key(),
            local: sockets.iter().map(|socket| socket.local().clone()).collect(),
            tls: ArcSwapOption::new(spec.tls),
            leaving: AtomicU64::new(0),
            since: epoch,
            stop: watch::Sender::new(false),
        });
        for socket in sockets {
            tokio::spawn(accept::run(self.0.shared.clone(), listener.clone(), socket));
        }
        listener
    }

    /// The TCP addresses being listened on, in the order they were opened, the leaving ones included.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.open.lock().iter().flat_map(|listener| &listener.local).filter_map(socket::Local::tcp).collect()
    }

    /// Connections open now, handshaking ones included, upgraded ones not.
    pub fn connections(&self) -> usize {
        self.0.shared.connections.load(Ordering::Relaxed)
    }

    /// Closes every listener; new connections are refused from here on. Open ones are told to go when their requests
    /// are done: HTTP/2 by GOAWAY, HTTP/1.1 by closing. Does not wait.
    pub fn stop_accepting(&self) {
        for listener in self.0.open.lock().drain(..) {
            listener.stop.send_replace(true);
        }
        self.0.shared.phase.send_if_modified(|phase| {
            let before = *phase;
            *phase = before.max(Phase::Draining);
            *phase != before
        });
    }

    /// [`Self::stop_accepting`], then waits until the last connection has ended, at most for `grace`, then cuts what is
    /// left. Returns how many were cut. Upgraded streams are not counted and not cut: their tasks own them.
    pub async fn drain(&self, grace: Duration) -> usize {
        self.stop_accepting();
        if tokio::time::timeout(grace, self.empty()).await.is_ok() {
            return 0;
        }
        let left = self.connections();
        self.0.shared.phase.send_replace(Phase::Killed);
        self.empty().await;
        left
    }

    async fn empty(&self) {
        loop {
            let freed = self.0.shared.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.connections() == 0 {
                return;
            }
            freed.await;
        }
    }
}

/// The time in which both the old set and the new one accept. Dropping it finishes it.
#[must_use = "dropping it closes the old listeners at once"]
pub struct Handover {
    listeners: Listeners,
    epoch: u64,
    limits: Arc<Limits>,
    /// What was kept: its certificates before, and the hand-over it was leaving in.
    kept: Vec<(Arc<Listener>, Option<Arc<ServerConfig>>, u64)>,
    done: bool,
}

impl Handover {
    /// Closes the listeners that are no longer wanted. Their connections go on.
    pub fn finish(self) {}

    /// Puts the old set, its certificates and its limits back and closes what was new. Only for the newest commit.
    pub fn back(mut self) {
        self.done = true;
        let mut open = self.listeners.0.open.lock();
        for (listener, tls, leaving) in self.kept.drain(..) {
            listener.tls.store(tls);
            listener.leaving.store(leaving, Ordering::Relaxed);
        }
        for listener in open.iter() {
            let _ = listener.leaving.compare_exchange(self.epoch, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.listeners.0.shared.limits.store(self.limits.clone());
        close(&mut open, |listener| listener.since == self.epoch);
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if !self.done {
            close(&mut self.listeners.0.open.lock(), |listener| listener.leaving.load(Ordering::Relaxed) == self.epoch);
        }
    }
}

fn close(open: &mut Vec<Arc<Listener>>, which: impl Fn(&Listener) -> bool) {
    open.retain(|listener| {
        let closing = which(listener);
        if closing {
            listener.stop.send_replace(true);
        }
        !closing
    });
}
