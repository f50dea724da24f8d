//! Environment variables: names, and where values come from.

use super::{
    quantities::quantity,
    view::{given, items, text},
    volumes::require,
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        names::{is_config_map_key, is_relaxed_env_var_name, name_is_dns_subdomain},
    },
    object::Value,
    registry::validation::{
        object_meta::push_messages, validate_dns1123_label, validate_path_no_backsteps, validate_qualified_name,
    },
};

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// `env` and `envFrom` of a container.
pub fn validate_environment(container: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("env");
    for (index, variable) in items(container, "env").iter().enumerate() {
        validate_variable(variable, &at.index(index), errors);
    }
    let at = path.child("envFrom");
    for (index, source) in items(container, "envFrom").iter().enumerate() {
        validate_env_from(source, &at, index, errors);
    }
}

fn validate_variable(variable: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("name");
    match text(variable, "name") {
        "" => errors.push(FieldError::required(&at, "")),
        name => push_messages(is_relaxed_env_var_name(name), name, &at, errors),
    }
    let Some(source) = given(variable, "valueFrom") else { return };
    let path = path.child("valueFrom");
    let mut count = 0;
    if let Some(it) = given(source, "fieldRef") {
        count += 1;
        validate_field_ref(it, &ENV_FIELDS, &path.child("fieldRef"), errors);
    }
    if let Some(it) = given(source, "resourceFieldRef") {
        count += 1;
        validate_resource_field_ref(it, false, &path.child("resourceFieldRef"), errors);
    }
    for member in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(it) = given(source, member) {
            count += 1;
            validate_key_ref(it, &path.child(member), errors);
        }
    }
    if let Some(it) = given(source, "fileKeyRef") {
        count += 1;
        validate_file_key_ref(it, &path.child("fileKeyRef"), errors);
    }
    let why = match count {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(&path, "", why));
}

fn validate_key_ref(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let name = text(source, "name");
    push_messages(name_is_dns_subdomain(name, false), name, &path.child("name"), errors);
    let at = path.child("key");
    match text(source, "key") {
        "" => errors.push(FieldError::required(&at, "")),
        key => push_messages(is_config_map_key(key), key, &at, errors),
    }
}

fn validate_file_key_ref(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    require(source, "key", path, errors);
    let key = text(source, "key");
    if !key.is_empty() {
        push_messages(is_relaxed_env_var_name(key), key, &path.child("key"), errors);
    }
    require(source, "volumeName", path, errors);
    let volume = text(source, "volumeName");
    if !volume.is_empty() {
        validate_dns1123_label(volume, &path.child("volumeName"), errors);
    }
    require(source, "path", path, errors);
    validate_path_no_backsteps(text(source, "path"), &path.child("path"), errors);
}

fn validate_env_from(source: &Value, list: &Path<'_>, index: usize, errors: &mut ErrorList) {
    let path = list.index(index);
    let prefix = text(source, "prefix");
    if !prefix.is_empty() {
        push_messages(is_relaxed_env_var_name(prefix), prefix, &path.child("prefix"), errors);
    }
    let mut count = 0;
    for member in ["configMapRef", "secretRef"] {
        let Some(reference) = given(source, member) else { continue };
        count += 1;
        let at = path.child(member);
        let at = at.child("name");
        match text(reference, "name") {
            "" => errors.push(FieldError::required(&at, "")),
            name => push_messages(name_is_dns_subdomain(name, true), name, &at, errors),
        }
    }
    // Told at the list, as upstream does.
    match count {
        0 => errors.push(FieldError::invalid(list, "", "must specify one of: `configMapRef` or `secretRef`")),
        1 => {}
        _ => errors.push(FieldError::invalid(list, "", "may not have more than one field specified at a time")),
    }
}

/// `metadata.labels['key']`: the path and the key.
fn split_subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

/// What a field of a pod is called now; the error is upstream's.
fn convert_field(version: &str, path: &str) -> Result<String, String> {
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    match split_subscript(path) {
        Some(("metadata.annotations" | "metadata.labels", _)) => return Ok(path.to_owned()),
        Some(_) => return Err(format!("field label does not support subscript: {path}")),
        None => {}
    }
    match path {
        "spec.host" => Ok("spec.nodeName".to_owned()),
        "metadata.annotations" | "metadata.labels" | "spec.restartPolicy" | "spec.schedulerName" | "status.phase" => {
            Ok(path.to_owned())
        }
        known if ENV_FIELDS.contains(&known) => Ok(path.to_owned()),
        _ => Err(format!("field label not supported: {path}")),
    }
}

/// A reference to one of the pod's own fields, of which `supported` may be named here.
pub fn validate_field_ref(field: &Value, supported: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    let (version, name) = (text(field, "apiVersion"), text(field, "fieldPath"));
    if version.is_empty() {
        errors.push(FieldError::required(&path.child("apiVersion"), ""));
        return;
    }
    let at = path.child("fieldPath");
    if name.is_empty() {
        errors.push(FieldError::required(&at, ""));
        return;
    }
    let name_now = match convert_field(version, name) {
        Ok(now) => now,
        Err(why) => {
            errors.push(FieldError::invalid(&at, name, &format!("error converting fieldPath: {why}")));
            return;
        }
    };
    match split_subscript(&name_now) {
        Some(("metadata.annotations", key)) => validate_qualified_name(&key.to_lowercase(), path, errors),
        Some(("metadata.labels", key)) => validate_qualified_name(key, path, errors),
        Some((other, _)) => errors.push(FieldError::invalid(path, other, "does not support subscript")),
        None if !supported.contains(&name_now.as_str()) => {
            errors.push(FieldError::not_supported(&at, name_now, supported));
        }
        None => {}
    }
}

/// A reference to an amount of a container's resources. In a volume the container has to be named.
pub fn validate_resource_field_ref(field: &Value, in_volume: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let resource = text(field, "resource");
    let huge_pages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && text(field, "containerName").is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !huge_pages {
        errors.push(FieldError::not_supported(&path.child("resource"), resource, &RESOURCES));
    }
    let Some(divisor) = given(field, "divisor").map(quantity).filter(|it| !it.is_zero()) else { return };
    let divisor = divisor.to_string();
    const BYTES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let (supported, of) = match resource {
        "limits.cpu" | "requests.cpu" => ("1m and 1", "cpu"),
        "limits.memory" | "requests.memory" => (BYTES, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (BYTES, "local ephemeral storage"),
        _ if huge_pages => (BYTES, "hugepages"),
        _ => return,
    };
    let fine =
        if of == "cpu" { matches!(divisor.as_str(), "1m" | "1") } else { BYTES.split(", ").any(|it| it == divisor) };
    if !fine {
        let why = format!("only divisor's values {supported} are supported with the {of} resource");
        errors.push(FieldError::invalid(&path.child("divisor"), resource, &why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn field(path: &str) -> String {
        let mut errors = ErrorList::new();
        let field = json!({"apiVersion": "v1", "fieldPath": path});
        validate_field_ref(&field, &ENV_FIELDS, &Path::new("f"), &mut errors);
        errors.to_string()
    }

    #[test]
    fn fields_are_named_by_path_or_by_key() {
        assert_eq!(field("metadata.labels['a']"), "");
        assert_eq!(field("spec.host"), "");
        assert_eq!(
            field("metadata.name['a']"),
            "f.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']"
        );
        assert_eq!(field("metadata.labels['a/b/c']").matches("Invalid value").count(), 1);
        assert!(field("status.phase").starts_with("f.fieldPath: Unsupported value: \"status.phase\""));
    }
}
