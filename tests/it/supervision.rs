//! What systemd is told, with a fake one at the other end.

use std::os::{
    linux::net::SocketAddrExt,
    unix::net::{SocketAddr, UnixDatagram},
};

use crate::support::{Setup, notified::Notified};

#[tokio::test(flavor = "multi_thread")]
async fn the_supervisor_hears_of_start_every_reload_and_stop() {
    let setup = Setup::new();
    let notified = Notified::at(&setup.path("notify"));
    let socket = setup.path("notify").display().to_string();
    let mut daemon = setup.environment("NOTIFY_SOCKET", &socket).start().await;
    let at = notified.heard(0, &["READY=1", "STATUS=*"]).await;

    // By itself, asked by `kenter reload`, asked by a signal, and with nothing to do.
    daemon.write("kenter.d/50.toml", "[serving]\nmax_requests_inflight = 500\n");
    let reload = ["RELOADING=1", "MONOTONIC_USEC=*", "READY=1"];
    let at = notified.heard(at, &reload).await;
    assert_eq!(daemon.reload().await.0, 0);
    let at = notified.heard(at, &reload).await;
    daemon.signal(libc::SIGHUP);
    let at = notified.heard(at, &reload).await;
    daemon.write("kenter.d/50.toml", "[serving]\nmax_requests_inflight = 'x'\n");
    let at = notified.heard(at, &["RELOADING=1", "STATUS=reload failed: *", "READY=1"]).await;

    daemon.signal(libc::SIGTERM);
    notified.heard(at, &["STOPPING=1"]).await;
    assert!(daemon.ended().await.success());
    assert!(!notified.lines().iter().any(|line| line.starts_with("WATCHDOG")), "nobody asked for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_is_told_again_and_again_on_an_abstract_socket() {
    let name = format!("kenter-it-{}-{}", std::process::id(), crate::support::free_port());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let notified = Notified::of(UnixDatagram::bind_addr(&address).expect("bound"));
    let setup = Setup::new().environment("NOTIFY_SOCKET", &format!("@{name}")).environment("WATCHDOG_USEC", "200000");
    let daemon = setup.start().await;
    notified.heard(0, &["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]).await;
    drop(daemon);
}
