//! The API extensions server: `apiextensions.k8s.io` and every custom resource.

use super::delegate::{Answer, AnswerFuture, Delegate};
use crate::server::{
    context::Exchange,
    generic::{GenericApiServer, Rows},
};

pub struct ExtensionsServer {
    /// `apiextensions.k8s.io`.
    pub server: GenericApiServer,
    /// Rows of custom resources; they outlive generations.
    pub custom: Rows,
    pub delegate: Box<dyn Delegate>,
}

impl Delegate for ExtensionsServer {
    fn name(&self) -> &'static str {
        "extensions"
    }

    fn handle<'a>(&'a self, cx: &'a mut Exchange) -> AnswerFuture<'a> {
        Box::pin(async move {
            if let Some(response) = self.server.resource(cx).await {
                return Answer::Handled(response);
            }
            if cx.info.resource_request {
                let rows = self.custom.load_full();
                if let Some((row, version)) = rows.get_version(&cx.info.group, &cx.info.version, &cx.info.resource)
                    && scope_fits(cx, row.resource.namespaced)
                {
                    return Answer::Handled(self.server.endpoints.serve(cx, row, version).await);
                }
            }
            self.delegate.handle(cx).await
        })
    }
}

/// A request whose namespace does not fit the resource's scope is about nothing: the end of the chain answers it.
fn scope_fits(cx: &Exchange, namespaced: bool) -> bool {
    match (namespaced, cx.info.namespace.is_empty()) {
        (true, true) => matches!(cx.info.verb.as_str(), "list" | "watch"),
        (false, false) => false,
        _ => true,
    }
}
