//! The strategies of Services and of their status (kubernetes `pkg/registry/core/service/strategy.go`).

use std::sync::OnceLock;

use super::{
    allocate::default_on_read,
    validation, view,
    view::{Family, spec},
    warnings,
};
use crate::{
    api::{ErrorList, names::Messages},
    object::Value,
    registry::{
        strategy::{ResetFields, Strategy, StrategyContext, name_is_dns_label},
        validation::validate_bare_finalizers,
    },
    schema::ownership::FieldSet,
};

pub struct ServiceStrategy {
    pub default_family: Family,
}

impl Strategy for ServiceStrategy {
    fn prepare_for_create(&self, _cx: &StrategyContext<'_>, new: &mut Value) {
        new.set(&["status"], empty_status());
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validation::validate_service(new, None, errors);
    }

    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        let status = old.get("status").cloned().unwrap_or_else(empty_status);
        new.set(&["status"], status);
        drop_type_dependent_fields(new, old);
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let mut complete = old.clone();
        default_on_read(&mut complete, self.default_family);
        validate_bare_finalizers(new, errors);
        validation::validate_service_update(new, &complete, errors);
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::of_service(new)
    }

    /// Upstream stores this field of a type that has no use for it and leaves it out when it is read.
    fn canonicalise(&self, new: &mut Value) {
        if view::is_external_name(new) {
            new.remove_at(&["spec", "internalTrafficPolicy"]);
        }
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        name_is_dns_label(name, prefix)
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn reset_fields(&self) -> ResetFields {
        static STATUS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(STATUS.get_or_init(|| FieldSet::of(&[&["status"]])))
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn decorate(&self, object: &mut Value) {
        default_on_read(object, self.default_family);
    }
}

pub struct StatusStrategy {
    pub default_family: Family,
}

impl Strategy for StatusStrategy {
    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        let old_spec = old.get("spec").cloned().unwrap_or_else(Value::object);
        new.set(&["spec"], old_spec);
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validation::validate_status(new, old, errors);
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::of_status(new)
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        name_is_dns_label(name, prefix)
    }

    fn reset_fields(&self) -> ResetFields {
        static SPEC: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(SPEC.get_or_init(|| FieldSet::of(&[&["spec"]])))
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn runs_lifecycle(&self) -> bool {
        false
    }

    fn decorate(&self, object: &mut Value) {
        default_on_read(object, self.default_family);
    }
}

fn empty_status() -> Value {
    crate::json!({"loadBalancer": {}})
}

/// Clears what the new type has no use for, where it may have been set by the server and the client left it alone; what
/// the client changed is for validation to refuse.
fn drop_type_dependent_fields(new: &mut Value, old: &Value) {
    drop_addresses(new, old);
    drop_ports(new, old);
    let left_load_balancer = view::is_load_balancer(old) && !view::is_load_balancer(new);
    if left_load_balancer {
        for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if view::set(new, name) == view::set(old, name) {
                spec(new).remove(name);
            }
        }
    }
    if view::externally_accessible(old)
        && !view::externally_accessible(new)
        && view::text(old, "externalTrafficPolicy") == view::text(new, "externalTrafficPolicy")
    {
        spec(new).remove("externalTrafficPolicy");
    }
    if !view::is_load_balancer(new) {
        new.set(&["status", "loadBalancer"], Value::object());
    }
}

fn drop_addresses(new: &mut Value, old: &Value) {
    if view::is_external_name(old) || !view::is_external_name(new) {
        return;
    }
    if view::text(old, "clusterIP") == view::text(new, "clusterIP") && view::same_list(old, new, "clusterIPs") {
        // They are given back once the write is done.
        spec(new).remove("clusterIP");
        spec(new).remove("clusterIPs");
    }
    if view::same_list(old, new, "ipFamilies") {
        spec(new).remove("ipFamilies");
    }
    if view::text(old, "ipFamilyPolicy") == view::text(new, "ipFamilyPolicy") {
        spec(new).remove("ipFamilyPolicy");
    }
}

fn drop_ports(new: &mut Value, old: &Value) {
    let has_ports = |service: &Value| matches!(view::kind(service), "NodePort" | "LoadBalancer");
    if has_ports(old) && !has_ports(new) {
        let before: std::collections::HashSet<i64> = view::node_ports_of(old).into_iter().collect();
        // Ports may have come and gone, as long as no node port is new.
        if view::node_ports_of(new).iter().all(|port| before.contains(port)) {
            view::ports_mut(new).for_each(|port| drop(port.remove("nodePort")));
        }
    }
    if view::needs_health_port(old) && !view::needs_health_port(new) && view::health_port(old) == view::health_port(new)
    {
        spec(new).remove("healthCheckNodePort");
    }
}
