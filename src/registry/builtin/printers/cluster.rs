//! Rows of the groups with one or two kinds: policy, certificates, coordination, node, storage migration.

use super::{
    Cells, cells,
    text::{NONE, UNSET, age, condition, int_or_string, label_map, name, number, or, some_of, text_or},
};
use crate::{api::duration, object::Value, registry::printer::Printer};

pub fn printer(group: &str, kind: &str) -> Option<Printer> {
    Some(match (group, kind) {
        ("policy", "PodDisruptionBudget") => Printer::new(disruption_budget),
        ("certificates.k8s.io", "CertificateSigningRequest") => Printer::new(signing_request),
        ("certificates.k8s.io", "ClusterTrustBundle") => Printer::new(trust_bundle),
        ("certificates.k8s.io", "PodCertificateRequest") => Printer::new(pod_certificate_request),
        ("coordination.k8s.io", "Lease") => Printer::new(lease),
        ("coordination.k8s.io", "LeaseCandidate") => Printer::new(lease_candidate),
        ("node.k8s.io", "RuntimeClass") => Printer::new(runtime_class),
        ("storagemigration.k8s.io", "StorageVersionMigration") => Printer::new(migration),
        ("internal.apiserver.k8s.io", "StorageVersion") => Printer::new(storage_version),
        _ => return None,
    })
}

fn disruption_budget(it: &Value) -> Cells {
    let limit = |field: &str| match it.at(&["spec", field]).filter(|it| !it.is_null()) {
        Some(limit) => int_or_string(limit),
        None => "N/A".to_owned(),
    };
    let allowed = number(it, &["status", "disruptionsAllowed"]);
    cells![name(it), limit("minAvailable"), limit("maxUnavailable"), allowed, age(it)]
}

fn signing_request(it: &Value) -> Cells {
    let lifetime = match it.i64_at(&["spec", "expirationSeconds"]) {
        Some(seconds) => duration::human_duration(seconds.saturating_mul(1_000_000_000)),
        None => NONE.to_owned(),
    };
    let signer = or(it.str_at(&["spec", "signerName"]), NONE);
    cells![name(it), age(it), signer, it.str_at(&["spec", "username"]), lifetime, signing_state(it)]
}

fn signing_state(it: &Value) -> String {
    let has = |kind: &str| condition(it, &["status", "conditions"], kind).is_some();
    let mut state = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !it.str_at(&["status", "certificate"]).is_empty() {
        state.push_str(",Issued");
    }
    state
}

fn trust_bundle(it: &Value) -> Cells {
    cells![name(it), or(it.str_at(&["spec", "signerName"]), NONE)]
}

fn pod_certificate_request(it: &Value) -> Cells {
    let spec = |field: &str| it.str_at(&["spec", field]);
    let kinds = it.array_at(&["status", "conditions"]).iter().map(|condition| condition.str_at(&["type"]));
    let state = kinds.rev().find(|kind| matches!(*kind, "Issued" | "Denied" | "Failed")).unwrap_or("Pending");
    cells![
        name(it),
        spec("podName"),
        spec("serviceAccountName"),
        spec("nodeName"),
        spec("signerName"),
        state,
        label_map(it.object_at(&["spec", "unverifiedUserAnnotations"])),
    ]
}

fn lease(it: &Value) -> Cells {
    cells![name(it), it.str_at(&["spec", "holderIdentity"]), age(it)]
}

fn lease_candidate(it: &Value) -> Cells {
    let spec = |field: &str| it.str_at(&["spec", field]);
    cells![name(it), spec("leaseName"), spec("binaryVersion"), spec("emulationVersion"), age(it)]
}

fn runtime_class(it: &Value) -> Cells {
    cells![name(it), it.str_at(&["handler"]), age(it)]
}

fn migration(it: &Value) -> Cells {
    let (group, resource) = (it.str_at(&["spec", "resource", "group"]), it.str_at(&["spec", "resource", "resource"]));
    let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let conditions = it.array_at(&["status", "conditions"]).iter();
    let state = conditions
        .filter(|condition| condition.str_at(&["status"]) == "True")
        .map(|condition| condition.str_at(&["type"]))
        .rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    cells![name(it), resource, state.unwrap_or("Unknown")]
}

fn storage_version(it: &Value) -> Cells {
    let one = |it: &Value| format!("{}={}", it.str_at(&["apiServerID"]), it.str_at(&["encodingVersion"]));
    let versions: Vec<String> = it.array_at(&["status", "storageVersions"]).iter().map(one).collect();
    cells![name(it), text_or(it, &["status", "commonEncodingVersion"], UNSET), some_of(&versions, 3), age(it)]
}
