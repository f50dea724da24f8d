//! Amounts of resources in lists by name: sums, maxima, comparison, and which names there are
//! (kubernetes `pkg/apis/core/helper`, component-helpers `resource`).

use std::{cmp::Ordering, collections::BTreeMap};

use super::view::{is_sidecar, items, map};
use crate::{
    api::{names::is_qualified_name, quantity::Quantity},
    object::{Map, Value},
};

pub const HUGE_PAGES: &str = "hugepages-";
const REQUESTS_PREFIX: &str = "requests.";

/// Amounts by resource name, in name order.
pub type Amounts = BTreeMap<String, Quantity>;

/// What a decoded object holds always parses; what does not counts as nothing.
pub fn quantity(value: &Value) -> Quantity {
    Quantity::from_value(value).unwrap_or_else(|_| Quantity::zero())
}

/// The amount of one resource, if the list has it.
pub fn amount(list: Option<&Map>, name: &str) -> Option<Quantity> {
    list?.get(name).map(quantity)
}

pub fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// A name without a domain, or one of Kubernetes' own.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(REQUESTS_PREFIX)
        && is_qualified_name(&format!("{REQUESTS_PREFIX}{name}")).is_empty()
}

/// Whether requests may be lower than limits.
pub fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Names without a domain that mean something somewhere.
pub fn is_standard(name: &str) -> bool {
    matches!(
        name,
        "cpu"
            | "memory"
            | "ephemeral-storage"
            | "requests.cpu"
            | "requests.memory"
            | "requests.ephemeral-storage"
            | "limits.cpu"
            | "limits.memory"
            | "limits.ephemeral-storage"
            | "storage"
            | "requests.storage"
    ) || is_counted_object(name)
        || is_huge_pages(name)
        || name.starts_with("requests.hugepages-")
}

fn is_counted_object(name: &str) -> bool {
    matches!(
        name,
        "pods"
            | "resourcequotas"
            | "services"
            | "replicationcontrollers"
            | "secrets"
            | "configmaps"
            | "persistentvolumeclaims"
            | "services.nodeports"
            | "services.loadbalancers"
    )
}

/// What comes in whole numbers only.
pub fn is_integer(name: &str) -> bool {
    is_counted_object(name) || is_extended(name)
}

pub fn is_standard_for_containers(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_pages(name)
}

/// What `spec.resources` of a pod may speak of.
pub fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

/// Whether `spec.resources` says anything that counts.
pub fn has_pod_level_resources(spec: &Value) -> bool {
    let Some(resources) = spec.get("resources") else { return false };
    ["requests", "limits"]
        .iter()
        .any(|list| map(resources, list).is_some_and(|it| it.keys().any(|name| is_pod_level(name))))
}

/// Which of a container's lists is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Requests,
    Limits,
}

impl List {
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// What a pod's containers need together: the sum of those that run at once, or what an init container needs beside
/// the sidecars before it, whichever is more.
pub fn aggregate(spec: &Value, list: List) -> Amounts {
    let mut result = Amounts::new();
    for container in items(spec, "containers") {
        add(&mut result, container_list(container, list));
    }
    let mut sidecars = Amounts::new();
    let mut init = Amounts::new();
    for container in items(spec, "initContainers") {
        let own = container_list(container, list);
        if is_sidecar(container) {
            add(&mut result, own);
            add(&mut sidecars, own);
            raise(&mut init, &sidecars);
        } else {
            let mut together = Amounts::new();
            add(&mut together, own);
            for (name, value) in &sidecars {
                add_one(&mut together, name, value);
            }
            raise(&mut init, &together);
        }
    }
    raise(&mut result, &init);
    result
}

fn container_list(container: &Value, list: List) -> Option<&Map> {
    container.object_at(&["resources", list.name()])
}

fn add(sum: &mut Amounts, list: Option<&Map>) {
    for (name, value) in list.into_iter().flat_map(Map::iter) {
        add_one(sum, name, &quantity(value));
    }
}

fn add_one(sum: &mut Amounts, name: &str, value: &Quantity) {
    match sum.get_mut(name) {
        Some(have) => have.add(value),
        None => {
            sum.insert(name.to_owned(), value.clone());
        }
    }
}

/// Raises each amount to the other's where that is more.
fn raise(amounts: &mut Amounts, to: &Amounts) {
    for (name, value) in to {
        match amounts.get_mut(name) {
            Some(have) if value.cmp(have) == Ordering::Greater => *have = value.clone(),
            Some(_) => {}
            None => {
                amounts.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Members whose texts are amounts.
fn is_amount(key: &str) -> bool {
    matches!(key, "sizeLimit" | "divisor")
}

/// Members that are lists of amounts.
fn is_list_of_amounts(key: &str) -> bool {
    matches!(key, "limits" | "requests" | "overhead")
}

/// Whether two parts of pods mean the same: as the trees are, but for amounts, which are compared by value.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(b.iter()).all(|((key, x), (other, y))| {
                    key == other
                        && match (x, y) {
                            (Value::Object(x), Value::Object(y)) if is_list_of_amounts(key) => same_amounts(x, y),
                            _ if is_amount(key) => quantity(x).cmp(&quantity(y)) == Ordering::Equal,
                            _ => same(x, y),
                        }
                })
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y)),
        _ => a == b,
    }
}

fn same_amounts(a: &Map, b: &Map) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b.iter())
            .all(|((key, x), (other, y))| key == other && quantity(x).cmp(&quantity(y)) == Ordering::Equal)
}

/// The same for members that may be missing.
pub fn same_member(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.filter(|it| !it.is_null()), b.filter(|it| !it.is_null())) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn cpu(amount: &str) -> Value {
        json!({"resources": {"requests": {"cpu": amount}}})
    }

    fn with_policy(mut container: Value) -> Value {
        container.set(&["restartPolicy"], "Always");
        container
    }

    #[test]
    fn init_containers_count_beside_the_sidecars_before_them() {
        let init = vec![cpu("5"), with_policy(cpu("1")), cpu("2")];
        let spec = json!({"containers": [(cpu("1")), (cpu("500m"))], "initContainers": (Value::Array(init))});
        assert_eq!(aggregate(&spec, List::Requests)["cpu"].to_string(), "5");
        let spec = json!({"containers": [(cpu("1"))], "initContainers": [(with_policy(cpu("1"))), (cpu("2"))]});
        assert_eq!(aggregate(&spec, List::Requests)["cpu"].to_string(), "3");
    }

    #[test]
    fn amounts_are_compared_by_value_and_texts_as_they_are() {
        let pod = |memory: &str, image: &str| json!({"containers": [{"image": image, "resources": {"limits": {"memory": memory}}}]});
        assert!(same(&pod("1Gi", "a"), &pod("1073741824", "a")));
        assert!(!same(&pod("1Gi", "a"), &pod("1Gi", "b")));
        assert!(!same(&pod("1Gi", "a"), &pod("2Gi", "a")));
    }

    #[test]
    fn names_are_told_apart() {
        assert!(is_extended("example.com/gpu") && is_integer("example.com/gpu"));
        assert!(!is_extended("kubernetes.io/x") && !is_extended("requests.example.com/gpu"));
        assert!(is_overcommit_allowed("cpu") && !is_overcommit_allowed("hugepages-2Mi"));
        assert!(is_standard("requests.hugepages-2Mi") && !is_standard("foo"));
    }
}
