//! What a user may do: the question ([`Attributes`]), the answer ([`Decision`]), and the authorizers joined in
//! configured order ([`Union`]).
//!
//! An authorizer that answers from memory answers at once, without a box or a task; one that has to ask somebody
//! (a webhook) returns a future. The first that allows or denies ends the matter; what all the others said is in
//! the refusal's text.

use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, Ready, ready};

use crate::api::{fields, labels};
use crate::auth::user::{MASTERS, UserInfo};

mod fixed;
mod forbidden;
pub mod rbac;
mod rules;

pub use fixed::{AlwaysAllow, AlwaysDeny, Node};
pub use forbidden::{forbidden_status, sanitize};
pub use rbac::Rbac;
pub use rules::{PolicyRule, TooManyPermissions, UserRules, describe_missing, missing, quote_list};

/// One request as authorizers see it (apiserver `pkg/authorization/authorizer` AttributesRecord).
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub user: &'a UserInfo,
    /// `get`, `list`, …, or the lower-case HTTP method for paths that are no resources.
    pub verb: &'a str,
    /// Empty at the cluster scope and for requests over all namespaces.
    pub namespace: &'a str,
    pub api_group: &'a str,
    pub api_version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    /// Empty where the request names no object.
    pub name: &'a str,
    /// Whether the request is about a resource (else about `path`).
    pub resource_request: bool,
    pub path: &'a str,
    /// What the field selector requires; nothing where there is none or it could not be parsed.
    pub field_selector: &'a [fields::Term],
    pub label_selector: &'a [labels::Requirement],
}

impl<'a> Attributes<'a> {
    /// Attributes of a request that is about `path`.
    pub fn of_path(user: &'a UserInfo, verb: &'a str, path: &'a str) -> Self {
        Self {
            user,
            verb,
            namespace: "",
            api_group: "",
            api_version: "",
            resource: "",
            subresource: "",
            name: "",
            resource_request: false,
            path,
            field_selector: &[],
            label_selector: &[],
        }
    }

    /// Attributes of a request about a resource; the fields that are not named here are empty.
    pub fn of_resource(user: &'a UserInfo, verb: &'a str, group: &'a str, version: &'a str, resource: &'a str) -> Self {
        let mut attributes = Self::of_path(user, verb, "");
        attributes.resource_request = true;
        attributes.api_group = group;
        attributes.api_version = version;
        attributes.resource = resource;
        attributes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
    /// Goes on to the next authorizer; at the end of the chain it refuses.
    NoOpinion,
}

/// What an authorizer says. `error` tells that the judgement may be incomplete; it never turns an Allow around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Shown to the user after a refusal, and in the audit log.
    pub reason: String,
    pub error: Option<String>,
}

impl Decision {
    pub fn allow(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Allow, reason: reason.into(), error: None }
    }
    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::NoOpinion, reason: reason.into(), error: None }
    }
    pub fn allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// An answer that is there already, or one that has to be fetched.
pub type Answer<'a> = Either<Ready<Decision>, BoxFuture<'a, Decision>>;

/// The answer that is there already.
pub fn now<'a>(decision: Decision) -> Answer<'a> {
    Either::Left(ready(decision))
}

pub trait Authorizer: Send + Sync {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a>;

    /// What the user may do in a namespace, for SelfSubjectRulesReview. Nothing for authorizers that cannot tell.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules;
}

/// The configured authorizers behind the check for the privileged group (apiserver `pkg/authorization/union`).
pub struct Union {
    /// Name (as shown in refusals: `rbac`, `node`, …) and authorizer, in configured order.
    authorizers: Vec<(String, Arc<dyn Authorizer>)>,
}

impl Union {
    pub fn new(authorizers: Vec<(String, Arc<dyn Authorizer>)>) -> Self {
        Self { authorizers }
    }

    /// Members of `system:masters` may do everything, whatever is configured.
    fn privileged(attributes: &Attributes<'_>) -> bool {
        attributes.user.in_group(MASTERS)
    }
}

/// What the authorizers before the current one have said.
#[derive(Default)]
struct Heard {
    reasons: Vec<String>,
    errors: Vec<String>,
}

impl Heard {
    /// Takes the decision where it ends the matter, else remembers what it said.
    fn take(&mut self, name: &str, decision: Decision) -> Option<Decision> {
        if decision.verdict != Verdict::NoOpinion {
            return Some(decision);
        }
        if !decision.reason.is_empty() {
            self.reasons.push(format!("{name}: {}", decision.reason));
        }
        self.errors.extend(decision.error);
        None
    }

    fn end(self) -> Decision {
        Decision { verdict: Verdict::NoOpinion, reason: self.reasons.join("\n"), error: aggregate(self.errors) }
    }
}

impl Authorizer for Union {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        if Self::privileged(attributes) {
            return now(Decision::allow(""));
        }
        let mut heard = Heard::default();
        for (at, (name, authorizer)) in self.authorizers.iter().enumerate() {
            match authorizer.authorize(attributes) {
                Either::Left(answer) => {
                    if let Some(decision) = heard.take(name, answer.into_inner()) {
                        return now(decision);
                    }
                }
                Either::Right(pending) => return Either::Right(Box::pin(self.rest(attributes, heard, at, pending))),
            }
        }
        now(heard.end())
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let mut all = UserRules::default();
        for (_, authorizer) in &self.authorizers {
            all.extend(authorizer.rules_for(user, namespace));
        }
        all
    }
}

impl Union {
    /// The chain from `at` on, whose authorizer's answer is `pending`.
    async fn rest<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        mut heard: Heard,
        at: usize,
        pending: BoxFuture<'a, Decision>,
    ) -> Decision {
        let mut answer = pending.await;
        for (name, authorizer) in &self.authorizers[at..] {
            if !std::ptr::eq(name, &self.authorizers[at].0) {
                answer = authorizer.authorize(attributes).await;
            }
            if let Some(decision) = heard.take(name, answer.clone()) {
                return decision;
            }
        }
        heard.end()
    }
}

/// Go's aggregate of errors: one plain, several as `[a, b]` without repetitions, none as none.
pub fn aggregate(errors: Vec<String>) -> Option<String> {
    let mut unique: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        if !unique.contains(&error) {
            unique.push(error);
        }
    }
    match unique.len() {
        0 => None,
        1 => unique.pop(),
        _ => Some(format!("[{}]", unique.join(", "))),
    }
}
