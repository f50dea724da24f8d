//! create: a new object out of the request's body.

use std::sync::Arc;

use super::{Endpoints, Scope, body, encode, options::WriteOptions, ownership};
use crate::{
    admission::{self, Operation},
    api::{ApiError, Meta, clock},
    auth::{
        authz::{Rbac, rbac},
        escalation::{RoleWrite, check_escalation},
        user::{MASTERS, UserInfo},
    },
    object::Value,
    registry::{
        store::{Admit, AdmitFuture, WriteContext},
        strategy::StrategyContext,
    },
    server::{
        context::{Exchange, Warnings},
        http::Response,
        rights::Rights,
    },
};

impl Endpoints {
    pub(super) async fn create(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let options = WriteOptions::decode(&cx.query, "CreateOptions", None)?;
        let accepted = encode::accepted(cx, scope, false)?;
        let mut object = body::read(cx, scope, options.field_validation).await?;
        fill_namespace(scope, &mut object)?;
        if !matches!(Meta::of(&object).resource_version(), "" | "0") && Meta::of(&object).revision().is_some() {
            return Err(ApiError::unmapped("resourceVersion should not be set on objects to be created"));
        }
        wipe_system_fields(&mut object);
        dedup_owner_references(&mut object, &cx.warnings, "");
        let manager = ownership::manager(cx, &options.field_manager);
        ownership::track(scope, &manager, None, &mut object);
        let value = options.to_value("CreateOptions", &cx.query);
        let admission = self.admission_for(cx, scope, Operation::Create, options.dry_run, &value)?;
        admission.mutate(Some(&mut object), None).await?;
        dedup_owner_references(&mut object, &cx.warnings, " after mutating admission happens");
        if scope.group_version() != scope.hub() {
            scope.resource.convert(&mut object, scope.group_version(), scope.hub())?;
        }
        let write = admission.write(scope);
        let stored = scope.store()?.create(object, write, &admission).await?;
        encode::stored_response(cx, scope, accepted, 201, stored)
    }

    /// The admission of one request, ready to be asked.
    pub(super) fn admission_for<'a>(
        &'a self,
        cx: &'a Exchange,
        scope: &'a Scope<'a>,
        operation: Operation,
        dry_run: bool,
        options: &'a Value,
    ) -> Result<Admission<'a>, ApiError> {
        let user = cx.user.as_ref().ok_or_else(|| ApiError::internal("no user found for request"))?;
        Ok(Admission {
            chain: &self.admission,
            rights: &self.rights,
            rbac: &self.rbac,
            user,
            warnings: &cx.warnings,
            scope,
            operation,
            dry_run,
            options,
            now: clock::now_seconds(),
            ttl: (&*scope.resource.prefix == "/registry/events/").then_some(self.event_ttl),
        })
    }
}

/// One request's way through admission; also what the store asks before it writes.
pub struct Admission<'a> {
    chain: &'a admission::Chain,
    rights: &'a Rights,
    rbac: &'a Rbac,
    user: &'a Arc<UserInfo>,
    warnings: &'a Warnings,
    scope: &'a Scope<'a>,
    pub operation: Operation,
    pub dry_run: bool,
    options: &'a Value,
    now: jiff::Timestamp,
    ttl: Option<std::time::Duration>,
}

impl<'a> Admission<'a> {
    fn attributes(&self, operation: Operation, name: &'a str) -> admission::Attributes<'a> {
        let kind = body::Kind::of(self.scope);
        admission::Attributes {
            operation,
            group: &self.scope.resource.group,
            version: &self.scope.version.name,
            kind: kind.kind,
            resource: &self.scope.resource.plural,
            subresource: self.scope.subresource_name(),
            namespace: &self.scope.info.namespace,
            name,
            user: self.user,
            dry_run: self.dry_run,
            options: self.options,
            warnings: self.warnings,
        }
    }

    pub async fn mutate(&self, mut object: Option<&mut Value>, old: Option<&Value>) -> Result<(), ApiError> {
        let given = object.as_deref().map(|object| Meta::of(object).name().to_owned()).unwrap_or_default();
        let name = if self.scope.name.is_empty() { given } else { self.scope.name.to_owned() };
        let operation = self.operation_for(old, object.is_some());
        if self.scope.resource.terminating && operation == Operation::Create {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(self.scope.gr(), &name, why));
        }
        let mut attributes = self.attributes(operation, "");
        attributes.name = &name;
        self.chain.admit(&attributes, object.as_deref_mut(), old).await?;
        match object {
            Some(new) => self.check_grant(new, old).await,
            None => Ok(()),
        }
    }

    /// Roles and bindings grant, and nobody grants what they do not hold. Judged after mutation, before validation.
    async fn check_grant(&self, new: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        if &*self.scope.resource.group != rbac::GROUP || self.user.in_group(MASTERS) {
            return Ok(());
        }
        // A role made a moment ago counts.
        self.scope.store()?.consistent().await?;
        let write = RoleWrite {
            user: self.user,
            resource: &self.scope.resource.plural,
            namespace: self.scope.namespace,
            request_name: self.scope.name,
            new,
            old,
        };
        check_escalation(self.rbac, &*self.rights.authorizer(), write).await
    }

    /// An update of what is not there is a create.
    fn operation_for(&self, old: Option<&Value>, has_object: bool) -> Operation {
        match self.operation {
            Operation::Update if old.is_none() && has_object => Operation::Create,
            other => other,
        }
    }

    pub fn write(&self, scope: &'a Scope<'a>) -> WriteContext<'a> {
        WriteContext {
            strategy: scope.strategy(),
            version: scope.hub(),
            cx: StrategyContext {
                namespace: scope.namespace,
                now: self.now,
                user: &self.user.name,
                groups: &self.user.groups,
                warnings: self.warnings,
            },
            dry_run: self.dry_run,
            ttl: self.ttl,
        }
    }

    /// Validating admission in the request's version, with objects of the hub's version.
    async fn judge(&self, new: Option<&Value>, old: Option<&Value>) -> Result<(), ApiError> {
        let convert = |object: &Value| {
            let mut object = object.clone();
            self.scope.resource.convert(&mut object, self.scope.hub(), self.scope.group_version())?;
            Ok::<Value, ApiError>(object)
        };
        let other_version = self.scope.hub() != self.scope.group_version();
        let (new, old) = if other_version {
            (
                new.map(convert).transpose()?.map(std::borrow::Cow::Owned),
                old.map(convert).transpose()?.map(std::borrow::Cow::Owned),
            )
        } else {
            (new.map(std::borrow::Cow::Borrowed), old.map(std::borrow::Cow::Borrowed))
        };
        let given =
            new.as_deref().or(old.as_deref()).map(|object| Meta::of(object).name().to_owned()).unwrap_or_default();
        let mut attributes = self.attributes(self.operation_for(old.as_deref(), new.is_some()), "");
        attributes.name = &given;
        self.chain.validate(&attributes, new.as_deref(), old.as_deref()).await
    }
}

impl Admit for Admission<'_> {
    fn admit<'b>(&'b self, new: Option<&'b Value>, old: Option<&'b Value>) -> AdmitFuture<'b> {
        Box::pin(self.judge(new, old))
    }
}

/// The body's namespace is the path's.
pub fn fill_namespace(scope: &Scope<'_>, object: &mut Value) -> Result<(), ApiError> {
    let given = Meta::of(object).namespace();
    if !scope.resource.namespaced {
        if !given.is_empty() {
            object.remove_at(&["metadata", "namespace"]);
        }
        return Ok(());
    }
    if !given.is_empty() && given != scope.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object.set(&["metadata", "namespace"], scope.namespace);
    Ok(())
}

/// What only the server sets.
fn wipe_system_fields(object: &mut Value) {
    let metadata = object.make(&["metadata"]).make_object();
    for name in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(name);
    }
}

/// Removes owner references that are there twice, and says so.
pub fn dedup_owner_references(object: &mut Value, warnings: &Warnings, when: &str) {
    let Some(references) = object.at_mut(&["metadata", "ownerReferences"]).and_then(Value::as_array_mut) else {
        return;
    };
    if references.len() < 2 {
        return;
    }
    let mut repeated: Vec<String> = Vec::new();
    let mut seen: std::collections::HashMap<String, Vec<usize>> = Default::default();
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    for reference in references.drain(..) {
        let uid = reference.str_at(&["uid"]).to_owned();
        let same = seen.entry(uid.clone()).or_default();
        if same.iter().any(|at| kept.get(*at) == Some(&reference)) {
            if !repeated.contains(&uid) {
                repeated.push(uid);
            }
            continue;
        }
        same.push(kept.len());
        kept.push(reference);
    }
    *references = kept;
    if !repeated.is_empty() {
        warnings.add(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
}
