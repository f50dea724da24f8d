//! What pods of Windows nodes have and what they have not.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    options::PodOptions,
    view::{containers, given, items, visit_containers},
};
use crate::{
    api::{ErrorList, FieldError, Path, names::is_dns1123_subdomain},
    object::Value,
    registry::validation::object_meta::push_messages,
};

const MAX_CREDENTIAL_SPEC_KIB: usize = 64;
const MAX_DOMAIN: usize = 256;
const MAX_USER: usize = 104;

/// `windowsOptions` of a security context.
pub fn validate_options(options: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let member = |key: &str| given(options, key).and_then(Value::as_str);
    if let Some(name) = member("gmsaCredentialSpecName") {
        push_messages(is_dns1123_subdomain(name), name, &path.child("gmsaCredentialSpecName"), errors);
    }
    if let Some(spec) = member("gmsaCredentialSpec") {
        let at = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.push(FieldError::invalid(&at, spec, "gmsaCredentialSpec cannot be an empty string"));
        } else if spec.len() > MAX_CREDENTIAL_SPEC_KIB * 1024 {
            let why = format!("gmsaCredentialSpec size must be under {MAX_CREDENTIAL_SPEC_KIB} KiB");
            errors.push(FieldError::invalid(&at, spec, &why));
        }
    }
    if let Some(name) = member("runAsUserName") {
        let at = path.child("runAsUserName");
        for why in user_name_errors(name) {
            errors.push(FieldError::invalid(&at, name, &why));
        }
    }
}

/// What is wrong with `user` or `domain\user`.
fn user_name_errors(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".into()];
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".into()];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, rest)) if rest.contains('\\') => {
            return vec!["runAsUserName cannot contain more than one backslash".into()];
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut errors = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= MAX_DOMAIN {
            errors.push(format!("runAsUserName's Domain length must be under {MAX_DOMAIN} characters"));
        }
        if !is_net_bios_name(domain) && !is_dns_domain(domain) {
            errors.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".into());
        }
    }
    if user.is_empty() {
        errors.push("runAsUserName's User cannot be empty".into());
    } else if user.len() > MAX_USER {
        errors.push(format!("runAsUserName's User length must not be longer than {MAX_USER} characters"));
    }
    if !user.is_empty() && user.bytes().all(|byte| matches!(byte, b'.' | b' ')) {
        errors.push("runAsUserName's User cannot contain only periods or spaces".into());
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        errors.push(r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#.into());
    }
    errors
}

/// One to fifteen characters without those Windows keeps for itself; no dot at the beginning.
fn is_net_bios_name(domain: &str) -> bool {
    let bad = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    let length = domain.chars().count();
    (1..=15).contains(&length) && !domain.starts_with('.') && !domain.contains(bad)
}

fn is_dns_domain(domain: &str) -> bool {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
        match Regex::new(&format!(r"^{label}(?:\.{label})*$")) {
            Ok(pattern) => pattern,
            Err(error) => unreachable!("a constant pattern: {error}"),
        }
    });
    PATTERN.is_match(domain)
}

fn host_process(context: Option<&Value>) -> Option<bool> {
    context?.at(&["windowsOptions", "hostProcess"])?.as_bool()
}

/// Containers that are processes of the host: all or none, and on the host's network.
pub fn validate_host_process(spec: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let pod = host_process(spec.get("securityContext"));
    let mut running = 0;
    visit_containers(spec, path, &mut |container, path| {
        let own = host_process(container.get("securityContext"));
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let at = path.child("securityContext");
            let at = at.child("windowsOptions");
            let why = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.push(FieldError::invalid(&at.child("hostProcess"), own, &why));
        }
        running += usize::from(own.or(pod) == Some(true));
    });
    if running == 0 {
        return;
    }
    if running != containers(spec).count() {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, "", why));
    }
    if !spec.bool_at(&["hostNetwork"]) {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(&path.child("hostNetwork"), false, why));
    }
    if !options.allow_privileged {
        errors.push(FieldError::forbidden(path, "hostProcess containers are disallowed by cluster policy"));
    }
}

/// Pods for Linux have no Windows options.
pub fn forbid_windows(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const WHY: &str = "windows options cannot be set for a linux pod";
    let mut check = |owner: &Value, path: &Path<'_>| {
        if owner.get("securityContext").is_some_and(|it| given(it, "windowsOptions").is_some()) {
            let at = path.child("securityContext");
            errors.push(FieldError::forbidden(&at.child("windowsOptions"), WHY));
        }
    };
    check(spec, path);
    visit_containers(spec, path, &mut |container, path| check(container, path));
}

/// Pods for Windows have nothing that only Linux has.
pub fn forbid_linux(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const POD: [&str; 11] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    const CONTAINER: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    forbid_members(spec, &POD, path, errors);
    for key in ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"] {
        let set = match key {
            "hostPID" | "hostIPC" => spec.bool_at(&[key]),
            _ => given(spec, key).is_some(),
        };
        if set {
            errors.push(FieldError::forbidden(&path.child(key), NOT_ON_WINDOWS));
        }
    }
    visit_containers(spec, path, &mut |container, path| forbid_members(container, &CONTAINER, path, errors));
}

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";

fn forbid_members(owner: &Value, members: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    let Some(context) = given(owner, "securityContext") else { return };
    let path = path.child("securityContext");
    for key in members {
        let set = if *key == "sysctls" { !items(context, key).is_empty() } else { given(context, key).is_some() };
        if set {
            errors.push(FieldError::forbidden(&path.child(key), NOT_ON_WINDOWS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_have_at_most_one_domain() {
        assert!(user_name_errors("ContainerUser").is_empty());
        assert!(user_name_errors(r"NT AUTHORITY\SYSTEM").is_empty());
        assert_eq!(user_name_errors(r"a\b\c"), ["runAsUserName cannot contain more than one backslash"]);
        assert_eq!(user_name_errors(r"a\"), ["runAsUserName's User cannot be empty"]);
        assert_eq!(
            user_name_errors(r".x:\. ."),
            [
                "runAsUserName's Domain doesn't match the NetBios nor the DNS format",
                "runAsUserName's User cannot contain only periods or spaces",
            ]
        );
    }
}
