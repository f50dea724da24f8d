//! The row of a pod.

use jiff::Timestamp;

use super::{
    cells,
    text::{self, NONE, age, is_true, number, or},
};
use crate::{
    object::Value,
    registry::printer::{Cell, Completed, PrintedRow},
};

const CONDITIONS: &[&str] = &["status", "conditions"];

pub fn row(pod: &Value) -> PrintedRow {
    let state = State::of(pod);
    let restarts = match (state.restarts, state.last_restart) {
        (0, _) | (_, None) => Cell::from(state.restarts.to_string()),
        (count, at) => Cell::since(&format!("{count} ("), at, " ago)"),
    };
    let ips = pod.array_at(&["status", "podIPs"]);
    let ip = ips.first().map_or("", |ip| ip.str_at(&["ip"]));
    PrintedRow {
        cells: cells![
            text::name(pod),
            format!("{}/{}", state.ready, state.containers),
            state.reason,
            restarts,
            age(pod),
            or(ip, NONE),
            or(pod.str_at(&["spec", "nodeName"]), NONE),
            or(pod.str_at(&["status", "nominatedNodeName"]), NONE),
            readiness_gates(pod),
        ],
        completed: completed(pod),
    }
}

fn completed(pod: &Value) -> Option<Completed> {
    match pod.str_at(&["status", "phase"]) {
        "Succeeded" => Some(Completed { reason: "Succeeded", message: "The pod has completed successfully." }),
        "Failed" => Some(Completed { reason: "Failed", message: "The pod failed." }),
        _ => None,
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = pod.array_at(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| is_true(pod, CONDITIONS, gate.str_at(&["conditionType"]))).count();
    format!("{open}/{}", gates.len())
}

/// What the containers of a pod add up to.
#[derive(Default)]
struct State {
    containers: usize,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    reason: String,
}

impl State {
    fn of(pod: &Value) -> Self {
        let status = |name: &str| pod.str_at(&["status", name]);
        let mut state = Self {
            containers: pod.array_at(&["spec", "containers"]).len()
                + pod.array_at(&["spec", "initContainers"]).iter().filter(|it| is_restartable(it)).count(),
            reason: or(status("reason"), status("phase")).to_owned(),
            ..Self::default()
        };
        let gated = |it: &Value| it.str_at(&["type"]) == "PodScheduled" && it.str_at(&["reason"]) == "SchedulingGated";
        if pod.array_at(CONDITIONS).iter().any(gated) {
            state.reason = "SchedulingGated".to_owned();
        }
        let initializing = state.init_containers(pod);
        if !initializing || is_true(pod, CONDITIONS, "Initialized") {
            state.main_containers(pod);
        }
        if text::is_being_deleted(pod) {
            if status("reason") == "NodeLost" {
                state.reason = "Unknown".to_owned();
            } else if !matches!(status("phase"), "Succeeded" | "Failed") {
                state.reason = "Terminating".to_owned();
            }
        }
        state
    }

    /// Counts the init containers; answers whether the pod is still initializing.
    fn init_containers(&mut self, pod: &Value) -> bool {
        let specs = pod.array_at(&["spec", "initContainers"]);
        // Those of restartable containers go on counting when the pod is initialized.
        let (mut restarts, mut last_restart) = (0, None);
        let mut initializing = false;
        for (at, container) in pod.array_at(&["status", "initContainerStatuses"]).iter().enumerate() {
            self.restarted(container);
            let name = container.str_at(&["name"]);
            let restartable = specs.iter().any(|spec| spec.str_at(&["name"]) == name && is_restartable(spec));
            if restartable {
                restarts += number(container, &["restartCount"]);
                last_restart = last_restart.max(last_finish(container));
            }
            let terminated = container.at(&["state", "terminated"]).filter(|it| !it.is_null());
            if terminated.is_some_and(|it| number(it, &["exitCode"]) == 0) {
                continue;
            }
            if restartable && container.bool_at(&["started"]) {
                self.ready += usize::from(container.bool_at(&["ready"]));
                continue;
            }
            let waiting = container.str_at(&["state", "waiting", "reason"]);
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", end(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{at}/{}", specs.len()),
            };
            initializing = true;
            break;
        }
        if !initializing || is_true(pod, CONDITIONS, "Initialized") {
            (self.restarts, self.last_restart) = (restarts, last_restart);
        }
        initializing
    }

    fn main_containers(&mut self, pod: &Value) {
        let (mut has_running, mut error) = (false, None);
        // Backwards, so that the first container's state is the one that is shown.
        for container in pod.array_at(&["status", "containerStatuses"]).iter().rev() {
            self.restarted(container);
            let state = |name: &str| container.at(&["state", name]).filter(|it| !it.is_null());
            let waiting = container.str_at(&["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(terminated) = state("terminated") {
                self.reason = end(terminated);
                if number(terminated, &["exitCode"]) != 0 {
                    error = Some(self.reason.clone());
                }
            } else if container.bool_at(&["ready"]) && state("running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            self.reason = match error {
                _ if has_running && ready(pod) => "Running".to_owned(),
                Some(error) => error,
                None if has_running => "NotReady".to_owned(),
                None => return,
            };
        }
    }

    fn restarted(&mut self, container: &Value) {
        self.restarts += number(container, &["restartCount"]);
        self.last_restart = self.last_restart.max(last_finish(container));
    }
}

/// Whether any Ready condition is true.
fn ready(pod: &Value) -> bool {
    pod.array_at(CONDITIONS).iter().any(|it| it.str_at(&["type"]) == "Ready" && it.str_at(&["status"]) == "True")
}

fn is_restartable(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

fn last_finish(container: &Value) -> Option<Timestamp> {
    text::time(container, &["lastState", "terminated", "finishedAt"])
}

/// Why a container ended.
fn end(terminated: &Value) -> String {
    match (terminated.str_at(&["reason"]), number(terminated, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(terminated, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
