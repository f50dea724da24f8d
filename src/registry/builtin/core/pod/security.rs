//! Security contexts of pods and containers, and what an operating system does not have.

use std::{collections::HashSet, sync::LazyLock};

use regex::Regex;

use super::{
    internal::shown,
    options::PodOptions,
    view::{given, items, os, text, visit_containers},
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        names::{Messages, is_valid_group_id, is_valid_user_id},
    },
    object::Value,
    registry::validation::validate_local_descending_path,
};

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// Longest AppArmor profile in bytes: a path's bound, without its final zero.
const MAX_APP_ARMOR_PROFILE: usize = 4095;
const MAX_SYSCTL: usize = 253;
const SYSCTL_PATTERN: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// `spec.securityContext`.
pub fn validate_pod_security_context(spec: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(context) = given(spec, "securityContext") else { return };
    validate_id(context, "fsGroup", is_valid_group_id, path, errors);
    validate_id(context, "runAsUser", is_valid_user_id, path, errors);
    validate_id(context, "runAsGroup", is_valid_group_id, path, errors);
    let at = path.child("supplementalGroups");
    for (index, group) in items(context, "supplementalGroups").iter().enumerate() {
        let group = group.as_i64().unwrap_or(0);
        let messages = is_valid_group_id(group);
        errors.extend(messages.iter().map(|message| FieldError::invalid(&at.index(index), group, message)));
    }
    validate_sysctls(spec, items(context, "sysctls"), options, &path.child("sysctls"), errors);
    validate_choice(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], path, errors);
    validate_profiles(context, path, errors);
    validate_choice(context, "supplementalGroupsPolicy", &["Merge", "Strict"], path, errors);
    validate_choice(context, "seLinuxChangePolicy", &["MountOption", "Recursive"], path, errors);
}

fn validate_choice(context: &Value, key: &str, supported: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(value) = given(context, key).filter(|it| !supported.contains(&it.as_str().unwrap_or(""))) {
        errors.push(FieldError::not_supported(&path.child(key), value.clone(), supported));
    }
}

fn validate_id(context: &Value, key: &str, rule: fn(i64) -> Messages, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(id) = context.i64_at(&[key]) {
        errors.extend(rule(id).iter().map(|message| FieldError::invalid(&path.child(key), id, message)));
    }
}

/// Seccomp, Windows, AppArmor: what contexts of pods and containers both have.
fn validate_profiles(context: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    validate_seccomp(context, path, errors);
    validate_windows_and_app_armor(context, path, errors);
}

fn validate_windows_and_app_armor(context: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(windows) = given(context, "windowsOptions") {
        super::windows::validate_options(windows, &path.child("windowsOptions"), errors);
    }
    if let Some(profile) = given(context, "appArmorProfile") {
        validate_app_armor(profile, &path.child("appArmorProfile"), errors);
    }
}

fn validate_seccomp(context: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(profile) = given(context, "seccompProfile") else { return };
    let path = path.child("seccompProfile");
    let kind = text(profile, "type");
    let at = path.child("type");
    match kind {
        "" => errors.push(FieldError::required(&at, "type is required when seccompProfile is set")),
        known if PROFILE_TYPES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(&at, other, &PROFILE_TYPES)),
    }
    let at = path.child("localhostProfile");
    match (kind, given(profile, "localhostProfile").and_then(Value::as_str)) {
        ("Localhost", Some(file)) => validate_local_descending_path(file, &at, errors),
        ("Localhost", None) => errors.push(FieldError::required(&at, "must be set when seccomp type is Localhost")),
        // The whole profile is shown, as upstream does.
        (_, Some(_)) => {
            let why = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid_shown(&at, shown(profile, "SeccompProfile"), why));
        }
        _ => {}
    }
}

/// An AppArmor profile of a pod or container.
pub fn validate_app_armor(profile: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("localhostProfile");
    let local = given(profile, "localhostProfile").and_then(Value::as_str);
    const REQUIRED: &str = "must be set when AppArmor type is Localhost";
    match text(profile, "type") {
        "Localhost" => match local {
            None => errors.push(FieldError::required(&at, REQUIRED)),
            Some(local) => {
                if local.trim() != local {
                    errors.push(FieldError::invalid(&at, local, "must not be padded with whitespace"));
                } else if local.is_empty() {
                    errors.push(FieldError::required(&at, REQUIRED));
                }
                if local.len() > MAX_APP_ARMOR_PROFILE {
                    errors.push(FieldError::too_long(&at, MAX_APP_ARMOR_PROFILE));
                }
            }
        },
        "RuntimeDefault" | "Unconfined" => {
            if let Some(local) = local {
                errors.push(FieldError::invalid(&at, local, "can only be set when AppArmor type is Localhost"));
            }
        }
        "" => {
            errors.push(FieldError::required(&path.child("type"), "type is required when appArmorProfile is set"));
        }
        other => errors.push(FieldError::not_supported(&path.child("type"), other, &PROFILE_TYPES)),
    }
}

/// `securityContext` of a container. `host_users`: the pod has no user namespace of its own.
pub fn validate_security_context(
    context: &Value,
    host_users: bool,
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let privileged = context.bool_at(&["privileged"]);
    if privileged && !options.allow_privileged {
        errors.push(FieldError::forbidden(&path.child("privileged"), "disallowed by cluster policy"));
    }
    validate_id(context, "runAsUser", is_valid_user_id, path, errors);
    validate_id(context, "runAsGroup", is_valid_group_id, path, errors);
    validate_choice(context, "procMount", &["Default", "Unmasked"], path, errors);
    if host_users && text(context, "procMount") == "Unmasked" {
        let why = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid(&path.child("procMount"), "Unmasked", why));
    }
    validate_seccomp(context, path, errors);
    if context.get("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false) {
        let mut refuse = |why: &str| {
            errors.push(FieldError::invalid_shown(path, shown(context, "SecurityContext"), why));
        };
        if privileged {
            refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        let added = context.array_at(&["capabilities", "add"]);
        let sys_admin = added.iter().filter(|it| it.as_str() == Some("CAP_SYS_ADMIN")).count();
        for _ in 0..if options.sys_admin_without_escalation { 0 } else { sys_admin } {
            refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    validate_windows_and_app_armor(context, path, errors);
}

fn is_sysctl_name(name: &str) -> bool {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| match Regex::new(SYSCTL_PATTERN) {
        Ok(pattern) => pattern,
        Err(error) => unreachable!("a constant pattern: {error}"),
    });
    name.len() <= MAX_SYSCTL && PATTERN.is_match(name)
}

/// Which setting of the host a sysctl of this name would change.
fn host_setting(name: &str) -> Option<&'static str> {
    // Slashes separate where the first separator is one, and dots stand in names then.
    let slashed = name.find(['.', '/']).is_some_and(|at| name.as_bytes().get(at) == Some(&b'/'));
    let name: String = name
        .chars()
        .map(|c| match c {
            '/' if slashed => '.',
            '.' if slashed => '/',
            c => c,
        })
        .collect();
    let name = name.split('*').next().unwrap_or("");
    if name.starts_with("net.") {
        return Some("hostNetwork");
    }
    let ipc = name == "kernel.sem" || ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|it| name.starts_with(it));
    ipc.then_some("hostIPC")
}

fn forbidden_host_setting(spec: &Value, name: &str) -> Option<&'static str> {
    host_setting(name).filter(|setting| spec.bool_at(&[setting]))
}

/// Whether the pod has a sysctl that new pods that share the host's namespaces may not have.
pub fn has_host_sysctl(spec: &Value) -> bool {
    let sysctls = spec.array_at(&["securityContext", "sysctls"]);
    sysctls.iter().any(|sysctl| forbidden_host_setting(spec, text(sysctl, "name")).is_some())
}

fn validate_sysctls(spec: &Value, sysctls: &[Value], options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let mut names = HashSet::new();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let at = path.index(index);
        let at = at.child("name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if !is_sysctl_name(name) {
            let why = format!("must have at most {MAX_SYSCTL} characters and match regex {SYSCTL_PATTERN}");
            errors.push(FieldError::invalid(&at, name, &why));
        } else if names.contains(name) {
            errors.push(FieldError::duplicate(&at, name));
        }
        if let Some(setting) = forbidden_host_setting(spec, name).filter(|_| !options.host_sysctls) {
            let why = format!("may not be specified when '{setting}' is true");
            errors.push(FieldError::invalid(&at, name, &why));
        }
        names.insert(name);
    }
}

/// `hostUsers: false` against what needs the host's users.
pub fn validate_host_users(spec: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    const WHY: &str = "when `hostUsers` is false";
    if spec.get("hostUsers").and_then(Value::as_bool) != Some(false) {
        return;
    }
    if spec.bool_at(&["hostNetwork"]) && !options.host_network_with_user_namespace {
        errors.push(FieldError::forbidden(&path.child("hostNetwork"), WHY));
    }
    for (key, told) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.bool_at(&[key]) {
            errors.push(FieldError::forbidden(&path.child(told), WHY));
        }
    }
    if !options.devices_with_user_namespace {
        visit_containers(spec, path, &mut |container, path| {
            if !items(container, "volumeDevices").is_empty() {
                errors.push(FieldError::forbidden(&path.child("volumeDevices"), WHY));
            }
        });
    }
}

/// `spec.os`, and what that operating system does not have.
pub fn validate_os(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("os");
    match os(spec) {
        None => {}
        Some("") => errors.push(FieldError::required(&at.child("name"), "")),
        Some("linux") => super::windows::forbid_windows(spec, path, errors),
        Some("windows") => super::windows::forbid_linux(spec, path, errors),
        Some(other) => errors.push(FieldError::not_supported(&at, other, &["linux", "windows"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_are_known_by_either_separator() {
        assert_eq!(host_setting("net.ipv4.ip_forward"), Some("hostNetwork"));
        assert_eq!(host_setting("net/ipv4/conf/eth0.1/x"), Some("hostNetwork"));
        assert_eq!(host_setting("kernel.shm_rmid_forced"), Some("hostIPC"));
        assert_eq!(host_setting("kernel.sem"), Some("hostIPC"));
        assert_eq!(host_setting("kernel.hostname"), None);
        assert!(is_sysctl_name("a.b-c/d_e") && !is_sysctl_name("a b") && !is_sysctl_name(".a"));
    }
}
