//! What the commands say of configurations.

use std::process::Command;

use crate::support::binary;

fn kenter(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(binary()).args(arguments).env_clear().output().expect("kenter runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_bad_file_is_refused_with_its_place_and_the_nearest_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kenter.toml");
    std::fs::write(&file, "[serving]\nmax_requests_inflght = 1\n").unwrap();
    let (code, text) = kenter(&["check", "--config", &file.display().to_string()]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("kenter.toml:2:1") && text.contains("max_requests_inflight"), "{text}");
}

#[test]
fn a_kubeadm_command_line_without_etcd_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state").display().to_string();
    let (code, text) = kenter(&[
        "check",
        "--state-dir",
        &state,
        "--advertise-address=192.0.2.7",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-bootstrap-token-auth=true",
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
        "--secure-port=6443",
        "--service-cluster-ip-range=10.96.0.0/12",
    ]);
    assert_eq!(code, 0, "{text}");
}
