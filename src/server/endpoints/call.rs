//! Documents that are answered and not stored (reviews, bindings, evictions, tokens), and lists that are made up.

use std::sync::Arc;

use super::{
    Endpoints, Scope, body,
    create::fill_namespace,
    encode, list,
    options::{ListOptions, WriteOptions},
    ownership,
    selectors::Selectors,
};
use crate::{
    admission::Operation,
    api::{ApiError, clock, status::GroupResource},
    registry::resource::{Call, CallContext, Compute, Verb},
    server::{context::Exchange, http::Response, respond},
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
        ownership::track_call(scope, &manager, &mut object);
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
    pub(super) async fn computed(
        self: &Arc<Self>,
        cx: &mut Exchange,
        scope: &Scope<'_>,
        verb: Verb,
        objects: &dyn Compute,
    ) -> Result<Response, ApiError> {
        if verb == Verb::Get {
            let accepted = encode::accepted(cx, scope, false)?;
            // Upstream names the one kind of this sort by its singular.
            let gr = GroupResource::new(scope.gr().group, &scope.resource.singular);
            let object = objects.get(scope.name).await.ok_or_else(|| ApiError::not_found(gr, scope.name))?;
            return encode::object_response(cx, scope, accepted, 200, object);
        }
        let options = ListOptions::decode(&cx.query, false)?;
        let selectors = Selectors::parse(scope, &options.label_selector, &options.field_selector)?;
        if verb == Verb::Watch {
            return Err(ApiError::method_not_supported(scope.gr(), "watch"));
        }
        let accepted = encode::accepted(cx, scope, false)?;
        let mut found = objects.list().await;
        found.retain(|object| selectors.match_object(object));
        let value = list::computed(cx, scope, accepted, found)?;
        Ok(respond::document(cx, 200, accepted, &value))
    }
}
