//! Templates of pods, as workloads have them: judged at any path (kubernetes ValidatePodTemplateSpec).

use super::{
    annotations,
    disabled::drop_template_fields,
    options::{PodOptions, PodPolicy},
    spec::validate_pod_spec,
    view::{self, items},
};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    registry::validation::object_meta::{validate_annotations, validate_labels},
};

/// Judges a template at `path`. `old`: the template it replaces, whose looser values may stay.
pub fn validate_pod_template_spec(
    template: &Value,
    old: Option<&Value>,
    policy: PodPolicy,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let options = PodOptions::new(policy, false, old);
    let empty = Value::object();
    let spec = template.get("spec").unwrap_or(&empty);
    let annotations = view::annotations(template);
    validate_labels(template.object_at(&["metadata", "labels"]), &path.child("labels"), errors);
    let at = path.child("annotations");
    validate_annotations(annotations, &at, errors);
    annotations::validate_annotations_of_pod(annotations, spec, options, &at, errors);
    let at = path.child("spec");
    validate_pod_spec(spec, "", false, options, &at, errors);
    annotations::validate_seccomp_matches(annotations, spec, &at, errors);
    annotations::validate_app_armor_matches(annotations, spec, &at, errors);
    if !items(spec, "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&at.child("ephemeralContainers"), why));
    }
}

/// Drops fields of features that are off, unless `old` has them. Call in prepare_for_create and prepare_for_update.
pub fn prepare_template(template: &mut Value, old: Option<&Value>) {
    drop_template_fields(template, old);
}
