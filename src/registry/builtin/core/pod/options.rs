//! What a rule may let pass because the old object has it already, and what the server's configuration says
//! (kubernetes `pkg/api/pod/util.go`, GetValidationOptionsFromPodSpecAndMeta). Feature gates have their defaults.

use super::{
    annotations, quantities, scheduling, security,
    view::{annotation, containers, given, is_sidecar, items, map, text},
    volumes,
};
use crate::{
    api::{ErrorList, Path},
    object::{Map, Value},
    registry::validation::{LabelSelectorOptions, selector::has_invalid_label_value, validate_label_selector},
};

/// What the configuration says about pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodPolicy {
    /// Whether containers may be privileged (`--allow-privileged`). Default: false.
    pub allow_privileged: bool,
}

/// How strict validation is. What an update found in the old object stays allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodOptions {
    pub allow_privileged: bool,
    /// A pod rather than a template.
    pub is_pod: bool,
    pub invalid_deletion_cost: bool,
    pub indivisible_huge_pages: bool,
    pub invalid_affinity_selector: bool,
    pub invalid_spread_selector: bool,
    pub invalid_required_node_affinity: bool,
    /// `matchLabelKeys` of a spread constraint may also be keys of its selector.
    pub merged_label_keys: bool,
    pub non_local_token_path: bool,
    pub host_sysctls: bool,
    pub restart_container_of_init: bool,
    pub devices_with_user_namespace: bool,
    pub host_network_with_user_namespace: bool,
    pub comparison_operators: bool,
    pub empty_image_reference: bool,
    pub sys_admin_without_escalation: bool,
}

impl PodOptions {
    /// For a new object (`old` is `None`) or the update of one. `old` is the old pod or template.
    pub fn new(policy: PodPolicy, is_pod: bool, old: Option<&Value>) -> Self {
        let new = Self { allow_privileged: policy.allow_privileged, is_pod, ..Self::default() };
        let Some(old) = old else { return new };
        let none = Value::object();
        let spec = old.get("spec").unwrap_or(&none);
        let user_namespace = spec.get("hostUsers").and_then(Value::as_bool) == Some(false);
        Self {
            invalid_deletion_cost: !annotations::is_deletion_cost(annotations_of(old)),
            indivisible_huge_pages: has_indivisible_huge_pages(spec),
            invalid_affinity_selector: has_invalid_affinity_selector(spec),
            invalid_spread_selector: has_invalid_spread_selector(spec),
            invalid_required_node_affinity: scheduling::has_invalid_node_affinity_values(spec),
            merged_label_keys: has_merged_label_keys(spec),
            non_local_token_path: volumes::has_non_local_token_path(spec),
            host_sysctls: security::has_host_sysctl(spec),
            restart_container_of_init: has_restart_container_of_init(spec),
            devices_with_user_namespace: user_namespace
                && containers(spec).any(|it| !items(it, "volumeDevices").is_empty()),
            host_network_with_user_namespace: user_namespace && spec.bool_at(&["hostNetwork"]),
            comparison_operators: items(spec, "tolerations")
                .iter()
                .any(|it| matches!(text(it, "operator"), "Lt" | "Gt")),
            empty_image_reference: items(spec, "volumes")
                .iter()
                .any(|volume| given(volume, "image").is_some_and(|image| text(image, "reference").is_empty())),
            sys_admin_without_escalation: containers(spec).any(has_sys_admin_without_escalation),
            ..new
        }
    }
}

fn annotations_of(object: &Value) -> Option<&Map> {
    super::view::annotations(object)
}

fn has_indivisible_huge_pages(spec: &Value) -> bool {
    let bad = |container: &Value, list: &str| {
        let amounts = container.object_at(&["resources", list]);
        amounts.into_iter().flat_map(Map::iter).any(|(name, value)| {
            quantities::is_huge_pages(name) && !super::resources::is_divisible(name, &quantities::quantity(value))
        })
    };
    ["initContainers", "containers"]
        .iter()
        .flat_map(|list| items(spec, list))
        .any(|container| bad(container, "limits") || bad(container, "requests"))
}

fn has_errors(check: impl FnOnce(&mut ErrorList)) -> bool {
    let mut errors = ErrorList::new();
    check(&mut errors);
    !errors.is_empty()
}

fn selector_is_bad(selector: Option<&Value>) -> bool {
    has_invalid_label_value(selector)
        || has_errors(|e| validate_label_selector(selector, LabelSelectorOptions::default(), &Path::ROOT, e))
}

fn has_invalid_affinity_selector(spec: &Value) -> bool {
    let bad =
        |term: &Value| selector_is_bad(term.get("labelSelector")) || selector_is_bad(term.get("namespaceSelector"));
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        spec.array_at(&["affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"]).iter().any(bad)
            || spec
                .array_at(&["affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"])
                .iter()
                .any(|term| term.get("podAffinityTerm").is_some_and(bad))
    })
}

fn has_invalid_spread_selector(spec: &Value) -> bool {
    items(spec, "topologySpreadConstraints").iter().any(|it| selector_is_bad(it.get("labelSelector")))
}

fn has_merged_label_keys(spec: &Value) -> bool {
    items(spec, "topologySpreadConstraints")
        .iter()
        .any(|constraint| has_errors(|e| scheduling::validate_label_keys_and_selector(constraint, &Path::ROOT, e)))
}

fn has_restart_container_of_init(spec: &Value) -> bool {
    items(spec, "initContainers").iter().filter(|it| !is_sidecar(it)).any(|container| {
        items(container, "resizePolicy").iter().any(|policy| text(policy, "restartPolicy") == "RestartContainer")
    })
}

fn has_sys_admin_without_escalation(container: &Value) -> bool {
    let Some(context) = given(container, "securityContext") else { return false };
    !context.bool_at(&["allowPrivilegeEscalation"])
        && context.array_at(&["capabilities", "add"]).iter().any(|it| it.as_str() == Some("CAP_SYS_ADMIN"))
}

/// Whether a mirror of a static pod: it carries the annotation.
pub fn is_mirror(pod: &Value) -> bool {
    annotation(annotations_of(pod), annotations::MIRROR).is_some()
}

/// Labels of a pod as a map, for selectors.
pub fn labels(pod: &Value) -> Option<&Map> {
    pod.get("metadata").and_then(|metadata| map(metadata, "labels"))
}
