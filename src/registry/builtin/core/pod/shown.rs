//! How upstream shows structs in errors: Kubernetes' internal types have no JSON tags, so that members carry the
//! names and the order they have in Go, and what is not set is shown too.

use crate::object::{Value, escape_into, to_string};

/// The form of a value.
#[derive(Clone, Copy)]
pub enum Shape {
    /// As JSON: texts, numbers, lists of them, and types that do have tags.
    Plain,
    List(&'static Shape),
    Struct(&'static [Member]),
}

/// A member: its name in Go, its name in JSON, its form, and what is shown where it is missing.
pub struct Member(pub &'static str, pub &'static str, pub Shape, pub &'static str);

/// The value as Go's encoding/json prints the internal struct.
pub fn shown(value: &Value, shape: Shape) -> String {
    match (shape, value) {
        (Shape::List(item), Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|it| shown(it, *item)).collect();
            format!("[{}]", items.join(","))
        }
        (Shape::Struct(members), Value::Object(_)) => {
            let mut out = Vec::from(*b"{");
            for Member(go, json, shape, zero) in members {
                if out.len() > 1 {
                    out.push(b',');
                }
                escape_into(&mut out, go);
                out.push(b':');
                match value.get(json).filter(|it| !it.is_null()) {
                    Some(member) => out.extend_from_slice(shown(member, *shape).as_bytes()),
                    None => out.extend_from_slice(zero.as_bytes()),
                }
            }
            out.push(b'}');
            String::from_utf8(out).unwrap_or_default()
        }
        (_, other) => to_string(other),
    }
}

const NIL: &str = "null";
const EMPTY: &str = "\"\"";

const CAPABILITIES: Shape =
    Shape::Struct(&[Member("Add", "add", Shape::Plain, NIL), Member("Drop", "drop", Shape::Plain, NIL)]);

const SE_LINUX: Shape = Shape::Struct(&[
    Member("User", "user", Shape::Plain, EMPTY),
    Member("Role", "role", Shape::Plain, EMPTY),
    Member("Type", "type", Shape::Plain, EMPTY),
    Member("Level", "level", Shape::Plain, EMPTY),
]);

const WINDOWS_OPTIONS: Shape = Shape::Struct(&[
    Member("GMSACredentialSpecName", "gmsaCredentialSpecName", Shape::Plain, NIL),
    Member("GMSACredentialSpec", "gmsaCredentialSpec", Shape::Plain, NIL),
    Member("RunAsUserName", "runAsUserName", Shape::Plain, NIL),
    Member("HostProcess", "hostProcess", Shape::Plain, NIL),
]);

/// SeccompProfile and AppArmorProfile.
pub const PROFILE: Shape = Shape::Struct(&[
    Member("Type", "type", Shape::Plain, EMPTY),
    Member("LocalhostProfile", "localhostProfile", Shape::Plain, NIL),
]);

pub const SECURITY_CONTEXT: Shape = Shape::Struct(&[
    Member("Capabilities", "capabilities", CAPABILITIES, NIL),
    Member("Privileged", "privileged", Shape::Plain, NIL),
    Member("SELinuxOptions", "seLinuxOptions", SE_LINUX, NIL),
    Member("WindowsOptions", "windowsOptions", WINDOWS_OPTIONS, NIL),
    Member("RunAsUser", "runAsUser", Shape::Plain, NIL),
    Member("RunAsGroup", "runAsGroup", Shape::Plain, NIL),
    Member("RunAsNonRoot", "runAsNonRoot", Shape::Plain, NIL),
    Member("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Shape::Plain, NIL),
    Member("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Shape::Plain, NIL),
    Member("ProcMount", "procMount", Shape::Plain, NIL),
    Member("SeccompProfile", "seccompProfile", PROFILE, NIL),
    Member("AppArmorProfile", "appArmorProfile", PROFILE, NIL),
]);

pub const RESOURCE_CLAIM: Shape = Shape::Struct(&[
    Member("Name", "name", Shape::Plain, EMPTY),
    Member("ResourceClaimName", "resourceClaimName", Shape::Plain, NIL),
    Member("ResourceClaimTemplateName", "resourceClaimTemplateName", Shape::Plain, NIL),
]);

pub const CLUSTER_TRUST_BUNDLE: Shape = Shape::Struct(&[
    Member("Name", "name", Shape::Plain, NIL),
    Member("SignerName", "signerName", Shape::Plain, NIL),
    Member("LabelSelector", "labelSelector", Shape::Plain, NIL),
    Member("Optional", "optional", Shape::Plain, NIL),
    Member("Path", "path", Shape::Plain, EMPTY),
    Member("User", "user", Shape::Plain, NIL),
]);

const REQUIREMENT: Shape = Shape::Struct(&[
    Member("Key", "key", Shape::Plain, EMPTY),
    Member("Operator", "operator", Shape::Plain, EMPTY),
    Member("Values", "values", Shape::Plain, NIL),
]);

pub const NODE_SELECTOR_TERM: Shape = Shape::Struct(&[
    Member("MatchExpressions", "matchExpressions", Shape::List(&REQUIREMENT), NIL),
    Member("MatchFields", "matchFields", Shape::List(&REQUIREMENT), NIL),
]);

pub const NODE_SELECTOR_TERMS: Shape = Shape::List(&NODE_SELECTOR_TERM);

/// PodIP and HostIP.
pub const IPS: Shape = Shape::List(&Shape::Struct(&[Member("IP", "ip", Shape::Plain, EMPTY)]));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn members_carry_their_go_names_whether_set_or_not() {
        let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["CAP_SYS_ADMIN"]}});
        assert_eq!(
            shown(&context, SECURITY_CONTEXT),
            r#"{"Capabilities":{"Add":["CAP_SYS_ADMIN"],"Drop":null},"Privileged":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}"#
        );
        assert_eq!(shown(&json!([{"ip": "10.0.0.1"}]), IPS), r#"[{"IP":"10.0.0.1"}]"#);
    }
}
