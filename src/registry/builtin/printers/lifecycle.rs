//! Rows of evictions and requests for them.

use super::{
    Cells, cells,
    text::{NONE, UNKNOWN, UNSET, age, condition, is_true, name, number, some_of, time},
};
use crate::{
    object::Value,
    registry::printer::{Aging, Cell, Printer, Tense},
};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "EvictionRequest" => Printer::new(eviction_request),
        "Eviction" => Printer::new(eviction),
        _ => return None,
    })
}

/// Name and kind of what is evicted.
fn target(it: &Value) -> (&str, &'static str) {
    match it.at(&["spec", "target", "pod"]).filter(|it| !it.is_null()) {
        Some(pod) => (pod.str_at(&["name"]), "Pod"),
        None => (UNSET, UNSET),
    }
}

const CONDITIONS: &[&str] = &["status", "conditions"];

fn status(it: &Value) -> String {
    for kind in ["TargetEvicted", "Failed"] {
        if is_true(it, CONDITIONS, kind) {
            let reason = condition(it, CONDITIONS, kind).map_or("", |it| it.str_at(&["reason"]));
            return format!("{kind} ({reason})");
        }
    }
    let seen = number(it, &["status", "observedGeneration"]) > 0;
    if seen { "Progressing" } else { "Pending" }.to_owned()
}

fn eviction_request(it: &Value) -> Cells {
    let (target, kind) = target(it);
    let spec = |field: &str| it.str_at(&["spec", field]);
    cells![name(it), target, kind, status(it), spec("requester"), spec("intent"), age(it)]
}

fn eviction(it: &Value) -> Cells {
    let (target, kind) = target(it);
    let responders = it.array_at(&["status", "targetResponders"]);
    let is_done = |it: &&Value| matches!(it.str_at(&["state"]), "Canceled" | "Interrupted" | "Completed");
    let is_active = |it: &&Value| it.str_at(&["state"]) == "Active";
    let active = responders.iter().rev().find(is_active).or_else(|| responders.iter().rev().find(is_done));
    let met = responders.iter().filter(|it| is_done(it) || is_active(it)).count();
    let shown = active.map_or(UNSET, |it| it.str_at(&["name"]));
    let progress = Progress::of(it, active);
    cells![
        name(it),
        target,
        kind,
        status(it),
        format!("{shown} ({met}/{})", responders.len()),
        progress.status,
        progress.finish,
        requesters(it),
        age(it),
        progress.heartbeat,
        progress.message,
    ]
}

/// What the responder in charge says of itself.
struct Progress {
    status: Cell,
    finish: Cell,
    heartbeat: Cell,
    message: Cell,
}

impl Progress {
    fn of(it: &Value, active: Option<&Value>) -> Self {
        let nothing =
            Self { status: UNSET.into(), finish: UNKNOWN.into(), heartbeat: UNSET.into(), message: UNSET.into() };
        let Some(active) = active else { return nothing };
        let named = |it: &&Value| it.str_at(&["name"]) == active.str_at(&["name"]);
        let Some(responder) = it.array_at(&["status", "responders"]).iter().find(named) else { return nothing };
        let state = active.str_at(&["state"]);
        let at = |field: &str| time(responder, &[field]);
        let ago = |before: &str, field: &str, after: &str| at(field).map(|at| Cell::since(before, Some(at), after));
        let (status, finish) = match state {
            "Active" => {
                let started = ago("Started (", "startTime", " ago)");
                let finish = started.as_ref().and_then(|_| at("expectedCompletionTime")).map(|at| {
                    Cell::Aging(Box::new(Aging {
                        before: String::new(),
                        at,
                        after: String::new(),
                        tense: Tense::Around,
                    }))
                });
                (started, finish.unwrap_or_else(|| UNKNOWN.into()))
            }
            "Completed" => (ago("Completed (", "completionTime", " ago)"), "-".into()),
            _ => (None, "-".into()),
        };
        let message = responder.str_at(&["message"]).trim();
        Self {
            status: status.unwrap_or_else(|| state.into()),
            finish,
            heartbeat: ago("", "heartbeatTime", " ago").unwrap_or_else(|| UNSET.into()),
            message: if message.is_empty() { UNSET.into() } else { message.into() },
        }
    }
}

/// One of those who want it, and how many more.
fn requesters(it: &Value) -> String {
    let all = it.array_at(&["status", "requesters"]);
    let still = all.iter().filter(|it| it.str_at(&["intent"]) != "Withdrawn");
    let mut names: Vec<String> = still.map(|it| it.str_at(&["name"]).to_owned()).collect();
    names.sort_unstable();
    match (all.is_empty(), names.is_empty()) {
        (true, _) => NONE.to_owned(),
        (false, true) => "<withdrawn>".to_owned(),
        (false, false) => some_of(&names, 1),
    }
}
