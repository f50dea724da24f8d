//! How pods are written: the main endpoint, status, ephemeral containers, resize
//! (kubernetes `pkg/registry/core/pod/strategy.go`).

use std::sync::OnceLock;

use super::{
    EMPTY_PATH,
    annotations::{self, APP_ARMOR, app_armor_of},
    containers::validate_image_whitespace,
    disabled::drop_pod_fields,
    options::{PodOptions, PodPolicy, is_mirror, labels},
    qos,
    resize::{prepare_resize, validate_resize},
    security::validate_app_armor,
    spec::validate_pod_spec,
    status::{prepare_status, set_condition, status_warnings, validate_status_update},
    update::{same_spec, take_member, validate_annotation_update, validate_ephemeral_update, validate_spec_update},
    view::{self, annotation, containers_mut, given, items, os, text},
    warnings::pod_warnings,
};
use crate::{
    api::{ErrorList, FieldError, Meta, Path, duration::format_time, names::name_is_dns_subdomain},
    json,
    object::{Map, Value},
    registry::{
        strategy::{GracefulDeletion, ResetFields, Strategy, StrategyContext},
        validation::{object_meta::validate_object_meta, validate_bare_finalizers, validate_nonnegative},
    },
    schema::ownership::{FieldSet, Pattern},
};

const SPEC: Path<'static> = Path::new("spec");
const METADATA: Path<'static> = Path::new("metadata");

/// Pods through their own endpoint.
pub struct PodStrategy {
    pub policy: PodPolicy,
}

/// `pods/status`.
pub struct PodStatusStrategy {
    pub policy: PodPolicy,
}

/// `pods/ephemeralcontainers`.
pub struct EphemeralContainersStrategy {
    pub policy: PodPolicy,
}

/// `pods/resize`.
pub struct ResizeStrategy {
    pub policy: PodPolicy,
}

impl Strategy for PodStrategy {
    fn prepare_for_create(&self, cx: &StrategyContext<'_>, new: &mut Value) {
        new.set(&["metadata", "generation"], 1);
        new.set(&["status"], json!({"phase": "Pending"}));
        drop_pod_fields(new, None);
        if !new.array_at(&["spec", "schedulingGates"]).is_empty() {
            let condition = json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates"
            });
            set_condition(new.make(&["status"]), condition, &format_time(cx.now));
        }
        merge_label_keys(new);
        for warning in convert_app_armor(new) {
            cx.warnings.add(warning);
        }
        let spec = new.make(&["spec"]);
        qos::default_pod_level(spec);
        let class = qos::compute(spec);
        new.set(&["status", "qosClass"], class);
    }

    fn validate_create(&self, _: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        let options = PodOptions::new(self.policy, true, None);
        validate_bare_finalizers(new, errors);
        validate_pod(new, options, errors);
        let empty = Value::object();
        let spec = new.get("spec").unwrap_or(&empty);
        if !items(spec, "ephemeralContainers").is_empty() {
            errors.push(FieldError::forbidden(&SPEC.child("ephemeralContainers"), "cannot be set on create"));
        }
        if !text(spec, "nodeName").is_empty() && !items(spec, "schedulingGates").is_empty() {
            let why = "cannot be set until all schedulingGates have been cleared";
            errors.push(FieldError::forbidden(&SPEC.child("nodeName"), why));
        }
        annotations::validate_seccomp_matches(view::annotations(new), spec, &SPEC, errors);
        annotations::validate_app_armor_matches(view::annotations(new), spec, &SPEC, errors);
    }

    fn prepare_for_update(&self, _: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        take_member(new, old, "status");
        if let Some(kept) = old.at(&["spec", "resources"]).filter(|_| new.at(&["spec", "resources"]).is_none()) {
            new.set(&["spec", "resources"], kept.clone());
        }
        drop_pod_fields(new, Some(old));
        count_generation(new, old);
    }

    fn validate_update(&self, _: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let options = PodOptions::new(self.policy, true, Some(old));
        validate_replaced(new, old, options, errors);
        let empty = Value::object();
        let [spec, was] = [new, old].map(|pod| pod.get("spec").unwrap_or(&empty));
        validate_spec_update(spec, was, options, errors);
    }

    fn warnings(&self, _: &StrategyContext<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() { Vec::new() } else { pod_warnings(new) }
    }

    fn reset_fields(&self) -> ResetFields {
        static FIELDS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(FIELDS.get_or_init(|| FieldSet::of(&[&["status"]])))
    }

    fn graceful_deletion(&self, object: &Value, asked: Option<i64>) -> GracefulDeletion {
        let own = || object.i64_at(&["spec", "terminationGracePeriodSeconds"]).unwrap_or(0);
        let ended = matches!(object.str_at(&["status", "phase"]), "Failed" | "Succeeded");
        let seconds =
            if ended || object.str_at(&["spec", "nodeName"]).is_empty() { 0 } else { asked.unwrap_or_else(own) };
        GracefulDeletion::After(if seconds < 0 { 1 } else { seconds })
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

impl Strategy for PodStatusStrategy {
    fn prepare_for_update(&self, _: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        prepare_status(new, old);
        drop_pod_fields(new, Some(old));
    }

    fn validate_update(&self, _: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validate_status_update(new, old, PodOptions::new(self.policy, true, Some(old)), errors);
    }

    fn warnings(&self, _: &StrategyContext<'_>, new: &Value, _: Option<&Value>) -> Vec<String> {
        status_warnings(new)
    }

    fn reset_fields(&self) -> ResetFields {
        static FIELDS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(FIELDS.get_or_init(|| {
            FieldSet::of(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
        }))
    }
}

impl Strategy for EphemeralContainersStrategy {
    fn prepare_for_update(&self, _: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        let added = new.at(&["spec", "ephemeralContainers"]).cloned();
        take_member(new, old, "spec");
        take_member(new, old, "status");
        reset_metadata_for_status(new, old);
        match added {
            Some(containers) => new.set(&["spec", "ephemeralContainers"], containers),
            None => {
                new.remove_at(&["spec", "ephemeralContainers"]);
            }
        }
        drop_pod_fields(new, Some(old));
        count_generation(new, old);
    }

    fn validate_update(&self, _: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_replaced(new, old, PodOptions::new(self.policy, true, Some(old)), errors);
        if is_mirror(old) {
            errors.retain(|_| false);
            errors.push(FieldError::forbidden(&EMPTY_PATH, "static pods do not support ephemeral containers"));
            return;
        }
        let empty = Value::object();
        let [spec, was] = [new, old].map(|pod| pod.get("spec").unwrap_or(&empty));
        validate_ephemeral_update(spec, was, errors);
    }

    fn reset_fields(&self) -> ResetFields {
        static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
        ResetFields::Only(PATTERNS.get_or_init(|| vec![Pattern::of(&["spec", "ephemeralContainers"])]))
    }
}

impl Strategy for ResizeStrategy {
    fn prepare_for_update(&self, _: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        prepare_resize(new, old);
        drop_pod_fields(new, Some(old));
        count_generation(new, old);
    }

    fn validate_update(&self, _: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validate_pod_again(new, PodOptions::new(self.policy, true, Some(old)), errors);
        validate_resize(new, old, errors);
    }

    fn reset_fields(&self) -> ResetFields {
        static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
        ResetFields::Only(PATTERNS.get_or_init(|| {
            vec![
                Pattern::of(&["spec", "containers", "*", "resources"]),
                Pattern::of(&["spec", "containers", "*", "resizePolicy"]),
                Pattern::of(&["spec", "initContainers", "*", "resources"]),
                Pattern::of(&["spec", "initContainers", "*", "resizePolicy"]),
            ]
        }))
    }
}

fn count_generation(new: &mut Value, old: &Value) {
    if !same_spec(new, old) {
        let generation = Meta::of(old).generation();
        new.set(&["metadata", "generation"], generation.saturating_add(1));
    }
}

/// What endpoints that write a part of an object keep of its metadata (apimachinery ResetObjectMetaForStatus).
pub fn reset_metadata_for_status(new: &mut Value, old: &Value) {
    let kept = old.get("metadata").cloned().unwrap_or(Value::Null);
    let metadata = new.make(&["metadata"]);
    for key in ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        take_member(metadata, &kept, key);
    }
}

/// Metadata as of a new object, once more, and everything a pod may say.
fn validate_pod_again(new: &Value, options: PodOptions, errors: &mut ErrorList) {
    validate_object_meta(new, true, &name_is_dns_subdomain, errors);
    validate_bare_finalizers(new, errors);
    validate_pod(new, options, errors);
}

/// What updates of pods have in common.
fn validate_replaced(new: &Value, old: &Value, options: PodOptions, errors: &mut ErrorList) {
    validate_bare_finalizers(new, errors);
    validate_pod_again(new, options, errors);
    validate_annotation_update(new, old, options, errors);
}

/// Annotations and spec of a pod, and what only pods are asked for.
fn validate_pod(pod: &Value, options: PodOptions, errors: &mut ErrorList) {
    let empty = Value::object();
    let spec = pod.get("spec").unwrap_or(&empty);
    let annotations = view::annotations(pod);
    annotations::validate_annotations_of_pod(annotations, spec, options, &METADATA.child("annotations"), errors);
    validate_pod_spec(spec, Meta::of(pod).name(), is_mirror(pod), options, &SPEC, errors);
    if text(spec, "serviceAccountName").is_empty() {
        forbid_tokens(spec, errors);
    }
    if let Some(seconds) = spec.i64_at(&["terminationGracePeriodSeconds"]) {
        validate_nonnegative(seconds, &SPEC.child("terminationGracePeriodSeconds"), errors);
    }
    for list in ["containers", "initContainers"] {
        let path = SPEC.child(list);
        for (index, container) in items(spec, list).iter().enumerate() {
            validate_image_whitespace(container, &path.index(index), errors);
        }
    }
}

/// Without a service account there is nothing to make a token of.
fn forbid_tokens(spec: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("volumes");
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let at = path.index(index);
        let at = at.child("projected");
        let at = at.child("sources");
        for (index, source) in volume.array_at(&["projected", "sources"]).iter().enumerate() {
            if given(source, "serviceAccountToken").is_some() {
                let why = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&at.index(index).child("serviceAccountToken"), why));
            }
        }
    }
}

/// Writes the pod's own labels into selectors that ask for pods like it (or unlike it).
fn merge_label_keys(pod: &mut Value) {
    let Some(labels) = labels(pod).cloned() else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = pod.at_mut(&["spec", "affinity", kind]) else { continue };
        for term in affinity
            .get_mut("preferredDuringSchedulingIgnoredDuringExecution")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(term) = term.get_mut("podAffinityTerm") {
                merge_keys_of(term, &labels);
            }
        }
        for term in affinity
            .get_mut("requiredDuringSchedulingIgnoredDuringExecution")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            merge_keys_of(term, &labels);
        }
    }
    let constraints = pod.at_mut(&["spec", "topologySpreadConstraints"]).and_then(Value::as_array_mut);
    for constraint in constraints.into_iter().flatten() {
        merge_keys_of(constraint, &labels);
    }
}

fn merge_keys_of(owner: &mut Value, labels: &Map) {
    if given(owner, "labelSelector").is_none() {
        return;
    }
    let mut requirements = Vec::new();
    for (member, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in view::texts(owner, member) {
            if let Some(value) = labels.get(key) {
                requirements.push(json!({"key": key, "operator": operator, "values": [(value.clone())]}));
            }
        }
    }
    if requirements.is_empty() {
        return;
    }
    let expressions = owner.make(&["labelSelector", "matchExpressions"]);
    match expressions.as_array_mut() {
        Some(expressions) => expressions.extend(requirements),
        None => *expressions = Value::Array(requirements),
    }
}

/// Turns AppArmor annotations into the fields that took their place; answers warnings about the old spelling.
fn convert_app_armor(pod: &mut Value) -> Vec<String> {
    let annotations = view::annotations(pod).cloned();
    let Some(spec) = pod.get_mut("spec").filter(|spec| os(spec) != Some("windows")) else { return Vec::new() };
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]).cloned();
    let mut warnings = Vec::new();
    containers_mut(spec, |container| {
        let key = format!("{APP_ARMOR}{}", text(container, "name"));
        let Some(said) = annotation(annotations.as_ref(), &key) else { return };
        if container.at(&["securityContext", "appArmorProfile"]).is_some_and(|it| !it.is_null()) {
            return;
        }
        let profile = app_armor_of(said).filter(|profile| {
            let mut errors = ErrorList::new();
            validate_app_armor(profile, &Path::ROOT, &mut errors);
            errors.is_empty()
        });
        if profile.is_some() && profile == of_pod {
            return;
        }
        if let Some(profile) = profile {
            container.set(&["securityContext", "appArmorProfile"], profile);
        }
        let path = METADATA.child("annotations");
        warnings.push(format!("{}: deprecated since v1.30; use the \"appArmorProfile\" field instead", path.key(&key)));
    });
    warnings
}
