//! IP addresses and CIDRs: errors of new and old fields, and warnings about values that are taken but will not
//! always be (apimachinery `pkg/util/validation/ip.go`, kubernetes `pkg/apis/core/validation`).

use std::net::IpAddr;

use crate::api::{
    ErrorList, FieldError, Path,
    field::quote,
    ip::{Cidr, is_masked, parse_cidr, parse_cidr_strict, parse_ip, parse_ip_strict},
};

const SLOPPY: &str = "format=ip-sloppy";
const STRICT: &str = "format=ip-strict";

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// The address, or what is wrong with it. `strict` refuses what other software reads differently.
fn read_ip(value: &str, strict: bool) -> Result<IpAddr, &'static str> {
    let ip = parse_ip(value).ok_or("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")?;
    if strict {
        match parse_ip_strict(value) {
            None => return Err("must not have leading 0s"),
            Some(exact) if is_mapped(exact) => return Err("must not be an IPv4-mapped IPv6 address"),
            Some(_) => {}
        }
    }
    Ok(ip)
}

/// Fields older than strict parsing: canonical form is not asked for, and what the old object had (`old`) is taken.
/// `strict` is the gate StrictIPCIDRValidation, on since 1.36.
pub fn validate_ip_for_legacy_field(value: &str, strict: bool, old: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if old.contains(&value) {
        return;
    }
    if let Err(why) = read_ip(value, strict) {
        errors.push(FieldError::invalid(path, value, why).with_origin(SLOPPY));
    }
}

/// Newer fields: the canonical form of an address.
pub fn validate_ip(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match read_ip(value, true) {
        Err(why) => errors.push(FieldError::invalid(path, value, why).with_origin(STRICT)),
        Ok(ip) => validate_canonical(value, &ip.to_string(), path, errors, STRICT),
    }
}

fn validate_canonical(value: &str, canonical: &str, path: &Path<'_>, errors: &mut ErrorList, origin: &'static str) {
    if value != canonical {
        let why = format!("must be in canonical form ({})", quote(canonical));
        errors.push(FieldError::invalid(path, value, &why).with_origin(origin));
    }
}

/// Warnings about an address that [`validate_ip_for_legacy_field`] takes.
pub fn ip_warnings(value: &str, path: &Path<'_>) -> Vec<String> {
    let Some(ip) = parse_ip(value) else { return Vec::new() };
    let (quoted, canonical) = (quote(value), quote(&ip.to_string()));
    match parse_ip_strict(value) {
        Some(exact) if !is_mapped(exact) => {
            if exact.is_ipv6() && exact.to_string() != value {
                return vec![format!(
                    "{path}: IPv6 address {quoted} should be in RFC 5952 canonical format ({canonical})"
                )];
            }
            Vec::new()
        }
        _ => vec![format!("{path}: non-standard IP address {quoted} is invalid: use {canonical}")],
    }
}

fn read_cidr(value: &str, strict: bool) -> Result<Cidr, &'static str> {
    let cidr = parse_cidr(value).ok_or("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")?;
    if strict {
        match parse_cidr_strict(value) {
            None => return Err("must not have leading 0s in IP or prefix length"),
            Some((ip, _)) if is_mapped(ip) => return Err("must not have an IPv4-mapped IPv6 address"),
            Some((ip, prefix)) if !is_masked(ip, prefix) => {
                return Err("must not have bits set beyond the prefix length");
            }
            Some(_) => {}
        }
    }
    Ok(cidr)
}

/// As [`validate_ip_for_legacy_field`], for CIDRs.
pub fn validate_cidr_for_legacy_field(
    value: &str,
    strict: bool,
    old: &[&str],
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if old.contains(&value) {
        return;
    }
    if let Err(why) = read_cidr(value, strict) {
        errors.push(FieldError::invalid(path, value, why));
    }
}

/// Newer fields: a network in canonical form.
pub fn validate_cidr(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match read_cidr(value, true) {
        Err(why) => errors.push(FieldError::invalid(path, value, why)),
        Ok(cidr) => validate_canonical(value, &cidr.to_string(), path, errors, ""),
    }
}

/// An address with the length of its network (`192.168.1.5/24`), canonical.
pub fn validate_interface_address(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match parse_cidr(value) {
        None => {
            let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
            errors.push(FieldError::invalid(path, value, why));
        }
        Some(cidr) => validate_canonical(value, &format!("{}/{}", cidr.ip, cidr.prefix), path, errors, ""),
    }
}

/// Warnings about a CIDR that [`validate_cidr_for_legacy_field`] takes.
pub fn cidr_warnings(value: &str, path: &Path<'_>) -> Vec<String> {
    let Some(cidr) = parse_cidr(value) else { return Vec::new() };
    let (quoted, network) = (quote(value), quote(&cidr.to_string()));
    let mut warnings = Vec::new();
    if cidr.ip != cidr.network {
        let single = quote(&format!("{}/{}", cidr.ip, cidr.mask_bits));
        warnings.push(format!(
            "{path}: CIDR value {quoted} is ambiguous in this context (should be {network} or {single}?)"
        ));
    }
    match parse_cidr_strict(value) {
        Some((ip, prefix)) if !is_mapped(ip) => {
            let exact = format!("{ip}/{prefix}");
            if warnings.is_empty() && ip.is_ipv6() && exact != value {
                let exact = quote(&exact);
                warnings
                    .push(format!("{path}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ({exact})"));
            }
        }
        _ => warnings.push(format!("{path}: non-standard CIDR value {quoted} is invalid: use {network}")),
    }
    warnings
}

/// An address another machine can be reached at: not unspecified, loopback, link-local.
pub fn validate_endpoint_ip(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    const ORIGIN: &str = "format=endpoint-ip";
    let Some(ip) = parse_ip(value) else {
        errors.push(FieldError::invalid(path, value, "must be a valid IP address").with_origin(ORIGIN));
        return;
    };
    let (loopback, link_local, link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_loopback(), ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_loopback(), ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    let unspecified = format!("may not be unspecified ({value})");
    for (bad, why) in [
        (ip.is_unspecified(), unspecified.as_str()),
        (loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (link_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ] {
        if bad {
            errors.push(FieldError::invalid(path, value, why).with_origin(ORIGIN));
        }
    }
}
