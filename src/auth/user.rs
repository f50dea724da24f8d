//! The identity of a caller (apiserver `pkg/authentication/user`).

use std::{collections::BTreeMap, sync::Arc};

use crate::api::names::{is_dns1123_label, is_dns1123_subdomain};
use crate::object::{Map, Value};

/// The group whose members may do everything, before any configured authorizer is asked.
pub const MASTERS: &str = "system:masters";
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const NODES: &str = "system:nodes";
pub const ANONYMOUS: &str = "system:anonymous";
/// The server itself, through its loopback client.
pub const APISERVER: &str = "system:apiserver";
/// The extra key that names the credential a user came with.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The extra key that names the node a service account's pod runs on.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Shared by everything a request passes.
pub type User = Arc<UserInfo>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserInfo {
    pub name: String,
    /// Empty where the authenticator knows none.
    pub uid: String,
    /// In the order the authenticator gave; may hold the same group twice.
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub fn with_groups<S: Into<String>>(mut self, groups: impl IntoIterator<Item = S>) -> Self {
        self.groups = groups.into_iter().map(Into::into).collect();
        self
    }

    /// Who nobody is.
    pub fn anonymous() -> Self {
        Self::named(ANONYMOUS).with_groups([UNAUTHENTICATED])
    }

    /// Who the server itself is (in-process clients, the loopback token).
    pub fn apiserver() -> Self {
        Self::named(APISERVER).with_groups([MASTERS])
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|it| it == group)
    }

    /// Adds a group unless it is there.
    pub fn ensure_group(&mut self, group: &str) {
        if !self.in_group(group) {
            self.groups.push(group.to_owned());
        }
    }

    /// `authentication.k8s.io/v1` UserInfo; empty fields are left out.
    pub fn to_value(&self) -> Value {
        let mut out = Map::new();
        if !self.name.is_empty() {
            out.insert("username", self.name.as_str());
        }
        if !self.uid.is_empty() {
            out.insert("uid", self.uid.as_str());
        }
        if !self.groups.is_empty() {
            out.insert("groups", self.groups.clone());
        }
        if !self.extra.is_empty() {
            out.insert("extra", self.extra.iter().map(|(key, values)| (key.as_str(), values.clone())).collect::<Map>());
        }
        out.into()
    }
}

/// Namespace and name of `system:serviceaccount:<namespace>:<name>`, where both are valid names of their kind
/// (apiserver `pkg/authentication/serviceaccount`).
pub fn split_service_account(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (is_dns_label(namespace) && is_dns_subdomain(name)).then_some((namespace, name))
}

/// The two groups every service account of a namespace is in.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// The node's name in `system:node:<name>`, where it is valid as one.
pub fn split_node(username: &str) -> Option<&str> {
    username.strip_prefix("system:node:").filter(|name| is_dns_subdomain(name))
}

fn is_dns_label(text: &str) -> bool {
    is_dns1123_label(text).is_empty()
}

fn is_dns_subdomain(text: &str) -> bool {
    is_dns1123_subdomain(text).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_and_nodes_are_known_by_their_names() {
        assert_eq!(split_service_account("system:serviceaccount:n1:robot"), Some(("n1", "robot")));
        assert_eq!(split_service_account("system:serviceaccount:n1:a.b"), Some(("n1", "a.b")));
        for bad in ["system:serviceaccount:n1", "system:serviceaccount:n1:a:b", "system:serviceaccount:BAD:robot", "x"]
        {
            assert_eq!(split_service_account(bad), None, "{bad}");
        }
        assert_eq!(split_node("system:node:n1.example"), Some("n1.example"));
        assert_eq!(split_node("system:node:"), None);
        assert_eq!(split_node("system:node:BAD_name"), None);
    }

    #[test]
    fn empty_fields_are_left_out_of_user_info() {
        assert_eq!(crate::object::to_string(&UserInfo::named("a").to_value()), r#"{"username":"a"}"#);
    }
}
