//! Documents that are answered and not stored (reviews, bindings, evictions, tokens), and lists that are made up.

use std::sync::Arc;

use super::{Endpoints, Scope, body, create::fill_namespace, encode, list, options::WriteOptions, ownership};
use crate::{
    admission::Operation,
    api::{ApiError, Meta, clock},
    object::Value,
    registry::resource::{Call, CallContext, Verb},
    server::{context::Exchange, http::Response},
};

impl Endpoints {
    pub(super) async fn call(
        self: &Arc<Self>,
        cx: &mut Exchange,
        scope: &Scope<'_>,
        call: &dyn Call,
    ) -> Result<Response, ApiError> {
        let options = WriteOptions::decode(&cx.query, "CreateOptions", None)?;
        let accepted = encode::accepted(cx, scope, false)?;
        let mut object = body::read(cx, scope, options.field_validation).await?;
        fill_namespace(scope, &mut object)?;
        let manager = ownership::manager(cx, &options.field_manager);
        if scope.subresource.is_none() {
            ownership::track(scope, &manager, None, &mut object);
        }
        let value = options.to_value("CreateOptions", &cx.query);
        let user = cx.user.clone().ok_or_else(|| ApiError::internal("no user found for request"))?;
        let admission = self.admission_for(cx, scope, Operation::Create, options.dry_run, &value)?;
        admission.mutate(Some(&mut object), None).await?;
        use crate::registry::store::Admit;
        admission.admit(Some(&object), None).await?;
        let context = CallContext {
            namespace: scope.namespace,
            name: scope.name,
            user: &user,
            dry_run: options.dry_run,
            now: clock::now_seconds(),
            manager: &manager,
            warnings: &cx.warnings,
        };
        let (status, answer) = call.call(context, object).await?;
        encode::object_response(cx, scope, accepted, status, answer)
    }

    /// Reads of objects that exist only while they are looked at.
    pub(super) fn computed(
        self: &Arc<Self>,
        cx: &mut Exchange,
        scope: &Scope<'_>,
        verb: Verb,
        make: &(dyn Fn() -> Vec<Value> + Send + Sync),
    ) -> Result<Response, ApiError> {
        let accepted = encode::accepted(cx, scope, false)?;
        let objects = make();
        match verb {
            Verb::Get => {
                let found = objects.into_iter().find(|object| Meta::of(object).name() == scope.name);
                let object = found.ok_or_else(|| ApiError::not_found(scope.gr(), scope.name))?;
                encode::object_response(cx, scope, accepted, 200, object)
            }
            _ => {
                let value = list::computed(cx, scope, accepted, objects)?;
                Ok(crate::server::respond::document(cx, 200, accepted, &value))
            }
        }
    }
}
