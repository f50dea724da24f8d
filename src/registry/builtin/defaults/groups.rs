//! Groups with a line or two: rbac, scheduling, authentication, certificates.

use super::{Hooks, set};
use crate::{json, object::Map, schema::defaults::Context};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.rbac.v1.ClusterRoleBinding", |it, _| role_ref(it)),
    ("io.k8s.api.rbac.v1.RoleBinding", |it, _| role_ref(it)),
    ("io.k8s.api.rbac.v1.Subject", |it, _| {
        if matches!(set::text(it, "kind"), "User" | "Group") {
            set::empty(it, "apiGroup", RBAC);
        }
    }),
    ("io.k8s.api.scheduling.v1.PriorityClass", |it, _| set::nil(it, "preemptionPolicy", PREEMPT)),
    ("io.k8s.api.scheduling.v1beta1.PriorityClass", |it, _| set::nil(it, "preemptionPolicy", PREEMPT)),
    ("io.k8s.api.scheduling.v1alpha3.PodGroup", pod_group),
    ("io.k8s.api.scheduling.v1alpha3.CompositePodGroup", pod_group),
    ("io.k8s.api.scheduling.v1beta1.PodGroup", pod_group),
    ("io.k8s.api.authentication.v1.TokenRequestSpec", |it, _| set::nil(it, "expirationSeconds", 3600)),
    // This version is not served any more, so the guess of a kubelet's signer from the request is not made.
    ("io.k8s.api.certificates.v1beta1.CertificateSigningRequestSpec", |it, _| {
        set::nil(it, "usages", json!(["digital signature", "key encipherment"]));
        set::nil(it, "signerName", "kubernetes.io/legacy-unknown");
    }),
    ("io.k8s.api.certificates.v1beta1.CertificateSigningRequestCondition", |it, _| set::empty(it, "status", "True")),
];

const RBAC: &str = "rbac.authorization.k8s.io";
const PREEMPT: &str = "PreemptLowerPriority";

fn role_ref(it: &mut Map) {
    set::empty(set::child(it, "roleRef"), "apiGroup", RBAC);
}

fn pod_group(it: &mut Map, context: &Context) {
    if (context.gates)("PodGroupPreemptionPolicy") {
        set::nil(set::child(it, "spec"), "preemptionPolicy", PREEMPT);
    }
}
