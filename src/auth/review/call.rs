//! Reviews as the registry's calls.

use std::sync::Arc;

use super::{ReviewKind, review};
use crate::api::ApiError;
use crate::auth::{authn::Authenticators, authz::Authorizer};
use crate::object::Value;
use crate::registry::resource::{Call, CallContext, CallFuture};

/// Who judges now. Taken anew for every review, since rows outlive a configuration.
#[derive(Clone)]
pub struct Judges {
    pub authorizer: Arc<dyn Authorizer>,
    pub authenticators: Arc<Authenticators>,
}

/// The behaviour of a review kind's row.
pub struct ReviewCall {
    kind: ReviewKind,
    judges: Arc<dyn Fn() -> Option<Judges> + Send + Sync>,
}

impl ReviewCall {
    /// `judges` gives those of what serves now; `None` before anything does.
    pub fn new(kind: ReviewKind, judges: Arc<dyn Fn() -> Option<Judges> + Send + Sync>) -> Self {
        Self { kind, judges }
    }
}

impl Call for ReviewCall {
    fn call<'a>(&'a self, cx: CallContext<'a>, body: Value) -> CallFuture<'a> {
        Box::pin(async move {
            let judges = (self.judges)().ok_or_else(|| ApiError::service_unavailable("nothing serves yet"))?;
            let (authorizer, authenticators) = (&*judges.authorizer, &*judges.authenticators);
            let answer = review(self.kind, body, cx.namespace, cx.user, authorizer, authenticators, cx.now).await?;
            Ok((201, answer))
        })
    }
}
