//! What is made when the program is built: a fingerprint of everything that shapes OpenAPI documents, and (feature
//! `descriptions`) the texts of models and fields, compressed.

// A build that cannot write its output has nobody to tell but cargo.
#![allow(clippy::expect_used)]

use std::{fs, path::Path};

/// What documents are made by and from; a change here has to change their ETags.
const SHAPERS: [&str; 3] = ["src/openapi", "src/schema/data/types.txt", "build.rs"];

fn main() {
    let mut hash = Fnv::default();
    hash.add(if cfg!(feature = "descriptions") { b"texts" } else { b"plain" });
    for path in SHAPERS {
        println!("cargo::rerun-if-changed={path}");
        hash.add_tree(Path::new(path));
    }
    println!("cargo::rustc-env=KENTER_DOCUMENTS_FINGERPRINT={:016x}", hash.0);
    #[cfg(feature = "descriptions")]
    descriptions::write();
}

/// FNV-1a, which is the same on every machine.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// A file, or all files of a folder in order of their names.
    fn add_tree(&mut self, path: &Path) {
        if let Ok(entries) = fs::read_dir(path) {
            let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            paths.iter().for_each(|path| self.add_tree(path));
        } else if let Ok(bytes) = fs::read(path) {
            self.add(&bytes);
        }
    }
}

/// Reads the schemas of `k8s-openapi` and keeps nothing but their texts.
#[cfg(feature = "descriptions")]
mod descriptions {
    use std::{env, fs::File, io::Write, path::PathBuf};

    use k8s_openapi::schemars::SchemaGenerator;

    /// Asks for the schemas of these types; those of the types they refer to come along.
    macro_rules! add {
        ($generator:ident; $($($module:ident)::+ { $($kind:ident),* $(,)? })*) => {
            $({
                use k8s_openapi::$($module)::+ as module;
                $($generator.subschema_for::<module::$kind>();)*
            })*
        };
    }

    /// Every kind of the API and what stands beside them.
    fn add_kinds(generator: &mut SchemaGenerator) {
        add! { generator;
            api::admissionregistration::v1 {
                MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
                ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
            }
            api::admissionregistration::v1alpha1 { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding }
            api::admissionregistration::v1beta1 { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding }
            api::apiserverinternal::v1alpha1 { StorageVersion }
            api::apps::v1 { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet }
            api::authentication::v1 { SelfSubjectReview, TokenRequest, TokenReview }
            api::authorization::v1 {
                LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
            }
            api::autoscaling::v1 { HorizontalPodAutoscaler, Scale }
            api::autoscaling::v2 { HorizontalPodAutoscaler }
            api::batch::v1 { CronJob, Job }
            api::certificates::v1 { CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest }
            api::certificates::v1beta1 { ClusterTrustBundle, PodCertificateRequest }
            api::coordination::v1 { Lease }
            api::coordination::v1alpha2 { LeaseCandidate }
            api::coordination::v1beta1 { LeaseCandidate }
            api::core::v1 {
                Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume,
                PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount,
            }
            api::discovery::v1 { EndpointSlice }
            api::events::v1 { Event }
            api::flowcontrol::v1 { FlowSchema, PriorityLevelConfiguration }
            api::lifecycle::v1alpha1 { Eviction, EvictionRequest }
            api::networking::v1 { Ingress, IngressClass, IPAddress, NetworkPolicy, ServiceCIDR }
            api::node::v1 { RuntimeClass }
            api::policy::v1 { Eviction, PodDisruptionBudget }
            api::rbac::v1 { ClusterRole, ClusterRoleBinding, Role, RoleBinding }
            api::resource::v1 { DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice }
            api::resource::v1alpha3 { DeviceTaintRule, ResourcePoolStatusRequest }
            api::resource::v1beta1 { DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice }
            api::resource::v1beta2 { DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice }
            api::scheduling::v1 { PriorityClass }
            api::scheduling::v1alpha3 { CompositePodGroup, PodGroup, Workload }
            api::scheduling::v1beta1 { PodGroup, Workload }
            api::storage::v1 {
                CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass,
            }
            api::storagemigration::v1 { StorageVersionMigration }
            api::storagemigration::v1beta1 { StorageVersionMigration }
            apiextensions_apiserver::pkg::apis::apiextensions::v1 { CustomResourceDefinition }
            apimachinery::pkg::apis::meta::v1 {
                APIGroup, APIGroupList, APIResourceList, APIVersions, DeleteOptions, ListMeta, Patch, Status,
            }
            apimachinery::pkg::version { Info }
            kube_aggregator::pkg::apis::apiregistration::v1 { APIService }
        }
    }

    /// Writes `descriptions.deflate`: records of `model TAB field US text RS`, sorted; the field is empty for the model.
    pub fn write() {
        let mut generator = SchemaGenerator::default();
        add_kinds(&mut generator);
        let mut records = Vec::new();
        for (model, schema) in generator.definitions() {
            let mut add = |field: &str, text: Option<&str>| {
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    records.push((model.clone(), field.to_owned(), text.to_owned()));
                }
            };
            add("", schema["description"].as_str());
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                add(name, field["description"].as_str());
            }
        }
        records.sort();
        assert!(records.len() > 2_000, "the schemas have texts: {}", records.len());
        let path = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("descriptions.deflate");
        let file = File::create(&path).expect("OUT_DIR can be written");
        let mut out = flate2::write::DeflateEncoder::new(file, flate2::Compression::best());
        for (model, field, text) in records {
            write!(out, "{model}\t{field}\u{1f}{text}\u{1e}").expect("OUT_DIR can be written");
        }
        out.finish().expect("OUT_DIR can be written");
    }
}
