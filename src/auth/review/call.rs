//! Reviews as the registry's calls.

use std::sync::Arc;

use super::{ReviewKind, review};
use crate::auth::{authn::Authenticators, authz::Authorizer};
use crate::object::Value;
use crate::registry::resource::{Call, CallContext, CallFuture};

/// The behaviour of a review kind's row: one generation's judges.
pub struct ReviewCall {
    pub kind: ReviewKind,
    pub authorizer: Arc<dyn Authorizer>,
    pub authenticators: Arc<Authenticators>,
}

impl Call for ReviewCall {
    fn call<'a>(&'a self, cx: CallContext<'a>, body: Value) -> CallFuture<'a> {
        Box::pin(async move {
            let (authorizer, authenticators) = (&*self.authorizer, &*self.authenticators);
            let answer = review(self.kind, body, cx.namespace, cx.user, authorizer, authenticators, cx.now).await?;
            Ok((201, answer))
        })
    }
}
