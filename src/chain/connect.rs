//! Subresources that stream to somewhere else: a pod's log from its kubelet.

use std::sync::Arc;

use super::Shared;
use crate::{
    api::ApiError,
    options::ValidatedOptions,
    server::{
        context::Exchange,
        endpoints::{Connect, Scope},
        respond,
        stack::LayerFuture,
    },
};

pub struct NodeStreams {
    _shared: Arc<Shared>,
}

impl NodeStreams {
    pub fn new(_options: &ValidatedOptions, shared: &Arc<Shared>) -> Self {
        Self { _shared: shared.clone() }
    }
}

impl Connect for NodeStreams {
    fn connect<'a>(&'a self, cx: &'a mut Exchange, scope: &'a Scope<'a>) -> LayerFuture<'a> {
        Box::pin(async move {
            let error = ApiError::method_not_supported(scope.gr(), &scope.info.verb);
            respond::error(cx, &error)
        })
    }
}
