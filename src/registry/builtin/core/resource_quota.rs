//! ResourceQuota (kubernetes `pkg/registry/core/resourcequota`, `ValidateResourceQuota`).

use std::collections::BTreeSet;

use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Map, Value, to_string},
    registry::{
        builtin::{
            core::pod::{
                quantities::{is_huge_pages, is_integer, quantity},
                resources::validate_resource_name,
            },
            kind::Own,
        },
        strategy::StrategyContext,
        validation::{FIELD_IMMUTABLE, validate_resource_quantity},
    },
};

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const EXCLUSIVE: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

pub struct ResourceQuota;

impl Own for ResourceQuota {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let spec = new.get("spec").unwrap_or(&empty);
        validate_amounts(spec, "hard", &path, errors);
        validate_scopes(spec, &path.child("scopes"), errors);
        if let Some(selector) = spec.get("scopeSelector").filter(|it| !it.is_null()) {
            let path = path.child("scopeSelector");
            validate_selector(spec, selector, &path.child("matchExpressions"), errors);
        }
        let scopes = |quota: &Value| -> BTreeSet<String> {
            quota.array_at(&["spec", "scopes"]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if old.is_some_and(|old| scopes(old) != scopes(new)) {
            let shown = spec.get("scopes").map_or("null".to_owned(), to_string);
            errors.push(FieldError::invalid_shown(&path.child("scopes"), shown, FIELD_IMMUTABLE));
        }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        ["cpu", "memory", "storage", "ephemeral-storage"]
            .into_iter()
            .filter_map(|name| request_above_limit(new, name))
            .collect()
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("status"), Value::object());
        let status = new.get("status").unwrap_or(&empty);
        validate_amounts(status, "hard", &path, errors);
        validate_amounts(status, "used", &path, errors);
    }
}

/// A quota that allows less by limits than by requests.
fn request_above_limit(quota: &Value, name: &str) -> Option<String> {
    let hard = quota.object_at(&["spec", "hard"])?;
    let (request, limit) = (format!("requests.{name}"), format!("limits.{name}"));
    let requested = hard.get(&request).or_else(|| hard.get(name)).map(quantity)?;
    let limited = hard.get(&limit).map(quantity)?;
    let shown = if hard.contains_key(&request) { &request } else { name };
    (requested > limited)
        .then(|| format!("ResourceQuota {shown} ({requested}) should be less than {limit} ({limited})"))
}

fn is_standard_for_quota(name: &str) -> bool {
    matches!(
        name,
        "cpu"
            | "memory"
            | "ephemeral-storage"
            | "requests.cpu"
            | "requests.memory"
            | "requests.storage"
            | "requests.ephemeral-storage"
            | "limits.cpu"
            | "limits.memory"
            | "limits.ephemeral-storage"
    ) || (is_integer(name) && !name.contains('/'))
        || is_huge_pages(name)
        || name.starts_with("requests.hugepages-")
}

fn validate_amounts(part: &Value, member: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child(member);
    for (name, amount) in part.object_at(&[member]).into_iter().flat_map(Map::iter) {
        let path = path.key(name);
        validate_resource_name(name, &path, errors);
        if !name.contains('/') && !is_standard_for_quota(name) {
            errors.push(FieldError::invalid(&path, name.as_str(), "must be a standard resource for quota"));
        }
        validate_resource_quantity(amount, is_integer(name), &path, errors);
    }
}

/// Whether a scope says something about a resource.
fn fits(scope: &str, resource: &str) -> bool {
    let of_pods = matches!(
        resource,
        "pods" | "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory"
    );
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => of_pods,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

/// Resources of the quota that a scope does not fit.
fn misfits<'a>(spec: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a str> {
    let names = spec.object_at(&["hard"]).into_iter().flat_map(Map::keys).map(|name| name.as_str());
    names.filter(move |name| is_standard_for_quota(name) && !fits(scope, name))
}

fn validate_scopes(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let scopes = spec.array_at(&["scopes"]);
    let shown = spec.get("scopes").cloned().unwrap_or_default();
    let mut refuse = |why: &str| errors.push(FieldError::invalid_ref(path, &shown, why));
    for scope in scopes.iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            refuse("unsupported scope");
        }
        misfits(spec, scope).for_each(|_| refuse("unsupported scope applied to resource"));
    }
    let has = |scope: &str| scopes.iter().any(|it| it.as_str() == Some(scope));
    EXCLUSIVE.iter().filter(|pair| pair.iter().all(|scope| has(scope))).for_each(|_| refuse("conflicting scopes"));
}

fn validate_selector(spec: &Value, selector: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const ONLY_EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let expressions = selector.array_at(&["matchExpressions"]);
    for expression in expressions {
        let (scope, operator) = (expression.str_at(&["scopeName"]), expression.str_at(&["operator"]));
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope"));
        }
        for _ in misfits(spec, scope) {
            errors.push(FieldError::invalid_shown(
                path,
                show_selector(selector),
                "unsupported scope applied to resource",
            ));
        }
        let by_existence = !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && SCOPES.contains(&scope);
        if by_existence && operator != "Exists" {
            errors.push(FieldError::invalid(&path.child("operator"), operator, ONLY_EXISTS));
        }
        let empty = expression.array_at(&["values"]).is_empty();
        let at = path.child("values");
        match operator {
            "In" | "NotIn" if empty => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&at, why));
            }
            "Exists" | "DoesNotExist" if !empty => {
                let values = expression.get("values").cloned().unwrap_or_default();
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(&at, values, why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(FieldError::invalid(&path.child("operator"), operator, "not a valid selector operator")),
        }
    }
    let has = |scope: &str| expressions.iter().any(|it| it.str_at(&["scopeName"]) == scope);
    for _ in EXCLUSIVE.iter().filter(|pair| pair.iter().all(|scope| has(scope))) {
        let shown = spec.get("scopes").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(path, shown, "conflicting scopes"));
    }
}

/// A selector by Go's names.
fn show_selector(selector: &Value) -> String {
    let one = |expression: &Value| {
        let member = |name: &str| to_string(&expression.str_at(&[name]).into());
        let values = expression.get("values").map_or("null".to_owned(), to_string);
        format!("{{\"ScopeName\":{},\"Operator\":{},\"Values\":{values}}}", member("scopeName"), member("operator"))
    };
    let all: Vec<String> = selector.array_at(&["matchExpressions"]).iter().map(one).collect();
    format!("{{\"MatchExpressions\":[{}]}}", all.join(","))
}
