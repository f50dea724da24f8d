//! All plugins of the release in their fixed order, and how the ones that are built are made.

use std::sync::Arc;

use super::{Chain, Plugin, plugins};
use crate::{
    options::{catalogue::PluginEntry, completed::Admission},
    registry::reader::ObjectReader,
};

/// What plugins are made of.
pub struct Parts<'a> {
    pub options: &'a Admission,
    pub reader: Arc<dyn ObjectReader>,
}

type Make = fn(&Parts<'_>) -> Arc<dyn Plugin>;

struct Entry {
    name: &'static str,
    on_by_default: bool,
    /// `None`: known by name, not built here.
    make: Option<Make>,
}

const fn known(name: &'static str, on_by_default: bool) -> Entry {
    Entry { name, on_by_default, make: None }
}

const fn built(name: &'static str, on_by_default: bool, make: Make) -> Entry {
    Entry { name, on_by_default, make: Some(make) }
}

/// kubernetes `pkg/kubeapiserver/options/plugins.go`: the order decides, whatever order they are enabled in.
const TABLE: [Entry; 39] = [
    known("AlwaysAdmit", false),
    known("NamespaceAutoProvision", false),
    // Before everything that looks into the namespace.
    built("NamespaceLifecycle", true, |parts| Arc::new(plugins::NamespaceLifecycle { reader: parts.reader.clone() })),
    known("NamespaceExists", false),
    known("LimitPodHardAntiAffinityTopology", false),
    known("LimitRanger", true),
    built("ServiceAccount", true, |parts| Arc::new(plugins::ServiceAccount { reader: parts.reader.clone() })),
    known("NodeRestriction", false),
    built("TaintNodesByCondition", true, |_| Arc::new(plugins::TaintNodesByCondition)),
    known("AlwaysPullImages", false),
    known("ImagePolicyWebhook", false),
    known("PodSecurity", true),
    known("PodNodeSelector", false),
    built("Priority", true, |parts| Arc::new(plugins::Priority { reader: parts.reader.clone() })),
    built("DefaultTolerationSeconds", true, |parts| {
        Arc::new(plugins::DefaultTolerationSeconds {
            not_ready_seconds: parts.options.default_not_ready_toleration_seconds,
            unreachable_seconds: parts.options.default_unreachable_toleration_seconds,
        })
    }),
    known("PodTolerationRestriction", false),
    known("EventRateLimit", false),
    known("ExtendedResourceToleration", false),
    known("DefaultStorageClass", true),
    built("StorageObjectInUseProtection", true, |_| Arc::new(plugins::StorageObjectInUseProtection)),
    known("PodGroupProtection", true),
    known("OwnerReferencesPermissionEnforcement", false),
    known("PersistentVolumeClaimResize", true),
    known("RuntimeClass", true),
    known("CertificateApproval", true),
    known("CertificateSigning", true),
    known("ClusterTrustBundleAttest", true),
    known("CertificateSubjectRestriction", true),
    known("DefaultIngressClass", true),
    known("DenyServiceExternalIPs", false),
    known("PodTopologyLabels", true),
    known("NodeDeclaredFeatureValidator", true),
    known("PodResizeValidator", true),
    known("MutatingAdmissionPolicy", true),
    known("MutatingAdmissionWebhook", true),
    known("ValidatingAdmissionPolicy", true),
    known("ValidatingAdmissionWebhook", true),
    // Last, so that denied requests are not charged.
    known("ResourceQuota", true),
    known("AlwaysDeny", false),
];

/// The names options may speak of.
pub fn catalogue() -> Vec<PluginEntry> {
    let entry = |entry: &Entry| PluginEntry {
        name: entry.name.to_owned(),
        on_by_default: entry.on_by_default,
        built: entry.make.is_some(),
    };
    TABLE.iter().map(entry).collect()
}

/// The chain of the enabled plugins, in the fixed order.
pub fn build(parts: &Parts<'_>) -> Chain {
    let enabled = |entry: &&Entry| parts.options.plugins.iter().any(|name| name == entry.name);
    Chain::new(TABLE.iter().filter(enabled).filter_map(|entry| entry.make.map(|make| make(parts))).collect())
}
