//! Whether somebody may still do what they are doing: the authorizer of whatever generation serves now. Shared by all
//! generations, so that a watch can ask without keeping the one it began in alive.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{attributes::RequestAttributes, request_info::RequestInfo};
use crate::{
    api::ApiError,
    auth::{
        authz::{Authorizer, Union, forbidden_status},
        user::UserInfo,
    },
};

pub struct Rights(ArcSwap<Union>);

impl Rights {
    pub fn new(authorizer: Arc<Union>) -> Self {
        Self(ArcSwap::new(authorizer))
    }

    /// Called by a commit, before the new chain is stored.
    pub fn store(&self, authorizer: Arc<Union>) {
        self.0.store(authorizer);
    }

    pub fn authorizer(&self) -> Arc<Union> {
        self.0.load_full()
    }

    /// # Errors
    /// The Forbidden status this request would get now.
    pub async fn check(&self, user: &UserInfo, info: &RequestInfo) -> Result<(), ApiError> {
        let request = RequestAttributes::new(info);
        let attributes = request.of(user);
        let decision = self.authorizer().authorize(&attributes).await;
        if decision.allowed() { Ok(()) } else { Err(forbidden_status(&attributes, &decision.reason)) }
    }
}
