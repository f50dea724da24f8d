//! Definitions and rows for tests.

use std::sync::Arc;

use super::{Pool, make};
use crate::{json, object::Value, registry::catalog::Row};

/// An established definition of one version that keeps everything.
pub fn definition(group: &str, plural: &str) -> Value {
    let names = json!({"plural": plural, "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": (format!("{plural}.{group}"))},
        "spec": {"group": group, "scope": "Namespaced", "names": (names.clone()), "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ]},
        "status": {"acceptedNames": names, "conditions": [
            {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}
        ]}
    })
}

/// The row of a definition, without a store.
pub fn row(crd: &Value, revision: u64) -> Arc<Row> {
    let made = make(crd, revision, 0, &Pool::default()).expect("a definition with a storage version");
    Arc::new(Row { resource: made.resource, store: None })
}
