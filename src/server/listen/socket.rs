//! Binding sockets, and those that were bound for us.

use std::{
    fs::{File, Permissions},
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use socket2::{Domain, SockAddr, SockRef, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::Address;

/// Connections the kernel holds for us between two accepts; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 4096;
/// As Go's `net/http` server in kube-apiserver.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(180);

/// A bound, listening socket.
pub(super) struct Socket {
    kind: Kind,
    local: Local,
}

enum Kind {
    Tcp(TcpListener),
    Unix { listener: UnixListener, _file: Option<SocketFile> },
}

/// What a socket is bound to.
#[derive(Clone)]
pub(super) enum Local {
    Tcp(SocketAddr, Arc<OwnedFd>),
    Unix,
}

impl Local {
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address, _) => Some(*address),
            Self::Unix => None,
        }
    }

    /// Whether only processes of this machine reach it.
    pub fn is_private(&self) -> bool {
        self.tcp().is_none_or(|address| address.ip().to_canonical().is_loopback())
    }
}

pub(super) enum Stream {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Socket {
    pub fn local(&self) -> &Local {
        &self.local
    }

    pub async fn accept(&self) -> io::Result<Stream> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Refused only by a peer that has gone already; the handshake will find out.
                let _ = stream.set_nodelay(true);
                let keep_alive =
                    socket2::TcpKeepalive::new().with_time(TCP_KEEP_ALIVE).with_interval(TCP_KEEP_ALIVE / 12);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keep_alive);
                Ok(Stream::Tcp(stream, canonical(peer)))
            }
            Kind::Unix { listener, .. } => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// An IPv4 peer on a socket of both families shows as IPv4.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Binds and listens. `ours` are the sockets this process listens on already.
pub(super) fn bind(address: &Address, share_port: bool, ours: &[&Local]) -> Result<Socket, String> {
    match address {
        Address::Tcp(address) => bind_tcp(*address, share_port, ours).map_err(|error| words(&error)),
        Address::Unix(path) => bind_unix(path),
        Address::Inherited(name) => Err(format!("no socket named {name:?}")),
    }
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "address already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "cannot assign requested address".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn bind_tcp(address: SocketAddr, share_port: bool, ours: &[&Local]) -> io::Result<Socket> {
    match listen_tcp(address, share_port) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            beside_ours(address, share_port, ours).unwrap_or(Err(error))
        }
        result => result,
    }
}

/// Binds an address that overlaps one of ours on the same port (every address, then one of them), which the kernel
/// allows only while both sockets say so. `None` where it is not ours that is in the way.
fn beside_ours(address: SocketAddr, share_port: bool, ours: &[&Local]) -> Option<io::Result<Socket>> {
    let same_port: Vec<(SocketAddr, SockRef<'_>, bool)> = ours
        .iter()
        .filter_map(|local| match local {
            Local::Tcp(bound, descriptor) if bound.port() == address.port() => {
                let socket = SockRef::from(&**descriptor);
                let shared = socket.reuse_port().unwrap_or(false);
                Some((*bound, socket, shared))
            }
            _ => None,
        })
        .collect();
    if same_port.is_empty()
        || same_port.iter().any(|(bound, ..)| bound.ip().to_canonical() == address.ip().to_canonical())
    {
        return None;
    }
    let set = |on: bool| {
        same_port.iter().filter(|(.., shared)| !shared).try_for_each(|(_, socket, _)| socket.set_reuse_port(on))
    };
    let bound = set(true).and_then(|()| listen_tcp(address, true));
    // Only for the moment: left on, another process of this user could take a share of our connections unnoticed. What
    // cannot be unset now could not be set before either.
    let _ = set(false);
    if let (Ok(socket), false) = (&bound, share_port)
        && let Local::Tcp(_, descriptor) = &socket.local
    {
        let _ = SockRef::from(&**descriptor).set_reuse_port(false);
    }
    Some(bound)
}

fn listen_tcp(address: SocketAddr, share_port: bool) -> io::Result<Socket> {
    if address.ip().is_unspecified() {
        let both = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
        match listen_tcp_exact(both, share_port) {
            // No IPv6 on this machine.
            Err(error)
                if address.is_ipv4()
                    && matches!(
                        error.raw_os_error(),
                        Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL | libc::EPROTONOSUPPORT)
                    ) => {}
            result => return result,
        }
    }
    listen_tcp_exact(address, share_port)
}

fn listen_tcp_exact(address: SocketAddr, share_port: bool) -> io::Result<Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // Connections of a predecessor in TIME_WAIT must not keep us from starting. On Linux this lets no two listeners share.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share_port)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    tcp(socket)
}

fn tcp(socket: socket2::Socket) -> io::Result<Socket> {
    let descriptor = Arc::new(OwnedFd::from(socket.try_clone()?));
    let listener = TcpListener::from_std(socket.into())?;
    let local = Local::Tcp(canonical(listener.local_addr()?), descriptor);
    Ok(Socket { kind: Kind::Tcp(listener), local })
}

fn bind_unix(path: &Path) -> Result<Socket, String> {
    remove_dead(path)?;
    let listen = || -> io::Result<Socket> {
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // The mode of the unbound socket becomes the mode of the file, so there is no moment with a wider one.
        let file = File::from(OwnedFd::from(socket));
        file.set_permissions(Permissions::from_mode(0o600))?;
        let socket = socket2::Socket::from(OwnedFd::from(file));
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(path)?)?;
        socket.listen(BACKLOG)?;
        let metadata = std::fs::symlink_metadata(path)?;
        let file = SocketFile { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()) };
        let listener = UnixListener::from_std(std::os::unix::net::UnixListener::from(OwnedFd::from(socket)))?;
        Ok(Socket { kind: Kind::Unix { listener, _file: Some(file) }, local: Local::Unix })
    };
    listen().map_err(|error| words(&error))
}

/// Takes a socket away that nobody listens on. Anything else in its place is left alone.
fn remove_dead(path: &Path) -> Result<(), String> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(words(&error)),
        Ok(metadata) if !metadata.file_type().is_socket() => return Err("there is a file that is no socket".to_owned()),
        Ok(_) => {}
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| words(&error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(words(&error)),
        Ok(_) => Err("address already in use".to_owned()),
    }
}

/// The file of a unix socket; removed with it unless another socket has taken its place.
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let there = std::fs::symlink_metadata(&self.path);
        if there.is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Sockets the service manager bound for us. They stay bound for the life of the process: what is taken are copies.
#[derive(Clone, Default)]
pub struct InheritedSockets(Arc<[(String, OwnedFd)]>);

impl InheritedSockets {
    /// Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`. To be called once, at the very beginning of the process: it
    /// takes ownership of the descriptors.
    pub fn from_environment() -> io::Result<Self> {
        let named = sd_notify::listen_fds_with_names()?;
        // SAFETY: sd-notify has checked that the variables are meant for this process and that the descriptors are open;
        // by the protocol they belong to this process, and nobody else has taken them before the first lines of main.
        let owned = named.map(|(descriptor, name)| (name, unsafe { OwnedFd::from_raw_fd(descriptor) }));
        Ok(Self(owned.collect()))
    }

    /// Sockets under names, as a service manager would hand them over.
    pub fn from_sockets(sockets: Vec<(String, OwnedFd)>) -> Self {
        Self(sockets.into())
    }

    /// The names there are.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The socket that is bound to `address`, if there is one.
    pub(super) fn bound_to(&self, address: &Address) -> Option<Result<Socket, String>> {
        let there = |descriptor: &OwnedFd| {
            let local = SockRef::from(descriptor).local_addr().ok()?;
            Some(match address {
                Address::Tcp(wanted) => local.as_socket().is_some_and(|local| same_address(local, *wanted)),
                Address::Unix(path) => local.as_pathname() == Some(path.as_path()),
                Address::Inherited(_) => false,
            })
        };
        let (_, descriptor) = self.0.iter().find(|(_, descriptor)| there(descriptor) == Some(true))?;
        Some(adopt(descriptor).map_err(|error| words(&error)))
    }

    pub(super) fn take(&self, name: &str) -> Result<Vec<Socket>, String> {
        let copies: Vec<Socket> = self
            .0
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, descriptor)| adopt(descriptor).map_err(|error| words(&error)))
            .collect::<Result<_, _>>()?;
        if copies.is_empty() { Err(format!("no socket of the name {name:?} was handed over")) } else { Ok(copies) }
    }
}

/// Every address is every address, whichever family says so.
fn same_address(one: SocketAddr, other: SocketAddr) -> bool {
    let (one, other) = (canonical(one), canonical(other));
    one.port() == other.port() && (one.ip() == other.ip() || (one.ip().is_unspecified() && other.ip().is_unspecified()))
}

fn adopt(descriptor: &OwnedFd) -> io::Result<Socket> {
    let socket = socket2::Socket::from(descriptor.try_clone()?);
    if !socket.is_listener()? || socket.r#type()? != Type::STREAM {
        return Err(io::Error::other("not a listening stream socket"));
    }
    socket.set_nonblocking(true)?;
    if socket.local_addr()?.is_unix() {
        let listener = UnixListener::from_std(std::os::unix::net::UnixListener::from(OwnedFd::from(socket)))?;
        // The file belongs to the service manager.
        return Ok(Socket { kind: Kind::Unix { listener, _file: None }, local: Local::Unix });
    }
    tcp(socket)
}
