//! What the status of a job may become. Rules about members that did not change are left alone: a status that is bad
//! already may be mended piece by piece (kubernetes `getStatusValidationOptions`, `ValidateJobUpdateStatus`).

use std::collections::HashSet;

use super::{indexes, spec};
use crate::{
    api::{ErrorList, FieldError, Path, duration::parse_time},
    object::Value,
    registry::{
        builtin::{apps::workload, internal},
        validation::declarative::is_unset,
    },
};

/// Whether a condition of the job has this status.
pub fn has(job: &Value, condition: &str, status: &str) -> bool {
    let conditions = job.array_at(&["status", "conditions"]);
    conditions.iter().any(|it| it.str_at(&["type"]) == condition && it.str_at(&["status"]) == status)
}

/// What conditions say of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
struct End {
    complete: bool,
    failed: bool,
    failing: bool,
    succeeded: bool,
}

impl End {
    fn of(job: &Value) -> Self {
        let is = |condition| has(job, condition, "True");
        Self {
            complete: is("Complete"),
            failed: is("Failed"),
            failing: is("FailureTarget"),
            succeeded: is("SuccessCriteriaMet"),
        }
    }

    fn finished(self) -> bool {
        self.complete || self.failed
    }
}

/// A status, what it was, and what of it changed.
struct Change<'a> {
    job: &'a Value,
    old: &'a Value,
    now: End,
    before: End,
    path: Path<'a>,
}

impl Change<'_> {
    fn get(&self, member: &str) -> Option<&Value> {
        self.job.at(&["status", member]).filter(|it| !it.is_null())
    }

    fn number(&self, member: &str) -> i64 {
        self.job.i64_at(&["status", member]).unwrap_or(0)
    }

    fn text(&self, member: &str) -> &str {
        self.job.str_at(&["status", member])
    }

    fn changed(&self, member: &str) -> bool {
        self.get(member) != self.old.at(&["status", member]).filter(|it| !it.is_null())
    }

    fn finish_changed(&self) -> bool {
        self.now.finished() != self.before.finished()
    }

    fn complete_changed(&self) -> bool {
        self.now.complete != self.before.complete
    }

    fn failed_changed(&self) -> bool {
        self.now.failed != self.before.failed
    }

    fn spec(&self, member: &str) -> Option<&Value> {
        self.job.at(&["spec", member]).filter(|it| !it.is_null())
    }

    fn completions(&self) -> Option<i64> {
        self.job.i64_at(&["spec", "completions"])
    }

    fn refuse(&self, member: &str, why: &str, errors: &mut ErrorList) {
        let shown = self.get(member).unwrap_or(&Value::Null);
        errors.push(FieldError::invalid_ref(&self.path.child(member), shown, why));
    }

    fn refuse_conditions(&self, why: &str, errors: &mut ErrorList) {
        errors.push(FieldError::invalid_omitted(&self.path.child("conditions"), why));
    }
}

/// Judges a new status of a job.
pub fn validate(job: &Value, old: &Value, errors: &mut ErrorList) {
    let change = Change { job, old, now: End::of(job), before: End::of(old), path: Path::new("status") };
    let empty = Value::object();
    let status = job.get("status").unwrap_or(&empty);
    const COUNTS: [&str; 5] = ["active", "succeeded", "failed", "ready", "terminating"];
    workload::validate_nonnegative_members(status, &COUNTS, &change.path, errors);
    validate_uncounted(&change, errors);
    validate_times(&change, errors);
    validate_conditions(&change, errors);
    validate_finished(&change, errors);
    validate_indexes(&change, errors);
    validate_rest(&change, errors);
    validate_transition(&change, errors);
}

fn validate_uncounted(change: &Change<'_>, errors: &mut ErrorList) {
    let path = change.path.child("uncountedTerminatedPods");
    let mut seen = HashSet::new();
    for list in ["succeeded", "failed"] {
        let at = path.child(list);
        for (index, uid) in change.job.array_at(&["status", "uncountedTerminatedPods", list]).iter().enumerate() {
            let uid = uid.as_str().unwrap_or("");
            if uid.is_empty() {
                errors.push(FieldError::invalid(&at.index(index), uid, "must not be empty"));
            } else if !seen.insert(uid) {
                errors.push(FieldError::duplicate(&at.index(index), uid));
            }
        }
    }
}

fn validate_times(change: &Change<'_>, errors: &mut ErrorList) {
    let now = change.now;
    if (change.complete_changed() || change.failed_changed()) && now.complete && now.failed {
        change.refuse_conditions("cannot set Complete=True and Failed=true conditions", errors);
    }
    let failing_changed = now.failing != change.before.failing;
    if (change.complete_changed() || failing_changed) && now.complete && now.failing {
        change.refuse_conditions("cannot set Complete=True and FailureTarget=true conditions", errors);
    }
    let ended = change.get("completionTime");
    if change.complete_changed() || change.changed("completionTime") {
        if ended.is_some() && !now.complete {
            let why = "cannot set completionTime when there is no Complete=True condition";
            change.refuse("completionTime", why, errors);
        }
        if ended.is_none() && now.complete {
            let why = "completionTime is required for Complete jobs";
            errors.push(FieldError::required(&change.path.child("completionTime"), why));
        }
    }
    let time = |member: &str| change.get(member).and_then(Value::as_str).and_then(|text| parse_time(text).ok());
    if (change.changed("startTime") || change.changed("completionTime"))
        && let (Some(start), Some(end)) = (time("startTime"), time("completionTime"))
        && end < start
    {
        change.refuse("completionTime", "must be equal to or after `startTime`", errors);
    }
}

fn validate_conditions(change: &Change<'_>, errors: &mut ErrorList) {
    let now = change.now;
    if (change.failed_changed() || change.changed("failedIndexes")) && now.failed && !now.failing {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        change.refuse_conditions(why, errors);
    }
    let success_changed = now.succeeded != change.before.succeeded;
    if (change.complete_changed() || success_changed) && now.complete && !now.succeeded {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        change.refuse_conditions(why, errors);
    }
}

fn validate_finished(change: &Change<'_>, errors: &mut ErrorList) {
    if !change.now.finished() {
        return;
    }
    let just = change.finish_changed();
    if (just || change.changed("active")) && change.number("active") > 0 {
        change.refuse("active", "active>0 is invalid for finished job", errors);
    }
    let never_ran = change.job.bool_at(&["spec", "suspend"]) && change.completions() == Some(0);
    if (just || change.changed("startTime")) && !never_ran && change.get("startTime").is_none() {
        let why = "startTime is required for finished job";
        errors.push(FieldError::required(&change.path.child("startTime"), why));
    }
    let uncounted = |list| change.job.array_at(&["status", "uncountedTerminatedPods", list]).len();
    if (just || change.changed("uncountedTerminatedPods"))
        && uncounted("failed") + uncounted("succeeded") > 0
        && let Some(pods) = change.get("uncountedTerminatedPods")
    {
        let shown = internal::shown(pods, "UncountedTerminatedPods");
        let at = change.path.child("uncountedTerminatedPods");
        errors.push(FieldError::invalid_shown(&at, shown, "must be empty for finished job"));
    }
}

fn validate_indexes(change: &Change<'_>, errors: &mut ErrorList) {
    let (completed, failed) = (change.text("completedIndexes"), change.get("failedIndexes"));
    let failed_text = failed.and_then(Value::as_str).unwrap_or("");
    let (completed_changed, failed_changed) = (change.changed("completedIndexes"), change.changed("failedIndexes"));
    let per_index = change.spec("backoffLimitPerIndex").is_some();
    let judge = |member: &str, text: &str, errors: &mut ErrorList| {
        if let Some(Err(why)) = change.completions().map(|completions| indexes::count(text, completions)) {
            change.refuse(member, &format!("error parsing {member}: {why}"), errors);
        }
    };
    if completed_changed {
        judge("completedIndexes", completed, errors);
    }
    if failed_changed && per_index && failed.is_some() {
        judge("failedIndexes", failed_text, errors);
    }
    let empty = Value::object();
    if completed_changed && !completed.is_empty() && !spec::is_indexed(change.job.get("spec").unwrap_or(&empty)) {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        change.refuse("completedIndexes", why, errors);
    }
    if failed_changed && !per_index && failed.is_some() {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        change.refuse("failedIndexes", why, errors);
    }
    if (failed_changed || completed_changed)
        && let Some(completions) = change.completions()
        && let Some(index) = indexes::overlap(completed, failed_text, completions)
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        change.refuse("failedIndexes", &why, errors);
    }
}

fn validate_rest(change: &Change<'_>, errors: &mut ErrorList) {
    let now = change.now;
    if (change.finish_changed() || change.changed("terminating")) && now.finished() && change.number("terminating") > 0
    {
        change.refuse("terminating", "terminating>0 is invalid for finished job", errors);
    }
    if (change.changed("ready") || change.changed("active")) && change.number("ready") > change.number("active") {
        change.refuse("ready", "cannot set more ready pods than active", errors);
    }
    if now.succeeded && now.failed {
        change.refuse_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
    }
    if now.succeeded && now.failing {
        change.refuse_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", errors);
    }
    if change.spec("successPolicy").is_some() && !now.succeeded && now.complete {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        change.refuse_conditions(why, errors);
    }
}

/// What a status may not go back on.
fn validate_transition(change: &Change<'_>, errors: &mut ErrorList) {
    let (now, before) = (change.now, change.before);
    for (condition, was, is) in [
        ("Failed", before.failed, now.failed),
        ("Complete", before.complete, now.complete),
        ("FailureTarget", before.failing, now.failing),
    ] {
        if was && !is {
            change.refuse_conditions(&format!("cannot disable the terminal {condition}=True condition"), errors);
        }
    }
    let old_number = |member: &str| change.old.i64_at(&["status", member]).unwrap_or(0);
    let decreased = |member: &str, errors: &mut ErrorList| {
        if change.number(member) < old_number(member) {
            let at = change.path.child(member);
            let why = format!("cannot decrease the {member} counter");
            errors.push(FieldError::invalid(&at, change.number(member), &why));
        }
    };
    decreased("failed", errors);
    let empty = Value::object();
    let scales = spec::is_indexed(change.job.get("spec").unwrap_or(&empty))
        && change.spec("completions") == change.spec("parallelism");
    if !scales {
        decreased("succeeded", errors);
    }
    let was_set = |member: &str| !is_unset(change.old.at(&["status", member]));
    if change.get("completionTime").is_some() && was_set("completionTime") && change.changed("completionTime") {
        change.refuse("completionTime", "field is immutable", errors);
    }
    let resumes = has(change.old, "Suspended", "True") && has(change.job, "Suspended", "False");
    let suspended = change.job.bool_at(&["spec", "suspend"]);
    if change.changed("startTime") && !resumes && was_set("startTime") && !suspended {
        change.refuse("startTime", "field is immutable for unsuspended job once set", errors);
    }
    if before.succeeded && !now.succeeded {
        change.refuse_conditions("cannot disable the SuccessCriteriaMet=True condition", errors);
    }
    if before.complete && !before.succeeded && now.succeeded {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        change.refuse_conditions(why, errors);
    }
}
