//! Nobody grants what they do not hold (kubernetes `pkg/registry/rbac/{escalation_check.go,*/policybased}`).
//!
//! Whoever writes a role must hold all it says, or the verb `escalate` on it; whoever writes a binding must hold
//! all of the role it refers to, or the verb `bind` on that. Members of `system:masters` and in-process clients are
//! not asked. Roles and bindings are read from the cache: the caller makes sure that it has caught up with the
//! store first, so that a role made a moment ago is there.

use super::authz::{Attributes, Authorizer, PolicyRule, Rbac, describe_missing, missing, quote_list, rbac::GROUP};
use super::user::{MASTERS, UserInfo};
use crate::api::{ApiError, field::quote, status::GroupResource};
use crate::object::Value;

/// One write of a role or binding, as the registry is about to make it: after admission, before validation.
#[derive(Clone, Copy)]
pub struct RoleWrite<'a> {
    pub user: &'a UserInfo,
    /// `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`; others are never refused.
    pub resource: &'a str,
    /// The namespace of the request; `""` at the cluster scope.
    pub namespace: &'a str,
    /// The name in the request's path; `""` for a POST.
    pub request_name: &'a str,
    pub new: &'a Value,
    /// What is stored; `None` on creation.
    pub old: Option<&'a Value>,
}

/// Refuses a write that would grant more than the user holds. `rbac` knows what the user holds; `authorizer` (the
/// whole chain) is asked for `escalate` and `bind`.
pub async fn check_escalation(rbac: &Rbac, authorizer: &dyn Authorizer, write: RoleWrite<'_>) -> Result<(), ApiError> {
    if write.user.in_group(MASTERS) {
        return Ok(());
    }
    match write.resource {
        "roles" | "clusterroles" => check_role(rbac, authorizer, write).await,
        "rolebindings" | "clusterrolebindings" => check_binding(rbac, authorizer, write).await,
        _ => Ok(()),
    }
}

impl RoleWrite<'_> {
    fn group_resource(&self) -> GroupResource<'_> {
        GroupResource::new(GROUP, self.resource)
    }

    fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.group_resource(), self.new.str_at(&["metadata", "name"]), why)
    }

    /// Garbage collection may change owners and finalizers of what it could not grant.
    fn only_for_garbage_collection(&self) -> bool {
        let Some(old) = self.old else { return false };
        let stripped = |object: &Value| {
            let mut object = object.clone();
            for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                object.remove_at(&["metadata", field]);
            }
            object
        };
        stripped(self.new) == stripped(old)
    }

    async fn may(&self, authorizer: &dyn Authorizer, verb: &str, resource: &str, group: &str, name: &str) -> bool {
        let mut attributes = Attributes::of_resource(self.user, verb, group, "*", resource);
        (attributes.namespace, attributes.name) = (self.namespace, name);
        authorizer.authorize(&attributes).await.allowed()
    }
}

async fn check_role(rbac: &Rbac, authorizer: &dyn Authorizer, write: RoleWrite<'_>) -> Result<(), ApiError> {
    if write.may(authorizer, "escalate", write.resource, GROUP, write.request_name).await
        || write.only_for_garbage_collection()
    {
        return Ok(());
    }
    let held = Held::of(rbac, &write);
    held.cover(&PolicyRule::all_of(write.new)).map_err(|why| write.forbidden(&why))?;
    let aggregates = |role: &Value| !role.array_at(&["aggregationRule", "clusterRoleSelectors"]).is_empty();
    // It can gather anything, and hides what a narrower role would take away.
    if write.resource == "clusterroles" && (aggregates(write.new) || write.old.is_some_and(aggregates)) {
        held.cover(&PolicyRule::full_authority())
            .map_err(|_| write.forbidden("must have cluster-admin privileges to use the aggregationRule"))?;
    }
    Ok(())
}

async fn check_binding(rbac: &Rbac, authorizer: &dyn Authorizer, write: RoleWrite<'_>) -> Result<(), ApiError> {
    if write.only_for_garbage_collection() {
        return Ok(());
    }
    let kind = write.new.str_at(&["roleRef", "kind"]);
    let name = write.new.str_at(&["roleRef", "name"]);
    let resource = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        other => return Err(ApiError::unmapped(format!("unsupported role reference kind: {}", quote(other)))),
    };
    if write.may(authorizer, "bind", resource, write.new.str_at(&["roleRef", "apiGroup"]), name).await {
        return Ok(());
    }
    // Upstream's error names the binding's resource and the role's name.
    let rules = rbac
        .rules_of_reference(kind, write.namespace, name)
        .ok_or_else(|| ApiError::not_found(write.group_resource(), name))?;
    Held::of(rbac, &write).cover(&rules).map_err(|why| write.forbidden(&why))
}

/// What a user holds in a namespace.
struct Held<'a> {
    user: &'a UserInfo,
    rules: Vec<PolicyRule>,
    errors: Vec<String>,
}

impl<'a> Held<'a> {
    fn of(rbac: &Rbac, write: &RoleWrite<'a>) -> Self {
        let (rules, errors) = rbac.rules_of_user(write.user, write.namespace);
        Self { user: write.user, rules, errors }
    }

    /// Fails with what the user is told.
    fn cover(&self, wanted: &[PolicyRule]) -> Result<(), String> {
        let (user, groups) = (quote(&self.user.name), quote_list(&self.user.groups));
        let Ok(missing) = missing(&self.rules, wanted) else {
            return Err(format!(
                "user {user} (groups={groups}) is attempting to grant more RBAC permissions than can be compared"
            ));
        };
        if missing.is_empty() {
            return Ok(());
        }
        let mut why = format!(
            "user {user} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
            describe_missing(missing)
        );
        if let Some(errors) = super::authz::aggregate(self.errors.clone()) {
            why.push_str(&format!("; resolution errors: [{errors}]"));
        }
        Err(why)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;
    use crate::auth::testing::{Objects, Rules, rule};
    use crate::json;

    struct World {
        objects: Arc<Objects>,
        rbac: Rbac,
        user: UserInfo,
    }

    /// A user who may get and list config maps in namespace n.
    fn world() -> World {
        let objects = Arc::new(Objects::default());
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]);
        objects.put(GROUP, "roles", json!({"metadata": {"name": "r", "namespace": "n"}, "rules": rules}));
        objects.put(
            GROUP,
            "rolebindings",
            json!({"metadata": {"name": "r", "namespace": "n"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}),
        );
        World {
            rbac: Rbac::new(objects.clone()),
            objects,
            user: UserInfo::named("u").with_groups(["g", "system:authenticated"]),
        }
    }

    fn role(resource: &str, verb: &str) -> Value {
        json!({"metadata": {"name": "new"}, "rules": [{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]})
    }

    fn to(kind: &str, name: &str) -> Value {
        json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}})
    }

    fn check(
        world: &World,
        allowed: &[PolicyRule],
        resource: &str,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let namespace = if resource.starts_with("cluster") { "" } else { "n" };
        let request_name = if old.is_some() { new.str_at(&["metadata", "name"]) } else { "" };
        let write = RoleWrite { user: &world.user, resource, namespace, request_name, new, old };
        let authorizer = Rules::new(allowed.to_vec());
        let check: futures_util::future::BoxFuture<'_, _> = Box::pin(check_escalation(&world.rbac, &authorizer, write));
        check.now_or_never().unwrap()
    }

    #[test]
    fn a_role_may_say_what_its_writer_holds_and_no_more() {
        let world = world();
        assert!(check(&world, &[], "roles", &role("configmaps", "get"), None).is_ok());
        assert!(check(&world, &[], "roles", &json!({"metadata": {"name": "empty"}}), None).is_ok());
        let error = check(&world, &[], "roles", &role("secrets", "get"), None).unwrap_err();
        assert_eq!(
            error.message,
            "roles.rbac.authorization.k8s.io \"new\" is forbidden: user \"u\" (groups=[\"g\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
        );
        // What is held in one namespace is not held in the cluster.
        assert!(check(&world, &[], "clusterroles", &role("configmaps", "get"), None).is_err());
    }

    #[test]
    fn escalate_and_bind_help() {
        let world = world();
        let escalate = rule(GROUP, "roles", "escalate", "new");
        // By name it helps updates only: a POST has no name in its path.
        assert!(check(&world, std::slice::from_ref(&escalate), "roles", &role("secrets", "get"), None).is_err());
        assert!(check(&world, &[escalate], "roles", &role("secrets", "get"), Some(&role("x", "y"))).is_ok());
        let bind = rule(GROUP, "clusterroles", "bind", "big");
        assert!(check(&world, std::slice::from_ref(&bind), "rolebindings", &to("ClusterRole", "big"), None).is_ok());
        assert!(check(&world, &[bind], "rolebindings", &to("ClusterRole", "other"), None).is_err());
    }

    #[test]
    fn a_binding_to_a_missing_role_is_not_found_under_the_bindings_own_resource() {
        let error = check(&world(), &[], "rolebindings", &to("Role", "none"), None).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (404, "rolebindings.rbac.authorization.k8s.io \"none\" not found")
        );
    }

    #[test]
    fn a_binding_grants_what_its_role_says() {
        let world = world();
        world.objects.put(
            GROUP,
            "clusterroles",
            json!({"metadata": {"name": "all"}, "rules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}]}),
        );
        assert!(check(&world, &[], "rolebindings", &to("Role", "r"), None).is_ok());
        let error = check(&world, &[], "rolebindings", &to("ClusterRole", "all"), None).unwrap_err();
        assert!(error.message.ends_with("\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"), "{}", error.message);
    }

    #[test]
    fn labels_of_a_stronger_role_may_not_be_changed_but_its_finalizers_may() {
        let world = world();
        let old = role("secrets", "get");
        let mut labelled = old.clone();
        labelled.set(&["metadata", "labels"], json!({"a": "b"}));
        assert!(check(&world, &[], "roles", &labelled, Some(&old)).is_err());
        let mut finalized = old.clone();
        finalized.set(&["metadata", "finalizers"], json!(["x"]));
        assert!(check(&world, &[], "roles", &finalized, Some(&old)).is_ok());
    }

    #[test]
    fn aggregation_needs_everything() {
        let world = world();
        let aggregated = json!({"metadata": {"name": "x"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
        let error = check(&world, &[], "clusterroles", &aggregated, None).unwrap_err();
        assert_eq!(
            error.message,
            "clusterroles.rbac.authorization.k8s.io \"x\" is forbidden: must have cluster-admin privileges to use the aggregationRule"
        );
        let mut masters = World { user: UserInfo::named("root").with_groups([MASTERS]), ..world };
        assert!(check(&masters, &[], "clusterroles", &aggregated, None).is_ok());
        masters.user.groups.clear();
        assert!(check(&masters, &[], "clusterroles", &aggregated, None).is_err());
    }
}
