//! Job (kubernetes `pkg/registry/batch/job`).

use super::{job_status, spec};
use crate::{
    api::{ErrorList, FieldError, Meta, Path, labels::Selector, names::is_dns1123_label},
    object::{Map, Value, to_string},
    registry::{
        builtin::{
            apps::workload,
            core::pod::{PodPolicy, workload_name_warning},
            internal,
            kind::Own,
        },
        strategy::StrategyContext,
        validation::{
            LabelSelectorOptions, declarative::is_unset, selector::has_invalid_label_value, validate_immutable,
            validate_label_selector,
        },
    },
};

const LEGACY_UID: &str = "controller-uid";
const LEGACY_NAME: &str = "job-name";
const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";

pub struct Job {
    pub pods: PodPolicy,
}

impl Own for Job {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        if old.is_none() && !new.bool_at(&["spec", "manualSelector"]) {
            generate_selector(new);
        }
        let before = old.and_then(|old| old.get("spec"));
        if let Some(spec) = new.get_mut("spec") {
            spec::drop_disabled(spec, before);
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        let before = old.and_then(|old| old.get("spec"));
        if old.is_none() {
            validate_generated(new, spec, errors);
        }
        spec::validate(spec, before, self.pods, &path, errors);
        validate_selector(spec, before, &path, errors);
        if let Some(old) = old {
            validate_update(spec, old, &path, errors);
        }
        validate_name(new, spec, errors);
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let generation = |object: &Value| object.i64_at(&["metadata", "generation"]);
        if old.is_some_and(|old| generation(new) == generation(old)) {
            return Vec::new();
        }
        let name = if old.is_none() { workload_name_warning(new) } else { None };
        let about_spec = new.get("spec").map(|it| spec::warnings(it, &Path::new("spec"))).unwrap_or_default();
        name.into_iter().chain(about_spec).collect()
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        job_status::validate(new, old, errors);
    }

    fn orphaning_warning(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        )
    }
}

/// Labels that tell the pods of one job from all others, and a selector of them. What is there already stays:
/// validation tells of it. A job that has its template's labels, or none, gets them too: upstream defaults its labels to
/// the very map of the template (who wrote the same labels in both places cannot be told apart from that here).
fn generate_selector(job: &mut Value) {
    let of_job = job.object_at(&["metadata", "labels"]).filter(|labels| !labels.is_empty());
    let shared = of_job.is_none_or(|labels| Some(labels) == job.object_at(&["spec", "template", "metadata", "labels"]));
    let meta = Meta::of(job);
    let (name, uid) = (meta.name().to_owned(), meta.uid().to_owned());
    let labels = job.make(&["spec", "template", "metadata", "labels"]).make_object();
    for (label, value) in [(LEGACY_NAME, &name), (NAME, &name), (LEGACY_UID, &uid), (UID, &uid)] {
        if labels.get(label).is_none() {
            labels.insert(label, value.clone());
        }
    }
    if shared {
        let labels = labels.clone();
        job.set(&["metadata", "labels"], labels);
    }
    let selected = job.make(&["spec", "selector", "matchLabels"]).make_object();
    if selected.get(UID).is_none() {
        selected.insert(UID, uid);
    }
}

/// What [`generate_selector`] made has to be there as it was made.
fn validate_generated(job: &Value, spec: &Value, errors: &mut ErrorList) {
    let Some(selector) = spec.get("selector").filter(|it| !it.is_null()) else { return };
    if spec.bool_at(&["manualSelector"]) {
        return;
    }
    let meta = Meta::of(job);
    let (name, uid) = (meta.name(), meta.uid());
    let path = Path::new("spec");
    let (template, labels) = (path.child("template"), spec.at(&["template", "metadata", "labels"]));
    let metadata = template.child("metadata");
    let at = metadata.child("labels");
    let mut expected = Map::new();
    for (label, value) in [(LEGACY_UID, uid), (LEGACY_NAME, name), (UID, uid), (NAME, name)] {
        expected.insert(label, value);
        let why = format!("must be '{value}'");
        match labels.and_then(|labels| labels.get(label)).and_then(Value::as_str) {
            None => errors.push(FieldError::required(&at.key(label), &why)),
            Some(given) if given != value => {
                let shown = labels.map_or("null".to_owned(), to_string);
                errors.push(FieldError::invalid_shown(&at.key(label), shown, &why));
            }
            Some(_) => {}
        }
    }
    if Selector::from_object(Some(selector)).is_ok_and(|it| !it.matches(&expected)) {
        errors.push(FieldError::invalid_ref(&path.child("selector"), selector, "`selector` not auto-generated"));
    }
}

fn validate_selector(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("selector");
    match spec.get("selector").filter(|it| !it.is_null()) {
        None => errors.push(FieldError::required(&at, "")),
        Some(selector) => {
            let loose = old.is_some_and(|old| has_invalid_label_value(old.get("selector")));
            let options = LabelSelectorOptions { allow_invalid_values: loose, ..Default::default() };
            validate_label_selector(Some(selector), options, &at, errors);
        }
    }
    if let Ok(selector) = Selector::from_object(spec.get("selector")) {
        let empty = Value::object();
        let template = spec.get("template").unwrap_or(&empty);
        workload::validate_template_labels(template, &selector, &path.child("template"), errors);
    }
}

/// Pods of indexed jobs have their index in their hostname.
fn validate_name(job: &Value, spec: &Value, errors: &mut ErrorList) {
    let completions = spec.i64_at(&["completions"]).filter(|it| *it > 0);
    let Some(completions) = completions.filter(|_| spec::is_indexed(spec)) else { return };
    let name = Meta::of(job).name();
    let longest = format!("{name}-{}", completions - 1);
    if !is_dns1123_label(&longest).is_empty() {
        let metadata = Path::new("metadata");
        let why = format!("will not able to create pod with invalid DNS label: {longest}");
        errors.push(FieldError::invalid(&metadata.child("name"), name, &why));
    }
}

fn validate_update(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let empty = Value::object();
    let before = old.get("spec").unwrap_or(&empty);
    validate_completions(spec, before, path, errors);
    let immutable = |member: &'static str, errors: &mut ErrorList| {
        validate_immutable(spec.get(member), before.get(member), &path.child(member), errors);
    };
    immutable("selector", errors);
    validate_template_update(spec, before, old, path, errors);
    immutable("completionMode", errors);
    spec::validate_kept(spec, before, "podFailurePolicy", "PodFailurePolicy", path, errors);
    immutable("backoffLimitPerIndex", errors);
    immutable("managedBy", errors);
    spec::validate_kept(spec, before, "successPolicy", "SuccessPolicy", path, errors);
}

fn validate_completions(spec: &Value, before: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("completions");
    let (new, old) = (spec.get("completions"), before.get("completions"));
    if !spec::is_indexed(spec) {
        validate_immutable(new, old, &at, errors);
        return;
    }
    let completions = spec.i64_at(&["completions"]);
    if completions.is_some() && new != old && completions != spec.i64_at(&["parallelism"]) {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid_ref(&at, new.unwrap_or(&Value::Null), why));
    }
}

/// A job that is suspended and has no pods may still be told where they run, and with what.
fn validate_template_update(spec: &Value, before: &Value, old: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let empty = Value::object();
    let template = spec.get("template").unwrap_or(&empty);
    let mut previous = before.get("template").cloned().unwrap_or(Value::object());
    let suspended = before.bool_at(&["suspend"]);
    let quiet = is_unset(old.at(&["status", "startTime"])) || job_status::has(old, "Suspended", "True");
    let open = suspended && quiet && old.i64_at(&["status", "active"]).unwrap_or(0) == 0;
    if open {
        take_scheduling(template, &mut previous);
        take_resources(template, &mut previous);
        let at = path.child("template.spec");
        internal::validate_immutable(template.get("spec"), previous.get("spec"), "PodSpec", &at, errors);
    } else {
        let at = path.child("template");
        internal::validate_immutable(Some(template), Some(&previous), "PodTemplateSpec", &at, errors);
    }
}

/// Gives the old template what of the new one may change: where pods run.
fn take_scheduling(template: &Value, previous: &mut Value) {
    let node = template.at(&["spec", "affinity", "nodeAffinity"]);
    let has_affinity = |template: &Value| !is_unset(template.at(&["spec", "affinity"]));
    if has_affinity(template) || has_affinity(previous) {
        take(node, &["spec", "affinity", "nodeAffinity"], previous);
        let emptied = previous.object_at(&["spec", "affinity"]).is_some_and(Map::is_empty);
        if emptied && !has_affinity(template) {
            previous.remove_at(&["spec", "affinity"]);
        }
    }
    for member in ["nodeSelector", "tolerations", "schedulingGates"] {
        take(template.at(&["spec", member]), &["spec", member], previous);
    }
}

/// Gives the containers of the old template the resources of the new one's, where the names are the same.
fn take_resources(template: &Value, previous: &mut Value) {
    for list in ["containers", "initContainers"] {
        let containers = template.array_at(&["spec", list]);
        let Some(before) = previous.at_mut(&["spec", list]).and_then(Value::as_array_mut) else { continue };
        if before.len() != containers.len() {
            continue;
        }
        for (old, new) in before.iter_mut().zip(containers) {
            if old.str_at(&["name"]) == new.str_at(&["name"]) {
                take(new.get("resources"), &["resources"], old);
            }
        }
    }
}

fn take(value: Option<&Value>, path: &[&'static str], into: &mut Value) {
    match value.filter(|it| !it.is_null()) {
        Some(value) => into.set(path, value.clone()),
        None => {
            into.remove_at(path);
        }
    }
}
