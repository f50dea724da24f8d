//! LimitRange (kubernetes `pkg/registry/core/limitrange`, `ValidateLimitRange`).

use std::collections::{BTreeSet, HashSet};

use crate::{
    api::{ErrorList, FieldError, Meta, Path, names::is_qualified_name, quantity::Quantity, unique},
    object::{Map, Value},
    registry::{
        builtin::{
            core::pod::{
                quantities::{is_overcommit_allowed, quantity},
                resources::{validate_container_resource_name, validate_resource_name},
            },
            kind::{NameRule, Own, validate_metadata_as_on_create},
        },
        strategy::StrategyContext,
        validation::object_meta::push_messages,
    },
};

const TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];
/// Amounts above it lose their thousandths when they are divided.
const MOST_MILLIS: i64 = i64::MAX / 1000;

pub struct LimitRange;

impl Own for LimitRange {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        if old.is_none() && Meta::of(new).name().is_empty() {
            new.set(&["metadata", "name"], unique::uuid());
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        if old.is_some() {
            validate_metadata_as_on_create(new, true, NameRule::Subdomain, errors);
        }
        let spec = Path::new("spec");
        let path = spec.child("limits");
        let mut seen = HashSet::new();
        for (index, limit) in new.array_at(&["spec", "limits"]).iter().enumerate() {
            let (path, kind) = (path.index(index), limit.str_at(&["type"]));
            validate_type(kind, &path.child("type"), errors);
            if !seen.insert(kind) {
                errors.push(FieldError::duplicate(&path.child("type"), kind));
            }
            validate_limit(limit, kind, &path, errors);
        }
    }
}

fn validate_type(kind: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let messages = is_qualified_name(kind);
    if messages.is_empty() && !kind.contains('/') && !TYPES.contains(&kind) {
        errors.push(FieldError::invalid(path, kind, "must be a standard limit type or fully qualified"));
    }
    push_messages(messages, kind, path, errors);
}

fn validate_limit(limit: &Value, kind: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let mut names = BTreeSet::new();
    let mut look = |member: &'static str, errors: &mut ErrorList| {
        let path = path.child(member);
        for (name, _) in limit.object_at(&[member]).into_iter().flat_map(Map::iter) {
            let path = path.key(name);
            if matches!(kind, "Pod" | "Container") {
                validate_container_resource_name(name, &path, errors);
            } else {
                validate_resource_name(name, &path, errors);
            }
            names.insert(name.to_string());
        }
    };
    look("max", errors);
    look("min", errors);
    for member in ["default", "defaultRequest"] {
        if kind != "Pod" {
            look(member, errors);
        } else if limit.object_at(&[member]).is_some_and(|it| !it.is_empty()) {
            errors.push(FieldError::forbidden(&path.child(member), "may not be specified when `type` is 'Pod'"));
        }
    }
    if kind == "PersistentVolumeClaim" && ["min", "max"].iter().all(|it| limit.at(&[it, "storage"]).is_none()) {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), why));
    }
    look("maxLimitRequestRatio", errors);
    for name in names {
        Amounts::of(limit, kind, &name).validate(&name, path, errors);
    }
}

/// What a limit says of one resource.
struct Amounts {
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

impl Amounts {
    fn of(limit: &Value, kind: &str, name: &str) -> Self {
        let of = |member: &str| limit.at(&[member, name]).map(quantity);
        let by_default = |member: &str| if kind == "Pod" { None } else { of(member) };
        Self {
            min: of("min"),
            max: of("max"),
            default: by_default("default"),
            request: by_default("defaultRequest"),
            ratio: of("maxLimitRequestRatio"),
        }
    }

    fn validate(&self, name: &str, path: &Path<'_>, errors: &mut ErrorList) {
        let Self { min, max, default, request, .. } = self;
        let mut at = |member: &str, shown: &Quantity, why: String| {
            errors.push(FieldError::invalid(&path.child(member).key(name), shown.to_string(), &why));
        };
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            at("min", min, format!("min value {min} is greater than max value {max}"));
        }
        if let Some(request) = request {
            if let Some(min) = min.as_ref().filter(|min| *min > request) {
                at(
                    "defaultRequest",
                    request,
                    format!("min value {min} is greater than default request value {request}"),
                );
            }
            if let Some(max) = max.as_ref().filter(|max| request > *max) {
                at(
                    "defaultRequest",
                    request,
                    format!("default request value {request} is greater than max value {max}"),
                );
            }
            if let Some(default) = default.as_ref().filter(|default| request > *default) {
                let why = format!("default request value {request} is greater than default limit value {default}");
                at("defaultRequest", request, why);
            }
        }
        if let Some(default) = default {
            if let Some(min) = min.as_ref().filter(|min| *min > default) {
                at("default", min, format!("min value {min} is greater than default value {default}"));
            }
            if let Some(max) = max.as_ref().filter(|max| default > *max) {
                at("default", max, format!("default value {default} is greater than max value {max}"));
            }
        }
        if let Some(ratio) = &self.ratio {
            if *ratio < quantity(&1.into()) {
                at("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
            }
            if let Some(most) = self.highest_ratio(ratio) {
                at("maxLimitRequestRatio", ratio, format!("ratio {ratio} is greater than max/min = {most:.6}"));
            }
        }
        if let (Some(default), Some(request)) = (default, request)
            && !is_overcommit_allowed(name)
            && default != request
        {
            let why = format!("default value {default} must equal to defaultRequest value {request} in {name}");
            at("defaultRequest", request, why);
        }
    }

    /// The ratio that the bounds allow, where `ratio` is above it.
    fn highest_ratio(&self, ratio: &Quantity) -> Option<f64> {
        let (min, max) = (self.min.as_ref()?, self.max.as_ref()?);
        let fine = [ratio, min, max].iter().all(|amount| amount.value() < MOST_MILLIS);
        let (ratio, min, max) = if fine {
            (ratio.milli_value() as f64 / 1000.0, min.milli_value(), max.milli_value())
        } else {
            (ratio.value() as f64, min.value(), max.value())
        };
        let most = max as f64 / min as f64;
        (ratio > most).then_some(most)
    }
}
