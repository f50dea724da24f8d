//! PersistentVolume (kubernetes `pkg/registry/core/persistentvolume`).

use super::{
    pod::{node_selector_term_warnings, quantities::same_member, unified},
    volume_spec::{self, VolumeOptions},
};
use crate::{
    api::{ErrorList, FieldError, Meta, Path, duration::format_time, names::is_valid_label_value},
    object::Value,
    registry::{
        builtin::{internal, kind::Own},
        strategy::StrategyContext,
        validation::{declarative::is_unset, validate_immutable},
    },
};

const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const TRANSITION: [&str; 2] = ["status", "lastPhaseTransitionTime"];
/// Annotations that became members.
const DEPRECATED: [(&str, &str); 2] = [
    ("volume.beta.kubernetes.io/storage-class", "deprecated since v1.8; use \"storageClassName\" attribute instead"),
    (MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
];
/// Sources that may be mounted with options.
const MOUNTED_WITH_OPTIONS: [&str; 13] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "gcePersistentDisk",
    "glusterfs",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "quobyte",
    "rbd",
    "vsphereVolume",
];
/// Sources that no longer work: the member, its name in the warning, since when.
const GONE: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
/// Labels of nodes that got another name: an affinity may follow them.
const RENAMED: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

pub struct PersistentVolume;

impl Own for PersistentVolume {
    fn prepare(&self, cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        if old.is_none() {
            new.set(&["status", "phase"], "Pending");
            new.set(&TRANSITION, format_time(cx.now));
        }
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("spec"), Value::object());
        let meta = Meta::of(new);
        let spec = new.get("spec").unwrap_or(&empty);
        let options = VolumeOptions { any_label_values: old.is_some_and(has_bad_label_values), inline: false };
        volume_spec::validate(spec, meta.name(), options, &path, errors);
        let takes_options = MOUNTED_WITH_OPTIONS.iter().any(|source| !is_unset(spec.get(source)));
        if !takes_options && meta.annotation(MOUNT_OPTIONS).is_some() {
            let metadata = Path::new("metadata");
            let why = "may not specify mount options for this volume type";
            errors.push(FieldError::forbidden(&metadata.child("annotations").child(MOUNT_OPTIONS), why));
        }
        if let Some(old) = old {
            validate_update(spec, old.get("spec").unwrap_or(&empty), &path, errors);
        }
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings(new)
    }

    fn prepare_status(&self, cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        let before = old.at(&TRANSITION).filter(|it| !it.is_null());
        let given = new.at(&TRANSITION).filter(|it| !it.is_null());
        let same_phase = new.str_at(&["status", "phase"]) == old.str_at(&["status", "phase"]);
        if same_phase {
            if let (None, Some(before)) = (given, before) {
                new.set(&TRANSITION, before.clone());
            }
        } else if given.is_none() || given == before {
            new.set(&TRANSITION, format_time(cx.now));
        }
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        if new.str_at(&["metadata", "resourceVersion"]).is_empty() {
            errors.push(FieldError::required(&Path::new("resourceVersion"), ""));
        }
    }
}

fn terms(volume: &Value) -> &[Value] {
    volume.array_at(&["spec", "nodeAffinity", "required", "nodeSelectorTerms"])
}

fn has_bad_label_values(old: &Value) -> bool {
    let mut values = terms(old)
        .iter()
        .flat_map(|term| term.array_at(&["matchExpressions"]))
        .flat_map(|expression| expression.array_at(&["values"]));
    values.any(|value| !is_valid_label_value(value.as_str().unwrap_or("")).is_empty())
}

fn validate_update(spec: &Value, before: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (mut new_source, old_source) = (source_of(spec), source_of(before));
    // A secret for expansion may come later.
    const EXPANSION: [&str; 2] = ["csi", "controllerExpandSecretRef"];
    if !is_unset(old_source.get("csi")) && is_unset(old_source.at(&EXPANSION)) {
        new_source.remove_at(&EXPANSION);
    }
    if new_source != old_source {
        let why = format!(
            "spec.persistentvolumesource is immutable after creation\n{}",
            unified(&old_source, &new_source, "PersistentVolumeSource")
        );
        errors.push(FieldError::forbidden(&path.child("persistentvolumesource"), &why));
    }
    validate_immutable(spec.get("volumeMode"), before.get("volumeMode"), &Path::new("volumeMode"), errors);
    let (affinity, old_affinity) = (spec.get("nodeAffinity"), before.get("nodeAffinity"));
    if let Some(old_affinity) = old_affinity.filter(|it| !it.is_null())
        && !affinity.is_some_and(|affinity| follows(affinity, old_affinity))
    {
        let shown = affinity.filter(|it| !it.is_null());
        let shown = shown.map_or("null".to_owned(), |it| internal::shown(it, "VolumeNodeAffinity"));
        let why = "field is immutable, except for updating from beta label to GA";
        errors.push(FieldError::invalid_shown(&Path::new("nodeAffinity"), shown, why));
    }
    let class = "volumeAttributesClassName";
    if is_unset(spec.get(class)) && !is_unset(before.get(class)) {
        errors.push(FieldError::forbidden(&path.child(class), "update from non-nil value to nil is forbidden"));
    }
}

/// The members of a spec that say what the volume is.
fn source_of(spec: &Value) -> Value {
    let mut source = Value::object();
    for member in volume_spec::sources() {
        if let Some(part) = spec.get(member).filter(|it| !it.is_null()) {
            source.set(&[member], part.clone());
        }
    }
    source
}

/// Whether an affinity is the old one, but for labels that have their new names.
fn follows(new: &Value, old: &Value) -> bool {
    let mut renamed = old.clone();
    let pairs = |affinity: &Value| affinity.array_at(&["required", "nodeSelectorTerms"]).to_vec();
    let new_terms = pairs(new);
    if let Some(terms) = renamed.at_mut(&["required", "nodeSelectorTerms"]).and_then(Value::as_array_mut) {
        for (term, new_term) in terms.iter_mut().zip(&new_terms) {
            for list in ["matchExpressions", "matchFields"] {
                let news = new_term.array_at(&[list]);
                let Some(olds) = term.get_mut(list).and_then(Value::as_array_mut) else { continue };
                for (old, new) in olds.iter_mut().zip(news) {
                    let (was, is) = (old.str_at(&["key"]), new.str_at(&["key"]));
                    if RENAMED.iter().any(|(beta, name)| *beta == was && *name == is) {
                        let name = is.to_owned();
                        old.set(&["key"], name);
                    }
                }
            }
        }
    }
    same_member(Some(new), Some(&renamed))
}

fn warnings(volume: &Value) -> Vec<String> {
    let meta = Meta::of(volume);
    let mut warnings = Vec::new();
    for (annotation, why) in DEPRECATED {
        if meta.annotation(annotation).is_some() {
            warnings.push(format!("metadata.annotations[{annotation}]: {why}"));
        }
    }
    if volume.str_at(&["spec", "persistentVolumeReclaimPolicy"]) == "Recycle" {
        warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    let spec = Path::new("spec");
    let (affinity, required) = (spec.child("nodeAffinity"), "required");
    let required = affinity.child(required);
    let path = required.child("nodeSelectorTerms");
    for (index, term) in terms(volume).iter().enumerate() {
        warnings.extend(node_selector_term_warnings(term, false, &path.index(index)));
    }
    for (member, shown, why) in GONE {
        if !is_unset(volume.at(&["spec", member])) {
            warnings.push(format!("spec.{shown}: {why}"));
        }
    }
    warnings
}
