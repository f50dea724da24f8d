//! The storage group.

use super::{Hooks, set};
use crate::{
    json,
    object::{Key, Map},
    schema::defaults::Context,
};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.storage.v1.StorageClass", |it, _| storage_class(it)),
    ("io.k8s.api.storage.v1beta1.StorageClass", |it, _| storage_class(it)),
    ("io.k8s.api.storage.v1.CSIDriver", csi_driver),
    ("io.k8s.api.storage.v1beta1.CSIDriver", csi_driver),
];

fn storage_class(it: &mut Map) {
    set::nil(it, "reclaimPolicy", "Delete");
    set::nil(it, "volumeBindingMode", "Immediate");
}

fn csi_driver(it: &mut Map, context: &Context) {
    let spec = set::child(it, "spec");
    set::nil(spec, "attachRequired", true);
    set::nil(spec, "podInfoOnMount", false);
    set::nil(spec, "storageCapacity", false);
    set::nil(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if set::has_none(spec, "volumeLifecycleModes") {
        spec.insert(Key::from_static("volumeLifecycleModes"), json!(["Persistent"]));
    }
    set::nil(spec, "requiresRepublish", false);
    set::nil(spec, "seLinuxMount", false);
    if (context.gates)("VolumeLimitScaling") {
        set::nil(spec, "preventPodSchedulingIfMissing", false);
    }
}
