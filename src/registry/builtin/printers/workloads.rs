//! Rows of what makes pods: apps, batch, replication controllers, templates.

use super::{
    Cells, cells,
    text::{self, NONE, UNSET, age, containers, is_true, label_map, label_selector, name, number, text_or, time},
};
use crate::{
    api::{Meta, duration, labels::Selector},
    object::Value,
    registry::printer::{Cell, Printer},
};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "PodTemplate" => Printer::new(pod_template),
        "ReplicationController" => Printer::new(replication_controller),
        "ReplicaSet" => Printer::new(replica_set),
        "Deployment" => Printer::new(deployment),
        "StatefulSet" => Printer::new(stateful_set),
        "DaemonSet" => Printer::new(daemon_set),
        "ControllerRevision" => Printer::new(controller_revision),
        "Job" => Printer::new(job),
        "CronJob" => Printer::new(cron_job),
        _ => return None,
    })
}

const TEMPLATE_SPEC: &[&str] = &["spec", "template", "spec"];

fn selector(it: &Value) -> Option<&Value> {
    it.at(&["spec", "selector"])
}

fn pod_template(it: &Value) -> Cells {
    let (names, images) = containers(it.at(&["template", "spec"]));
    cells![name(it), names, images, label_map(it.object_at(&["template", "metadata", "labels"]))]
}

fn replicas(it: &Value, selector: String) -> Cells {
    let (names, images) = containers(it.at(TEMPLATE_SPEC));
    cells![
        name(it),
        number(it, &["spec", "replicas"]),
        number(it, &["status", "replicas"]),
        number(it, &["status", "readyReplicas"]),
        age(it),
        names,
        images,
        selector,
    ]
}

fn replication_controller(it: &Value) -> Cells {
    replicas(it, label_map(it.object_at(&["spec", "selector"])))
}

fn replica_set(it: &Value) -> Cells {
    replicas(it, label_selector(selector(it)))
}

fn ready(it: &Value) -> String {
    format!("{}/{}", number(it, &["status", "readyReplicas"]), number(it, &["spec", "replicas"]))
}

fn deployment(it: &Value) -> Cells {
    let (names, images) = containers(it.at(TEMPLATE_SPEC));
    let selector = Selector::from_object(selector(it)).map_or_else(|_| "<invalid>".to_owned(), |it| it.to_string());
    let (updated, available) =
        (number(it, &["status", "updatedReplicas"]), number(it, &["status", "availableReplicas"]));
    cells![name(it), ready(it), updated, available, age(it), names, images, selector]
}

fn stateful_set(it: &Value) -> Cells {
    let (names, images) = containers(it.at(TEMPLATE_SPEC));
    cells![name(it), ready(it), age(it), names, images]
}

fn daemon_set(it: &Value) -> Cells {
    let (names, images) = containers(it.at(TEMPLATE_SPEC));
    let status = |field: &str| number(it, &["status", field]);
    cells![
        name(it),
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
        label_map(it.object_at(&["spec", "template", "spec", "nodeSelector"])),
        age(it),
        names,
        images,
        label_selector(selector(it)),
    ]
}

fn controller_revision(it: &Value) -> Cells {
    let controller = Meta::of(it).controller().map(|owner| {
        let (kind, group) = (owner.kind(), owner.group());
        let kind = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        format!("{}/{}", kind.to_lowercase(), owner.name())
    });
    cells![name(it), controller.unwrap_or_else(|| NONE.to_owned()), number(it, &["revision"]), age(it)]
}

fn job(it: &Value) -> Cells {
    let (names, images) = containers(it.at(TEMPLATE_SPEC));
    let succeeded = number(it, &["status", "succeeded"]);
    let completions = match (it.i64_at(&["spec", "completions"]), number(it, &["spec", "parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let (start, end) = (time(it, &["status", "startTime"]), time(it, &["status", "completionTime"]));
    let took = match (start, end) {
        (None, _) => Cell::from(""),
        (start, None) => Cell::age(start),
        (Some(start), Some(end)) => Cell::from(duration::age(start, end)),
    };
    let selector = label_selector(selector(it));
    cells![name(it), job_status(it), completions, took, age(it), names, images, selector]
}

fn job_status(it: &Value) -> &'static str {
    let has = |kind: &str| is_true(it, &["status", "conditions"], kind);
    let first = |kinds: &[&'static str]| kinds.iter().copied().find(|kind| has(kind));
    if let Some(end) = first(&["Complete", "Failed"]) {
        return end;
    }
    if text::is_being_deleted(it) {
        return "Terminating";
    }
    first(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]).unwrap_or("Running")
}

fn cron_job(it: &Value) -> Cells {
    let (names, images) = containers(it.at(&["spec", "jobTemplate", "spec", "template", "spec"]));
    let suspend = match it.at(&["spec", "suspend"]).and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let last = match time(it, &["status", "lastScheduleTime"]) {
        None => Cell::from(NONE),
        at => Cell::age(at),
    };
    cells![
        name(it),
        it.str_at(&["spec", "schedule"]),
        text_or(it, &["spec", "timeZone"], NONE),
        suspend,
        it.array_at(&["status", "active"]).len() as i64,
        last,
        age(it),
        names,
        images,
        label_selector(it.at(&["spec", "jobTemplate", "spec", "selector"])),
    ]
}
