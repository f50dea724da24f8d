//! How kenter was called: everything outside files that decides what its configuration is. A reload reads again
//! from the same value, so that only files can have changed.

use std::{
    collections::BTreeMap,
    net::{IpAddr, UdpSocket},
    path::PathBuf,
};

/// Words, variables and facts of the process and its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The command as complaints name it ("kenter run").
    pub command: String,
    /// The words after the subcommand.
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// The working directory; relative paths of flags and variables start here.
    pub directory: PathBuf,
    /// Whether the process is root's, which decides the default state directory.
    pub root: bool,
    /// The address of the default route's interface.
    pub host_address: Option<IpAddr>,
    /// The file read where none is named; it may be missing.
    pub default_config: PathBuf,
}

/// Where the configuration is by default.
pub const DEFAULT_CONFIG: &str = "/etc/kenter/kenter.toml";

impl Invocation {
    /// Of this process. Variables and words that are no Unicode are taken with replacement characters.
    pub fn of_process(command: &str, arguments: Vec<String>) -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Self {
            command: command.to_owned(),
            arguments,
            environment: std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect(),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            // SAFETY: geteuid has no preconditions and cannot fail.
            root: unsafe { libc::geteuid() } == 0,
            host_address: host_address(),
            default_config: PathBuf::from(DEFAULT_CONFIG),
        }
    }

    /// The first directory of a list such as systemd's $STATE_DIRECTORY.
    pub(super) fn directory_of(&self, variable: &str) -> Option<PathBuf> {
        let value = self.environment.get(variable)?;
        let first = value.split(':').find(|part| !part.is_empty())?;
        Some(self.directory.join(first))
    }
}

/// The source address the kernel would choose towards the world; connecting a datagram socket sends nothing.
/// 192.0.2.1 and 2001:db8::1 are set aside for documentation.
fn host_address() -> Option<IpAddr> {
    let towards = |local: &str, remote: &str| {
        let socket = UdpSocket::bind((local, 0)).ok()?;
        socket.connect((remote, 9)).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    towards("0.0.0.0", "192.0.2.1")
        .or_else(|| towards("::", "2001:db8::1"))
        .filter(|address| !address.is_loopback() && !address.is_unspecified())
}
