//! Which kinds each of the three servers knows, served or not: a body of a kind that is known is refused for another
//! reason than one that nobody knows (the runtime schemes of kube-apiserver, apiextensions-apiserver and kube-aggregator).

use crate::schema;

/// Kinds that every version of every group has.
const ANYWHERE: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// Kinds that every version has which is known.
const IN_EVERY_VERSION: [&str; 7] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"];

const FLOW_CONTROL: &[&str] =
    &["FlowSchema", "FlowSchemaList", "PriorityLevelConfiguration", "PriorityLevelConfigurationList"];

const ROLES: &[&str] = &[
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "ClusterRoleList",
    "Role",
    "RoleBinding",
    "RoleBindingList",
    "RoleList",
];

/// Versions that are not served any more, or not yet, and whose kinds can still be read.
const UNSERVED: &[(&str, &str, &[&str])] = &[
    (
        "apps",
        "v1beta1",
        &[
            "ControllerRevision",
            "ControllerRevisionList",
            "Deployment",
            "DeploymentList",
            "DeploymentRollback",
            "Scale",
            "StatefulSet",
            "StatefulSetList",
        ],
    ),
    (
        "apps",
        "v1beta2",
        &[
            "ControllerRevision",
            "ControllerRevisionList",
            "DaemonSet",
            "DaemonSetList",
            "Deployment",
            "DeploymentList",
            "ReplicaSet",
            "ReplicaSetList",
            "Scale",
            "StatefulSet",
            "StatefulSetList",
        ],
    ),
    (
        "authorization.k8s.io",
        "v1beta1",
        &["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"],
    ),
    ("batch", "v1beta1", &["CronJob", "CronJobList"]),
    ("discovery.k8s.io", "v1beta1", &["EndpointSlice", "EndpointSliceList"]),
    ("events.k8s.io", "v1beta1", &["Event", "EventList"]),
    (
        "extensions",
        "v1beta1",
        &[
            "DaemonSet",
            "DaemonSetList",
            "Deployment",
            "DeploymentList",
            "DeploymentRollback",
            "Ingress",
            "IngressList",
            "NetworkPolicy",
            "NetworkPolicyList",
            "ReplicaSet",
            "ReplicaSetList",
            "Scale",
        ],
    ),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", FLOW_CONTROL),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", FLOW_CONTROL),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", FLOW_CONTROL),
    ("node.k8s.io", "v1alpha1", &["RuntimeClass", "RuntimeClassList"]),
    ("node.k8s.io", "v1beta1", &["RuntimeClass", "RuntimeClassList"]),
    ("policy", "v1beta1", &["Eviction", "PodDisruptionBudget", "PodDisruptionBudgetList"]),
    ("rbac.authorization.k8s.io", "v1alpha1", ROLES),
    ("rbac.authorization.k8s.io", "v1beta1", ROLES),
    (
        "storage.k8s.io",
        "v1alpha1",
        &[
            "CSIStorageCapacity",
            "CSIStorageCapacityList",
            "VolumeAttachment",
            "VolumeAttachmentList",
            "VolumeAttributesClass",
            "VolumeAttributesClassList",
        ],
    ),
];

/// Groups of servers that have a scheme of their own, with versions and kinds.
const APART: &[(&str, &[&str], &[&str])] = &[
    (
        "apiextensions.k8s.io",
        &["v1", "v1beta1"],
        &["ConversionReview", "CustomResourceDefinition", "CustomResourceDefinitionList"],
    ),
    ("apiregistration.k8s.io", &["v1", "v1beta1"], &["APIService", "APIServiceList"]),
];

/// Groups of the type table that no server takes bodies of.
const ELSEWHERE: [&str; 3] = ["apidiscovery.k8s.io", "audit.k8s.io", "meta.k8s.io"];

/// Whether the server of `endpoint`, a group, can read a kind.
pub fn is_known(endpoint: &str, group: &str, version: &str, kind: &str) -> bool {
    if ANYWHERE.contains(&kind) {
        return true;
    }
    let in_every_version = IN_EVERY_VERSION.contains(&kind);
    if let Some((_, versions, kinds)) = APART.iter().find(|(own, ..)| *own == endpoint) {
        // The options belong to the core group's version too.
        let core = in_every_version && (group, version) == ("", "v1");
        return core || group == endpoint && versions.contains(&version) && (in_every_version || kinds.contains(&kind));
    }
    if ELSEWHERE.contains(&group) || APART.iter().any(|(own, ..)| *own == group) {
        return false;
    }
    let table = schema::builtin();
    let unserved = UNSERVED.iter().filter(|(own, known, _)| (*own, *known) == (group, version));
    if in_every_version {
        return unserved.count() > 0
            || table.kinds().iter().any(|row| (&*row.group, &*row.version) == (group, version));
    }
    table.kind(group, version, kind).is_some() || unserved.flat_map(|(.., kinds)| kinds.iter()).any(|it| *it == kind)
}

/// Kinds of `meta.k8s.io` that only stand for themselves.
const META: [&str; 4] = ["PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions"];

/// Whether a deletion's body can be read as this kind, be it the right one or not (the scheme of `meta/internalversion`).
pub fn is_known_beside_options(group: &str, version: &str, kind: &str) -> bool {
    let options = IN_EVERY_VERSION.contains(&kind) && kind != "WatchEvent";
    match (group, version) {
        _ if ANYWHERE.contains(&kind) => true,
        ("", "v1") => options,
        ("meta.k8s.io", "v1") => options || kind == "WatchEvent" || META.contains(&kind),
        ("meta.k8s.io", "v1beta1") => META.contains(&kind),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_knows_its_own_kinds() {
        assert!(is_known("apps", "extensions", "v1beta1", "Deployment"));
        assert!(!is_known("apps", "extensions", "v1beta1", "PodDisruptionBudget"));
        assert!(!is_known("", "apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
        assert!(is_known("apiextensions.k8s.io", "apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"));
        assert!(!is_known("apiextensions.k8s.io", "", "v1", "ConfigMap"));
        assert!(!is_known("", "meta.k8s.io", "v1", "Table"));
    }

    #[test]
    fn options_are_known_in_known_versions_and_statuses_everywhere() {
        assert!(is_known("", "apps", "v1beta2", "DeleteOptions"));
        assert!(!is_known("", "nope", "v7", "DeleteOptions"));
        assert!(is_known("", "nope", "v7", "Status"));
        assert!(is_known("", "", "v1", "WatchEvent"));
    }
}
