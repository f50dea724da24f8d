//! Where a pod may run: affinity, tolerations, spreading, gates.

use std::collections::{HashMap, HashSet};

use super::{
    options::PodOptions,
    view::{given, items, map, text, texts},
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        names::{is_decimal_integer, is_valid_label_value, name_is_dns_label, name_is_dns_subdomain},
    },
    object::{Map, Value},
    registry::validation::{
        LabelSelectorOptions,
        object_meta::{push_messages, validate_label_name},
        validate_label_selector, validate_positive, validate_qualified_name,
    },
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const UNKNOWN_OPERATOR: &str = "not a valid selector operator";

/// `spec.affinity`.
pub fn validate_affinity(spec: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(affinity) = given(spec, "affinity") else { return };
    if let Some(node) = given(affinity, "nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = given(node, REQUIRED) {
            validate_node_selector(selector, options.invalid_required_node_affinity, &path.child(REQUIRED), errors);
        }
        validate_preferred_terms(items(node, PREFERRED), &path.child(PREFERRED), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        if let Some(pods) = given(affinity, kind) {
            validate_pod_affinity(pods, options, &path.child(kind), errors);
        }
    }
}

/// A NodeSelector: of pods, of volumes, of resource slices.
pub fn validate_node_selector(selector: &Value, any_values: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("nodeSelectorTerms");
    let terms = items(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    for (index, term) in terms.iter().enumerate() {
        validate_node_selector_term(term, any_values, &path.index(index), errors);
    }
}

/// One term of a NodeSelector. `any_values`: values need not be label values.
pub fn validate_node_selector_term(term: &Value, any_values: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("matchExpressions");
    for (index, requirement) in items(term, "matchExpressions").iter().enumerate() {
        validate_node_expression(requirement, any_values, &at.index(index), errors);
    }
    let at = path.child("matchFields");
    for (index, requirement) in items(term, "matchFields").iter().enumerate() {
        validate_node_field(requirement, &at.index(index), errors);
    }
}

fn validate_node_expression(requirement: &Value, any_values: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let values = items(requirement, "values");
    let at = path.child("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(FieldError::required(&at, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&at, why));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.push(FieldError::required(&at, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(FieldError::invalid(&path.child("operator"), other, UNKNOWN_OPERATOR)),
    }
    validate_label_name(text(requirement, "key"), &path.child("key"), errors);
    if any_values {
        return;
    }
    for (index, value) in texts(requirement, "values").enumerate() {
        let messages = is_valid_label_value(value);
        let error =
            |message: &_| FieldError::invalid(&at.index(index), value, message).with_origin("format=k8s-label-value");
        errors.extend(messages.iter().map(|message| error(message.as_ref())).collect::<Vec<_>>());
    }
}

fn validate_node_field(requirement: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let values = items(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(&path.child("values"), why));
        }
        "In" | "NotIn" => {}
        other => errors.push(FieldError::invalid(&path.child("operator"), other, UNKNOWN_OPERATOR)),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        errors.push(FieldError::invalid(&path.child("key"), key, "not a valid field selector key"));
        return;
    }
    let at = path.child("values");
    for (index, value) in texts(requirement, "values").enumerate() {
        push_messages(name_is_dns_subdomain(value, false), value, &at.index(index), errors);
    }
}

fn validate_weight(term: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let weight = term.i64_at(&["weight"]).unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

/// Terms of nodes that are wished for.
pub fn validate_preferred_terms(terms: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let empty = Value::object();
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        validate_weight(term, &path, errors);
        let preference = term.get("preference").unwrap_or(&empty);
        validate_node_selector_term(preference, true, &path.child("preference"), errors);
    }
}

fn validate_pod_affinity(affinity: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child(REQUIRED);
    for (index, term) in items(affinity, REQUIRED).iter().enumerate() {
        validate_pod_affinity_term(term, options, &at.index(index), errors);
    }
    let at = path.child(PREFERRED);
    let empty = Value::object();
    for (index, weighted) in items(affinity, PREFERRED).iter().enumerate() {
        let at = at.index(index);
        validate_weight(weighted, &at, errors);
        let term = weighted.get("podAffinityTerm").unwrap_or(&empty);
        validate_pod_affinity_term(term, options, &at.child("podAffinityTerm"), errors);
    }
}

fn validate_pod_affinity_term(term: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let selector =
        LabelSelectorOptions { allow_invalid_values: options.invalid_affinity_selector, ..Default::default() };
    for key in ["labelSelector", "namespaceSelector"] {
        validate_label_selector(given(term, key), selector, &path.child(key), errors);
    }
    for namespace in texts(term, "namespaces") {
        push_messages(name_is_dns_label(namespace, false), namespace, &path.child("namespace"), errors);
    }
    validate_label_keys_and_selector(term, path, errors);
    let (key, at) = (text(term, "topologyKey"), path.child("topologyKey"));
    if key.is_empty() {
        errors.push(FieldError::required(&at, "can not be empty"));
    }
    validate_label_name(key, &at, errors);
}

fn validate_label_keys(owner: &Value, member: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child(member);
    if items(owner, member).is_empty() {
        return;
    }
    if given(owner, "labelSelector").is_none() {
        errors.push(FieldError::forbidden(&at, "must not be specified when labelSelector is not set"));
        return;
    }
    for (index, key) in texts(owner, member).enumerate() {
        validate_label_name(key, &at.index(index), errors);
    }
}

/// `matchLabelKeys` and `mismatchLabelKeys` against each other and the selector they were merged into.
pub fn validate_label_keys_and_selector(owner: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    validate_label_keys(owner, "matchLabelKeys", path, errors);
    validate_label_keys(owner, "mismatchLabelKeys", path, errors);
    if let Some(selector) = given(owner, "labelSelector") {
        let places: HashMap<&str, usize> =
            texts(owner, "matchLabelKeys").enumerate().map(|(index, key)| (key, index)).collect();
        let mut selected: HashSet<&str> =
            map(selector, "matchLabels").into_iter().flat_map(Map::keys).map(|key| key.as_str()).collect();
        for expression in items(selector, "matchExpressions") {
            let key = text(expression, "key");
            if let Some(index) = places.get(key).filter(|_| selected.contains(key)) {
                let why = "exists in both matchLabelKeys and labelSelector";
                errors.push(FieldError::invalid(&path.index(*index), key, why).with_origin("duplicatedLabelKeys"));
            }
            selected.insert(key);
        }
    }
    let mismatched: HashSet<&str> = texts(owner, "mismatchLabelKeys").collect();
    let at = path.child("matchLabelKeys");
    for (index, key) in texts(owner, "matchLabelKeys").enumerate() {
        if mismatched.contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(&at.index(index), key, why).with_origin("duplicatedMismatchLabelKeys"));
        }
    }
}

/// The stricter reading of old objects: no key of `matchLabelKeys` may be in the selector.
fn validate_unmerged_label_keys(constraint: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if items(constraint, "matchLabelKeys").is_empty() {
        return;
    }
    let path = path.child("matchLabelKeys");
    let mut selected: HashSet<&str> = HashSet::new();
    match given(constraint, "labelSelector") {
        Some(selector) => {
            selected.extend(map(selector, "matchLabels").into_iter().flat_map(Map::keys).map(|key| key.as_str()));
            selected.extend(items(selector, "matchExpressions").iter().map(|it| text(it, "key")));
        }
        None => errors.push(FieldError::forbidden(&path, "must not be specified when labelSelector is not set")),
    }
    for (index, key) in texts(constraint, "matchLabelKeys").enumerate() {
        let at = path.index(index);
        validate_label_name(key, &at, errors);
        if selected.contains(key) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&at, key, why).with_origin("duplicatedLabelKeys"));
        }
    }
}

/// `spec.topologySpreadConstraints`.
pub fn validate_spread(spec: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let constraints = items(spec, "topologySpreadConstraints");
    // What comes again later, so that the first of several is the one that is told.
    let mut later: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in constraints {
        *later.entry((text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))).or_default() += 1;
    }
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        validate_positive(constraint.i64_at(&["maxSkew"]).unwrap_or(0), &path.child("maxSkew"), errors);
        if key.is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let at = path.child("whenUnsatisfiable");
            errors.push(FieldError::not_supported(&at, action, &["DoNotSchedule", "ScheduleAnyway"]));
        }
        let left = later.entry((key, action)).or_default();
        *left = left.saturating_sub(1);
        if *left > 0 {
            let at = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&at, format!("{{{key}, {action}}}")));
        }
        validate_spread_details(constraint, action, options, &path, errors);
    }
}

fn validate_spread_details(
    constraint: &Value,
    action: &str,
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if let Some(domains) = constraint.i64_at(&["minDomains"]) {
        let at = path.child("minDomains");
        validate_positive(domains, &at, errors);
        if action != "DoNotSchedule" {
            let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            errors.push(FieldError::invalid(&at, domains, &why).with_origin("dependsOn"));
        }
    }
    for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if let Some(policy) = given(constraint, key).filter(|it| !matches!(it.as_str(), Some("Honor" | "Ignore"))) {
            errors.push(FieldError::not_supported(&path.child(key), policy.clone(), &["Honor", "Ignore"]));
        }
    }
    if options.merged_label_keys {
        validate_unmerged_label_keys(constraint, path, errors);
    } else {
        validate_label_keys_and_selector(constraint, path, errors);
    }
    if !options.invalid_spread_selector {
        let selector = given(constraint, "labelSelector");
        validate_label_selector(selector, LabelSelectorOptions::default(), &path.child("labelSelector"), errors);
    }
}

/// Whether required node affinity has values that are no label values.
pub fn has_invalid_node_affinity_values(spec: &Value) -> bool {
    spec.array_at(&["affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"])
        .iter()
        .flat_map(|term| items(term, "matchExpressions"))
        .flat_map(|requirement| texts(requirement, "values"))
        .any(|value| !is_valid_label_value(value).is_empty())
}

/// Tolerations of a pod, of a runtime class, or written into an annotation.
pub fn validate_tolerations(tolerations: &[Value], options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    for (index, toleration) in tolerations.iter().enumerate() {
        validate_toleration(toleration, options, &path.index(index), errors);
    }
}

fn validate_toleration(toleration: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let [key, operator, value, effect] = ["key", "operator", "value", "effect"].map(|member| text(toleration, member));
    let operator_at = path.child("operator");
    if !key.is_empty() {
        validate_label_name(key, &path.child("key"), errors);
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&operator_at, operator, why));
    }
    if given(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), effect, why));
    }
    match operator {
        "Equal" | "" => {
            let messages = is_valid_label_value(value);
            if !messages.is_empty() {
                errors.push(FieldError::invalid(&operator_at, value, &messages.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.push(FieldError::invalid(&operator_at, value, "value must be empty when `operator` is 'Exists'"));
        }
        "Exists" => {}
        "Lt" | "Gt" if options.comparison_operators => {
            let at = path.child("value");
            push_messages(is_decimal_integer(value), value, &at, errors);
            if let Err(error) = value.parse::<i64>() {
                let why = match error.kind() {
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                let why = format!("strconv.ParseInt: parsing {}: {why}", crate::api::field::quote(value));
                errors.push(FieldError::invalid(&at, value, &why));
            }
        }
        "Lt" | "Gt" => {
            errors.push(FieldError::not_supported(&operator_at, operator, &["Equal", "Exists", "Lt", "Gt"]));
        }
        other => errors.push(FieldError::not_supported(&operator_at, other, &["Equal", "Exists"])),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(&path.child("effect"), effect, &EFFECTS));
    }
}

/// `spec.schedulingGates`.
pub fn validate_gates(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (index, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let (name, at) = (text(gate, "name"), path.index(index));
        validate_qualified_name(name, &at, errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&at, name));
        }
    }
}

/// `spec.readinessGates`.
pub fn validate_readiness_gates(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (index, gate) in items(spec, "readinessGates").iter().enumerate() {
        validate_qualified_name(text(gate, "conditionType"), &path.index(index).child("conditionType"), errors);
    }
}
