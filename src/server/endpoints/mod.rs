//! The verbs of resources: one file each, the same for built-in kinds, custom resources and subresources.
//!
//! An endpoint runs after request info, user, permission, deadline and audit are set.

mod body;
mod call;
mod create;
mod delete;
mod encode;
mod get;
mod known;
pub mod list;
pub mod options;
mod ownership;
mod patch;
mod scale;
mod scope;
mod selectors;
mod table;
mod update;
mod watch;

use std::{sync::Arc, time::Duration};

pub use scope::Scope;

use super::{
    context::Exchange,
    current::Current,
    http::Response,
    negotiate::{accept_header, router_accepts, router_not_acceptable},
    respond,
};
use crate::{
    admission,
    api::{ApiError, Reason},
    registry::{
        catalog::Row,
        resource::{Behaviour, SubresourceBehaviour, Verb, Version},
    },
    telemetry::Metrics,
};

/// What the endpoints of one generation share.
pub struct Endpoints {
    pub admission: Arc<admission::Chain>,
    pub current: Current,
    pub metrics: &'static Metrics,
    pub rights: Arc<super::rights::Rights>,
    /// What users hold, for writes of roles and bindings.
    pub rbac: Arc<crate::auth::authz::Rbac>,
    pub lifecycle: Arc<super::lifecycle::Lifecycle>,
    /// How long an Event is kept.
    pub event_ttl: Duration,
    /// A watch without a timeout ends at a random time in [this, 2 × this).
    pub min_request_timeout: Duration,
    /// Streams to kubelets and services.
    pub connect: Arc<dyn Connect>,
}

/// What subresources that stream need from above: the chain's dialers.
pub trait Connect: Send + Sync {
    /// Answers a streaming subresource (`log`, `exec`, `attach`, `portforward`, `proxy`).
    fn connect<'a>(&'a self, cx: &'a mut Exchange, scope: &'a Scope<'a>) -> super::stack::LayerFuture<'a>;
}

impl Endpoints {
    /// Answers a request for a row this server has.
    pub async fn serve(self: &Arc<Self>, cx: &mut Exchange, row: &Arc<Row>, version: &Version) -> Response {
        match self.dispatch(cx, row, version).await {
            Ok(response) => response,
            Err(error) => respond::error(cx, &error),
        }
    }

    async fn dispatch(
        self: &Arc<Self>,
        cx: &mut Exchange,
        row: &Arc<Row>,
        version: &Version,
    ) -> Result<Response, ApiError> {
        // The meaning of the request is read all along while its body and warnings are taken.
        let info = cx.info.clone();
        let scope = Scope::new(&info, row, version)?;
        // Not before: names of subresources that are not there come from the client, without end.
        cx.routed = true;
        if matches!(row.resource.behaviour, Behaviour::Call(_)) && !scope.name.is_empty() {
            // What is answered and not stored has no paths of its own.
            return Err(unknown_resource());
        }
        if info.verb_from_path && info.verb == "proxy" {
            // Requests of old are known by their form, and nobody answers them any more.
            return Err(unknown_resource());
        }
        let verb = scope.verb(&cx.parts.method)?;
        if !row.resource.typed_items && !router_accepts(&accept_header(&cx.parts.headers), cx.formats) {
            let watchable = matches!(verb, Verb::Get | Verb::List | Verb::Watch)
                && scope.subresource.is_none()
                && scope.name.is_empty();
            return Err(router_not_acceptable(cx.formats, watchable));
        }
        if let Some(text) = &version.deprecation {
            cx.warnings.add(text.as_str());
        }
        match scope.subresource.map(|subresource| &subresource.behaviour) {
            Some(SubresourceBehaviour::Connect(_)) => {
                scope.store()?.key_of(scope.namespace, scope.name)?;
                Ok(self.connect.connect(cx, &scope).await)
            }
            Some(SubresourceBehaviour::Call(call)) => self.call(cx, &scope, &**call).await,
            _ => match &row.resource.behaviour {
                Behaviour::Call(call) => self.call(cx, &scope, &**call).await,
                Behaviour::Computed(objects) => self.computed(cx, &scope, verb, &**objects).await,
                Behaviour::Stored { .. } => self.stored(cx, &scope, verb).await,
            },
        }
    }

    async fn stored(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>, verb: Verb) -> Result<Response, ApiError> {
        match verb {
            Verb::Get => self.get(cx, scope).await,
            Verb::List => self.list(cx, scope).await,
            Verb::Watch => self.watch(cx, scope).await,
            Verb::Create => self.create(cx, scope).await,
            Verb::Update => self.update(cx, scope).await,
            Verb::Patch => self.patch(cx, scope).await,
            Verb::Delete => self.delete(cx, scope).await,
            Verb::DeleteCollection => self.delete_collection(cx, scope).await,
        }
    }
}

/// The router's answers, which name no resource.
pub fn unknown_resource() -> ApiError {
    ApiError::new(404, Reason::NotFound, "the server could not find the requested resource")
        .with_details(Default::default())
}

pub fn method_not_allowed() -> ApiError {
    ApiError::new(405, Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
        .with_details(Default::default())
}
