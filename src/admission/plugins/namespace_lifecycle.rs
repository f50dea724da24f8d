//! NamespaceLifecycle: nothing is made in a namespace that is missing or going away, and the three oldest stay
//! (apiserver `pkg/admission/plugin/namespace/lifecycle`).

use std::sync::Arc;

use crate::{
    admission::{AdmissionFuture, Attributes, Operation, Phases, Plugin},
    api::{
        ApiError,
        status::{Cause, GroupResource},
    },
    object::Value,
    registry::reader::ObjectReader,
};

/// Namespaces that are never deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

const NAMESPACES: GroupResource<'static> = GroupResource::new("", "namespaces");

pub struct NamespaceLifecycle {
    pub reader: Arc<dyn ObjectReader>,
}

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation != Operation::Connect
    }

    fn phases(&self) -> Phases {
        Phases::Mutating
    }

    fn admit<'a>(
        &'a self,
        request: &'a Attributes<'a>,
        _object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        Box::pin(self.judge(request))
    }
}

impl NamespaceLifecycle {
    /// A namespace that was made a moment ago may not have reached the cache yet.
    async fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        let get = || self.reader.get("", "namespaces", "", name);
        if let Some(found) = get() {
            return Some(found);
        }
        self.reader.caught_up("", "namespaces").await;
        get()
    }

    async fn judge(&self, request: &Attributes<'_>) -> Result<(), ApiError> {
        let about_namespace = request.group.is_empty() && request.resource == "namespaces";
        if about_namespace {
            let refused = request.operation == Operation::Delete && IMMORTAL.contains(&request.name);
            return if refused {
                Err(ApiError::forbidden(NAMESPACES, request.name, "this namespace may not be deleted"))
            } else {
                Ok(())
            };
        }
        if request.namespace.is_empty()
            || request.operation != Operation::Create
            || request.is("authorization.k8s.io", "localsubjectaccessreviews", "")
        {
            return Ok(());
        }
        let Some(namespace) = self.namespace(request.namespace).await else {
            return Err(ApiError::not_found(NAMESPACES, request.namespace));
        };
        if namespace.str_at(&["status", "phase"]) != "Terminating" {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {} because it is being terminated", request.namespace);
        let mut error = request.forbidden(&why);
        if let Some(details) = &mut error.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {} is being terminated", request.namespace),
                field: "metadata.namespace".to_owned(),
            });
        }
        Err(error)
    }
}
