//! The spec of a persistent volume, of its own or inline in an attachment (kubernetes ValidatePersistentVolumeSpec).

use super::pod::{iscsi_name_error, quantities::quantity, validate_node_selector, validate_shared_source};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        names::{inclusive_range_error, is_dns1123_label, is_dns1123_subdomain},
    },
    object::{Value, to_string},
    registry::validation::{
        object_meta::push_messages, validate_csi_driver_name, validate_dns1123_label, validate_dns1123_subdomain,
        validate_path_no_backsteps, validate_positive_quantity,
    },
};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const MODES: [&str; 2] = ["Block", "Filesystem"];
const INLINE: &str = "may not be specified in the context of inline volumes";

/// The sources in upstream's order, with the names errors about details and about one source too many have.
const SOURCES: [(&str, &str, &str); 22] = [
    ("hostPath", "hostPath", "hostPath"),
    ("gcePersistentDisk", "persistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore"),
    ("glusterfs", "glusterfs", "glusterfs"),
    ("flocker", "flocker", "flocker"),
    ("nfs", "nfs", "nfs"),
    ("rbd", "rbd", "rbd"),
    ("quobyte", "quobyte", "quobyte"),
    ("cephfs", "cephfs", "cephFS"),
    ("iscsi", "iscsi", "iscsi"),
    ("cinder", "cinder", "cinder"),
    ("fc", "fc", "fc"),
    // Never one too many.
    ("flexVolume", "flexVolume", ""),
    ("azureFile", "azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk", "azureDisk"),
    ("scaleIO", "scaleIO", "scaleIO"),
    ("local", "local", "local"),
    ("storageos", "storageos", "storageos"),
    ("csi", "csi", "csi"),
];

/// Members of a spec that are sources.
pub fn sources() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(member, ..)| *member)
}

/// Where a spec is, and what an old object may keep.
#[derive(Clone, Copy, Default)]
pub struct VolumeOptions {
    /// In an attachment, which knows less than a volume.
    pub inline: bool,
    /// Label values in the node affinity that no label can have.
    pub any_label_values: bool,
}

fn given<'a>(object: &'a Value, member: &str) -> Option<&'a Value> {
    object.get(member).filter(|it| !it.is_null())
}

fn require(source: &Value, member: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if source.str_at(&[member]).is_empty() {
        errors.push(FieldError::required(&path.child(member), ""));
    }
}

/// Judges a spec. `name` is the volume's, if it has one.
pub fn validate(spec: &Value, name: &str, options: VolumeOptions, path: &Path<'_>, errors: &mut ErrorList) {
    if options.inline {
        validate_inline(spec, path, errors);
    }
    validate_access_modes(spec, &path.child("accessModes"), errors);
    if !options.inline {
        validate_capacity(spec, &path.child("capacity"), errors);
    }
    validate_reclaim_policy(spec, options, &path.child("persistentVolumeReclaimPolicy"), errors);
    let affinity = given(spec, "nodeAffinity");
    if let Some(affinity) = affinity {
        validate_affinity(affinity, options, &path.child("nodeAffinity"), errors);
    }
    let bound_to_nodes = affinity.is_some() && !options.inline;
    validate_sources(spec, name, bound_to_nodes, path, errors);
    let recycled = spec.str_at(&["persistentVolumeReclaimPolicy"]) == "Recycle";
    if recycled && given(spec, "hostPath").is_some_and(|it| is_root(it.str_at(&["path"]))) {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), why));
    }
    validate_classes(spec, options, path, errors);
}

fn validate_inline(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if given(spec, "claimRef").is_some() {
        errors.push(FieldError::forbidden(&path.child("claimRef"), INLINE));
    }
    if spec.object_at(&["capacity"]).is_some_and(|it| !it.is_empty()) {
        errors.push(FieldError::forbidden(&path.child("capacity"), INLINE));
    }
    if given(spec, "csi").is_none() {
        let why = "has to be specified in the context of inline volumes";
        errors.push(FieldError::required(&path.child("csi"), why));
    }
}

fn validate_access_modes(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let modes = spec.array_at(&["accessModes"]);
    if modes.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let (mut one_pod, mut others) = (false, false);
    for mode in modes {
        let mode = mode.as_str().unwrap_or("");
        let known = ACCESS_MODES.contains(&mode);
        if !known {
            errors.push(FieldError::not_supported(path, mode, &ACCESS_MODES));
        }
        one_pod |= mode == "ReadWriteOncePod";
        others |= known && mode != "ReadWriteOncePod";
    }
    if one_pod && others {
        errors.push(FieldError::forbidden(path, "may not use ReadWriteOncePod with other access modes"));
    }
}

/// An amount of something, as upstream judges it where the resource has no rules of its own.
pub fn validate_amount(value: &Value, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    let amount = quantity(value);
    if amount.is_negative() && amount.value() < 0 {
        errors.push(FieldError::invalid(path, amount.value(), "must be a valid resource quantity"));
        return false;
    }
    true
}

fn validate_capacity(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let capacity = spec.object_at(&["capacity"]);
    let amounts = capacity.map_or(0, crate::object::Map::len);
    if amounts == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if amounts != 1 || capacity.is_none_or(|capacity| capacity.get("storage").is_none()) {
        let shown = given(spec, "capacity").map_or("null".to_owned(), to_string);
        errors.push(FieldError::not_supported_shown(path, shown, &["storage"]));
    }
    for (name, amount) in capacity.into_iter().flat_map(crate::object::Map::iter) {
        let at = path.key(name);
        validate_amount(amount, &at, errors);
        validate_positive_quantity(amount, &at, errors);
    }
}

fn validate_reclaim_policy(spec: &Value, options: VolumeOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let policy = spec.str_at(&["persistentVolumeReclaimPolicy"]);
    match policy {
        "" => {}
        "Retain" if options.inline => {}
        _ if options.inline => {
            errors.push(FieldError::forbidden(path, "may only be Retain in the context of inline volumes"));
        }
        _ if RECLAIM_POLICIES.contains(&policy) => {}
        _ => errors.push(FieldError::not_supported(path, policy, &RECLAIM_POLICIES)),
    }
}

fn validate_affinity(affinity: &Value, options: VolumeOptions, path: &Path<'_>, errors: &mut ErrorList) {
    if options.inline {
        errors.push(FieldError::forbidden(path, INLINE));
        return;
    }
    let at = path.child("required");
    match given(affinity, "required") {
        Some(selector) => validate_node_selector(selector, options.any_label_values, &at, errors),
        None => errors.push(FieldError::required(&at, "must specify required node constraints")),
    }
}

fn validate_sources(spec: &Value, name: &str, bound_to_nodes: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let mut found = false;
    for (member, details, surplus) in SOURCES {
        let Some(source) = given(spec, member) else { continue };
        if found && !surplus.is_empty() {
            errors.push(FieldError::forbidden(&path.child(surplus), "may not specify more than 1 volume type"));
            continue;
        }
        validate_source(member, source, name, &path.child(details), errors);
        if member == "local" && !bound_to_nodes {
            let why = "Local volume requires node affinity";
            errors.push(FieldError::required(&path.child("nodeAffinity"), why));
        }
        found = true;
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn validate_source(member: &str, source: &Value, name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match member {
        "iscsi" => validate_iscsi(source, name, path, errors),
        "local" => match source.str_at(&["path"]) {
            "" => errors.push(FieldError::required(&path.child("path"), "")),
            there => validate_path_no_backsteps(there, &path.child("path"), errors),
        },
        "csi" => validate_csi(source, path, errors),
        shared => validate_shared_source(shared, source, path, errors),
    }
    // What volumes have beside what pods may say of the same source.
    match member {
        "glusterfs" => validate_endpoints_namespace(source, &path.child("endpointsNamespace"), errors),
        "cinder" | "storageos" => {
            if let Some(secret) = given(source, "secretRef") {
                require(secret, "namespace", &path.child("secretRef"), errors);
            }
        }
        "azureFile" if source.get("secretNamespace").and_then(Value::as_str) == Some("") => {
            errors.push(FieldError::required(&path.child("secretNamespace"), ""));
        }
        _ => {}
    }
}

fn validate_endpoints_namespace(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match source.get("endpointsNamespace").and_then(Value::as_str) {
        None => {}
        Some("") => {
            let why = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.push(FieldError::invalid(path, "", why));
        }
        Some(namespace) => push_messages(is_dns1123_label(namespace), namespace, path, errors),
    }
}

fn validate_iscsi(source: &Value, name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    const NOT_A_NAME: &str = "must be valid format";
    require(source, "targetPortal", path, errors);
    let portal = source.str_at(&["targetPortal"]);
    let initiator = source.get("initiatorName").and_then(Value::as_str);
    if initiator.is_some() && name.len() + 1 + portal.len() > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        errors.push(FieldError::invalid(&path.child("targetportal"), portal, why));
    }
    require(source, "iqn", path, errors);
    let iqn = source.str_at(&["iqn"]);
    if !iqn.is_empty() && iscsi_name_error(iqn).is_some() {
        errors.push(FieldError::invalid(&path.child("iqn"), iqn, NOT_A_NAME));
    }
    let lun = source.i64_at(&["lun"]).unwrap_or(0);
    if !(0..=255).contains(&lun) {
        errors.push(FieldError::invalid(&path.child("lun"), lun, &inclusive_range_error(0, 255)));
    }
    let authenticates = source.bool_at(&["chapAuthDiscovery"]) || source.bool_at(&["chapAuthSession"]);
    match given(source, "secretRef") {
        Some(secret) => require(secret, "name", &path.child("secretRef"), errors),
        None if authenticates => errors.push(FieldError::required(&path.child("secretRef"), "")),
        None => {}
    }
    if let Some(initiator) = initiator.filter(|it| iscsi_name_error(it).is_some()) {
        errors.push(FieldError::invalid(&path.child("initiatorname"), initiator, NOT_A_NAME));
    }
}

fn validate_csi(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    validate_csi_driver_name(source.str_at(&["driver"]), false, &path.child("driver"), errors);
    require(source, "volumeHandle", path, errors);
    const SECRETS: [&str; 4] =
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];
    for member in SECRETS {
        let Some(secret) = given(source, member) else { continue };
        let path = path.child(member);
        for (member, judge) in [
            ("name", validate_dns1123_subdomain as fn(&str, &Path<'_>, &mut ErrorList)),
            ("namespace", validate_dns1123_label),
        ] {
            match secret.str_at(&[member]) {
                "" => errors.push(FieldError::required(&path.child(member), "")),
                value => judge(value, &path.child(member), errors),
            }
        }
    }
}

fn validate_classes(spec: &Value, options: VolumeOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let (class, at) = (spec.str_at(&["storageClassName"]), path.child("storageClassName"));
    if !class.is_empty() {
        if options.inline {
            errors.push(FieldError::forbidden(&at, INLINE));
        } else {
            push_messages(is_dns1123_subdomain(class), class, &at, errors);
        }
    }
    if let Some(mode) = spec.get("volumeMode").and_then(Value::as_str) {
        let at = path.child("volumeMode");
        if !options.inline && !MODES.contains(&mode) {
            errors.push(FieldError::not_supported(&at, mode, &MODES));
        } else if options.inline && mode != "Filesystem" {
            let why = "may not specify volumeMode other than Filesystem in the context of inline volumes";
            errors.push(FieldError::forbidden(&at, why));
        }
    }
    // Upstream's inline volumes are judged as if the class were not known to them.
    let Some(class) = spec.get("volumeAttributesClassName").and_then(Value::as_str).filter(|_| !options.inline) else {
        return;
    };
    let at = path.child("volumeAttributesClassName");
    if class.is_empty() {
        errors.push(FieldError::required(&at, "an empty string is disallowed"));
    } else {
        push_messages(is_dns1123_subdomain(class), class, &at, errors);
    }
    if given(spec, "csi").is_none() {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&path.child("csi"), why));
    }
}

/// Whether a path is the root once `.`, `..` and doubled slashes are gone.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_seen_through_detours() {
        for root in ["/", "//", "/a/..", "/./b/../"] {
            assert!(is_root(root), "{root}");
        }
        for other in ["", "a/..", "/a", "/../b"] {
            assert!(!is_root(other), "{other}");
        }
    }
}
