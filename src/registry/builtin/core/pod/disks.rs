//! Volume sources of storage systems, most of them no longer served by any kubelet.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    view::{given, items, map, text},
    volumes::require,
};
use crate::{
    api::{ErrorList, FieldError, Path, names::inclusive_range_error},
    object::{Map, Value},
    registry::validation::validate_dns1123_label,
};

const QUOBYTE_REGISTRY: &str = "must be a host:port pair or multiple pairs separated by commas";
const CACHING_MODES: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS: [&str; 3] = ["Dedicated", "Managed", "Shared"];
const MANAGED_DISK: &str =
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISK: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

/// Judges the details of a source by its member name.
pub fn validate_disk(member: &str, source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match member {
        "gcePersistentDisk" => {
            require(source, "pdName", path, errors);
            validate_partition(source, path, errors);
        }
        "awsElasticBlockStore" => {
            require(source, "volumeID", path, errors);
            validate_partition(source, path, errors);
        }
        "iscsi" => validate_iscsi(source, path, errors),
        "glusterfs" => {
            require(source, "endpoints", path, errors);
            require(source, "path", path, errors);
        }
        "flocker" => validate_flocker(source, path, errors),
        "rbd" => {
            require_items(source, "monitors", path, errors);
            require(source, "image", path, errors);
        }
        "cephfs" => require_items(source, "monitors", path, errors),
        "cinder" => {
            require(source, "volumeID", path, errors);
            require_secret_name(source, path, errors);
        }
        "quobyte" => validate_quobyte(source, path, errors),
        "fc" => validate_fibre_channel(source, path, errors),
        "flexVolume" => {
            require(source, "driver", path, errors);
            validate_flex_options(map(source, "options"), path, errors);
        }
        "azureFile" => {
            require(source, "secretName", path, errors);
            require(source, "shareName", path, errors);
        }
        "azureDisk" => validate_azure_disk(source, path, errors),
        "vsphereVolume" => require(source, "volumePath", path, errors),
        "photonPersistentDisk" => require(source, "pdID", path, errors),
        "portworxVolume" => require(source, "volumeID", path, errors),
        "scaleIO" => {
            require(source, "gateway", path, errors);
            require(source, "system", path, errors);
            require(source, "volumeName", path, errors);
        }
        "storageos" => validate_storage_os(source, path, errors),
        _ => {}
    }
}

fn require_items(source: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if items(source, key).is_empty() {
        errors.push(FieldError::required(&path.child(key), ""));
    }
}

fn require_secret_name(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(secret) = given(source, "secretRef") {
        require(secret, "name", &path.child("secretRef"), errors);
    }
}

fn validate_partition(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let partition = source.i64_at(&["partition"]).unwrap_or(0);
    if !(0..=255).contains(&partition) {
        errors.push(FieldError::invalid(&path.child("partition"), partition, &inclusive_range_error(1, 255)));
    }
}

/// What is wrong with the name of an iSCSI node.
pub fn iscsi_name_error(name: &str) -> Option<&'static str> {
    // Upstream's expressions: the first is not anchored at its beginning, and the dots of the others match anything.
    static IQN: LazyLock<Regex> =
        LazyLock::new(|| regex(r"iqn\.[0-9]{4}-[0-9]{2}\.([[:alnum:]\-.]+)(:[^,;*&$|\t\n\f\r ]+)$"));
    static EUI: LazyLock<Regex> = LazyLock::new(|| regex("^eui.[[:alnum:]]{16}$"));
    static NAA: LazyLock<Regex> = LazyLock::new(|| regex("^naa.[[:alnum:]]{32}$"));
    let rule = match name.get(..3) {
        Some("iqn") => &IQN,
        Some("eui") => &EUI,
        Some("naa") => &NAA,
        _ => return Some("must be valid format starting with iqn, eui, or naa"),
    };
    (!rule.is_match(name)).then_some("must be valid format")
}

fn regex(pattern: &str) -> Regex {
    match Regex::new(pattern) {
        Ok(regex) => regex,
        Err(error) => unreachable!("a constant pattern: {error}"),
    }
}

fn validate_iscsi(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    require(source, "targetPortal", path, errors);
    require(source, "iqn", path, errors);
    let iqn = text(source, "iqn");
    if let Some(why) = iscsi_name_error(iqn).filter(|_| !iqn.is_empty()) {
        errors.push(FieldError::invalid(&path.child("iqn"), iqn, why));
    }
    validate_lun(source.i64_at(&["lun"]).unwrap_or(0), path, errors);
    let authenticates = source.bool_at(&["chapAuthDiscovery"]) || source.bool_at(&["chapAuthSession"]);
    if authenticates && given(source, "secretRef").is_none() {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if let Some(initiator) = given(source, "initiatorName").and_then(Value::as_str)
        && let Some(why) = iscsi_name_error(initiator)
    {
        errors.push(FieldError::invalid(&path.child("initiatorname"), initiator, why));
    }
}

fn validate_lun(lun: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if !(0..=255).contains(&lun) {
        errors.push(FieldError::invalid(&path.child("lun"), lun, &inclusive_range_error(0, 255)));
    }
}

fn validate_flocker(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", why));
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
}

fn validate_quobyte(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let registry = text(source, "registry");
    let at = path.child("registry");
    if registry.is_empty() {
        errors.push(FieldError::required(&at, QUOBYTE_REGISTRY));
    } else if text(source, "tenant").len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), why));
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.push(FieldError::invalid(&at, registry, QUOBYTE_REGISTRY));
        }
    }
    require(source, "volume", path, errors);
}

/// What Go's SplitHostPort takes: one colon, or an address in brackets before it.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let host_is_fine = match bracketed {
        Some(address) => !address.contains(['[', ']']),
        None => !host.contains([':', '[', ']']),
    };
    host_is_fine && !port.contains(['[', ']'])
}

fn validate_fibre_channel(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (names, ids) = (items(source, "targetWWNs"), items(source, "wwids"));
    let at = path.child("targetWWNs");
    if names.is_empty() && ids.is_empty() {
        errors.push(FieldError::required(&at, "must specify either targetWWNs or wwids, but not both"));
    }
    if !names.is_empty() && !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&at, names.to_vec(), why));
    }
    if !names.is_empty() {
        match source.i64_at(&["lun"]) {
            None => errors.push(FieldError::required(&path.child("lun"), "lun is required if targetWWNs is specified")),
            Some(lun) => validate_lun(lun, path, errors),
        }
    }
}

fn validate_flex_options(options: Option<&Map>, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("options");
    for key in options.into_iter().flat_map(Map::keys) {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace).to_lowercase();
        let reserved = ["kubernetes.io", "k8s.io"]
            .iter()
            .any(|own| namespace == *own || namespace.strip_suffix(own).is_some_and(|it| it.ends_with('.')));
        if reserved {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&path.key(key), key.as_str(), why));
        }
    }
}

fn validate_azure_disk(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    require(source, "diskName", path, errors);
    require(source, "diskURI", path, errors);
    for (key, supported) in [("cachingMode", &CACHING_MODES), ("kind", &DISK_KINDS)] {
        if let Some(value) = given(source, key).filter(|it| !supported.contains(&it.as_str().unwrap_or(""))) {
            errors.push(FieldError::not_supported(&path.child(key), value.clone(), supported));
        }
    }
    let (uri, at) = (text(source, "diskURI"), path.child("diskURI"));
    match given(source, "kind").and_then(Value::as_str) {
        Some("Managed") if !uri.starts_with("/subscriptions/") => {
            errors.push(FieldError::not_supported(&at, uri, &[MANAGED_DISK]));
        }
        Some("Managed") | None => {}
        Some(_) if !uri.starts_with("https://") => errors.push(FieldError::not_supported(&at, uri, &[BLOB_DISK])),
        Some(_) => {}
    }
}

fn validate_storage_os(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    require(source, "volumeName", path, errors);
    for key in ["volumeName", "volumeNamespace"] {
        let name = text(source, key);
        if !name.is_empty() {
            validate_dns1123_label(name, &path.child(key), errors);
        }
    }
    require_secret_name(source, path, errors);
}
