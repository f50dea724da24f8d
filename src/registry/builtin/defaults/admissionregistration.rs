//! The admissionregistration group: webhooks and admission policies in their three versions.

use super::{Hooks, set};
use crate::{
    json,
    object::{Key, Map, Value},
};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.admissionregistration.v1.ValidatingWebhook", |it, _| webhook(it, &V1)),
    ("io.k8s.api.admissionregistration.v1.MutatingWebhook", |it, _| mutating_webhook(it, &V1)),
    ("io.k8s.api.admissionregistration.v1beta1.ValidatingWebhook", |it, _| webhook(it, &V1BETA1)),
    ("io.k8s.api.admissionregistration.v1beta1.MutatingWebhook", |it, _| mutating_webhook(it, &V1BETA1)),
    // Rules stand embedded in these.
    ("io.k8s.api.admissionregistration.v1.RuleWithOperations", |it, _| rule(it)),
    ("io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", |it, _| rule(it)),
    ("io.k8s.api.admissionregistration.v1alpha1.NamedRuleWithOperations", |it, _| rule(it)),
    ("io.k8s.api.admissionregistration.v1beta1.NamedRuleWithOperations", |it, _| rule(it)),
    ("io.k8s.api.admissionregistration.v1.ServiceReference", |it, _| set::nil(it, "port", 443)),
    ("io.k8s.api.admissionregistration.v1beta1.ServiceReference", |it, _| set::nil(it, "port", 443)),
    ("io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec", |it, _| failure_policy(it)),
    ("io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicySpec", |it, _| failure_policy(it)),
    ("io.k8s.api.admissionregistration.v1alpha1.ValidatingAdmissionPolicySpec", |it, _| failure_policy(it)),
    ("io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicySpec", |it, _| failure_policy(it)),
    ("io.k8s.api.admissionregistration.v1beta1.ValidatingAdmissionPolicySpec", |it, _| failure_policy(it)),
    ("io.k8s.api.admissionregistration.v1beta1.MutatingAdmissionPolicySpec", |it, _| failure_policy(it)),
    ("io.k8s.api.admissionregistration.v1.MatchResources", |it, _| match_resources(it)),
    ("io.k8s.api.admissionregistration.v1alpha1.MatchResources", |it, _| match_resources(it)),
    ("io.k8s.api.admissionregistration.v1beta1.MatchResources", |it, _| match_resources(it)),
    ("io.k8s.api.admissionregistration.v1alpha1.ParamRef", |it, _| set::nil(it, "parameterNotFoundAction", "Deny")),
];

/// What the versions of webhooks do not agree about.
struct Version {
    failure_policy: &'static str,
    match_policy: &'static str,
    timeout: i64,
    /// The version that may leave out side effects and review versions.
    lax: bool,
}

const V1: Version = Version { failure_policy: "Fail", match_policy: "Equivalent", timeout: 10, lax: false };
const V1BETA1: Version = Version { failure_policy: "Ignore", match_policy: "Exact", timeout: 30, lax: true };

fn webhook(it: &mut Map, version: &Version) {
    set::nil(it, "failurePolicy", version.failure_policy);
    set::nil(it, "matchPolicy", version.match_policy);
    set::nil(it, "namespaceSelector", Value::object());
    set::nil(it, "objectSelector", Value::object());
    set::nil(it, "timeoutSeconds", version.timeout);
    if version.lax {
        set::nil(it, "sideEffects", "Unknown");
        if set::has_none(it, "admissionReviewVersions") {
            it.insert(Key::from_static("admissionReviewVersions"), json!(["v1beta1"]));
        }
    }
}

fn mutating_webhook(it: &mut Map, version: &Version) {
    webhook(it, version);
    set::nil(it, "reinvocationPolicy", "Never");
}

fn rule(it: &mut Map) {
    set::nil(it, "scope", "*");
}

fn failure_policy(it: &mut Map) {
    set::nil(it, "failurePolicy", "Fail");
}

fn match_resources(it: &mut Map) {
    set::nil(it, "matchPolicy", "Equivalent");
    set::nil(it, "namespaceSelector", Value::object());
    set::nil(it, "objectSelector", Value::object());
}
