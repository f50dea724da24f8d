//! `admin.link` in the state directory: a symbolic link to the socket that `kenter reload` asks at.
//!
//! A configuration that moves the socket is read by `kenter reload` before the daemon has it, so the daemon is still
//! at the old place. It leaves the link where both of them look. Whoever follows it finds the daemon that last served
//! with this state directory; nothing depends on it but that.

use std::{
    io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
};

use crate::options::ValidatedOptions;

const NAME: &str = "admin.link";

/// Where the link in that state directory leads.
pub fn follow(state: &Path) -> Option<PathBuf> {
    std::fs::read_link(state.join(NAME)).ok()
}

/// Makes the links in the state directory of what serves now, and of what served before, lead to the socket of now. On a
/// thread of its own and with no more than a word in the log where it fails: the socket is there without it.
pub fn point(now: &ValidatedOptions, before: Option<&ValidatedOptions>) {
    let socket = now.state.admin_socket.clone();
    let mut folders = vec![now.state.dir.clone()];
    folders.extend(before.map(|before| before.state.dir.clone()).filter(|dir| *dir != now.state.dir));
    tokio::task::spawn_blocking(move || {
        for folder in folders {
            if let Err(error) = lead(&folder, &socket) {
                tracing::warn!(folder = %folder.display(), %error, "no link to the admin socket could be made");
            }
        }
    });
}

/// The link is replaced in one step, so that there always is one.
fn lead(folder: &Path, socket: &Path) -> io::Result<()> {
    let link = folder.join(NAME);
    if link == socket || std::fs::read_link(&link).is_ok_and(|leads| leads == socket) {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let fresh = folder.join(".admin.link");
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(socket, &fresh)?;
    std::fs::rename(&fresh, &link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_leads_to_the_newest_socket_and_never_replaces_the_socket_itself() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        assert_eq!(follow(&state), None);
        for socket in ["/run/a.sock", "/run/b.sock", "/run/b.sock"] {
            lead(&state, Path::new(socket)).unwrap();
            assert_eq!(follow(&state).as_deref(), Some(Path::new(socket)));
        }
        let socket = state.join(NAME);
        std::fs::remove_file(&socket).unwrap();
        std::fs::write(&socket, "a socket").unwrap();
        lead(&state, &socket).unwrap();
        assert_eq!(std::fs::read_to_string(&socket).unwrap(), "a socket");
    }
}
