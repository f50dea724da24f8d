//! Requests, limits and claims of containers and of whole pods (kubernetes `pkg/apis/core/validation`).

use std::{cmp::Ordering, collections::BTreeSet};

use super::{
    internal::shown,
    options::PodOptions,
    quantities::{
        self, List, aggregate, amount, is_extended, is_huge_pages, is_native, is_overcommit_allowed, is_pod_level,
        quantity,
    },
    view::{given, items, map, os, text},
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        field::ErrorType,
        names::{is_qualified_name, name_is_dns_subdomain},
        quantity::Quantity,
    },
    object::{Map, Value},
    registry::validation::{object_meta::push_messages, validate_dns1123_label, validate_resource_quantity},
};

/// Judges the name of a resource at its path.
type NameRule = fn(&str, &Path<'_>, &mut ErrorList);

/// `resources` of a container, or limits alone for what is spelt like them (overhead).
pub fn validate_container_resources(
    resources: &Value,
    claims: &[&str],
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    validate_requirements(resources, validate_container_resource_name, claims, options, path, errors);
}

/// `spec.resources`.
pub fn validate_pod_resources(
    spec: &Value,
    claims: &[&str],
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let Some(resources) = given(spec, "resources") else { return };
    let path = path.child("resources");
    if os(spec) == Some("windows") {
        errors.push(FieldError::forbidden(&path, "may not be set for a windows pod"));
        return;
    }
    if !items(resources, "claims").is_empty() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), why));
    }
    validate_requirements(resources, validate_pod_resource_name, claims, options, &path, errors);
    validate_consistency(spec, resources, &path, errors);
}

pub fn validate_resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    let messages = is_qualified_name(name);
    if !messages.is_empty() {
        push_messages(messages, name, path, errors);
        return false;
    }
    if !name.contains('/') && !quantities::is_standard(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource type or fully qualified"));
        return false;
    }
    true
}

/// What a container may ask for.
pub fn validate_container_resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    validate_resource_name(name, path, errors);
    let slashes = name.matches('/').count();
    if slashes == 0 {
        if !quantities::is_standard_for_containers(name) {
            errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(path, name, "doesn't follow extended resource name standard"));
    }
}

fn validate_pod_resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if validate_resource_name(name, path, errors) && !is_pod_level(name) {
        errors.push(FieldError::not_supported(path, name, &["cpu", quantities::HUGE_PAGES, "memory"]));
    }
}

fn validate_requirements(
    resources: &Value,
    name_rule: NameRule,
    claims: &[&str],
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let (limits_at, requests_at) = (path.child("limits"), path.child("requests"));
    let (limits, requests) = (map(resources, "limits"), map(resources, "requests"));
    for (name, value) in limits.into_iter().flat_map(Map::iter) {
        let at = limits_at.key(name);
        name_rule(name, &at, errors);
        validate_resource_quantity(value, quantities::is_integer(name), &at, errors);
        validate_huge_pages(name, value, options, &at, errors);
    }
    for (name, value) in requests.into_iter().flat_map(Map::iter) {
        let at = requests_at.key(name);
        name_rule(name, &at, errors);
        validate_resource_quantity(value, quantities::is_integer(name), &at, errors);
        match amount(limits, name) {
            Some(limit) => validate_request(name, &quantity(value), &limit, &requests_at, errors),
            None if !is_overcommit_allowed(name) => {
                errors.push(FieldError::required(&limits_at, "Limit must be set for non overcommitable resources"));
            }
            None => {}
        }
        validate_huge_pages(name, value, options, &at, errors);
    }
    let names = || limits.into_iter().chain(requests).flat_map(Map::keys);
    if names().any(|name| is_huge_pages(name)) && !names().any(|name| matches!(name.as_str(), "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    validate_claims(items(resources, "claims"), claims, &path.child("claims"), errors);
}

fn validate_request(name: &str, request: &Quantity, limit: &Quantity, path: &Path<'_>, errors: &mut ErrorList) {
    let order = request.cmp(limit);
    let relation = if order != Ordering::Equal && !is_overcommit_allowed(name) {
        "equal to"
    } else if order == Ordering::Greater {
        "less than or equal to"
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, request.to_string(), &format!("must be {relation} {name} limit of {limit}")));
}

/// Whether an amount of huge pages is made of whole pages; the name says their size.
pub fn is_divisible(name: &str, value: &Quantity) -> bool {
    let Ok(size) = Quantity::parse(name.strip_prefix(quantities::HUGE_PAGES).unwrap_or("")) else { return false };
    size.sign() > 0
        && size.milli_value() % 1000 == 0
        && size.value() != 0
        && value.value().checked_rem(size.value()) == Some(0)
}

fn validate_huge_pages(name: &str, value: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let value = quantity(value);
    if is_huge_pages(name) && !options.indivisible_huge_pages && !is_divisible(name, &value) {
        let shown = value.to_string();
        let why = format!("{shown} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid(path, shown, &why));
    }
}

/// The claims a container uses, against those of its pod.
fn validate_claims(claims: &[Value], known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    // Claims as a whole, and `claim/request`.
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        validate_claim_use(name, request, &mut taken, &path, errors);
        if !known.contains(&name) {
            let mut error = FieldError::not_found(&path, name);
            error.body.push_str(": must be one of the names in pod.spec.resourceClaims");
            if known.is_empty() {
                error.body.push_str(" which is empty");
            } else {
                error.body.push_str(": ");
                error.body.push_str(&known.join(", "));
            }
            debug_assert_eq!(error.kind, ErrorType::NotFound);
            errors.push(error);
        }
    }
}

fn validate_claim_use(
    name: &str,
    request: &str,
    taken: &mut BTreeSet<String>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if taken.contains(name) {
        errors.push(FieldError::duplicate(path, name));
        return;
    }
    let mut key = name.to_owned();
    if !request.is_empty() {
        validate_dns1123_label(request, &path.child("request"), errors);
        key = format!("{name}/{request}");
    }
    if taken.contains(&key) {
        errors.push(FieldError::duplicate(path, key.as_str()));
    } else if request.is_empty() {
        let prefix = format!("{name}/");
        let parts = taken.range(prefix.clone()..).take_while(|it| it.starts_with(&prefix)).count();
        for _ in 0..parts {
            errors.push(FieldError::duplicate(path, name));
        }
    }
    taken.insert(key);
}

/// What the pod says as a whole against what its containers say.
fn validate_consistency(spec: &Value, resources: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (limits, requests) = (map(resources, "limits"), map(resources, "requests"));
    let at = path.child("requests");
    for (name, needed) in aggregate(spec, List::Requests) {
        if let Some(own) = amount(requests, &name).filter(|own| needed.cmp(own) == Ordering::Greater) {
            let why = format!("must be greater than or equal to aggregate container requests of {needed}");
            errors.push(FieldError::invalid(&at.key(&name), own.to_string(), &why));
        }
    }
    let at = path.child("limits");
    for (name, needed) in aggregate(spec, List::Limits).into_iter().filter(|(name, _)| is_huge_pages(name)) {
        if let Some(own) = amount(limits, &name).filter(|own| needed.cmp(own) == Ordering::Greater) {
            let why = format!("must be greater than or equal to aggregate container limits of {needed}");
            errors.push(FieldError::invalid(&at.key(&name), own.to_string(), &why));
        }
    }
    let at = path.child("containers");
    for (index, container) in items(spec, "containers").iter().enumerate() {
        let at = at.index(index);
        for (name, value) in container.object_at(&["resources", "limits"]).into_iter().flat_map(Map::iter) {
            let value = quantity(value);
            if let Some(own) = amount(limits, name).filter(|own| value.cmp(own) == Ordering::Greater) {
                let why = format!("must be less than or equal to pod limits of {own}");
                errors.push(FieldError::invalid(&at.key(name).child("limits"), value.to_string(), &why));
            }
        }
    }
}

/// `spec.resourceClaims`. A mirror pod may have none.
pub fn validate_resource_claims(spec: &Value, mirror: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let mut names = BTreeSet::new();
    for (index, claim) in items(spec, "resourceClaims").iter().enumerate() {
        if mirror {
            errors.push(FieldError::forbidden(&super::EMPTY_PATH, "static pods do not support resource claims"));
            continue;
        }
        let path = path.index(index);
        let (name, at) = (text(claim, "name"), path.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if !names.insert(name) {
            errors.push(FieldError::duplicate(&at, name));
        } else {
            validate_dns1123_label(name, &at, errors);
        }
        let references = ["resourceClaimName", "resourceClaimTemplateName"];
        let set = references.iter().filter(|key| given(claim, key).is_some()).count();
        let why = match set {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => "",
            _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        };
        if !why.is_empty() {
            errors.push(FieldError::invalid_shown(&path, shown(claim, "PodResourceClaim"), why));
        }
        for key in references {
            if let Some(name) = given(claim, key).and_then(Value::as_str) {
                push_messages(name_is_dns_subdomain(name, false), name, &path.child(key), errors);
            }
        }
    }
}
