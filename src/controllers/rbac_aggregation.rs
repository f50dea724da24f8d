//! `clusterrole-aggregation-controller`: gives cluster roles with an aggregation rule the rules of the roles they
//! select (kubernetes `pkg/controller/clusterroleaggregation`).

use std::{sync::Arc, time::Duration};

use http::Method;

use super::{ApiClient, ChangeSource};
use crate::api::{ApiError, Reason, labels::Selector, meta::Meta};
use crate::auth::authz::{PolicyRule, rbac::GROUP};
use crate::object::Value;
use crate::registry::reader::ObjectReader;

/// The controller's name, as `--controllers` has it.
pub const NAME: &str = "clusterrole-aggregation-controller";

const RESOURCE: &str = "clusterroles";
/// Changes within this time are looked at together: a look costs as much as there are roles.
const QUIET: Duration = Duration::from_millis(10);
/// How long a write that failed waits for its next try, unless something changes before.
const RETRY: Duration = Duration::from_secs(1);

pub struct ClusterRoleAggregation {
    pub reader: Arc<dyn ObjectReader>,
    pub changes: Arc<dyn ChangeSource>,
    pub client: Arc<dyn ApiClient>,
}

impl ClusterRoleAggregation {
    /// Runs until it is dropped.
    pub async fn run(&self) {
        loop {
            let seen = self.reader.version(GROUP, RESOURCE);
            let changed = self.changes.changed(GROUP, RESOURCE, seen);
            if self.sync().await {
                changed.await;
            } else {
                let _ = tokio::time::timeout(RETRY, changed).await;
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Looks at all roles once and writes those whose rules are not what they select. Answers whether all went well.
    pub async fn sync(&self) -> bool {
        let roles = self.reader.list(GROUP, RESOURCE, None);
        let mut well = true;
        for role in roles.iter().filter(|role| aggregates(role)) {
            let rules = gather(role, &roles);
            if rules == PolicyRule::all_of(role) {
                continue;
            }
            if let Err(error) = self.write(role, &rules).await {
                let name = Meta::of(role).name();
                tracing::warn!(controller = NAME, role = name, "cannot fill an aggregated role: {error}");
                well = false;
            }
        }
        well
    }

    /// Where somebody else was quicker the change is seen soon; nothing is lost.
    async fn write(&self, role: &Value, rules: &[PolicyRule]) -> Result<(), ApiError> {
        let mut new = role.clone();
        new.set(&["apiVersion"], "rbac.authorization.k8s.io/v1");
        new.set(&["kind"], "ClusterRole");
        new.set(&["rules"], rules.iter().map(PolicyRule::to_value).collect::<Vec<_>>());
        let name = Meta::of(role).name();
        let path = format!("/apis/{GROUP}/v1/{RESOURCE}/{name}?fieldManager={NAME}");
        match self.client.call(Method::PUT, path, Some(new)).await {
            Err(error) if !matches!(error.reason, Reason::Conflict | Reason::NotFound) => Err(error),
            _ => Ok(()),
        }
    }
}

fn aggregates(role: &Value) -> bool {
    role.get("aggregationRule").is_some_and(|it| !it.is_null())
}

/// The rules of the selected roles: selector by selector, roles by name, each rule once.
fn gather(role: &Value, roles: &[Arc<Value>]) -> Vec<PolicyRule> {
    let mut seen = std::collections::HashSet::new();
    let mut rules = Vec::new();
    let own = Meta::of(role).name();
    for selector in role.array_at(&["aggregationRule", "clusterRoleSelectors"]) {
        let Ok(selector) = Selector::from_object(Some(selector)) else { continue };
        for other in roles {
            let meta = Meta::of(other);
            let selected = meta.labels().map_or_else(|| selector.is_everything(), |labels| selector.matches(labels));
            if meta.name() == own || !selected {
                continue;
            }
            for rule in PolicyRule::all_of(other) {
                if seen.insert(rule.clone()) {
                    rules.push(rule);
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::auth::testing::Objects;
    use crate::controllers::testing::{NoChanges, Server};
    use crate::json;

    fn role(name: &str, label: &str, resource: &str) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": "1", "labels": {"to": label}}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}]})
    }

    fn world(roles: Vec<Value>) -> (Arc<Server>, ClusterRoleAggregation) {
        let (objects, server) = (Arc::new(Objects::default()), Arc::new(Server::default()));
        for mut role in roles {
            let path = format!("/apis/{GROUP}/v1/{RESOURCE}/{}", role.str_at(&["metadata", "name"]));
            server.put(&path, role.clone());
            role.set(
                &["metadata", "resourceVersion"],
                server.get(&path).unwrap().str_at(&["metadata", "resourceVersion"]),
            );
            objects.put(GROUP, RESOURCE, role);
        }
        let controller =
            ClusterRoleAggregation { reader: objects, changes: Arc::new(NoChanges), client: server.clone() };
        (server, controller)
    }

    #[test]
    fn a_role_gets_the_rules_of_those_it_selects_each_once() {
        let view = json!({"metadata": {"name": "view", "labels": {"to": "edit"}}, "rules": null, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "view"}}, {"matchLabels": {"to": "more"}}]}});
        let (server, controller) = world(vec![
            role("b", "view", "pods"),
            role("a", "view", "nodes"),
            role("c", "more", "pods"),
            role("d", "other", "secrets"),
            view,
        ]);
        assert!(controller.sync().now_or_never().unwrap());
        let filled = server.get(&format!("/apis/{GROUP}/v1/{RESOURCE}/view")).unwrap();
        assert_eq!(
            crate::object::to_string(filled.get("rules").unwrap()),
            r#"[{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]},{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]"#
        );
    }

    #[test]
    fn a_role_that_is_right_is_not_written_and_one_that_lost_its_sources_is_emptied() {
        let right = json!({"metadata": {"name": "x"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "x"}}]}});
        let mut lost = right.clone();
        lost.set(&["metadata", "name"], "y");
        lost.set(&["aggregationRule"], json!({"clusterRoleSelectors": [{"matchLabels": {"to": "nobody"}}]}));
        let (server, controller) = world(vec![role("a", "x", "pods"), right, lost]);
        assert!(controller.sync().now_or_never().unwrap());
        assert_eq!(*server.writes.lock(), [format!("PUT /apis/{GROUP}/v1/{RESOURCE}/y")]);
        assert!(server.get(&format!("/apis/{GROUP}/v1/{RESOURCE}/y")).unwrap().array_at(&["rules"]).is_empty());
    }

    #[test]
    fn a_failed_write_is_told() {
        let (server, controller) = world(vec![
            role("a", "x", "pods"),
            json!({"metadata": {"name": "x"}, "rules": null, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "x"}}]}}),
        ]);
        *server.broken.lock() = true;
        assert!(!controller.sync().now_or_never().unwrap());
    }
}
