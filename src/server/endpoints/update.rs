//! update: an object replaced by the request's body.

use std::sync::Arc;

use super::{
    Endpoints, Scope, body,
    create::{Admission, dedup_owner_references, fill_namespace},
    encode,
    options::WriteOptions,
    ownership, scale,
};
use crate::{
    admission::Operation,
    api::{ApiError, Meta},
    auth::{
        authz::{Attributes, Authorizer, forbidden_status},
        user::User,
    },
    object::Value,
    registry::store::{Transform, TransformFuture},
    server::{
        context::{Exchange, Warnings},
        http::Response,
        rights::Rights,
    },
};

impl Endpoints {
    pub(super) async fn update(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let options = WriteOptions::decode(&cx.query, "UpdateOptions", None)?;
        let accepted = encode::accepted(cx, scope, false)?;
        let mut object = body::read(cx, scope, options.field_validation).await?;
        check_name(scope, &mut object)?;
        fill_namespace(scope, &mut object)?;
        let manager = ownership::manager(cx, &options.field_manager);
        let value = options.to_value("UpdateOptions", &cx.query);
        let admission = self.admission_for(cx, scope, Operation::Update, options.dry_run, &value)?;
        let write = admission.write(scope);
        let mut transform = Wanted {
            source: Source::Body(object),
            scope,
            manager: &manager,
            admission: &admission,
            warnings: &cx.warnings,
            rights: &self.rights,
            user: cx.user.clone(),
        };
        let stored = scope.store()?.update(scope.name, write, &mut transform, &admission, false).await?;
        let status = if stored.created { 201 } else { 200 };
        answer(cx, scope, accepted, status, stored)
    }
}

/// Answers a write of an existing object: warnings, then the object or its Scale.
pub(super) fn answer(
    cx: &Exchange,
    scope: &Scope<'_>,
    accepted: crate::server::negotiate::Accepted,
    status: u16,
    stored: crate::registry::store::Stored,
) -> Result<Response, ApiError> {
    if scope.is_scale() {
        cx.warnings.extend(stored.warnings);
        return encode::object_response(cx, scope, accepted, status, scale::of(scope, &stored.object)?);
    }
    encode::stored_response(cx, scope, accepted, status, stored)
}

/// The body's name is the path's.
fn check_name(scope: &Scope<'_>, object: &mut Value) -> Result<(), ApiError> {
    let given = Meta::of(object).name();
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            scope.name
        )));
    }
    if given != scope.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({})",
            scope.name
        )));
    }
    Ok(())
}

/// How the wished object comes about.
pub(super) enum Source<'a> {
    /// It was sent whole, in the request's version.
    Body(Value),
    /// It is made of the current object, in the request's version (for a Scale: of its Scale).
    Patch(&'a (dyn Fn(Option<&Value>) -> Result<Value, ApiError> + Send + Sync)),
    /// It is made of the current object and tracks ownership itself (server-side apply); `None` changes nothing.
    Apply(&'a Apply<'a>),
}

/// An apply as a function of the current object.
type Apply<'a> = dyn Fn(Option<&Value>) -> Result<Option<Value>, ApiError> + Send + Sync + 'a;

/// One attempt at an update: the wished object, its owners, mutating admission.
pub(super) struct Wanted<'a> {
    pub source: Source<'a>,
    pub scope: &'a Scope<'a>,
    pub manager: &'a str,
    pub admission: &'a Admission<'a>,
    pub warnings: &'a Warnings,
    pub rights: &'a Rights,
    pub user: Option<User>,
}

impl Wanted<'_> {
    /// The current object in the request's version.
    fn live(&self, old: &Value) -> Result<Value, ApiError> {
        let mut live = old.clone();
        self.scope.resource.convert(&mut live, self.scope.hub(), self.scope.group_version())?;
        Ok(live)
    }

    fn wish(&self, live: Option<&Value>) -> Result<(Value, bool), ApiError> {
        let scope = self.scope;
        if scope.is_scale() {
            let live = live.ok_or_else(|| ApiError::not_found(scope.gr(), scope.name))?;
            return Ok((self.scaled(live)?, false));
        }
        match &self.source {
            Source::Body(object) => Ok((object.clone(), true)),
            Source::Patch(make) => Ok((make(live)?, true)),
            Source::Apply(make) => match make(live)? {
                Some(object) => Ok((object, false)),
                None => Ok((live.cloned().unwrap_or_default(), false)),
            },
        }
    }

    /// The object with another Scale. The Scale has owners of its own, which are those of the object's replicas.
    fn scaled(&self, live: &Value) -> Result<Value, ApiError> {
        const MANAGED_FIELDS: &[&str] = &["metadata", "managedFields"];
        let scope = self.scope;
        let replicas = ownership::replicas(scope);
        let mut shown = scale::to_change(scope, live)?;
        if let Some(list) = replicas.to_scale(live.at(MANAGED_FIELDS)) {
            shown.set(MANAGED_FIELDS, list);
        }
        let (mut wanted, track) = match &self.source {
            Source::Body(scale) => (scale.clone(), true),
            Source::Patch(make) => (make(Some(&shown))?, true),
            Source::Apply(make) => (make(Some(&shown))?.unwrap_or_else(|| shown.clone()), false),
        };
        if track {
            ownership::track_scale(scope, self.manager, &shown, &mut wanted);
        }
        let mut object = scale::write_into(scope, live, &wanted)?;
        match replicas.to_parent(live.at(MANAGED_FIELDS), wanted.at(MANAGED_FIELDS)) {
            Some(list) => object.set(MANAGED_FIELDS, list),
            None => drop(object.remove_at(MANAGED_FIELDS)),
        }
        Ok(object)
    }

    async fn make(&mut self, old: Option<&Value>) -> Result<Value, ApiError> {
        let scope = self.scope;
        if old.is_none() {
            self.may_create().await?;
        }
        let live = old.map(|old| self.live(old)).transpose()?;
        let (mut object, track) = self.wish(live.as_ref())?;
        if let Source::Body(_) = self.source {
            dedup_owner_references(&mut object, self.warnings, "");
        }
        if track {
            ownership::track(scope, self.manager, live.as_ref(), &mut object);
        }
        self.admission.mutate(Some(&mut object), live.as_ref()).await?;
        dedup_owner_references(&mut object, self.warnings, " after mutating admission happens");
        if scope.group_version() != scope.hub() {
            scope.resource.convert(&mut object, scope.group_version(), scope.hub())?;
        }
        Ok(object)
    }

    /// Creating by update needs the right to create.
    async fn may_create(&self) -> Result<(), ApiError> {
        let Some(user) = &self.user else { return Err(ApiError::internal("no user found for request")) };
        let info = self.scope.info;
        let attributes = Attributes {
            namespace: &info.namespace,
            subresource: &info.subresource,
            name: &info.name,
            ..Attributes::of_resource(user, "create", &info.group, &info.version, &info.resource)
        };
        let decision = self.rights.authorizer().authorize(&attributes).await;
        if decision.allowed() { Ok(()) } else { Err(forbidden_status(&attributes, &decision.reason)) }
    }
}

impl Transform for Wanted<'_> {
    fn transform<'b>(&'b mut self, old: Option<&'b Value>) -> TransformFuture<'b> {
        Box::pin(self.make(old))
    }

    fn uid_is_precondition(&self) -> bool {
        matches!(self.source, Source::Body(_))
    }
}
