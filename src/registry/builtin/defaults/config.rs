//! Kinds that are configuration files: encryption, authorization, pod security.

use super::{Hooks, set};
use crate::object::{Key, Map};

pub const HOOKS: Hooks = &[
    ("io.k8s.apiserver.pkg.apis.apiserver.v1.KMSConfiguration", |it, _| {
        set::nil(it, "timeout", "3s");
        set::empty(it, "apiVersion", "v1");
        if set::text(it, "apiVersion") == "v1" {
            set::nil(it, "cachesize", 1000);
        }
    }),
    ("io.k8s.apiserver.pkg.apis.apiserver.v1.WebhookConfiguration", |it, _| webhook(it)),
    ("io.k8s.apiserver.pkg.apis.apiserver.v1beta1.WebhookConfiguration", |it, _| webhook(it)),
    ("io.k8s.apiserver.pkg.apis.apiserver.v1alpha1.WebhookConfiguration", |it, _| webhook(it)),
    ("io.k8s.pod-security-admission.admission.api.v1.PodSecurityDefaults", |it, _| pod_security(it)),
    ("io.k8s.pod-security-admission.admission.api.v1beta1.PodSecurityDefaults", |it, _| pod_security(it)),
    ("io.k8s.pod-security-admission.admission.api.v1alpha1.PodSecurityDefaults", |it, _| pod_security(it)),
];

fn webhook(it: &mut Map) {
    for (name, default) in [("authorizedTTL", "5m0s"), ("unauthorizedTTL", "30s")] {
        if matches!(set::text(it, name), "" | "0s") {
            it.insert(Key::from_static(name), default);
        }
    }
    set::nil(it, "cacheAuthorizedRequests", true);
    set::nil(it, "cacheUnauthorizedRequests", true);
}

fn pod_security(it: &mut Map) {
    for (level, version) in [("enforce", "enforce-version"), ("warn", "warn-version"), ("audit", "audit-version")] {
        set::empty(it, level, "privileged");
        set::empty(it, version, "latest");
    }
}
