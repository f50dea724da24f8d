//! The recorded answers of a real kube-apiserver, replayed against the built binary. A case in `must-pass.txt` that
//! fails is a failure; the list only grows:
//!
//! ```text
//! tests/conformance/oracle check --start "target/debug/kenter run --controllers= --state-dir {state}/data" \
//!     --must-pass tests/conformance/must-pass.txt --update
//! ```

use std::{path::Path, process::Command};

use crate::support::binary;

fn available(program: &str) -> bool {
    Command::new(program).arg("version").output().is_ok() || Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn every_case_that_once_passed_passes() {
    for program in ["python3", "openssl"] {
        if !available(program) {
            eprintln!("SKIPPED: conformance needs {program}, which is not installed; nothing was checked");
            return;
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let list = std::fs::read_to_string(folder.join("must-pass.txt")).expect("the list of cases");
    assert!(list.lines().count() > 1000, "the list of cases that must pass has shrunk");
    let start = format!("{} run --controllers= --state-dir {{state}}/data", binary());
    let mut command = Command::new("python3");
    command.arg(folder.join("oracle.py")).arg("check").arg("--start").arg(start);
    command.arg("--must-pass").arg(folder.join("must-pass.txt"));
    if let Some(kubectl) = std::env::var_os("ORACLE_KUBECTL") {
        command.arg("--kubectl").arg(kubectl);
    }
    let output = command.output().expect("the runner runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lost: Vec<&str> = text.lines().filter(|line| line.contains("LOST") || line.contains("must pass")).collect();
    let tail: Vec<&str> = text.lines().rev().take(12).collect();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cases were lost:\n{}\n{}\n{error}", lost.join("\n"), tail.join("\n"));
}
