//! StorageObjectInUseProtection: volumes, claims and volume attributes classes stay while they are used; the controller
//! manager takes the finalizer off (kubernetes `plugin/pkg/admission/storage/storageobjectinuseprotection`).

use crate::{
    admission::{AdmissionFuture, Attributes, Operation, Phases, Plugin},
    object::Value,
};

pub struct StorageObjectInUseProtection;

/// Group and resource, and the finalizer that protects it.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn phases(&self) -> Phases {
        Phases::Mutating
    }

    fn admit<'a>(
        &'a self,
        request: &'a Attributes<'a>,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        let protected = PROTECTED.iter().find(|(group, resource, _)| request.is(group, resource, ""));
        if let (Some((.., finalizer)), Some(object)) = (protected, object) {
            protect(object, finalizer);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers = object.array_at(&["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|it| it.as_str() == Some(finalizer)) {
        finalizers.push(finalizer.into());
        object.set(&["metadata", "finalizers"], Value::Array(finalizers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finalizer_comes_last_and_once() {
        let mut object = crate::json!({ "metadata": { "finalizers": ["a"] } });
        protect(&mut object, "kubernetes.io/pv-protection");
        protect(&mut object, "kubernetes.io/pv-protection");
        assert_eq!(object, crate::json!({ "metadata": { "finalizers": ["a", "kubernetes.io/pv-protection"] } }));
    }
}
