//! What a review has to say (kubernetes `pkg/apis/authorization/validation`).

use super::ReviewKind;
use crate::api::{ApiError, ErrorList, FieldError, Path};
use crate::object::{Map, Value, to_string};
use crate::registry::validation::LabelSelectorOptions;
use crate::registry::validation::selector::{validate_field_selector_requirement, validate_label_selector_requirement};

const GROUP: &str = "authorization.k8s.io";
const SPEC: Path<'static> = Path::new("spec");
const ANY_OPERATOR: LabelSelectorOptions =
    LabelSelectorOptions { allow_invalid_values: false, allow_unknown_operators: true };

/// Checks a decoded review, defaults and field ownership set. `namespace` is the request's (`""` without one).
pub fn validate(kind: ReviewKind, body: &Value, namespace: &str) -> Result<(), ApiError> {
    match kind {
        ReviewKind::SelfSubjectReview => Ok(()),
        ReviewKind::TokenReview if body.str_at(&["spec", "token"]).is_empty() => {
            Err(ApiError::bad_request("token is required for TokenReview in authentication"))
        }
        ReviewKind::TokenReview => Ok(()),
        ReviewKind::SelfSubjectRulesReview if body.str_at(&["spec", "namespace"]).is_empty() => {
            Err(ApiError::bad_request("no namespace on request"))
        }
        ReviewKind::SelfSubjectRulesReview => Ok(()),
        ReviewKind::SubjectAccessReview | ReviewKind::SelfSubjectAccessReview => invalid(&access_errors(kind, body)),
        ReviewKind::LocalSubjectAccessReview => {
            invalid(&access_errors(kind, body))?;
            if namespace.is_empty() {
                return Err(ApiError::bad_request("namespace is required on this type: "));
            }
            if namespace != body.str_at(&["metadata", "namespace"]) {
                let message = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
                return Err(ApiError::bad_request(message));
            }
            Ok(())
        }
    }
}

/// Upstream names no kind: the decoded object has lost it by then.
fn invalid(errors: &ErrorList) -> Result<(), ApiError> {
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(GROUP, "", "", errors)) }
}

fn access_errors(kind: ReviewKind, body: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let present = |name| body.at(&["spec", name]).filter(|it| !it.is_null());
    let (resource, path) = (present("resourceAttributes"), present("nonResourceAttributes"));
    if resource.is_some() == path.is_some() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid_shown(&SPEC, show_path(path), why));
    }
    let someone = !body.str_at(&["spec", "user"]).is_empty() || !body.array_at(&["spec", "groups"]).is_empty();
    if kind != ReviewKind::SelfSubjectAccessReview && !someone {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&SPEC.child("user"), "", why));
    }
    if let Some(resource) = resource {
        selector_errors(resource, "fieldSelector", &mut errors);
        selector_errors(resource, "labelSelector", &mut errors);
    }
    let local = kind == ReviewKind::LocalSubjectAccessReview;
    metadata_errors(body, local, &mut errors);
    if local {
        local_errors(body, resource, path, &mut errors);
    }
    errors
}

/// Upstream shows its internal type, whose fields have no JSON names.
fn show_path(path: Option<&Value>) -> String {
    let Some(path) = path else { return "null".to_owned() };
    let text = |name| to_string(&Value::from(path.str_at(&[name])));
    format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb"))
}

fn selector_errors(resource: &Value, name: &str, errors: &mut ErrorList) {
    let Some(selector) = resource.get(name).filter(|it| !it.is_null()) else { return };
    let attributes = SPEC.child("resourceAttributes");
    let at = attributes.child(name);
    let (raw, requirements) = (selector.str_at(&["rawSelector"]), selector.array_at(&["requirements"]));
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(&at.child("rawSelector"), raw, why));
    }
    let list = at.child("requirements");
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {at} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(&list, &why));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        // Unknown operators are let through: an authorizer may know them.
        if name == "labelSelector" {
            validate_label_selector_requirement(requirement, ANY_OPERATOR, &list.index(index), errors);
        } else {
            validate_field_selector_requirement(requirement, true, &list.index(index), errors);
        }
    }
}

fn metadata_errors(body: &Value, local: bool, errors: &mut ErrorList) {
    let Some(metadata) = body.object_at(&["metadata"]) else { return };
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Str(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Int(number) => *number == 0,
        _ => false,
    };
    let allowed = |key: &str| key == "managedFields" || (local && key == "namespace");
    if metadata.iter().all(|(key, value)| allowed(key) || empty(value)) {
        return;
    }
    let why = if local { "must be empty except for namespace" } else { "must be empty" };
    errors.push(FieldError::invalid_shown(&Path::new("metadata"), show_metadata(metadata), why));
}

/// Object metadata with its members in the order of upstream's struct.
fn show_metadata(metadata: &Map) -> String {
    const MEMBERS: [&str; 15] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    const ENTRY: [&str; 7] = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    const OWNER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    in_order(metadata, &MEMBERS, &|key, value| {
        let members: &[&str] = match key {
            "managedFields" => &ENTRY,
            "ownerReferences" => &OWNER,
            _ => return to_string(value),
        };
        let items = value.as_array().unwrap_or_default().iter().filter_map(Value::as_object);
        let shown: Vec<String> = items.map(|item| in_order(item, members, &|_, value| to_string(value))).collect();
        format!("[{}]", shown.join(","))
    })
}

fn in_order(map: &Map, members: &[&str], show: &dyn Fn(&str, &Value) -> String) -> String {
    let shown: Vec<String> = members
        .iter()
        .filter_map(|key| map.get(key).map(|value| format!("{}:{}", to_string(&Value::from(*key)), show(key, value))))
        .collect();
    format!("{{{}}}", shown.join(","))
}

fn local_errors(body: &Value, resource: Option<&Value>, path: Option<&Value>, errors: &mut ErrorList) {
    if let Some(resource) = resource {
        let namespace = resource.str_at(&["namespace"]);
        if namespace != body.str_at(&["metadata", "namespace"]) {
            let attributes = SPEC.child("resourceAttributes");
            let at = attributes.child("namespace");
            errors.push(FieldError::invalid(&at, namespace, "must match metadata.namespace"));
        }
    }
    if path.is_some() {
        let at = SPEC.child("nonResourceAttributes");
        errors.push(FieldError::invalid_shown(&at, show_path(path), "disallowed on this kind of request"));
    }
}
