//! Node (kubernetes `pkg/registry/core/node`, `ValidateNode`). A kubelet registers itself with its status, so a create
//! takes it.
//!
//! `spec.configSource` and `status.config` belong to a feature that is gone: they are dropped from every write, so no
//! rule about them is reached.

use std::{collections::HashSet, net::IpAddr};

use crate::{
    api::{ErrorList, FieldError, Meta, Path, ip::parse_cidr, names::is_valid_label_value},
    object::{Map, Value, parse, to_string},
    registry::{
        builtin::{
            core::pod::is_integer,
            kind::{NameRule, Own, validate_metadata_as_on_create, validate_metadata_on_update},
        },
        strategy::StrategyContext,
        validation::{
            address::{cidr_warnings, validate_cidr_for_legacy_field},
            object_meta::validate_label_name,
            validate_positive, validate_resource_quantity,
        },
    },
};

const PREFER_AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const MAX_FEATURE_NAME: usize = 253;

pub struct Node;

impl Own for Node {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        new.remove_at(&["spec", "configSource"]);
        new.remove_at(&["spec", "podPreemptionPolicy"]);
        if old.is_none() {
            new.remove_at(&["status", "config"]);
        }
    }

    /// Upstream runs the rules of a create, then those of an update.
    fn judges_metadata(&self) -> bool {
        true
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        validate_node(new, errors);
        if let Some(old) = old {
            validate_metadata_on_update(new, old, errors);
            validate_change(new, old, errors);
        }
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if !new.str_at(&["spec", "externalID"]).is_empty() {
            warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
        }
        let spec = Path::new("spec");
        let path = spec.child("podCIDRs");
        for (index, cidr) in new.array_at(&["spec", "podCIDRs"]).iter().enumerate() {
            warnings.extend(cidr_warnings(cidr.as_str().unwrap_or(""), &path.index(index)));
        }
        warnings
    }

    fn prepare_status(&self, _cx: &StrategyContext<'_>, new: &mut Value, _old: &Value) {
        new.remove_at(&["status", "config"]);
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_change(new, old, errors);
    }
}

fn validate_node(node: &Value, errors: &mut ErrorList) {
    validate_metadata_as_on_create(node, false, NameRule::Subdomain, errors);
    let metadata = Path::new("metadata");
    validate_annotations(node, &metadata.child("annotations"), errors);
    validate_taints(node.array_at(&["spec", "taints"]), &metadata.child("taints"), errors);
    validate_resources(node, errors);
    if let Some(capacity) = node.i64_at(&["status", "nodeInfo", "swap", "capacity"]) {
        let path = metadata.child("nodeSwapStatus");
        validate_positive(capacity, &path.child("capacity"), errors);
    }
    validate_features(node, errors);
    validate_pod_cidrs(node, errors);
}

/// What both endpoints ask of a changed node.
fn validate_change(new: &Value, old: &Value, errors: &mut ErrorList) {
    let metadata = Path::new("metadata");
    validate_annotations(new, &metadata.child("annotations"), errors);
    validate_resources(new, errors);
    validate_features(new, errors);
    validate_addresses(new, errors);
    let spec = Path::new("spec");
    validate_pod_cidrs_kept(new, old, &spec.child("podCIDRs"), errors);
    let provider = |node: &Value| node.str_at(&["spec", "providerID"]).to_owned();
    let (now, before) = (provider(new), provider(old));
    if !before.is_empty() && now != before {
        let why = if now.is_empty() { "field cannot be cleared once set" } else { "field cannot be modified once set" };
        errors.push(FieldError::invalid(&spec.child("providerID"), Value::Null, why).with_origin("update"));
    }
    validate_taints(new.array_at(&["spec", "taints"]), &metadata.child("taints"), errors);
    if new.str_at(&["spec", "externalID"]) != old.str_at(&["spec", "externalID"]) {
        errors.push(FieldError::forbidden(&spec.child("externalID"), "may not be updated"));
    }
}

/// The annotation by which a node once asked to be avoided.
fn validate_annotations(node: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let text = Meta::of(node).annotation(PREFER_AVOID_PODS).unwrap_or("");
    if text.is_empty() {
        return;
    }
    let avoided = match parse(text.as_bytes()) {
        Ok(avoided) => avoided,
        Err(why) => {
            errors.push(FieldError::invalid(&path.child("AvoidPods"), PREFER_AVOID_PODS, &why.to_string()));
            return;
        }
    };
    let path = path.child(PREFER_AVOID_PODS);
    for (index, entry) in avoided.array_at(&["preferAvoidPods"]).iter().enumerate() {
        let path = path.index(index);
        let path = path.child("PodSignature");
        match entry.at(&["podSignature", "podController"]).filter(|it| !it.is_null()) {
            None => errors.push(FieldError::required(&path, "")),
            Some(controller) if !controller.bool_at(&["controller"]) => {
                let path = path.child("PodController");
                errors.push(FieldError::invalid(&path.child("Controller"), false, "must point to a controller"));
            }
            Some(_) => {}
        }
    }
}

fn validate_taints(taints: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let (key, value, effect) = (taint.str_at(&["key"]), taint.str_at(&["value"]), taint.str_at(&["effect"]));
        validate_label_name(key, &path.child("key"), errors);
        let problems = is_valid_label_value(value);
        if !problems.is_empty() {
            let problems: Vec<&str> = problems.iter().map(|it| &**it).collect();
            errors.push(FieldError::invalid(&path.child("value"), value, &problems.join(";")));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(&path.child("effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            errors.push(FieldError::not_supported(&path.child("effect"), effect, &EFFECTS));
        }
        if !seen.insert((effect, key)) {
            let mut error = FieldError::duplicate(&path, Value::Null);
            let added = taint.get("timeAdded").map_or("null".to_owned(), to_string);
            error.body = format!(
                "Duplicate value: {{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{added}}}: taints must be unique by key and effect pair",
                to_string(&key.into()),
                to_string(&value.into()),
                to_string(&effect.into()),
            );
            errors.push(error);
        }
    }
}

fn validate_resources(node: &Value, errors: &mut ErrorList) {
    let status = Path::new("status");
    for member in ["capacity", "allocatable"] {
        let path = status.child(member);
        for (name, amount) in node.object_at(&["status", member]).into_iter().flat_map(Map::iter) {
            validate_resource_quantity(amount, is_integer(name), &path.child(name), errors);
        }
    }
}

fn validate_features(node: &Value, errors: &mut ErrorList) {
    let status = Path::new("status");
    let path = status.child("declaredFeatures");
    let names: Vec<&str> =
        node.array_at(&["status", "declaredFeatures"]).iter().map(|it| it.as_str().unwrap_or("")).collect();
    for (index, name) in names.iter().enumerate() {
        let quoted = crate::api::field::quote(name);
        if name.len() > MAX_FEATURE_NAME {
            let why = format!("invalid feature name {quoted}: must be no more than {MAX_FEATURE_NAME} characters");
            errors.push(FieldError::invalid(&path.index(index), *name, &why));
        } else if !is_feature_name(name) {
            let why = format!(
                "invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            );
            errors.push(FieldError::invalid(&path.index(index), *name, &why));
        }
        let Some(next) = names.get(index + 1) else { continue };
        if name == next {
            errors.push(FieldError::duplicate(&path.index(index + 1), *next));
        } else if name > next {
            errors.push(FieldError::invalid(&path.index(index + 1), *next, "list must be sorted alphabetically"));
        }
    }
}

/// Upstream's `^([A-Z][a-zA-Z0-9]*)(/[a-zA-Z0-9]+)*$`.
fn is_feature_name(name: &str) -> bool {
    let mut segments = name.split('/');
    let plain = |segment: &str| !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_alphanumeric());
    segments.next().is_some_and(|first| plain(first) && first.starts_with(|c: char| c.is_ascii_uppercase()))
        && segments.all(plain)
}

fn validate_addresses(node: &Value, errors: &mut ErrorList) {
    let status = Path::new("status");
    let path = status.child("addresses");
    let mut seen = HashSet::new();
    for (index, address) in node.array_at(&["status", "addresses"]).iter().enumerate() {
        let (kind, value) = (address.str_at(&["type"]), address.str_at(&["address"]));
        if !seen.insert((kind, value)) {
            let mut error = FieldError::duplicate(&path.index(index), Value::Null);
            error.body = format!(
                "Duplicate value: {{\"Type\":{},\"Address\":{}}}",
                to_string(&kind.into()),
                to_string(&value.into())
            );
            errors.push(error);
        }
    }
}

fn validate_pod_cidrs(node: &Value, errors: &mut ErrorList) {
    let cidrs = node.array_at(&["spec", "podCIDRs"]);
    let spec = Path::new("spec");
    let path = spec.child("podCIDRs");
    for (index, cidr) in cidrs.iter().enumerate() {
        validate_cidr_for_legacy_field(cidr.as_str().unwrap_or(""), true, &[], &path.index(index), errors);
    }
    if cidrs.len() < 2 {
        return;
    }
    let mut families = (false, false);
    let mut broken = None;
    for (index, cidr) in cidrs.iter().enumerate() {
        let text = cidr.as_str().unwrap_or("");
        match parse_cidr(text) {
            Some(cidr) => match cidr.ip {
                IpAddr::V4(_) => families.0 = true,
                IpAddr::V6(_) => families.1 = true,
            },
            None => broken = broken.or(Some((index, text))),
        }
    }
    if let Some((index, text)) = broken {
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
        );
        errors.push(FieldError::internal(&path, &why));
    }
    if broken.is_some() || families != (true, true) || cidrs.len() > 2 {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, Value::Array(cidrs.to_vec()), why));
    }
}

/// Once given, the networks stay.
fn validate_pod_cidrs_kept(new: &Value, old: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const WHY: &str = "node updates may not change podCIDR except from \"\" to valid";
    let (now, before) = (new.array_at(&["spec", "podCIDRs"]), old.array_at(&["spec", "podCIDRs"]));
    if before.is_empty() {
        return;
    }
    let changes = if now.len() == before.len() { now.iter().zip(before).filter(|(a, b)| a != b).count() } else { 1 };
    for _ in 0..changes {
        errors.push(FieldError::forbidden(path, WHY));
    }
}
