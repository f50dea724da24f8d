//! The roles and bindings every cluster starts with, out of `data/bootstrap.jsonl` (made by `tools/gen-rbac.py`, which
//! describes its lines; kubernetes `plugin/pkg/auth/authorizer/rbac/bootstrappolicy`).

use super::GROUP;
use crate::json;
use crate::object::{Map, Value, parse};

const LINES: &str = include_str!("data/bootstrap.jsonl");

const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// One object, as it has to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    /// `clusterroles`, `clusterrolebindings`, `roles` or `rolebindings`.
    pub plural: &'static str,
    /// `""` for cluster-scoped ones.
    pub namespace: String,
    pub name: String,
    pub object: Value,
}

/// All of them: cluster roles, their bindings, roles, their bindings.
pub fn objects() -> Vec<Bootstrap> {
    LINES.lines().filter_map(|line| parse(line.as_bytes()).ok()).filter_map(|line| object(&line)).collect()
}

const KINDS: [(&str, &str); 4] = [
    ("ClusterRole", "clusterroles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("Role", "roles"),
    ("RoleBinding", "rolebindings"),
];

fn object(line: &Value) -> Option<Bootstrap> {
    let (kind, plural, name) =
        KINDS.iter().find_map(|(kind, plural)| Some((*kind, *plural, line.get(kind)?.as_str()?)))?;
    let namespace = line.str_at(&["namespace"]);
    let mut labels = Map::from([("kubernetes.io/bootstrapping", "rbac-defaults")]);
    for label in texts(line, "labels") {
        labels.insert(format!("{AGGREGATE_TO}{label}"), "true");
    }
    let mut metadata = Map::new();
    metadata.insert("name", name);
    if !namespace.is_empty() {
        metadata.insert("namespace", namespace);
    }
    metadata.insert("labels", labels);
    metadata.insert("annotations", json!({"rbac.authorization.kubernetes.io/autoupdate": "true"}));
    let mut object = Map::new();
    object.insert("apiVersion", format!("{GROUP}/v1"));
    object.insert("kind", kind);
    object.insert("metadata", metadata);
    if kind.ends_with("Binding") {
        fill_binding(&mut object, line)?;
    } else {
        fill_role(&mut object, line);
    }
    Some(Bootstrap { plural, namespace: namespace.to_owned(), name: name.to_owned(), object: object.into() })
}

fn texts<'a>(line: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    line.array_at(&[key]).iter().filter_map(Value::as_str)
}

fn fill_role(role: &mut Map, line: &Value) {
    if let Some(label) = line.get("aggregate").and_then(Value::as_str) {
        let labels = Map::from([(format!("{AGGREGATE_TO}{label}"), "true")]);
        let selector = Map::from([("matchLabels", labels)]);
        role.insert("aggregationRule", Map::from([("clusterRoleSelectors", vec![selector])]));
        role.insert("rules", Value::Null);
        return;
    }
    role.insert("rules", texts(line, "rules").map(rule).collect::<Vec<_>>());
}

fn rule(text: &str) -> Value {
    let lists: Vec<Vec<&str>> = text.split('|').map(|list| list.split(',').collect()).collect();
    let keys: &[&str] = match lists.len() {
        2 => &["verbs", "nonResourceURLs"],
        _ => &["verbs", "apiGroups", "resources", "resourceNames"],
    };
    keys.iter().copied().zip(lists).collect::<Map>().into()
}

fn fill_binding(binding: &mut Map, line: &Value) -> Option<()> {
    let (kind, name) = line.str_at(&["role"]).split_once('/')?;
    binding.insert("roleRef", Map::from([("apiGroup", GROUP), ("kind", kind), ("name", name)]));
    let subjects: Vec<Value> = texts(line, "subjects").filter_map(subject).collect();
    if !subjects.is_empty() {
        binding.insert("subjects", subjects);
    }
    Some(())
}

fn subject(text: &str) -> Option<Value> {
    let (kind, name) = text.split_once('/')?;
    if kind == "ServiceAccount" {
        let (namespace, name) = name.split_once('/')?;
        return Some(Map::from([("kind", kind), ("name", name), ("namespace", namespace)]).into());
    }
    Some(Map::from([("apiGroup", GROUP), ("kind", kind), ("name", name)]).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::to_string;

    #[test]
    fn every_line_makes_an_object() {
        let objects = objects();
        assert_eq!(objects.len(), LINES.lines().count());
        let count = |plural: &str| objects.iter().filter(|it| it.plural == plural).count();
        assert_eq!(
            ["clusterroles", "clusterrolebindings", "roles", "rolebindings"].map(count),
            [73, 54, 7, 7],
            "as many as a real server of this release has"
        );
    }

    #[test]
    fn roles_and_bindings_read_as_a_real_servers() {
        let all = objects();
        let text = |plural: &str, name: &str| {
            let found = all.iter().find(|it| it.plural == plural && it.name == name).expect("a known name");
            to_string(&found.object)
        };
        assert_eq!(
            text("clusterroles", "view"),
            r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}]},"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"},"labels":{"kubernetes.io/bootstrapping":"rbac-defaults","rbac.authorization.k8s.io/aggregate-to-edit":"true"},"name":"view"},"rules":null}"#
        );
        assert!(text("clusterroles", "cluster-admin").ends_with(
            r#""rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},{"nonResourceURLs":["*"],"verbs":["*"]}]}"#
        ));
        assert!(
            text("rolebindings", "system:controller:bootstrap-signer").contains(
                r#""subjects":[{"kind":"ServiceAccount","name":"bootstrap-signer","namespace":"kube-system"}]"#
            )
        );
        assert!(!text("clusterrolebindings", "system:node").contains("subjects"));
    }
}
