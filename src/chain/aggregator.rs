//! The aggregator: `apiregistration.k8s.io`, and whatever APIServices hand to other servers. The outermost server:
//! the layers are around it.

use std::sync::Arc;

use super::delegate::{Answer, AnswerFuture, Delegate};
use crate::{
    api::ApiError,
    registry::reader::ObjectReader,
    server::{
        context::Exchange,
        discovery::Documents,
        generic::GenericApiServer,
        respond,
        stack::{End, LayerFuture},
    },
};

pub struct AggregatorServer {
    pub server: GenericApiServer,
    pub reader: Arc<dyn ObjectReader>,
    /// What the chain as a whole says of itself.
    pub documents: Documents,
    pub delegate: Box<dyn Delegate>,
}

impl Delegate for AggregatorServer {
    fn name(&self) -> &'static str {
        "aggregator"
    }

    fn handle<'a>(&'a self, cx: &'a mut Exchange) -> AnswerFuture<'a> {
        Box::pin(async move {
            if let Some(response) = self.server.resource(cx).await {
                return Answer::Handled(response);
            }
            if self.remote(cx) {
                // Which servers answer for others is decided by APIServices; reaching them is the aggregation's job.
                let error = ApiError::service_unavailable("service unavailable");
                return Answer::Handled(respond::text_error(error.code, &error.message));
            }
            if let Some(response) = self.documents.answer(cx).await {
                return Answer::Handled(response);
            }
            self.delegate.handle(cx).await
        })
    }
}

impl AggregatorServer {
    /// Whether an APIService hands this path's group and version to a service.
    fn remote(&self, cx: &Exchange) -> bool {
        let mut parts = cx.path().trim_matches('/').split('/');
        let (Some("apis"), Some(group), Some(version)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let name = format!("{version}.{group}");
        let service = self.reader.get("apiregistration.k8s.io", "apiservices", "", &name);
        service.is_some_and(|service| service.at(&["spec", "service"]).is_some_and(|it| !it.is_null()))
    }
}

/// The chain as the layers see it.
pub struct Outermost(pub AggregatorServer);

impl End for Outermost {
    fn answer<'a>(&'a self, cx: &'a mut Exchange) -> LayerFuture<'a> {
        Box::pin(async move {
            match self.0.handle(cx).await {
                Answer::Handled(response) => response,
                // The last server of the chain answers everything.
                Answer::NotMine => respond::text_error(404, "404 page not found"),
            }
        })
    }
}
