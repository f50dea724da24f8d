//! What bindings may say. Errors that upstream's declarative validation finds come last, without a text.

use super::GROUP;
use crate::api::names::{is_dns1123_subdomain, is_path_segment_name};
use crate::api::{ErrorList, FieldError, Path, field::quote};
use crate::object::Value;

/// A new RoleBinding (`namespaced`) or ClusterRoleBinding, defaulted.
pub fn validate_binding(new: &Value, namespaced: bool, errors: &mut ErrorList) {
    validate_reference(new, namespaced, errors);
    validate_subjects(new, namespaced, errors);
    // What follows upstream's declarative validation says, which comes last.
    require_subject_names(new, errors);
    require_role_name(new, errors);
}

/// An update: as a new one, and refers to the same role.
pub fn validate_binding_update(new: &Value, old: &Value, namespaced: bool, errors: &mut ErrorList) {
    validate_reference(new, namespaced, errors);
    // On update the declarative rule about the reference ends with its being another one.
    require_role_name(new, errors);
    validate_subjects(new, namespaced, errors);
    require_same_role(new, old, errors);
    if new.get("subjects") != old.get("subjects") {
        require_subject_names(new, errors);
    }
}

fn require_same_role(new: &Value, old: &Value, errors: &mut ErrorList) {
    let reference =
        |binding: &Value| ["apiGroup", "kind", "name"].map(|key| binding.str_at(&["roleRef", key]).to_owned());
    let now = reference(new);
    if now != reference(old) {
        let [group, kind, name] = now.map(|text| quote(&text));
        let shown = format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}");
        errors.push(FieldError::invalid_shown(&Path::new("roleRef"), shown, "field is immutable"));
    }
}

fn validate_reference(binding: &Value, namespaced: bool, errors: &mut ErrorList) {
    let at = Path::new("roleRef");
    let [group, kind, name] = ["apiGroup", "kind", "name"].map(|key| binding.str_at(&["roleRef", key]));
    if group != GROUP {
        errors.push(FieldError::not_supported(&at.child("apiGroup"), group, &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported(&at.child("kind"), kind, kinds));
    }
    if !name.is_empty() {
        for why in is_path_segment_name(name) {
            errors.push(FieldError::invalid(&at.child("name"), name, &why));
        }
    }
}

fn validate_subjects(binding: &Value, namespaced: bool, errors: &mut ErrorList) {
    let subjects = Path::new("subjects");
    for (index, subject) in binding.array_at(&["subjects"]).iter().enumerate() {
        validate_subject(subject, namespaced, &subjects.index(index), errors);
    }
}

fn validate_subject(subject: &Value, namespaced: bool, at: &Path<'_>, errors: &mut ErrorList) {
    let [group, kind, name, namespace] = ["apiGroup", "kind", "name", "namespace"].map(|key| subject.str_at(&[key]));
    let group_at = at.child("apiGroup");
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                for why in is_dns1123_subdomain(name) {
                    errors.push(FieldError::invalid(&at.child("name"), name, &why));
                }
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&group_at, group, &[""]));
            }
            if !namespaced && namespace.is_empty() {
                errors.push(FieldError::required(&at.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(FieldError::not_supported(&group_at, group, &[GROUP]));
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&at.child("kind"), other, &kinds));
        }
    }
}

fn require_subject_names(binding: &Value, errors: &mut ErrorList) {
    let subjects = Path::new("subjects");
    for (index, subject) in binding.array_at(&["subjects"]).iter().enumerate() {
        if subject.str_at(&["name"]).is_empty() {
            errors.push(FieldError::required(&subjects.index(index).child("name"), ""));
        }
    }
}

fn require_role_name(binding: &Value, errors: &mut ErrorList) {
    if binding.str_at(&["roleRef", "name"]).is_empty() {
        errors.push(FieldError::required(&Path::new("roleRef").child("name"), ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = r#""roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}"#;

    fn parse(text: &str) -> Value {
        crate::object::parse(text.as_bytes()).expect("test JSON")
    }

    fn say(text: &str, namespaced: bool) -> String {
        let mut errors = ErrorList::new();
        validate_binding(&parse(text), namespaced, &mut errors);
        errors.to_string()
    }

    fn subject(subject: &str, namespaced: bool) -> String {
        say(&format!("{{{ROLE},\"subjects\":[{subject}]}}"), namespaced)
    }

    #[test]
    fn a_reference_names_a_role_of_this_group() {
        assert_eq!(
            say(r#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io"}}"#, true),
            r#"[roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole", roleRef.name: Required value]"#
        );
        assert_eq!(
            say(r#"{"roleRef":{"apiGroup":"x","kind":"Role","name":"a/b"}}"#, false),
            r#"[roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io", roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole", roleRef.name: Invalid value: "a/b": may not contain '/']"#
        );
    }

    #[test]
    fn subjects_have_a_kind_a_group_and_a_name() {
        assert_eq!(
            subject(r#"{"kind":"Robot","name":"x"}"#, true),
            r#"subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group""#
        );
        assert_eq!(
            subject(r#"{"kind":"User","apiGroup":"rbac.authorization.k8s.io"}"#, true),
            "subjects[0].name: Required value"
        );
        assert_eq!(
            subject(r#"{"kind":"ServiceAccount","name":"s","namespace":"n","apiGroup":"g"}"#, true),
            r#"subjects[0].apiGroup: Unsupported value: "g": supported values: """#
        );
        assert_eq!(subject(r#"{"kind":"ServiceAccount","name":"s"}"#, true), "");
        assert_eq!(subject(r#"{"kind":"ServiceAccount","name":"s"}"#, false), "subjects[0].namespace: Required value");
    }

    #[test]
    fn a_binding_keeps_its_role() {
        let old = parse(&format!("{{{ROLE}}}"));
        let mut new = old.clone();
        let mut errors = ErrorList::new();
        validate_binding_update(&new, &old, true, &mut errors);
        assert!(errors.is_empty());
        new.set(&["roleRef", "name"], "q");
        validate_binding_update(&new, &old, true, &mut errors);
        assert_eq!(
            errors.to_string(),
            r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"q"}: field is immutable"#
        );
    }
}
