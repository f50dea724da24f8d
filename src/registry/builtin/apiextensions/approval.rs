//! The approval that definitions in Kubernetes' own groups need (apiextensions-apiserver `pkg/apihelpers`).

use crate::{
    api::{field::quote, go_url},
    object::Value,
};

pub const ANNOTATION: &str = "api-approved.kubernetes.io";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

/// What the annotation says, and upstream's words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub state: State,
    pub reason: String,
}

/// The approval of a definition in a protected group; `None` for all others.
pub fn approval(crd: &Value) -> Option<Approval> {
    approval_in(crd.str_at(&["spec", "group"]), crd)
}

/// The same for a definition whose group is known; of the definition itself only the metadata is read.
pub fn approval_in(group: &str, crd: &Value) -> Option<Approval> {
    let protected = ["k8s.io", "kubernetes.io"];
    let protected =
        protected.iter().any(|own| group == *own || group.strip_suffix(own).is_some_and(|rest| rest.ends_with('.')));
    if !protected {
        return None;
    }
    let text = crd.str_at(&["metadata", "annotations", ANNOTATION]);
    const WHERE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let needs = format!("protected groups must have approval annotation {}", quote(ANNOTATION));
    let url = go_url::parse(text).ok().filter(|_| go_url::is_request_uri(text));
    let (state, reason) = if text.is_empty() {
        (State::Missing, format!("{needs}, {WHERE}"))
    } else if text.starts_with("unapproved") {
        (State::Bypassed, format!("not approved: {}", quote(text)))
    } else if url.is_some_and(|url| !url.host.is_empty() && !url.scheme.is_empty()) {
        (State::Approved, format!("approved in {text}"))
    } else {
        (State::Invalid, format!("{needs} with either a URL or a reason starting with \"unapproved\", {WHERE}"))
    };
    Some(Approval { state, reason })
}
