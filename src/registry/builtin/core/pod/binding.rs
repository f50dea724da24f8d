//! Bindings: a scheduler tells a pod its node (kubernetes `pkg/registry/core/pod/storage`, BindingREST).

use std::sync::Arc;

use super::{
    annotations::drop_init_containers,
    status::set_condition,
    view::{items, map, text},
};
use crate::{
    api::{
        ApiError, ErrorList, FieldError, Meta, Path, Reason, duration::format_time, names::name_is_dns_subdomain,
        status::GroupResource,
    },
    json,
    object::{Map, Value},
    registry::{
        catalog::Stores,
        resource::{Call, CallContext, CallFuture},
        store::{Admit, AdmitFuture, Store, Transform, TransformFuture, WriteContext, storage_invalid},
        strategy::{DefaultStrategy, Strategy, StrategyContext},
        validation::object_meta::push_messages,
    },
};

/// `POST pods/{name}/binding` and `POST bindings`.
pub struct Binding {
    pub stores: Arc<Stores>,
}

impl Call for Binding {
    fn call<'a>(&'a self, cx: CallContext<'a>, body: Value) -> CallFuture<'a> {
        Box::pin(async move {
            let named = Meta::of(&body).name();
            let name = if named.is_empty() { cx.name } else { named }.to_owned();
            if !cx.name.is_empty() && cx.name != name {
                return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
            }
            let errors = validate_binding(&body);
            if !errors.is_empty() {
                return Err(ApiError::unmapped(errors.to_string()));
            }
            let store = pods(&self.stores)?;
            let key = store.resource.key(cx.namespace, &name);
            let mut assignment = Assignment { binding: &body, key: &key, now: format_time(cx.now) };
            let write = write_context(&cx, &store, &DefaultStrategy, cx.dry_run);
            store.update(&name, write, &mut assignment, &Anything, false).await?;
            Ok((201, success()))
        })
    }
}

/// The store of pods.
///
/// # Errors
/// ServiceUnavailable where pods are not served.
pub fn pods(stores: &Stores) -> Result<Arc<Store>, ApiError> {
    stores.get("", "pods").ok_or_else(|| ApiError::service_unavailable("pods are not served"))
}

/// A write of the server's own into `store`, for the request of `cx`; judged in the version that is stored.
pub fn write_context<'a>(
    cx: &CallContext<'a>,
    store: &'a Store,
    strategy: &'a dyn Strategy,
    dry_run: bool,
) -> WriteContext<'a> {
    let strategy_cx = StrategyContext {
        namespace: cx.namespace,
        now: cx.now,
        user: &cx.user.name,
        groups: &cx.user.groups,
        warnings: cx.warnings,
    };
    WriteContext { strategy, version: &store.resource.storage_group_version, cx: strategy_cx, dry_run, ttl: None }
}

/// What a call that did its work answers.
pub fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// The server's own writes are not admitted anew.
pub struct Anything;

impl Admit for Anything {
    fn admit<'a>(&'a self, _: Option<&'a Value>, _: Option<&'a Value>) -> AdmitFuture<'a> {
        Box::pin(async { Ok(()) })
    }
}

fn validate_binding(binding: &Value) -> ErrorList {
    const TARGET: Path<'static> = Path::new("target");
    let mut errors = ErrorList::new();
    let [kind, name] = ["kind", "name"].map(|key| binding.str_at(&["target", key]));
    let of_node = matches!(kind, "" | "Node");
    if !of_node {
        errors.push(FieldError::not_supported(&TARGET.child("kind"), kind, &["Node", "<empty>"]));
    }
    if name.is_empty() {
        errors.push(FieldError::required(&TARGET.child("name"), ""));
    } else if of_node {
        push_messages(name_is_dns_subdomain(name, false), name, &TARGET.child("name"), &mut errors);
    }
    errors
}

/// Writes a binding into its pod.
struct Assignment<'a> {
    binding: &'a Value,
    key: &'a str,
    now: String,
}

impl Assignment<'_> {
    fn assign(&self, pod: &Value) -> Result<Value, ApiError> {
        self.check_preconditions(pod)?;
        let name = Meta::of(pod).name();
        let refusal = if Meta::of(pod).is_being_deleted() {
            Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
        } else if !pod.str_at(&["spec", "nodeName"]).is_empty() {
            let node = crate::api::field::quote(pod.str_at(&["spec", "nodeName"]));
            Some(format!("pod {name} is already assigned to node {node}"))
        } else {
            let gated = pod.get("spec").is_some_and(|spec| !items(spec, "schedulingGates").is_empty());
            gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
        };
        if let Some(why) = refusal {
            return Err(ApiError::conflict(GroupResource::new("", "pods/binding"), name, &why));
        }
        let mut pod = pod.clone();
        pod.remove_at(&["metadata", "resourceVersion"]);
        pod.set(&["spec", "nodeName"], self.binding.str_at(&["target", "name"]));
        pod.remove_at(&["status", "nominatedNodeName"]);
        for member in ["annotations", "labels"] {
            let metadata = self.binding.get("metadata");
            for (key, value) in metadata.and_then(|it| map(it, member)).into_iter().flat_map(Map::iter) {
                pod.make(&["metadata", member]).make_object().insert(key.clone(), value.clone());
            }
        }
        drop_init_containers(&mut pod);
        let scheduled = json!({"type": "PodScheduled", "status": "True"});
        set_condition(pod.make(&["status"]), scheduled, &self.now);
        Ok(pod)
    }

    fn check_preconditions(&self, pod: &Value) -> Result<(), ApiError> {
        let metadata = self.binding.get("metadata").unwrap_or(&Value::Null);
        let (name, is) = (Meta::of(pod).name(), Meta::of(pod));
        for (wanted, is, what) in [
            (text(metadata, "uid"), is.uid(), "UID"),
            (text(metadata, "resourceVersion"), is.resource_version(), "ResourceVersion"),
        ] {
            if !wanted.is_empty() && wanted != is {
                let invalid = storage_invalid(self.key);
                let why = format!(
                    "{invalid}: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {is}"
                );
                return Err(ApiError::conflict(GroupResource::new("", "pods"), name, &why));
            }
        }
        Ok(())
    }
}

impl Transform for Assignment<'_> {
    fn transform<'a>(&'a mut self, old: Option<&'a Value>) -> TransformFuture<'a> {
        let assigned = match old {
            Some(pod) => self.assign(pod),
            None => Err(ApiError::new(404, Reason::NotFound, "the pod is gone")),
        };
        Box::pin(async { assigned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(metadata: Value) -> Value {
        json!({"metadata": metadata, "target": {"kind": "Node", "name": "n1"}})
    }

    fn assign(binding: &Value, pod: &Value) -> Result<Value, String> {
        let assignment = Assignment { binding, key: "/registry/pods/ns/a", now: "NOW".into() };
        assignment.assign(pod).map_err(|error| error.message.clone())
    }

    #[test]
    fn a_bound_pod_has_its_node_and_what_the_binding_brought() {
        let pod =
            json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {}, "status": {"nominatedNodeName": "n9"}});
        let bound = assign(&binding(json!({"labels": {"x": "2"}, "annotations": {"y": "3"}})), &pod).unwrap();
        assert_eq!(bound.str_at(&["spec", "nodeName"]), "n1");
        assert_eq!(
            bound.at(&["metadata"]),
            Some(&json!({"name": "a", "labels": {"x": "2"}, "annotations": {"y": "3"}}))
        );
        assert!(bound.at(&["status", "nominatedNodeName"]).is_none());
        let again = assign(&binding(json!({})), &bound).unwrap_err();
        assert_eq!(
            again,
            "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\""
        );
    }

    #[test]
    fn a_binding_of_another_pod_is_refused() {
        let pod = json!({"metadata": {"name": "a", "uid": "1"}});
        assert_eq!(
            assign(&binding(json!({"uid": "2"})), &pod).unwrap_err(),
            "Operation cannot be fulfilled on pods \"a\": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 2, UID in object meta: 1"
        );
    }

    #[test]
    fn a_target_is_a_node_with_a_name() {
        let errors = validate_binding(&json!({"target": {"kind": "Foo", "name": "n1"}}));
        assert_eq!(errors.to_string(), r#"target.kind: Unsupported value: "Foo": supported values: "Node", "<empty>""#);
        assert_eq!(validate_binding(&json!({"target": {}})).to_string(), "target.name: Required value");
    }
}
