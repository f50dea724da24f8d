//! `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`: which values fit together, and which changes are
//! possible (kubernetes `pkg/apis/core/validation`: ValidateServiceClusterIPsRelatedFields, validateUpgradeDowngrade…).

use super::view::{Family, NONE, cluster_ips, is_external_name, is_headless, set, shown, text, texts};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::validation::{address::validate_ip_for_legacy_field, validate_one_of},
};

pub const SPEC: Path<'static> = Path::new("spec");
pub const CLUSTER_IPS: Path<'static> = SPEC.child("clusterIPs");
pub const IP_FAMILIES: Path<'static> = SPEC.child("ipFamilies");
pub const IP_FAMILY_POLICY: Path<'static> = SPEC.child("ipFamilyPolicy");

const ONCE_SET: &str = "may not change once set";

/// The four fields of one object. `old` has addresses that are taken whatever they look like.
pub fn validate_related(service: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    if is_external_name(service) {
        return;
    }
    let ips = cluster_ips(service);
    let all = || shown(service, "clusterIPs");
    match (text(service, "clusterIP"), ips.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            errors.push(FieldError::invalid(&CLUSTER_IPS, all(), "must be empty when `clusterIP` is not specified"));
        }
        (_, None) => errors.push(FieldError::required(&CLUSTER_IPS, "")),
        (one, Some(first)) if one != *first => {
            errors.push(FieldError::invalid(&CLUSTER_IPS, all(), "first value must match `clusterIP`"));
        }
        _ => {}
    }
    validate_families(service, errors);
    if let Some(policy) = set(service, "ipFamilyPolicy") {
        let allowed = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        validate_one_of(policy.as_str().unwrap_or(""), &allowed, &IP_FAMILY_POLICY, errors);
    }
    let bad = validate_addresses(&ips, old, all, errors);
    if ips.len() > 2 {
        errors.push(FieldError::invalid(&CLUSTER_IPS, all(), "may only hold up to 2 values"));
    }
    // What comes next would blame the wrong value.
    if !bad {
        validate_families_of_addresses(service, &ips, errors);
    }
}

fn validate_families(service: &Value, errors: &mut ErrorList) {
    let mut seen = Vec::new();
    for (index, family) in texts(service, "ipFamilies").into_iter().enumerate() {
        let path = IP_FAMILIES.index(index);
        validate_one_of(family, &["IPv4", "IPv6"], &path, errors);
        if seen.contains(&family) {
            errors.push(FieldError::duplicate(&path, family));
        }
        // Two names are all there are; a long list of others must not make this slow.
        if seen.len() < 16 {
            seen.push(family);
        }
    }
}

/// Each address by itself; whether one is bad.
fn validate_addresses(ips: &[&str], old: Option<&Value>, all: impl Fn() -> Value, errors: &mut ErrorList) -> bool {
    let known = old.map(cluster_ips).unwrap_or_default();
    let before = errors.len();
    for (index, ip) in ips.iter().enumerate() {
        if index == 0 && *ip == NONE {
            if ips.len() > 1 {
                errors.push(FieldError::invalid(&CLUSTER_IPS, all(), "'None' must be the first and only value"));
            }
            continue;
        }
        validate_ip_for_legacy_field(ip, true, &known, &CLUSTER_IPS.index(index), errors);
    }
    errors.len() > before
}

fn validate_families_of_addresses(service: &Value, ips: &[&str], errors: &mut ErrorList) {
    if ips.len() > 1 {
        let both = |family: Family| ips.iter().any(|ip| Family::of_text(ip) == family);
        // More than two addresses cannot be of one family each (IsDualStackIPStrings asks for one of each only).
        if !(both(Family::V4) && both(Family::V6)) {
            let why = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(&CLUSTER_IPS, shown(service, "clusterIPs"), why));
        }
    }
    if is_headless(service) {
        return;
    }
    for (index, (ip, family)) in ips.iter().zip(texts(service, "ipFamilies")).enumerate() {
        if let Some(wanted) = Family::named(family).filter(|wanted| *wanted != Family::of_text(ip)) {
            let why = format!("expected an {} value as indicated by `ipFamilies[{index}]`", wanted.as_str());
            errors.push(FieldError::invalid(&CLUSTER_IPS.index(index), *ip, &why));
        }
    }
}

/// Addresses may be added and the second taken away, nothing else.
pub fn validate_change_of_addresses(old: &Value, service: &Value, errors: &mut ErrorList) {
    if is_external_name(service) || is_external_name(old) || is_headless(old) && is_headless(service) {
        return;
    }
    let (before, after) = (cluster_ips(old), cluster_ips(service));
    let all = || shown(service, "clusterIPs");
    let mut refuse = |index: usize, why: &str| errors.push(FieldError::invalid(&CLUSTER_IPS.index(index), all(), why));
    if before.len() == after.len() {
        for index in (0..before.len()).filter(|index| before[*index] != after[*index]) {
            refuse(index, ONCE_SET);
        }
        return;
    }
    if after.is_empty() {
        refuse(0, "primary clusterIP can not be unset");
    }
    if let (Some(old), Some(new)) = (before.first(), after.first())
        && old != new
    {
        refuse(0, ONCE_SET);
    }
    if before.len() > after.len() && after.len() == 1 {
        let why = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        require_single_stack(service, why, errors);
    }
}

/// The same for families.
pub fn validate_change_of_families(old: &Value, service: &Value, errors: &mut ErrorList) {
    if is_external_name(service) || is_external_name(old) || is_headless(old) || is_headless(service) {
        return;
    }
    let (before, after) = (texts(old, "ipFamilies"), texts(service, "ipFamilies"));
    let first = IP_FAMILIES.index(0);
    if before.len() == after.len() {
        for _ in before.iter().zip(&after).filter(|(old, new)| old != new) {
            errors.push(FieldError::invalid(&first, shown(service, "ipFamilies"), ONCE_SET));
        }
        return;
    }
    let released = before.len() > after.len();
    if released && cluster_ips(service).is_empty() {
        errors.push(FieldError::invalid(&first, shown(service, "ipFamilies"), "primary ipFamily can not be unset"));
    }
    if let (Some(old), Some(new)) = (before.first(), after.first())
        && old != new
    {
        // Upstream shows the addresses here.
        errors.push(FieldError::invalid(&first, shown(service, "clusterIPs"), ONCE_SET));
    }
    if released && after.len() == 1 {
        let why = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        require_single_stack(service, why, errors);
    }
}

fn require_single_stack(service: &Value, why: &str, errors: &mut ErrorList) {
    if text(service, "ipFamilyPolicy") != "SingleStack" {
        errors.push(FieldError::invalid(&IP_FAMILY_POLICY, shown(service, "ipFamilyPolicy"), why));
    }
}
