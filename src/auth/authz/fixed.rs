//! Authorizers that look at nothing (apiserver `pkg/authorization/authorizerfactory`).

use super::{Answer, Attributes, Authorizer, Decision, UserRules, now};
use crate::auth::user::{NODES, UserInfo};

/// Mode `AlwaysAllow`.
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a> {
        now(Decision::allow(""))
    }
    fn rules_for(&self, _: &UserInfo, _: &str) -> UserRules {
        UserRules::everything()
    }
}

/// Mode `AlwaysDeny`. As upstream it has no opinion, so that an authorizer after it may still allow.
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a> {
        now(Decision::no_opinion("Everything is forbidden."))
    }
    fn rules_for(&self, _: &UserInfo, _: &str) -> UserRules {
        UserRules::default()
    }
}

/// Mode `Node`: has no opinion on anything, so that nodes have what RBAC gives them. Says of itself that it cannot
/// list a node's rights.
pub struct Node;

impl Authorizer for Node {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a> {
        now(Decision::no_opinion(""))
    }
    fn rules_for(&self, user: &UserInfo, _: &str) -> UserRules {
        if !user.name.starts_with("system:node:") || !user.in_group(NODES) {
            return UserRules::default();
        }
        UserRules {
            incomplete: true,
            errors: vec!["node authorizer does not support user rule resolution".to_owned()],
            ..UserRules::default()
        }
    }
}
