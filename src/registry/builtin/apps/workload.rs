//! What kinds that make pods out of a template have in common (kubernetes `pkg/apis/apps/validation`).

use crate::{
    api::{ErrorList, FieldError, Path, labels::Selector},
    object::{Map, Value, to_string},
    registry::{
        builtin::core::pod::{PodPolicy, prepare_template, template_warnings, validate_pod_template_spec},
        validation::{
            LabelSelectorOptions, int_or_percent_value, validate_immutable, validate_label_selector,
            validate_nonnegative, validate_not_more_than_100_percent, validate_positive_int_or_percent,
        },
    },
};

/// Drops what belongs to features that are off from the template.
pub fn prepare(new: &mut Value, old: Option<&Value>) {
    let before = old.and_then(|old| old.at(&["spec", "template"]));
    if let Some(template) = new.at_mut(&["spec", "template"]) {
        prepare_template(template, before);
    }
}

/// Warnings about the template: of a new object, or where the generation moved.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let generation = |object: &Value| object.i64_at(&["metadata", "generation"]);
    if old.is_some_and(|old| generation(new) == generation(old)) {
        return Vec::new();
    }
    let spec = Path::new("spec");
    new.at(&["spec", "template"])
        .map(|template| template_warnings(template, &spec.child("template")))
        .unwrap_or_default()
}

/// The number below `path`, 0 where there is none.
pub fn number(object: &Value, path: &[&str]) -> i64 {
    object.i64_at(path).unwrap_or(0)
}

/// Each member of `part` that is a number may not be negative.
pub fn validate_nonnegative_members(part: &Value, members: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    for member in members {
        if let Some(value) = part.i64_at(&[member]) {
            validate_nonnegative(value, &path.child(member), errors);
        }
    }
}

/// A selector that has to be there and to select something; `kind` is what the error calls the object.
pub fn validate_required_selector(spec: &Value, kind: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match spec.get("selector").filter(|it| !it.is_null()) {
        None => errors.push(FieldError::required(path, "")),
        Some(selector) => {
            validate_label_selector(Some(selector), LabelSelectorOptions::default(), path, errors);
            validate_selects(selector, kind, path, errors);
        }
    }
}

/// An empty selector would select everything.
pub fn validate_selects(selector: &Value, kind: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let labels = selector.object_at(&["matchLabels"]).map_or(0, Map::len);
    if labels + selector.array_at(&["matchExpressions"]).len() == 0 {
        let why = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid_ref(path, selector, &why));
    }
}

/// The spec's selector, or `None` where it cannot be read, which `why` then tells.
pub fn parsed_selector(spec: &Value, why: &str, path: &Path<'_>, errors: &mut ErrorList) -> Option<Selector> {
    match Selector::from_object(spec.get("selector")) {
        Ok(selector) => Some(selector),
        Err(_) => {
            errors.push(FieldError::invalid_ref(path, spec.get("selector").unwrap_or(&Value::Null), why));
            None
        }
    }
}

/// The template's labels have to be selected. An empty selector asks nothing.
pub fn validate_template_labels(template: &Value, selector: &Selector, path: &Path<'_>, errors: &mut ErrorList) {
    let labels = template.object_at(&["metadata", "labels"]);
    let matches = labels.map_or_else(|| selector.matches(&Map::new()), |labels| selector.matches(labels));
    if !matches {
        let metadata = path.child("metadata");
        let shown = template.at(&["metadata", "labels"]).map_or("null".to_owned(), to_string);
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid_shown(&metadata.child("labels"), shown, why));
    }
}

/// Who asks for a template, and what it replaces.
#[derive(Clone, Copy)]
pub struct TemplateOf<'a> {
    pub pods: PodPolicy,
    /// The old object, on update.
    pub old: Option<&'a Value>,
    /// What the error about a deadline calls the kind.
    pub kind: &'a str,
}

impl TemplateOf<'_> {
    /// The template, its labels excepted.
    pub fn validate(self, template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
        let old = self.old.and_then(|old| old.at(&["spec", "template"]));
        validate_pod_template_spec(template, old, self.pods, path, errors);
        self.validate_lifetime(template, path, errors);
    }

    /// Pods of workloads run for ever.
    pub fn validate_lifetime(self, template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
        let spec = path.child("spec");
        let policy = template.str_at(&["spec", "restartPolicy"]);
        if policy != "Always" {
            errors.push(FieldError::not_supported(&spec.child("restartPolicy"), policy, &["Always"]));
        }
        if template.at(&["spec", "activeDeadlineSeconds"]).is_some_and(|it| !it.is_null()) {
            let why = format!("activeDeadlineSeconds in {} is not Supported", self.kind);
            errors.push(FieldError::forbidden(&spec.child("activeDeadlineSeconds"), &why));
        }
    }
}

/// `spec.selector` of an existing object.
pub fn validate_selector_kept(new: &Value, old: &Value, errors: &mut ErrorList) {
    let spec = Path::new("spec");
    let selector = |object: &'_ Value| object.at(&["spec", "selector"]).cloned();
    validate_immutable(selector(new).as_ref(), selector(old).as_ref(), &spec.child("selector"), errors);
}

/// A number or percentage that is missing counts as 0.
pub fn int_or_percent<'a>(part: &'a Value, member: &str) -> &'a Value {
    static ZERO: Value = Value::Int(0);
    part.get(member).filter(|it| !it.is_null()).unwrap_or(&ZERO)
}

/// `maxUnavailable` and `maxSurge`, each a count or a percentage.
pub fn validate_int_or_percents(part: &Value, members: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    for member in members {
        validate_positive_int_or_percent(int_or_percent(part, member), &path.child(member), errors);
    }
}

pub fn validate_at_most_100_percent(part: &Value, members: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    for member in members {
        validate_not_more_than_100_percent(int_or_percent(part, member), &path.child(member), errors);
    }
}

pub fn is_zero(part: &Value, member: &str) -> bool {
    int_or_percent_value(int_or_percent(part, member)) == 0
}

/// Counts of a status that may not exceed `replicas`, and `available` which may not exceed what is ready.
pub fn validate_counts(status: &Value, members: &[&str], ready: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let count = |member: &str| number(status, &[member]);
    for member in members {
        if count(member) > count("replicas") {
            let why = "cannot be greater than status.replicas";
            errors.push(FieldError::invalid(&path.child(member), count(member), why));
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let why = format!("cannot be greater than {ready}");
        errors.push(FieldError::invalid(&path.child("availableReplicas"), count("availableReplicas"), &why));
    }
}

/// `status.collisionCount` only grows.
pub fn validate_collisions(new: &Value, old: &Value, errors: &mut ErrorList) {
    let count = |object: &Value| object.i64_at(&["status", "collisionCount"]);
    let decremented = match (count(new), count(old)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(now), Some(before)) => now < before,
    };
    if decremented {
        let status = Path::new("status");
        let shown = count(new).unwrap_or(0);
        errors.push(FieldError::invalid(&status.child("collisionCount"), shown, "cannot be decremented"));
    }
}

/// An update strategy whose type nobody knows, as Go shows its struct.
pub fn show_strategy(strategy: &Value, rolling: impl Fn(&Value) -> String) -> String {
    let shown = strategy.get("rollingUpdate").filter(|it| !it.is_null()).map_or("null".to_owned(), rolling);
    format!("{{\"Type\":{},\"RollingUpdate\":{shown}}}", to_string(&strategy.str_at(&["type"]).into()))
}

/// `{"MaxUnavailable":…,"MaxSurge":…}`
pub fn show_rolling(rolling: &Value) -> String {
    let member = |name: &str| to_string(int_or_percent(rolling, name));
    format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", member("maxUnavailable"), member("maxSurge"))
}
