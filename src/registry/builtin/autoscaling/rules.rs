//! What a HorizontalPodAutoscaler may say (kubernetes `pkg/apis/autoscaling/validation`).

use crate::{
    api::{ErrorList, FieldError, Path, names::is_path_segment_name, quantity::Quantity},
    object::Value,
    registry::{
        builtin::{core::pod::validate_container_resource_name, kind::Own},
        strategy::StrategyContext,
        validation::{
            declarative, object_meta::push_messages, validate_dns1123_label, validate_nonnegative,
            validate_nonnegative_quantity,
        },
    },
};

/// Longest stabilisation window, in seconds.
const MAX_WINDOW: i64 = 3600;
/// Longest period of a scaling policy, in seconds.
const MAX_PERIOD: i64 = 1800;
const SOURCE_TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const TARGET_TYPES: [&str; 3] = ["Utilization", "Value", "AverageValue"];

pub struct HorizontalPodAutoscaler;

impl Own for HorizontalPodAutoscaler {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        let (least, most) = (spec.i64_at(&["minReplicas"]), spec.i64_at(&["maxReplicas"]).unwrap_or(0));
        if least.is_some_and(|least| most < least) {
            let why = "must be greater than or equal to `minReplicas`";
            errors.push(FieldError::invalid(&path.child("maxReplicas"), most, why));
        }
        let at = path.child("scaleTargetRef");
        validate_target(spec, old.and_then(|old| old.at(&["spec", "scaleTargetRef"])), &at, errors);
        validate_metrics(spec, &path.child("metrics"), errors);
        let behavior = path.child("behavior");
        for direction in ["scaleUp", "scaleDown"] {
            if let Some(rules) = given(spec.get("behavior").unwrap_or(&empty), direction) {
                validate_rules(rules, &behavior.child(direction), errors);
            }
        }
        declarative::merge(errors, declared(spec, old.and_then(|old| old.get("spec")), &path));
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        let status = Path::new("status");
        let path = status.child("conditions");
        for (index, condition) in new.array_at(&["status", "conditions"]).iter().enumerate() {
            if let Some(observed) = condition.i64_at(&["observedGeneration"]) {
                validate_nonnegative(observed, &path.index(index).child("observedGeneration"), errors);
            }
        }
        for member in ["currentReplicas", "desiredReplicas"] {
            validate_nonnegative(new.i64_at(&["status", member]).unwrap_or(0), &status.child(member), errors);
        }
    }
}

fn given<'a>(object: &'a Value, member: &str) -> Option<&'a Value> {
    object.get(member).filter(|it| !it.is_null())
}

/// The declarative rules of the spec.
fn declared(spec: &Value, old: Option<&Value>, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let changed = |member: &str| declarative::changed(spec.get(member), old, old.and_then(|old| old.get(member)));
    if let Some(least) = spec.i64_at(&["minReplicas"]).filter(|_| changed("minReplicas")) {
        declarative::minimum(least, 0, &path.child("minReplicas"), &mut errors);
    }
    let at = path.child("maxReplicas");
    if changed("maxReplicas") && declarative::required(spec.get("maxReplicas"), &at, &mut errors) {
        declarative::minimum(spec.i64_at(&["maxReplicas"]).unwrap_or(0), 1, &at, &mut errors);
    }
    errors
}

fn validate_target(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let empty = Value::object();
    let target = spec.get("scaleTargetRef").unwrap_or(&empty);
    let same = |member: &str| old.is_some_and(|old| old.str_at(&[member]) == target.str_at(&[member]));
    // What was once taken stays; replication controllers are of the group without a name.
    let unchanged = same("apiVersion") && same("kind");
    let coreful = target.str_at(&["kind"]) == "ReplicationController";
    validate_reference(target, unchanged, coreful, path, errors);
}

/// A reference to an object of some group.
fn validate_reference(reference: &Value, any_version: bool, core_too: bool, path: &Path<'_>, errors: &mut ErrorList) {
    for member in ["kind", "name"] {
        let value = reference.str_at(&[member]);
        if value.is_empty() {
            errors.push(FieldError::required(&path.child(member), ""));
        } else {
            push_messages(is_path_segment_name(value), value, &path.child(member), errors);
        }
    }
    let version = reference.str_at(&["apiVersion"]);
    let why = match version.matches('/').count() {
        _ if any_version => return,
        0 if core_too => return,
        0 => "apiVersion must specify API group".to_owned(),
        1 if version.starts_with('/') && !core_too && version.len() > 1 => {
            "apiVersion must specify API group".to_owned()
        }
        1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    errors.push(FieldError::invalid(&path.child("apiVersion"), version, &why));
}

fn validate_metrics(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let metrics = spec.array_at(&["metrics"]);
    for (index, metric) in metrics.iter().enumerate() {
        validate_metric(metric, &path.index(index), errors);
    }
    let wakes = |metric: &Value| matches!(metric.str_at(&["type"]), "Object" | "External");
    if spec.i64_at(&["minReplicas"]) == Some(0) && !metrics.iter().any(wakes) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(path, why));
    }
}

fn validate_metric(metric: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = metric.str_at(&["type"]);
    let type_at = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&type_at, "must specify a metric source type"));
    }
    if !SOURCE_TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&type_at, kind, &SOURCE_TYPES));
    }
    // The first that is there is judged, in this order.
    const MEMBERS: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
    let present: Vec<&str> = MEMBERS.into_iter().filter(|member| given(metric, member).is_some()).collect();
    if let Some(first) = present.first()
        && let Some(source) = given(metric, first)
    {
        validate_source(first, source, &path.child(first), errors);
    }
    let expected = match kind {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => "",
    };
    if !expected.is_empty() && !present.contains(&expected) {
        let why = "must populate information for the given metric source";
        errors.push(FieldError::required(&path.child(expected), why));
    }
    if present.len() != 1 {
        for other in present.into_iter().filter(|member| *member != expected) {
            errors.push(FieldError::forbidden(&path.child(other), "must populate the given metric source only"));
        }
    }
}

fn validate_source(member: &str, source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let empty = Value::object();
    let target = source.get("target").unwrap_or(&empty);
    let at = path.child("target");
    let has = |name: &str| given(target, name).is_some();
    match member {
        "object" => {
            let object = source.get("describedObject").unwrap_or(&empty);
            validate_reference(object, false, true, &path.child("describedObject"), errors);
            validate_identifier(source, path, errors);
        }
        "external" | "pods" => validate_identifier(source, path, errors),
        _ => validate_resource(member, source, path, errors),
    }
    validate_metric_target(target, &at, errors);
    let (missing, why) = match member {
        "object" => (!has("value") && !has("averageValue"), "must set either a target value or averageValue"),
        "external" => {
            (!has("value") && !has("averageValue"), "must set either a target value for metric or a per-pod target")
        }
        "pods" => (!has("averageValue"), "must specify a positive target averageValue"),
        _ => (
            !has("averageUtilization") && !has("averageValue"),
            "must set either a target raw value or a target utilization",
        ),
    };
    if missing {
        let of_resource = matches!(member, "resource" | "containerResource");
        let name = if of_resource { "averageUtilization" } else { "averageValue" };
        errors.push(FieldError::required(&at.child(name), why));
    }
    match member {
        "external" if has("value") && has("averageValue") => {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&at.child("value"), why));
        }
        "resource" | "containerResource" if has("averageUtilization") && has("averageValue") => {
            let why = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&at.child("averageValue"), why));
        }
        _ => {}
    }
}

fn validate_resource(member: &str, source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let name = source.str_at(&["name"]);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "must specify a resource name"));
    } else if member == "containerResource" {
        validate_container_resource_name(name, &path.child("name"), errors);
    }
    if member == "containerResource" {
        match source.str_at(&["container"]) {
            "" => errors.push(FieldError::required(&path.child("container"), "must specify a container")),
            container => validate_dns1123_label(container, &path.child("container"), errors),
        }
    }
}

fn validate_identifier(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let metric = path.child("metric");
    match source.str_at(&["metric", "name"]) {
        "" => errors.push(FieldError::required(&metric.child("name"), "must specify a metric name")),
        name => push_messages(is_path_segment_name(name), name, &metric.child("name"), errors),
    }
}

fn validate_metric_target(target: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = target.str_at(&["type"]);
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !TARGET_TYPES.contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.child("type"), kind, why));
    }
    for member in ["value", "averageValue"] {
        let Some(amount) = given(target, member) else { continue };
        if !Quantity::from_value(amount).is_ok_and(|amount| amount.sign() == 1) {
            errors.push(FieldError::invalid_ref(&path.child(member), amount, "must be positive"));
        }
    }
    if let Some(percent) = target.i64_at(&["averageUtilization"]).filter(|it| *it < 1) {
        errors.push(FieldError::invalid(&path.child("averageUtilization"), percent, "must be greater than 0"));
    }
}

fn validate_rules(rules: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("stabilizationWindowSeconds");
    match rules.i64_at(&["stabilizationWindowSeconds"]) {
        Some(window) if window < 0 => {
            errors.push(FieldError::invalid(&at, window, "must be greater than or equal to zero"));
        }
        Some(window) if window > MAX_WINDOW => {
            errors.push(FieldError::invalid(&at, window, &format!("must be less than or equal to {MAX_WINDOW}")));
        }
        _ => {}
    }
    const SELECT: [&str; 3] = ["Disabled", "Max", "Min"];
    if let Some(select) = given(rules, "selectPolicy").filter(|it| !SELECT.contains(&it.as_str().unwrap_or(""))) {
        errors.push(FieldError::not_supported(&path.child("selectPolicy"), select.clone(), &SELECT));
    }
    let at = path.child("policies");
    let policies = rules.array_at(&["policies"]);
    if policies.is_empty() {
        errors.push(FieldError::required(&at, "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        validate_policy(policy, &at.index(index), errors);
    }
    if let Some(tolerance) = given(rules, "tolerance") {
        validate_nonnegative_quantity(tolerance, &path.child("tolerance"), errors);
    }
}

fn validate_policy(policy: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = policy.str_at(&["type"]);
    if !matches!(kind, "Pods" | "Percent") {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &["Percent", "Pods"]));
    }
    for member in ["value", "periodSeconds"] {
        let number = policy.i64_at(&[member]).unwrap_or(0);
        if number <= 0 {
            errors.push(FieldError::invalid(&path.child(member), number, "must be greater than zero"));
        }
        if member == "periodSeconds" && number > MAX_PERIOD {
            let why = format!("must be less than or equal to {MAX_PERIOD}");
            errors.push(FieldError::invalid(&path.child(member), number, &why));
        }
    }
}
