//! The API kinds that ask who somebody is and what they may do: created, answered, never stored
//! (kubernetes `pkg/registry/{authentication,authorization}`).
//!
//! The endpoint decodes the body, sets field ownership, calls [`validate`], then validating admission, then
//! [`answer`]. The answer keeps the request's metadata and spec, except where upstream makes a new object.

use jiff::Timestamp;

use super::authn::Authenticators;
use super::authz::{Attributes, Authorizer, Decision, Verdict, aggregate};
use super::user::UserInfo;
use crate::api::{ApiError, duration::format_time};
use crate::json;
use crate::object::{Map, Value};

mod call;
mod selectors;
mod validation;

pub use call::ReviewCall;
use selectors::Selectors;
pub use validation::validate;

/// A kind of review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewKind {
    SelfSubjectReview,
    TokenReview,
    SubjectAccessReview,
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
}

impl ReviewKind {
    pub fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "SelfSubjectReview" => Self::SelfSubjectReview,
            "TokenReview" => Self::TokenReview,
            "SubjectAccessReview" => Self::SubjectAccessReview,
            "LocalSubjectAccessReview" => Self::LocalSubjectAccessReview,
            "SelfSubjectAccessReview" => Self::SelfSubjectAccessReview,
            "SelfSubjectRulesReview" => Self::SelfSubjectRulesReview,
            _ => return None,
        })
    }
}

/// Answers a review that [`validate`] passed. `user` is who asks.
pub async fn answer(
    kind: ReviewKind,
    mut body: Value,
    user: &UserInfo,
    authorizer: &dyn Authorizer,
    authenticators: &Authenticators,
    now: Timestamp,
) -> Value {
    let status = match kind {
        ReviewKind::SelfSubjectReview => {
            let status = json!({"userInfo": (user.to_value())});
            return renew(body, json!({"creationTimestamp": (format_time(now))}), None, status);
        }
        ReviewKind::SelfSubjectRulesReview => {
            let status = rules_status(authorizer, user, body.str_at(&["spec", "namespace"]));
            return renew(body, Value::object(), Some(Value::object()), status);
        }
        ReviewKind::TokenReview => token_status(authenticators, &body).await,
        ReviewKind::SelfSubjectAccessReview => access_status(authorizer, user, &body).await,
        ReviewKind::SubjectAccessReview | ReviewKind::LocalSubjectAccessReview => {
            access_status(authorizer, &user_of(&body), &body).await
        }
    };
    body.set(&["status"], status);
    body
}

/// [`validate`] and [`answer`] in one, for callers without admission in between.
pub async fn review(
    kind: ReviewKind,
    body: Value,
    namespace: &str,
    user: &UserInfo,
    authorizer: &dyn Authorizer,
    authenticators: &Authenticators,
    now: Timestamp,
) -> Result<Value, ApiError> {
    validate(kind, &body, namespace)?;
    Ok(answer(kind, body, user, authorizer, authenticators, now).await)
}

/// A new object of the same kind.
fn renew(body: Value, metadata: Value, spec: Option<Value>, status: Value) -> Value {
    let mut new = Map::new();
    for key in ["apiVersion", "kind"] {
        if let Some(value) = body.get(key) {
            new.insert(key, value.clone());
        }
    }
    new.insert("metadata", metadata);
    if let Some(spec) = spec {
        new.insert("spec", spec);
    }
    new.insert("status", status);
    new.into()
}

/// The user a SubjectAccessReview is about.
fn user_of(body: &Value) -> UserInfo {
    let texts = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let extra = body.object_at(&["spec", "extra"]);
    UserInfo {
        name: body.str_at(&["spec", "user"]).to_owned(),
        uid: body.str_at(&["spec", "uid"]).to_owned(),
        groups: texts(body.array_at(&["spec", "groups"])),
        extra: extra
            .into_iter()
            .flat_map(Map::iter)
            .map(|(key, values)| (key.to_string(), texts(values.as_array().unwrap_or_default())))
            .collect(),
    }
}

async fn access_status(authorizer: &dyn Authorizer, user: &UserInfo, body: &Value) -> Value {
    let Some(asked) = body.at(&["spec", "resourceAttributes"]).filter(|it| !it.is_null()) else {
        let path = body.str_at(&["spec", "nonResourceAttributes", "path"]);
        let attributes = Attributes::of_path(user, body.str_at(&["spec", "nonResourceAttributes", "verb"]), path);
        return decision_status(authorizer.authorize(&attributes).await, Vec::new());
    };
    let selectors = Selectors::of(asked);
    let version = match asked.str_at(&["version"]) {
        "" => "*",
        version => version,
    };
    let mut attributes = Attributes::of_resource(
        user,
        asked.str_at(&["verb"]),
        asked.str_at(&["group"]),
        version,
        asked.str_at(&["resource"]),
    );
    attributes.namespace = asked.str_at(&["namespace"]);
    attributes.subresource = asked.str_at(&["subresource"]);
    attributes.name = asked.str_at(&["name"]);
    attributes.field_selector = &selectors.fields;
    attributes.label_selector = &selectors.labels;
    decision_status(authorizer.authorize(&attributes).await, selectors.problems())
}

fn decision_status(decision: Decision, problems: Vec<String>) -> Value {
    let mut status = Map::new();
    status.insert("allowed", decision.verdict == Verdict::Allow);
    if decision.verdict == Verdict::Deny {
        status.insert("denied", true);
    }
    put(&mut status, "reason", decision.reason);
    let errors: Vec<String> = decision.error.into_iter().chain(problems).collect();
    put(&mut status, "evaluationError", errors.join("; "));
    status.into()
}

/// Sets a text unless it is empty.
fn put(map: &mut Map, key: &'static str, text: String) {
    if !text.is_empty() {
        map.insert(key, text);
    }
}

async fn token_status(authenticators: &Authenticators, body: &Value) -> Value {
    let wanted: Vec<String> =
        body.array_at(&["spec", "audiences"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let mut status = Map::new();
    status.insert("user", Value::object());
    match authenticators.review_token(body.str_at(&["spec", "token"]), &wanted).await {
        Ok(Some(found)) => {
            status.insert("authenticated", true);
            status.insert("user", found.user.to_value());
            if !found.audiences.is_empty() {
                status.insert("audiences", found.audiences);
            }
        }
        Ok(None) => {}
        Err(error) => put(&mut status, "error", error),
    }
    status.into()
}

fn rules_status(authorizer: &dyn Authorizer, user: &UserInfo, namespace: &str) -> Value {
    let known = authorizer.rules_for(user, namespace);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in known.rules {
        if !rule.resources.is_empty() {
            let mut resource = rule.clone();
            resource.non_resource_urls.clear();
            resources.push(resource.to_value());
        }
        if !rule.non_resource_urls.is_empty() {
            paths.push(json!({"verbs": (rule.verbs), "nonResourceURLs": (rule.non_resource_urls)}));
        }
    }
    let mut status = Map::new();
    status.insert("resourceRules", resources);
    status.insert("nonResourceRules", paths);
    status.insert("incomplete", known.incomplete);
    put(&mut status, "evaluationError", aggregate(known.errors).unwrap_or_default());
    status.into()
}

#[cfg(test)]
mod tests;
