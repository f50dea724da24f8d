//! What of the volumes a container mounts, as files and as devices.

use std::collections::{HashMap, HashSet};

use super::{
    view::{given, items, text},
    volumes::Volumes,
};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::validation::validate_local_descending_path,
};

/// Names with what was last said for each.
fn by_name<'v>(list: &'v [Value], path: &str) -> HashMap<&'v str, &'v str> {
    list.iter().map(|it| (text(it, "name"), text(it, path))).collect()
}

/// `volumeMounts`.
pub fn validate_mounts(container: &Value, volumes: &Volumes<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let devices = by_name(items(container, "volumeDevices"), "devicePath");
    let device_paths: HashSet<&str> = devices.values().copied().collect();
    let privileged = container.bool_at(&["securityContext", "privileged"]);
    let mut taken = HashSet::new();
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        let (name_at, place_at) = (at.child("name"), at.child("mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_at, ""));
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&name_at, name));
        }
        if place.is_empty() {
            errors.push(FieldError::required(&place_at, ""));
        }
        if !taken.insert(place) {
            errors.push(FieldError::invalid(&place_at, place, "must be unique"));
        }
        if devices.contains_key(name) {
            errors.push(FieldError::invalid(&name_at, name, "must not already exist in volumeDevices"));
        }
        if device_paths.contains(place) {
            let why = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&place_at, place, why));
        }
        validate_sub_paths(mount, path, &at, errors);
        validate_propagation(mount, privileged, path, errors);
        validate_recursive_read_only(mount, path, errors);
    }
}

/// `list` is the path without the index, which is what upstream tells most of these at.
fn validate_sub_paths(mount: &Value, list: &Path<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !sub.is_empty() {
        validate_local_descending_path(sub, &list.child("subPath"), errors);
    }
    if !expression.is_empty() {
        if !sub.is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(&path.child("subPathExpr"), expression, why));
        }
        validate_local_descending_path(expression, &list.child("subPathExpr"), errors);
    }
}

fn validate_propagation(mount: &Value, privileged: bool, list: &Path<'_>, errors: &mut ErrorList) {
    let at = list.child("mountPropagation");
    match given(mount, "mountPropagation").and_then(Value::as_str) {
        None | Some("HostToContainer" | "None") => {}
        Some("Bidirectional") if privileged => {}
        Some("Bidirectional") => {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(&at, why));
        }
        Some(other) => {
            errors.push(FieldError::not_supported(&at, other, &["Bidirectional", "HostToContainer", "None"]));
        }
    }
}

fn validate_recursive_read_only(mount: &Value, list: &Path<'_>, errors: &mut ErrorList) {
    let at = list.child("recursiveReadOnly");
    match given(mount, "recursiveReadOnly").and_then(Value::as_str) {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.bool_at(&["readOnly"]) {
                errors.push(FieldError::forbidden(&at, "may only be specified when readOnly is true"));
            }
            if given(mount, "mountPropagation").is_some_and(|it| it.as_str() != Some("None")) {
                let why = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(&at, why));
            }
        }
        Some(other) => {
            errors.push(FieldError::not_supported(&at, other, &["Disabled", "Enabled", "IfPossible"]));
        }
    }
}

/// `volumeDevices`.
pub fn validate_devices(container: &Value, volumes: &Volumes<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let mounts = by_name(items(container, "volumeMounts"), "mountPath");
    let mount_paths: HashSet<&str> = mounts.values().copied().collect();
    let (mut names, mut places) = (HashSet::new(), HashSet::new());
    for (index, device) in items(container, "volumeDevices").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        let (name_at, place_at) = (at.child("name"), at.child("devicePath"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_at, ""));
        }
        if names.contains(name) {
            errors.push(FieldError::invalid(&name_at, name, "must be unique"));
        }
        match volumes.get(name) {
            Some(volume) if !has_blocks(volume) => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(&name_at, name, why));
            }
            Some(_) => {}
            None => errors.push(FieldError::not_found(&name_at, name)),
        }
        if place.is_empty() {
            errors.push(FieldError::required(&place_at, ""));
        }
        if places.contains(place) {
            errors.push(FieldError::invalid(&place_at, place, "must be unique"));
        }
        if place.split('/').any(|part| part == "..") {
            errors.push(FieldError::invalid(&place_at, place, "can not contain backsteps ('..')"));
        } else {
            places.insert(place);
        }
        if mounts.contains_key(name) {
            errors.push(FieldError::invalid(&name_at, name, "must not already exist in volumeMounts"));
        }
        if mount_paths.contains(place) {
            let why = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&place_at, place, why));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}

fn has_blocks(volume: &Value) -> bool {
    given(volume, "persistentVolumeClaim").is_some() || given(volume, "ephemeral").is_some()
}
