//! authentication.k8s.io and authorization.k8s.io: kinds that are answered, never stored. What they answer is in
//! `auth::review`.

use std::sync::Arc;

use super::Wiring;
use crate::auth::review::{ReviewCall, ReviewKind};
use crate::registry::resource::Behaviour;

/// The behaviour of a review kind, by its plural.
pub fn behaviour(wiring: &Wiring, plural: &str) -> Option<Behaviour> {
    let kind = match plural {
        "selfsubjectreviews" => ReviewKind::SelfSubjectReview,
        "tokenreviews" => ReviewKind::TokenReview,
        "subjectaccessreviews" => ReviewKind::SubjectAccessReview,
        "localsubjectaccessreviews" => ReviewKind::LocalSubjectAccessReview,
        "selfsubjectaccessreviews" => ReviewKind::SelfSubjectAccessReview,
        "selfsubjectrulesreviews" => ReviewKind::SelfSubjectRulesReview,
        _ => return None,
    };
    let (authorizer, authenticators) = (wiring.authorizer.clone(), wiring.authenticators.clone());
    Some(Behaviour::Call(Arc::new(ReviewCall { kind, authorizer, authenticators })))
}
