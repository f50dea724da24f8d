//! Rows of bindings; roles have no printer of their own.

use super::{
    Cells, cells,
    text::{age, name},
};
use crate::{object::Value, registry::printer::Printer};

pub fn printer(kind: &str) -> Option<Printer> {
    matches!(kind, "RoleBinding" | "ClusterRoleBinding").then(|| Printer::new(binding))
}

fn binding(it: &Value) -> Cells {
    let role = format!("{}/{}", it.str_at(&["roleRef", "kind"]), it.str_at(&["roleRef", "name"]));
    cells![name(it), role, age(it), subjects(it, "User"), subjects(it, "Group"), subjects(it, "ServiceAccount")]
}

/// The subjects of a kind; accounts with their namespace.
fn subjects(it: &Value, kind: &str) -> String {
    let these = it.array_at(&["subjects"]).iter().filter(|it| it.str_at(&["kind"]) == kind);
    let names = these.map(|it| match kind {
        "ServiceAccount" => format!("{}/{}", it.str_at(&["namespace"]), it.str_at(&["name"])),
        _ => it.str_at(&["name"]).to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}
