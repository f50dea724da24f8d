//! DaemonSet (kubernetes `pkg/registry/apps/daemonset`). The generation of its template is an annotation in apps/v1,
//! which only the server moves.

use super::workload::{self, TemplateOf};
use crate::{
    api::{ErrorList, FieldError, Path, labels::Selector},
    object::Value,
    registry::{
        builtin::{
            conversion::{set_template_generation, template_generation_of},
            core::pod::{PodPolicy, template_warnings},
            kind::Own,
        },
        strategy::StrategyContext,
        validation::{
            LabelSelectorOptions, selector::has_invalid_label_value, validate_label_selector, validate_nonnegative,
        },
    },
};

pub struct DaemonSet {
    pub pods: PodPolicy,
}

impl Own for DaemonSet {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        workload::prepare(new, old);
        let template = |set: &Value| set.at(&["spec", "template"]).cloned();
        match old {
            None => set_template_generation(new, template_generation_of(new).max(1)),
            Some(old) => {
                let moved = i64::from(template(new) != template(old));
                set_template_generation(new, template_generation_of(old).saturating_add(moved));
            }
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        if let Some(old) = old {
            workload::validate_selector_kept(new, old, errors);
        }
        let (spec, empty) = (Path::new("spec"), Value::object());
        let body = new.get("spec").unwrap_or(&empty);
        let bad_before = old.is_some_and(|old| has_invalid_label_value(old.at(&["spec", "selector"])));
        let path = spec.child("selector");
        let options = LabelSelectorOptions { allow_invalid_values: bad_before, ..LabelSelectorOptions::default() };
        validate_label_selector(body.get("selector"), options, &path, errors);
        let template = body.get("template").unwrap_or(&empty);
        let at = spec.child("template");
        if let Ok(selector) = Selector::from_object(body.get("selector")) {
            workload::validate_template_labels(template, &selector, &at, errors);
        }
        if let Some(selector) = body.get("selector").filter(|it| !it.is_null()) {
            workload::validate_selects(selector, "daemonset", &path, errors);
        }
        TemplateOf { pods: self.pods, old, kind: "DaemonSet" }.validate(template, &at, errors);
        workload::validate_nonnegative_members(body, &["minReadySeconds"], &spec, errors);
        validate_nonnegative(template_generation_of(new), &spec.child("templateGeneration"), errors);
        validate_strategy(body.get("updateStrategy").unwrap_or(&empty), &spec.child("updateStrategy"), errors);
        workload::validate_nonnegative_members(body, &["revisionHistoryLimit"], &spec, errors);
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some_and(|old| template_generation_of(new) == template_generation_of(old)) {
            return Vec::new();
        }
        let spec = Path::new("spec");
        let template = new.at(&["spec", "template"]);
        template.map(|template| template_warnings(template, &spec.child("template"))).unwrap_or_default()
    }

    fn prepare_status(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        set_template_generation(new, template_generation_of(old));
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("status"), Value::object());
        let counts = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        workload::validate_nonnegative_members(new.get("status").unwrap_or(&empty), &counts, &path, errors);
        workload::validate_collisions(new, old, errors);
    }
}

fn validate_strategy(strategy: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("rollingUpdate");
    match (strategy.str_at(&["type"]), strategy.get("rollingUpdate").filter(|it| !it.is_null())) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => errors.push(FieldError::required(&at, "")),
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling, &at, errors),
        _ => {
            let shown = workload::show_strategy(strategy, workload::show_rolling);
            errors.push(FieldError::not_supported_shown(path, shown, &["RollingUpdate", "OnDelete"]));
        }
    }
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const BOTH: [&str; 2] = ["maxUnavailable", "maxSurge"];
    workload::validate_int_or_percents(rolling, &BOTH, path, errors);
    workload::validate_at_most_100_percent(rolling, &BOTH, path, errors);
    match (workload::is_zero(rolling, "maxUnavailable"), workload::is_zero(rolling, "maxSurge")) {
        (false, false) => {
            let surge = workload::int_or_percent(rolling, "maxSurge");
            let why = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid_ref(&path.child("maxSurge"), surge, why));
        }
        (true, true) => {
            let why = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(&path.child("maxUnavailable"), why));
        }
        _ => {}
    }
}
