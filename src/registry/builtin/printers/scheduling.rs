//! Rows of priorities and groups of pods.

use super::{
    Cells, cells,
    text::{NONE, age, name, number},
};
use crate::{object::Value, registry::printer::Printer};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "PriorityClass" => Printer::new(priority_class),
        "Workload" => Printer::new(|it: &Value| -> Cells { cells![name(it), age(it)] }),
        "PodGroup" => Printer::new(pod_group),
        "CompositePodGroup" => {
            Printer::new(|it: &Value| -> Cells { cells![name(it), policy(it), workload(it), age(it)] })
        }
        _ => return None,
    })
}

fn priority_class(it: &Value) -> Cells {
    let (value, default) = (number(it, &["value"]), it.bool_at(&["globalDefault"]));
    cells![name(it), value, default, age(it), it.str_at(&["preemptionPolicy"])]
}

fn policy(it: &Value) -> &'static str {
    let gang = it.at(&["spec", "schedulingPolicy", "gang"]).is_some_and(|gang| !gang.is_null());
    if gang { "Gang" } else { "Basic" }
}

fn workload(it: &Value) -> &str {
    match it.at(&["spec", "workloadRef"]).filter(|it| !it.is_null()) {
        Some(reference) => reference.str_at(&["workloadName"]),
        None => NONE,
    }
}

fn pod_group(it: &Value) -> Cells {
    let last = |kind: &str| {
        it.array_at(&["status", "conditions"]).iter().rev().find(|condition| condition.str_at(&["type"]) == kind)
    };
    let scheduled = last("PodGroupInitiallyScheduled").map(|condition| match condition.str_at(&["status"]) {
        "True" => "Scheduled",
        _ => "Unschedulable",
    });
    let disrupted = last("DisruptionTarget").map(|condition| condition.str_at(&["reason"]));
    let status = disrupted.or(scheduled).unwrap_or("Pending");
    cells![name(it), policy(it), workload(it), status, age(it)]
}
