//! The batch group.

use super::{Hooks, set};
use crate::object::{Key, Map};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.batch.v1.Job", |it, _| job(it)),
    ("io.k8s.api.batch.v1.CronJob", |it, _| cron_job(it)),
    ("io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern", |it, _| set::empty(it, "status", "True")),
];

fn job(it: &mut Map) {
    let spec = set::child(it, "spec");
    // A job that runs one pod may leave out both.
    if set::is_nil(spec, "completions") && set::is_nil(spec, "parallelism") {
        spec.insert(Key::from_static("completions"), 1);
    }
    set::nil(spec, "parallelism", 1);
    let limit = if set::is_nil(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    set::nil(spec, "backoffLimit", limit);
    set::nil(spec, "completionMode", "NonIndexed");
    set::nil(spec, "suspend", false);
    let replace = if set::is_nil(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    set::nil(spec, "podReplacementPolicy", replace);
    set::nil(spec, "manualSelector", false);
    let labels = spec.get("template").and_then(|template| template.at(&["metadata", "labels"])).cloned();
    let metadata = set::child(it, "metadata");
    if let Some(labels) = labels.filter(|labels| !labels.is_null())
        && set::has_none(metadata, "labels")
    {
        metadata.insert(Key::from_static("labels"), labels);
    }
}

fn cron_job(it: &mut Map) {
    let spec = set::child(it, "spec");
    set::empty(spec, "concurrencyPolicy", "Allow");
    set::nil(spec, "suspend", false);
    set::nil(spec, "successfulJobsHistoryLimit", 3);
    set::nil(spec, "failedJobsHistoryLimit", 1);
}
