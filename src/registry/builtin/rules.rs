//! One row per built-in kind: names, generation, status, what a PUT and a DELETE may do (kubernetes
//! `pkg/registry/*/*/strategy.go`). Kinds whose module brings a strategy of another make (pods, services, roles) are
//! not asked for theirs.

use super::kind::{Generation, NameRule, Rules, Status, StatusMetadata};

const SPEC: Generation = Generation::Parts(&[&["spec"]]);
const WEBHOOKS: Generation = Generation::Parts(&[&["webhooks"]]);

/// What most kinds are like: a DNS subdomain as name, no status of its own, updates without a version allowed.
const fn kind(group: &'static str, plural: &'static str) -> Rules {
    Rules {
        group,
        plural,
        name: NameRule::Subdomain,
        generation: Generation::Unmanaged,
        status: Status::Ordinary,
        status_metadata: StatusMetadata::Taken,
        creates_by_update: false,
        unconditional_update: true,
        returns_deleted_object: false,
        bare_finalizers: true,
        orphans_by_default: false,
    }
}

impl Rules {
    const fn generation(self, generation: Generation) -> Self {
        Self { generation, ..self }
    }
    const fn status(self) -> Self {
        Self { status: Status::Separate, ..self }
    }
    /// A status whose endpoint leaves the user's metadata alone.
    const fn status_alone(self) -> Self {
        Self { status: Status::Separate, status_metadata: StatusMetadata::UserDataKept, ..self }
    }
    const fn name(self, name: NameRule) -> Self {
        Self { name, ..self }
    }
    const fn created_by_put(self) -> Self {
        Self { creates_by_update: true, ..self }
    }
    const fn versioned(self) -> Self {
        Self { unconditional_update: false, ..self }
    }
    const fn returned(self) -> Self {
        Self { returns_deleted_object: true, ..self }
    }
    const fn any_finalizer(self) -> Self {
        Self { bare_finalizers: false, ..self }
    }
    const fn orphans(self) -> Self {
        Self { orphans_by_default: true, ..self }
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const SCHEDULING: &str = "scheduling.k8s.io";
const STORAGE: &str = "storage.k8s.io";

const RULES: &[Rules] = &[
    kind("", "endpoints").created_by_put(),
    kind("", "events").created_by_put().any_finalizer().name(NameRule::PathSegment),
    kind("", "limitranges").created_by_put(),
    kind("", "namespaces").status().name(NameRule::Label).returned(),
    Rules { status: Status::SeparateOnUpdate, ..kind("", "nodes") },
    kind("", "persistentvolumeclaims").status().returned(),
    kind("", "persistentvolumes").status().returned(),
    kind("", "pods").status().generation(SPEC).returned(),
    kind("", "podtemplates").generation(Generation::Parts(&[&["template"]])).returned(),
    kind("", "replicationcontrollers").status().generation(SPEC).orphans(),
    kind("", "resourcequotas").status().returned(),
    kind("", "serviceaccounts").returned(),
    kind("", "services").status().name(NameRule::Label).created_by_put().returned(),
    kind("apiregistration.k8s.io", "apiservices")
        .status_alone()
        .versioned()
        .any_finalizer()
        .name(NameRule::PathSegment),
    kind("apps", "daemonsets").status().generation(SPEC),
    Rules {
        status_metadata: StatusMetadata::LabelsKept,
        ..kind("apps", "deployments").status().generation(Generation::Parts(&[&["spec"], &["metadata", "annotations"]]))
    },
    kind("apps", "replicasets").status().generation(SPEC),
    kind("apps", "statefulsets").status().generation(SPEC).name(NameRule::Label),
    kind("autoscaling", "horizontalpodautoscalers").status().generation(SPEC),
    kind("batch", "cronjobs").status().generation(SPEC),
    kind("batch", "jobs").status().generation(SPEC).orphans(),
    kind(CERTIFICATES, "certificatesigningrequests").status().name(NameRule::PathSegment),
    kind(CERTIFICATES, "clustertrustbundles").versioned(),
    kind(CERTIFICATES, "podcertificaterequests").status_alone().versioned(),
    kind("coordination.k8s.io", "leases").created_by_put().versioned().any_finalizer(),
    kind("coordination.k8s.io", "leasecandidates").created_by_put().versioned(),
    kind("discovery.k8s.io", "endpointslices").generation(Generation::Content),
    kind("events.k8s.io", "events").created_by_put(),
    Rules { status_metadata: StatusMetadata::AllKept, ..kind(FLOW_CONTROL, "flowschemas").status().generation(SPEC) },
    Rules {
        status_metadata: StatusMetadata::AllKept,
        ..kind(FLOW_CONTROL, "prioritylevelconfigurations").status().generation(SPEC)
    },
    kind("internal.apiserver.k8s.io", "storageversions").status_alone().versioned(),
    kind(NETWORKING, "ingressclasses").generation(SPEC),
    kind(NETWORKING, "ingresses").status().generation(SPEC),
    kind(NETWORKING, "networkpolicies").generation(SPEC),
    kind(NETWORKING, "servicecidrs").status_alone(),
    kind("node.k8s.io", "runtimeclasses").created_by_put().versioned().any_finalizer(),
    kind("policy", "poddisruptionbudgets")
        .status()
        .generation(SPEC)
        .versioned()
        .any_finalizer()
        .name(NameRule::PathSegment),
    kind(RESOURCE, "deviceclasses").generation(SPEC).returned(),
    kind(RESOURCE, "devicetaintrules").status_alone().generation(SPEC).versioned(),
    kind(RESOURCE, "resourceclaims").status_alone().returned(),
    kind(RESOURCE, "resourceclaimtemplates").returned(),
    kind(RESOURCE, "resourcepoolstatusrequests").status_alone().versioned().returned(),
    kind(RESOURCE, "resourceslices").generation(SPEC).returned(),
    kind(SCHEDULING, "priorityclasses").generation(Generation::One),
    kind(STORAGE, "csidrivers").generation(Generation::BumpOnly).versioned().returned(),
    kind(STORAGE, "csinodes").status_alone().versioned().returned(),
    kind(STORAGE, "csistoragecapacities").versioned(),
    kind(STORAGE, "storageclasses").returned(),
    kind(STORAGE, "volumeattachments").status_alone().versioned().returned(),
    kind(STORAGE, "volumeattributesclasses").returned(),
    kind("storagemigration.k8s.io", "storageversionmigrations").status_alone().versioned(),
    kind(ADMISSION, "mutatingwebhookconfigurations").generation(WEBHOOKS).versioned().any_finalizer(),
    kind(ADMISSION, "validatingwebhookconfigurations").generation(WEBHOOKS).versioned().any_finalizer(),
    kind(ADMISSION, "validatingadmissionpolicies").status_alone().generation(SPEC).versioned().any_finalizer(),
    kind(ADMISSION, "validatingadmissionpolicybindings").generation(SPEC).versioned().any_finalizer(),
    kind(ADMISSION, "mutatingadmissionpolicies").generation(SPEC).versioned().any_finalizer(),
    kind(ADMISSION, "mutatingadmissionpolicybindings").generation(SPEC).versioned().any_finalizer(),
];

/// The row of a kind; one that has none is like most.
pub fn of(group: &str, plural: &str) -> Rules {
    let found = RULES.iter().find(|row| row.group == group && row.plural == plural).copied();
    found.unwrap_or(kind("", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_about_a_resource_that_exists_once() {
        let known = super::super::table::names();
        let mut seen = std::collections::HashSet::new();
        for row in RULES {
            assert!(known.contains(&(row.group, row.plural)), "{}/{}", row.group, row.plural);
            assert!(seen.insert((row.group, row.plural)), "{}/{} is there twice", row.group, row.plural);
        }
    }
}
