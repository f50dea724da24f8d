//! Every way in which a file changes, for every kind of file: noticed without being told, and served.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use crate::support::{
    Daemon, Setup, eventually,
    tls::{self, Key},
    tokens,
};

/// A way in which a file gets new contents.
#[derive(Clone, Copy, Debug)]
enum Way {
    InPlace,
    RenameOver,
    SymlinkSwap,
    /// As a mounted ConfigMap: the file is a link through a link to a folder, which is what changes.
    DoubleSymlink,
    DeleteAndCreate,
    /// As vim writes.
    Editor,
    Burst,
}

const WAYS: [Way; 7] = [
    Way::InPlace,
    Way::RenameOver,
    Way::SymlinkSwap,
    Way::DoubleSymlink,
    Way::DeleteAndCreate,
    Way::Editor,
    Way::Burst,
];

impl Way {
    /// Brings `contents(n)` into `path`.
    fn write(self, path: &Path, n: u32, contents: &dyn Fn(u32) -> String) {
        let text = contents(n);
        let beside = |suffix: &str| {
            let name = path.file_name().expect("a name").to_string_lossy();
            path.with_file_name(format!("{name}{suffix}"))
        };
        match self {
            Self::InPlace => fs::write(path, text).expect("written"),
            Self::RenameOver => {
                fs::write(beside(".new"), text).expect("written");
                fs::rename(beside(".new"), path).expect("renamed");
            }
            Self::SymlinkSwap => {
                let target = beside(&format!(".{n}"));
                fs::write(&target, text).expect("written");
                symlink(&target, beside(".link")).expect("linked");
                fs::rename(beside(".link"), path).expect("renamed");
            }
            Self::DoubleSymlink => double_symlink(path, n, contents),
            Self::DeleteAndCreate => {
                fs::remove_file(path).expect("removed");
                fs::write(path, text).expect("written");
            }
            Self::Editor => {
                fs::write(path.with_file_name(".kenter.swp"), "swap").expect("written");
                fs::write(path.with_file_name("4913"), "").expect("written");
                fs::remove_file(path.with_file_name("4913")).expect("removed");
                fs::rename(path, beside("~")).expect("renamed");
                fs::write(path, text).expect("written");
                fs::set_permissions(path, fs::Permissions::from_mode(0o640)).expect("set");
                fs::remove_file(beside("~")).expect("removed");
                fs::remove_file(path.with_file_name(".kenter.swp")).expect("removed");
            }
            Self::Burst => {
                for other in 0..20 {
                    fs::write(path, contents(n + other % 3 + 1)).expect("written");
                }
                fs::write(path, text).expect("written");
            }
        }
    }
}

/// Two changes: the file becomes such a link, and then only the folder's link is swapped.
fn double_symlink(path: &Path, n: u32, contents: &dyn Fn(u32) -> String) {
    let folder = path.parent().expect("a folder");
    let name = path.file_name().expect("a name");
    let version = |n: u32| folder.join(format!("..{n}"));
    let swap = |n: u32, text: String| {
        fs::create_dir(version(n)).expect("made");
        fs::write(version(n).join(name), text).expect("written");
        symlink(version(n), folder.join("..data_tmp")).expect("linked");
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("renamed");
    };
    swap(n - 1, contents(n - 1));
    symlink(Path::new("..data").join(name), folder.join("link")).expect("linked");
    fs::rename(folder.join("link"), path).expect("renamed");
    swap(n, contents(n));
    fs::remove_dir_all(version(n - 1)).expect("removed");
}

/// A kind of file of the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Main,
    DropIn,
    Certificate,
    Tokens,
}

/// One daemon with a file of the kind and how to see which contents it serves.
struct Subject {
    kind: Kind,
    daemon: Daemon,
    key: Key,
    made: std::cell::RefCell<std::collections::BTreeMap<u32, String>>,
}

impl Subject {
    async fn start(kind: Kind) -> Self {
        let setup = Setup::new();
        let key = Key::new();
        fs::write(setup.path("tls.key"), key.pem()).expect("written");
        fs::write(setup.path("tls.crt"), key.certificate("first")).expect("written");
        fs::write(setup.path("kenter.d/10.toml"), "").expect("written");
        if kind == Kind::Certificate {
            let text = "[serving]\ntls_cert_file = 'tls.crt'\ntls_private_key_file = 'tls.key'\n";
            fs::write(setup.path("kenter.toml"), text).expect("written");
        }
        // What is noticed here is noticed by events: the next look without one is an hour away.
        let daemon = setup.flags(&[]).environment("KENTER_RELOAD__POLL_INTERVAL", "1h").start().await;
        Self { kind, daemon, key, made: Default::default() }
    }

    fn path(&self) -> PathBuf {
        self.daemon.path(match self.kind {
            Kind::Main => "kenter.toml",
            Kind::DropIn => "kenter.d/10.toml",
            Kind::Certificate => "tls.crt",
            Kind::Tokens => "tokens.csv",
        })
    }

    fn contents(&self, n: u32) -> String {
        match self.kind {
            Kind::Main | Kind::DropIn => format!("[serving]\nmax_requests_inflight = {}\n", 1000 + n),
            // A certificate is another each time it is made.
            Kind::Certificate => {
                self.made.borrow_mut().entry(n).or_insert_with(|| self.key.certificate(&format!("number {n}"))).clone()
            }
            Kind::Tokens => tokens(&[&format!("user{n}")]),
        }
    }

    async fn serves(&self, n: u32) -> bool {
        match self.kind {
            Kind::Main | Kind::DropIn => {
                let report = self.daemon.report().await;
                let value = report.i64_at(&["configuration", "serving", "max_requests_inflight", "value"]);
                value == Some(1000 + i64::from(n))
            }
            Kind::Certificate => tls::shows(self.daemon.port, &self.contents(n)).await,
            Kind::Tokens => self.daemon.client_as(&format!("user{n}-token")).get("/api/v1/nodes").await.status == 403,
        }
    }
}

async fn every_way(kind: Kind) {
    let subject = Subject::start(kind).await;
    for (at, way) in WAYS.into_iter().enumerate() {
        let n = 10 * (u32::try_from(at).expect("small") + 1);
        way.write(&subject.path(), n, &|n| subject.contents(n));
        eventually(&format!("{kind:?} changed by {way:?} is served"), || subject.serves(n)).await;
    }
    // The old contents are gone with the new ones.
    if kind == Kind::Tokens {
        assert_eq!(subject.daemon.client_as("user10-token").get("/api/v1/nodes").await.status, 401);
    }
    // Another mode is no other configuration: whoever looks, sees the same.
    let before = subject.daemon.generation().await;
    fs::set_permissions(subject.path(), fs::Permissions::from_mode(0o600)).expect("set");
    let (code, text) = subject.daemon.reload().await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("unchanged"), "{text}");
    assert_eq!(subject.daemon.generation().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_file_changes_in_every_way() {
    every_way(Kind::Main).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drop_in_changes_in_every_way() {
    every_way(Kind::DropIn).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_changes_in_every_way_and_new_handshakes_show_it() {
    every_way(Kind::Certificate).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_file_changes_in_every_way() {
    every_way(Kind::Tokens).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drop_ins_come_and_go_and_their_folder_is_replaced() {
    let subject = Subject::start(Kind::DropIn).await;
    let daemon = &subject.daemon;
    daemon.write("kenter.d/20.toml", &subject.contents(1));
    eventually("a new drop-in is served", || subject.serves(1)).await;
    daemon.write("kenter.d/.20.toml.swp", "no configuration at all");
    fs::remove_file(daemon.path("kenter.d/20.toml")).expect("removed");
    eventually("a drop-in that is gone counts no more", || async { !subject.serves(1).await }).await;
    let other = daemon.path("other.d");
    fs::create_dir(&other).expect("made");
    fs::copy(daemon.path("kenter.d/00-port.toml"), other.join("00-port.toml")).expect("copied");
    fs::write(other.join("10.toml"), subject.contents(2)).expect("written");
    fs::rename(daemon.path("kenter.d"), daemon.path("gone.d")).expect("renamed");
    fs::rename(&other, daemon.path("kenter.d")).expect("renamed");
    eventually("another folder of that name is served", || subject.serves(2)).await;
    daemon.write("kenter.d/10.toml", &subject.contents(3));
    eventually("and followed", || subject.serves(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_no_event_tells_of_is_found_by_the_poll() {
    let setup = Setup::new();
    fs::write(setup.path("kenter.d/10.toml"), "[reload]\nwatch = false\npoll_interval = '1s'\n").expect("written");
    let daemon = setup.start().await;
    daemon.write("kenter.toml", "[serving]\nmax_requests_inflight = 77\n");
    eventually("it is served", || async {
        daemon.report().await.i64_at(&["configuration", "serving", "max_requests_inflight", "value"]) == Some(77)
    })
    .await;
}
