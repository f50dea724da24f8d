//! The names that options may speak of, gathered from what there is here: admission plugins, controllers, versions of
//! the API. Options are given them as data, since they know none of these themselves.

use crate::{
    admission,
    app::bootstrap,
    options::catalogue::{Catalogue, ControllerEntry},
};

/// What this binary has.
pub fn catalogue() -> Catalogue {
    let controller = |name: &str| ControllerEntry { name: name.to_owned(), on_by_default: true };
    let versions = API_VERSIONS
        .iter()
        .flat_map(|(group, versions)| versions.iter().map(move |version| format!("{group}/{version}")));
    Catalogue {
        admission_plugins: admission::catalogue(),
        controllers: bootstrap::names().map(controller).collect(),
        api_versions: versions.collect(),
    }
}

/// Every version that kube-apiserver's scheme registers, served by default, on demand or no more.
#[rustfmt::skip]
const API_VERSIONS: &[(&str, &[&str])] = &[
    ("", &["v1"]),
    ("admissionregistration.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("apiextensions.k8s.io", &["v1"]),
    ("apiregistration.k8s.io", &["v1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1", "v1beta1", "v1beta2", "v1beta3"]),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("lifecycle.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha3", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1", "v1beta1"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plugin_that_is_built_is_a_known_one() {
        let known = catalogue().admission_plugins;
        assert!(known.iter().filter(|plugin| plugin.built).count() >= 5);
        assert_eq!(known.iter().filter(|plugin| plugin.on_by_default).count(), 25);
    }
}
