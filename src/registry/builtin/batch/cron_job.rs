//! CronJob (kubernetes `pkg/registry/batch/cronjob`).

use super::{cron, spec};
use crate::{
    api::{ErrorList, FieldError, Meta, Path},
    object::Value,
    registry::{
        builtin::{
            apps::workload,
            core::pod::{PodPolicy, workload_name_warning},
            kind::Own,
        },
        strategy::StrategyContext,
        validation::declarative,
    },
};

/// Jobs get a suffix of 11 bytes.
const MAX_NAME: usize = 52;
const CONCURRENCY: [&str; 3] = ["Allow", "Forbid", "Replace"];
const TEMPLATE: [&str; 3] = ["spec", "jobTemplate", "spec"];

pub struct CronJob {
    pub pods: PodPolicy,
}

impl Own for CronJob {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        if let Some(spec) = new.at_mut(&TEMPLATE) {
            spec::drop_disabled(spec, old.and_then(|old| old.at(&TEMPLATE)));
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let body = new.get("spec").unwrap_or(&empty);
        let before = old.and_then(|old| old.get("spec"));
        let at = path.child("schedule");
        match body.str_at(&["schedule"]) {
            "" => errors.push(FieldError::required(&at, "").covered_by_declarative()),
            schedule => validate_schedule(schedule, body, before, &at, errors),
        }
        workload::validate_nonnegative_members(body, &["startingDeadlineSeconds"], &path, errors);
        if let Some(zone) = body.get("timeZone").and_then(Value::as_str)
            && before.is_none_or(|before| before.get("timeZone") != body.get("timeZone"))
        {
            validate_zone(zone, &path.child("timeZone"), errors);
        }
        let concurrency = body.str_at(&["concurrencyPolicy"]);
        let at = path.child("concurrencyPolicy");
        match concurrency {
            "" => errors.push(FieldError::required(&at, "")),
            known if CONCURRENCY.contains(&known) => {}
            other => errors.push(FieldError::not_supported(&at, other, &CONCURRENCY)),
        }
        self.validate_template(new, old, &path, errors);
        workload::validate_nonnegative_members(
            body,
            &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
            &path,
            errors,
        );
        let name = Meta::of(new).name();
        if old.is_none() && name.len() > MAX_NAME {
            let metadata = Path::new("metadata");
            let why = format!("must be no more than {MAX_NAME} characters");
            errors.push(FieldError::invalid(&metadata.child("name"), name, &why));
        }
        let mut declared = ErrorList::new();
        let schedule = body.get("schedule");
        if declarative::changed(schedule, old, before.and_then(|before| before.get("schedule"))) {
            declarative::required(schedule, &path.child("schedule"), &mut declared);
        }
        declarative::merge(errors, declared);
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let generation = |object: &Value| object.i64_at(&["metadata", "generation"]);
        let mut warnings = Vec::new();
        if old.is_none() {
            warnings.extend(workload_name_warning(new));
        }
        if old.is_none_or(|old| generation(new) != generation(old))
            && let Some(body) = new.at(&TEMPLATE)
        {
            let path = Path::new("spec");
            let template = path.child("jobTemplate");
            warnings.extend(spec::warnings(body, &template.child("spec")));
        }
        if old.is_some() && new.str_at(&["spec", "schedule"]).contains("TZ") {
            warnings.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
        }
        warnings
    }
}

impl CronJob {
    fn validate_template(&self, new: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
        let empty = Value::object();
        let body = new.at(&TEMPLATE).unwrap_or(&empty);
        let template = path.child("jobTemplate");
        let at = template.child("spec");
        spec::validate(body, old.and_then(|old| old.at(&TEMPLATE)), self.pods, &at, errors);
        if let Some(selector) = body.get("selector").filter(|it| !it.is_null()) {
            errors.push(FieldError::invalid_ref(&at.child("selector"), selector, "`selector` will be auto-generated"));
        }
        if body.bool_at(&["manualSelector"]) {
            errors.push(FieldError::not_supported(&at.child("manualSelector"), true, &["nil", "false"]));
        }
    }
}

fn validate_schedule(schedule: &str, body: &Value, before: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(why) = cron::problem(schedule) {
        errors.push(FieldError::invalid(path, schedule, &why));
    }
    if !schedule.contains("TZ") {
        return;
    }
    // Schedules with a zone inside are older than the rule.
    let had_one = before.is_some_and(|before| before.str_at(&["schedule"]).contains("TZ"));
    if !had_one {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(path, schedule, why));
    } else if !declarative::is_unset(body.get("timeZone")) {
        let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(FieldError::invalid(path, schedule, why));
    }
}

fn validate_zone(zone: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if zone.is_empty() {
        errors.push(FieldError::invalid(path, zone, "timeZone must be nil or non-empty string"));
        return;
    }
    let unknown = || FieldError::invalid(path, zone, &format!("unknown time zone {zone}"));
    let good = |part: &str| {
        let characters = part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'));
        characters && (1..=14).contains(&part.len()) && !matches!(part, "." | "..") && !part.starts_with('-')
    };
    if !zone.split('/').all(good) {
        errors.push(unknown());
        return;
    }
    if zone.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(FieldError::invalid(path, zone, why));
    }
    if zone != "Local" && !cron::is_zone(zone) {
        errors.push(unknown());
    }
}
