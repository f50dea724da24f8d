//! Volumes of a pod, each source by its own rules (kubernetes `pkg/apis/core/validation`, ValidateVolumes).

use std::collections::{HashMap, HashSet};

use super::{
    claim_template::validate_claim_template,
    disks,
    options::PodOptions,
    probes::validate_pull_policy,
    projected,
    quantities::quantity,
    view::{given, items, text},
};
use crate::{
    api::{ErrorList, FieldError, Path, field::quote, names::name_is_dns_subdomain},
    object::Value,
    registry::validation::{
        object_meta::push_messages, validate_csi_driver_name, validate_dns1123_label, validate_file_mode,
        validate_local_descending_path, validate_local_non_reserved_path, validate_path_no_backsteps,
    },
};

/// Volumes by name that have no error: what mounts may refer to.
pub type Volumes<'v> = HashMap<&'v str, &'v Value>;

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// The sources in the order upstream checks them: the member, the path of its details, the path of "one too many".
const SOURCES: [(&str, &str, &str); 30] = [
    ("emptyDir", "emptyDir", "emptyDir"),
    ("hostPath", "hostPath", "hostPath"),
    ("gitRepo", "gitRepo", "gitRepo"),
    ("gcePersistentDisk", "persistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret", "secret"),
    ("nfs", "nfs", "nfs"),
    ("iscsi", "iscsi", "iscsi"),
    ("glusterfs", "glusterfs", "glusterfs"),
    ("flocker", "flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd", "rbd"),
    ("cinder", "cinder", "cinder"),
    ("cephfs", "cephfs", "cephFS"),
    ("quobyte", "quobyte", "quobyte"),
    ("downwardAPI", "downwardAPI", "downwarAPI"),
    ("fc", "fc", "fc"),
    ("flexVolume", "flexVolume", "flexVolume"),
    ("configMap", "configMap", "configMap"),
    ("azureFile", "azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk", "azureDisk"),
    ("storageos", "storageos", "storageos"),
    ("projected", "projected", "projected"),
    ("scaleIO", "scaleIO", "scaleIO"),
    ("csi", "csi", "csi"),
    ("ephemeral", "ephemeral", "ephemeral"),
    ("image", "image", "image"),
];

/// Judges all volumes. `pod_name` is `""` for templates, whose pods have no name yet.
pub fn validate_volumes<'v>(
    spec: &'v Value,
    pod_name: &str,
    options: PodOptions,
    path: &Path<'_>,
    errors: &mut ErrorList,
) -> Volumes<'v> {
    let volumes = items(spec, "volumes");
    let made: HashSet<String> = volumes
        .iter()
        .filter(|volume| !pod_name.is_empty() && given(volume, "ephemeral").is_some())
        .map(|volume| format!("{pod_name}-{}", text(volume, "name")))
        .collect();
    let mut known = Volumes::new();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let name = text(volume, "name");
        let mut own = ErrorList::new();
        validate_volume(volume, pod_name, options, &path, &mut own);
        let at = path.child("name");
        if name.is_empty() {
            own.push(FieldError::required(&at, ""));
        } else {
            validate_dns1123_label(name, &at, &mut own);
        }
        if known.contains_key(name) {
            own.push(FieldError::duplicate(&at, name));
        }
        if own.is_empty() {
            known.insert(name, volume);
        }
        errors.extend(own);
        let claim = volume.str_at(&["persistentVolumeClaim", "claimName"]);
        if made.contains(claim) {
            let at = path.child("persistentVolumeClaim");
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&at.child("claimName"), claim, why));
        }
    }
    known
}

fn validate_volume(volume: &Value, pod_name: &str, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    let mut found = false;
    for (member, details, surplus) in SOURCES {
        let Some(source) = given(volume, member) else { continue };
        if found {
            errors.push(FieldError::forbidden(&path.child(surplus), "may not specify more than 1 volume type"));
        } else {
            validate_source(member, source, options, &path.child(details), errors);
        }
        validate_name_by_source(member, source, text(volume, "name"), (pod_name, found), path, errors);
        found = true;
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// Rules about the volume's name that come with a source.
fn validate_name_by_source(
    member: &str,
    source: &Value,
    name: &str,
    (pod_name, surplus): (&str, bool),
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let at = path.child("name");
    if member == "iscsi"
        && given(source, "initiatorName").is_some()
        && name.len() + 1 + text(source, "targetPortal").len() > 64
    {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        errors.push(FieldError::invalid(&at, name, why));
    }
    if member == "ephemeral" && !surplus && !pod_name.is_empty() && !name.is_empty() {
        let claim = format!("{pod_name}-{name}");
        for message in name_is_dns_subdomain(&claim, false) {
            errors.push(FieldError::invalid(&at, name, &format!("PVC name {}: {message}", quote(&claim))));
        }
    }
}

/// Sources that persistent volumes may have too, by their member name.
pub fn validate_shared_source(member: &str, source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match member {
        "hostPath" => validate_host_path(source, path, errors),
        "nfs" => {
            require(source, "server", path, errors);
            require(source, "path", path, errors);
            if !text(source, "path").starts_with('/') {
                let why = "must be an absolute path";
                errors.push(FieldError::invalid(&path.child("path"), text(source, "path"), why));
            }
        }
        disk => disks::validate_disk(disk, source, path, errors),
    }
}

fn validate_source(member: &str, source: &Value, options: PodOptions, path: &Path<'_>, errors: &mut ErrorList) {
    match member {
        "emptyDir" => validate_empty_dir(source, path, errors),
        "gitRepo" => {
            require(source, "repository", path, errors);
            validate_local_descending_path(text(source, "directory"), &path.child("directory"), errors);
        }
        "secret" => {
            require(source, "secretName", path, errors);
            validate_mode_and_items(source, path, errors);
        }
        "configMap" => {
            require(source, "name", path, errors);
            validate_mode_and_items(source, path, errors);
        }
        "persistentVolumeClaim" => require(source, "claimName", path, errors),
        "downwardAPI" => {
            validate_mode(source, "defaultMode", path, errors);
            for file in items(source, "items") {
                projected::validate_downward_file(file, path, errors);
            }
        }
        "projected" => projected::validate_projected(source, options, path, errors),
        "csi" => validate_csi(source, path, errors),
        "ephemeral" => {
            let at = path.child("volumeClaimTemplate");
            match given(source, "volumeClaimTemplate") {
                Some(template) => validate_claim_template(template, &at, errors),
                None => errors.push(FieldError::required(&at, "")),
            }
        }
        "image" => {
            if !options.empty_image_reference {
                require(source, "reference", path, errors);
            }
            validate_pull_policy(text(source, "pullPolicy"), &path.child("pullPolicy"), errors);
        }
        shared => validate_shared_source(shared, source, path, errors),
    }
}

/// Required, without a text.
pub fn require(source: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if text(source, key).is_empty() {
        errors.push(FieldError::required(&path.child(key), ""));
    }
}

/// Permission bits, where they are given.
pub fn validate_mode(source: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(mode) = source.i64_at(&[key]) {
        validate_file_mode(mode, &path.child(key), errors);
    }
}

fn validate_mode_and_items(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    validate_mode(source, "defaultMode", path, errors);
    let path = path.child("items");
    for (index, item) in items(source, "items").iter().enumerate() {
        validate_key_to_path(item, &path.index(index), errors);
    }
}

/// One key of a ConfigMap or Secret and the file it becomes.
pub fn validate_key_to_path(item: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    require(item, "key", path, errors);
    require(item, "path", path, errors);
    validate_local_non_reserved_path(text(item, "path"), &path.child("path"), errors);
    validate_mode(item, "mode", path, errors);
}

fn validate_empty_dir(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if given(source, "sizeLimit").is_some_and(|it| quantity(it).is_negative()) {
        let why = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&path.child("sizeLimit"), why));
    }
    if let Some(mode) = source.i64_at(&["mode"]).filter(|mode| !(0..=0o1777).contains(mode)) {
        let why = "must be a number between 0 and 01777 (octal), both inclusive";
        errors.push(FieldError::invalid(&path.child("mode"), mode, why));
    }
}

fn validate_host_path(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("path");
    if text(source, "path").is_empty() {
        errors.push(FieldError::required(&at, ""));
        return;
    }
    validate_path_no_backsteps(text(source, "path"), &at, errors);
    if let Some(kind) = given(source, "type").filter(|it| !HOST_PATH_TYPES.contains(&it.as_str().unwrap_or(""))) {
        errors.push(FieldError::not_supported(&path.child("type"), kind.clone(), &HOST_PATH_TYPES));
    }
}

fn validate_csi(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    validate_csi_driver_name(text(source, "driver"), false, &path.child("driver"), errors);
    let Some(secret) = given(source, "nodePublishSecretRef") else { return };
    match text(secret, "name") {
        "" => {
            let at = path.child("nodePublishSecretRef");
            errors.push(FieldError::required(&at.child("name"), ""));
        }
        // Told at the wrong place, as upstream does.
        name => push_messages(name_is_dns_subdomain(name, false), name, &path.child("name"), errors),
    }
}

/// Whether a projected token stands at a path that new pods may not have.
pub fn has_non_local_token_path(spec: &Value) -> bool {
    let tokens = items(spec, "volumes")
        .iter()
        .flat_map(|volume| volume.array_at(&["projected", "sources"]))
        .filter_map(|source| given(source, "serviceAccountToken"));
    tokens.into_iter().any(|token| {
        let mut errors = ErrorList::new();
        validate_local_non_reserved_path(text(token, "path"), &Path::ROOT, &mut errors);
        !errors.is_empty()
    })
}
