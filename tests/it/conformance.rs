//! The recorded answers of a real kube-apiserver, replayed against the built binary. A case in `must-pass.txt` that
//! fails is a failure; the list only grows:
//!
//! ```text
//! tests/conformance/oracle check --start "target/debug/kenter run --controllers= --state-dir {state}/data" \
//!     --must-pass tests/conformance/must-pass.txt --update
//! ```

use std::{collections::HashMap, path::Path, process::Command};

use crate::support::binary;

fn available(program: &str) -> bool {
    Command::new(program).arg("version").output().is_ok() || Command::new(program).arg("--version").output().is_ok()
}

/// Runs the recordings named and gives the names of cases that must pass and did not.
fn lost(only: &[String]) -> (Vec<String>, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let start = format!("{} run --controllers= --state-dir {{state}}/data", binary());
    let mut command = Command::new("python3");
    command.arg(folder.join("oracle.py")).arg("check").arg("--start").arg(start);
    command.arg("--must-pass").arg(folder.join("must-pass.txt"));
    if let Some(kubectl) = std::env::var_os("ORACLE_KUBECTL") {
        command.arg("--kubectl").arg(kubectl);
    }
    let output = command.args(only).output().expect("the runner runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let name = |line: &str| Some(line.strip_prefix("LOST ")?.split(' ').next()?.to_owned());
    let lost: Vec<String> = text.lines().filter_map(name).collect();
    assert!(text.contains(" passed, "), "the runner did not come to its end:\n{text}");
    (lost, text)
}

/// All recorded cases by name, and whether a step of theirs is a kubectl call: without a kubectl, their other steps have
/// nothing to find.
fn recorded() -> HashMap<String, bool> {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/recordings");
    let mut all = HashMap::new();
    for area in std::fs::read_dir(recordings).expect("recordings").flatten() {
        for file in std::fs::read_dir(area.path()).expect("an area").flatten() {
            let text = std::fs::read(file.path()).expect("a recording");
            let cases: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("a list of cases");
            let (area, file) = (area.file_name(), file.path());
            let (area, file) = (area.to_string_lossy(), file.file_stem().unwrap_or_default().to_string_lossy());
            all.extend(cases.iter().map(|case| {
                let name = format!("{area}/{file}/{}", case["name"].as_str().expect("a name"));
                (name, case["steps"].as_array().expect("steps").iter().any(|step| step["do"] == "kubectl"))
            }));
        }
    }
    all
}

/// What the runner printed about these cases.
fn about<'a>(names: &[String], text: &'a str) -> String {
    let mut shown = false;
    let wanted = |line: &&'a str| {
        if let Some(name) = line.strip_prefix("FAIL ") {
            shown = names.iter().any(|it| it == name);
        } else if !line.starts_with(' ') {
            shown = false;
        }
        shown
    };
    text.lines().filter(wanted).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_case_that_once_passed_passes() {
    for program in ["python3", "openssl"] {
        if !available(program) {
            eprintln!("SKIPPED: conformance needs {program}, which is not installed; nothing was checked");
            return;
        }
    }
    let list = include_str!("../conformance/must-pass.txt");
    assert!(list.lines().count() > 1000, "the list of cases that must pass has shrunk");
    // Only these are run: what does not pass yet would cost the time it waits.
    let recorded = recorded();
    // The runner takes parts of names, so a name that is cut short would still find something.
    let unknown: Vec<&str> = list.lines().filter(|name| !recorded.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "must-pass.txt names what is not recorded: {unknown:?}");
    let mut names: Vec<String> = list.lines().map(str::to_owned).collect();
    if std::env::var_os("ORACLE_KUBECTL").is_none() {
        let before = names.len();
        names.retain(|name| !recorded[name]);
        let left_out = before - names.len();
        eprintln!("SKIPPED: {left_out} cases call kubectl 1.37, and ORACLE_KUBECTL names none");
    }
    let (first, _) = lost(&names);
    if first.is_empty() {
        return;
    }
    // The recordings hold sleeps of the recorder's choice, which a machine that is busy with other tests may miss. A
    // case that is lost has to be lost alone, too.
    let (again, text) = lost(&first);
    let again: Vec<String> = again.into_iter().filter(|name| first.contains(name)).collect();
    assert!(again.is_empty(), "cases were lost:\n{}", about(&again, &text));
}
