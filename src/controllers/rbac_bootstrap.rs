//! The post-start hook `rbac/bootstrap-roles`: the roles and bindings every cluster has are there and hold what
//! they must (kubernetes `pkg/registry/rbac/rest/storage_rbac.go`).
//!
//! Idempotent. What is there is read with four lists; everything that has to be written is written at once, so that
//! the store commits it together. Differs from upstream in the first try, which does not wait for a second.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use futures_util::stream::{self, StreamExt};
use http::Method;

use super::ApiClient;
use super::rbac_reconcile::{Change, reconcile_binding, reconcile_role};
use crate::api::{ApiError, Reason};
use crate::json;
use crate::object::Value;
use crate::registry::builtin::rbac::bootstrap::{Bootstrap, objects};

/// The hook's name, as health checks show it.
pub const HOOK: &str = "rbac/bootstrap-roles";

const ROOT: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Passes are repeated until one has no failure, this long in all.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_PASSES: Duration = Duration::from_secs(1);
/// Writes under way at once.
const CONCURRENT: usize = 128;
/// Tries of one object within a pass: somebody else may write it, too.
const TRIES: usize = 4;
/// Objects of one list; who has more is asked for them one by one.
const PAGE: usize = 1000;

/// Cluster roles that were plain once: what somebody put into them goes to the role they gather now.
const AGGREGATED: [(&str, &str); 3] = [
    ("admin", "system:aggregate-to-admin"),
    ("edit", "system:aggregate-to-edit"),
    ("view", "system:aggregate-to-view"),
];

/// Runs the hook. Fails where 30 seconds were not enough, in upstream's words; the process should end then.
pub async fn bootstrap_roles(client: &dyn ApiClient) -> Result<(), String> {
    let since = Instant::now();
    loop {
        let failures = pass(client).await;
        if failures.is_empty() {
            return Ok(());
        }
        for failure in &failures {
            tracing::warn!(hook = HOOK, "{failure}");
        }
        if since.elapsed() + BETWEEN_PASSES > PATIENCE {
            return Err("unable to initialize roles: timed out waiting for the condition".to_owned());
        }
        tokio::time::sleep(BETWEEN_PASSES).await;
    }
}

/// One pass over all objects; answers what failed.
async fn pass(client: &dyn ApiClient) -> Vec<String> {
    let mut wanted = objects();
    let mut there = match Existing::read(client).await {
        Ok(there) => there,
        Err(failure) => return vec![failure],
    };
    if let Err(failure) = migrate(client, &wanted, &mut there).await {
        return vec![failure];
    }
    if let Err(failure) = ensure_namespaces(client, &wanted, &there).await {
        return vec![failure];
    }
    let there = &there;
    stream::iter(wanted.drain(..))
        .map(|object| async move {
            let known = there.get(&object);
            let named = format!("{}.rbac.authorization.k8s.io/{}", object.plural.trim_end_matches('s'), object.name);
            reconcile(client, &object, known).await.err().map(|error| format!("unable to reconcile {named}: {error}"))
        })
        .buffer_unordered(CONCURRENT)
        .filter_map(|failure| async { failure })
        .collect()
        .await
}

fn collection(object: &Bootstrap) -> String {
    collection_of(object.plural, &object.namespace)
}

fn collection_of(plural: &str, namespace: &str) -> String {
    match namespace {
        "" => format!("{ROOT}/{plural}"),
        namespace => format!("{ROOT}/namespaces/{namespace}/{plural}"),
    }
}

/// What is stored already.
struct Existing {
    /// Collection and name → object, without its type.
    objects: HashMap<(String, String), Value>,
    /// Collections of which `objects` has everything.
    complete: Vec<String>,
}

/// What is known of an object that was not asked for by itself.
enum Known {
    Missing,
    There(Value),
    Unknown,
}

impl Existing {
    async fn read(client: &dyn ApiClient) -> Result<Self, String> {
        let mut this = Self { objects: HashMap::new(), complete: Vec::new() };
        let mut collections: Vec<String> = objects().iter().map(collection).collect();
        collections.sort_unstable();
        collections.dedup();
        for collection in collections {
            let path = format!("{collection}?limit={PAGE}");
            let list = client.call(Method::GET, path, None).await;
            let mut list = list.map_err(|error| format!("unable to initialize {collection}: {error}"))?;
            if list.str_at(&["metadata", "continue"]).is_empty() {
                this.complete.push(collection.clone());
            }
            for item in list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                let name = item.str_at(&["metadata", "name"]).to_owned();
                this.objects.insert((collection.clone(), name), item.take());
            }
        }
        Ok(this)
    }

    fn get(&self, object: &Bootstrap) -> Known {
        self.find(collection(object), &object.name)
    }

    fn find(&self, collection: String, name: &str) -> Known {
        let complete = self.complete.contains(&collection);
        match self.objects.get(&(collection, name.to_owned())) {
            Some(found) => Known::There(found.clone()),
            None if complete => Known::Missing,
            None => Known::Unknown,
        }
    }

    /// Like [`Self::find`], asking where it does not know.
    async fn fetch(&self, client: &dyn ApiClient, plural: &str, name: &str) -> Result<Option<Value>, ApiError> {
        match self.find(collection_of(plural, ""), name) {
            Known::Missing => Ok(None),
            Known::There(object) => Ok(Some(object)),
            Known::Unknown => get(client, format!("{ROOT}/{plural}/{name}")).await,
        }
    }

    fn add(&mut self, plural: &str, object: Value) {
        let name = object.str_at(&["metadata", "name"]).to_owned();
        self.objects.insert((collection_of(plural, ""), name), object);
    }
}

async fn get(client: &dyn ApiClient, path: String) -> Result<Option<Value>, ApiError> {
    match client.call(Method::GET, path, None).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.reason == Reason::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Brings clusters of long ago to today's names: roles that gather others now, and the binding that was split.
async fn migrate(client: &dyn ApiClient, wanted: &[Bootstrap], there: &mut Existing) -> Result<(), String> {
    for (old, new) in AGGREGATED {
        let why = |error: ApiError| format!("unable to prime aggregated clusterroles: {error}");
        if there.fetch(client, "clusterroles", new).await.map_err(why)?.is_some() {
            continue;
        }
        let Some(role) = there.fetch(client, "clusterroles", old).await.map_err(why)? else { continue };
        if role.get("aggregationRule").is_none_or(Value::is_null) {
            create_copy(client, "clusterroles", renamed(&role, new), there).await.map_err(why)?;
        }
    }
    let why = |error: ApiError| format!("unable to prime split ClusterRoleBindings: {error}");
    let template =
        wanted.iter().find(|it| it.plural == "clusterrolebindings" && it.name == "system:public-info-viewer");
    let Some(template) = template else { return Ok(()) };
    let Some(source) = there.fetch(client, "clusterrolebindings", "system:discovery").await.map_err(why)? else {
        return Ok(());
    };
    if there.fetch(client, "clusterrolebindings", &template.name).await.map_err(why)?.is_some() {
        return Ok(());
    }
    let mut binding = template.object.clone();
    for path in [&["subjects"][..], &["metadata", "labels"], &["metadata", "annotations"]] {
        binding.set(path, source.at(path).cloned().unwrap_or_default());
    }
    create_copy(client, "clusterrolebindings", binding, there).await.map_err(why)
}

/// The role under another name, as a new object.
fn renamed(role: &Value, name: &str) -> Value {
    let mut copy = typed(role.clone(), "ClusterRole");
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        copy.remove_at(&["metadata", field]);
    }
    copy.set(&["metadata", "name"], name);
    copy
}

async fn create_copy(
    client: &dyn ApiClient,
    plural: &str,
    object: Value,
    there: &mut Existing,
) -> Result<(), ApiError> {
    match client.call(Method::POST, format!("{ROOT}/{plural}"), Some(object)).await {
        Ok(created) => there.add(plural, created),
        Err(error) if error.reason == Reason::AlreadyExists => there.complete.retain(|it| !it.ends_with(plural)),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Items of lists do not say what they are.
fn typed(mut object: Value, kind: &str) -> Value {
    object.set(&["apiVersion"], "rbac.authorization.k8s.io/v1");
    object.set(&["kind"], kind);
    object
}

/// Makes the namespaces of roles that are missing.
async fn ensure_namespaces(client: &dyn ApiClient, wanted: &[Bootstrap], there: &Existing) -> Result<(), String> {
    let lacking = wanted.iter().filter(|it| !it.namespace.is_empty() && !matches!(there.get(it), Known::There(_)));
    let mut namespaces: Vec<&str> = lacking.map(|it| it.namespace.as_str()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    for namespace in namespaces {
        let why = |error: ApiError| format!("unable to make namespace {namespace}: {error}");
        if get(client, format!("/api/v1/namespaces/{namespace}")).await.map_err(why)?.is_some() {
            continue;
        }
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        match client.call(Method::POST, "/api/v1/namespaces".to_owned(), Some(object)).await {
            Ok(_) => {}
            Err(error) if error.reason == Reason::AlreadyExists => {}
            Err(error) => return Err(why(error)),
        }
    }
    Ok(())
}

/// Brings one object to what it must be. Tries again where somebody else was quicker or the server is not ready.
async fn reconcile(client: &dyn ApiClient, wanted: &Bootstrap, mut known: Known) -> Result<(), ApiError> {
    let mut wait = Duration::from_millis(10);
    let mut tries = 1;
    loop {
        let Err(error) = reconcile_once(client, wanted, known).await else { return Ok(()) };
        let again = matches!(
            error.reason,
            Reason::Conflict | Reason::ServiceUnavailable | Reason::AlreadyExists | Reason::NotFound
        );
        if !again || tries == TRIES {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        (known, wait, tries) = (Known::Unknown, wait * 5, tries + 1);
    }
}

async fn reconcile_once(client: &dyn ApiClient, wanted: &Bootstrap, known: Known) -> Result<(), ApiError> {
    let path = format!("{}/{}", collection(wanted), wanted.name);
    let existing = match known {
        Known::There(existing) => Some(existing),
        Known::Missing => None,
        Known::Unknown => get(client, path.clone()).await?,
    };
    let Some(existing) = existing else { return create(client, wanted).await };
    let existing = typed(existing, wanted.object.str_at(&["kind"]));
    let change = match wanted.plural {
        "roles" | "clusterroles" => reconcile_role(&existing, &wanted.object),
        _ => reconcile_binding(&existing, &wanted.object),
    };
    match change {
        Change::Nothing => Ok(()),
        Change::Protected => {
            tracing::warn!(hook = HOOK, object = path, "skipped, it is protected and lacks something");
            Ok(())
        }
        Change::Update(object) => client.call(Method::PUT, path, Some(object)).await.map(drop),
        Change::Recreate => {
            let uid = existing.str_at(&["metadata", "uid"]).to_owned();
            let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
            match client.call(Method::DELETE, path, Some(options)).await {
                Err(error) if error.reason != Reason::NotFound => return Err(error),
                _ => {}
            }
            create(client, wanted).await
        }
    }
}

async fn create(client: &dyn ApiClient, wanted: &Bootstrap) -> Result<(), ApiError> {
    client.call(Method::POST, collection(wanted), Some(wanted.object.clone())).await.map(drop)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::controllers::testing::Server;

    fn run(server: &Server) {
        bootstrap_roles(server).now_or_never().expect("nothing to wait for").expect("all is written");
    }

    #[test]
    fn a_new_cluster_gets_everything_and_a_second_run_writes_nothing() {
        let server = Server::default();
        run(&server);
        assert_eq!(server.count(ROOT), 141);
        assert!(server.get("/api/v1/namespaces/kube-public").is_some());
        server.writes.lock().clear();
        run(&server);
        assert_eq!(*server.writes.lock(), Vec::<String>::new());
    }

    #[test]
    fn what_was_taken_away_comes_back_and_what_was_added_stays() {
        let server = Server::default();
        run(&server);
        let path = format!("{ROOT}/clusterroles/system:discovery");
        let mut role = server.get(&path).unwrap();
        let mut rules = role.array_at(&["rules"]).to_vec();
        rules[0] = json!({"verbs": ["get"], "nonResourceURLs": ["/own"]});
        role.set(&["rules"], rules);
        role.remove_at(&["metadata", "labels"]);
        server.put(&path, role);
        server.writes.lock().clear();
        run(&server);
        assert_eq!(*server.writes.lock(), [format!("PUT {path}")]);
        let role = server.get(&path).unwrap();
        let text = crate::object::to_string(role.get("rules").unwrap());
        assert!(text.starts_with(r#"[{"nonResourceURLs":["/own"],"verbs":["get"]},"#), "{text}");
        assert!(text.contains(r#"{"nonResourceURLs":["/version/"],"verbs":["get"]}"#), "{text}");
        assert_eq!(role.str_at(&["metadata", "labels", "kubernetes.io/bootstrapping"]), "rbac-defaults");
    }

    #[test]
    fn a_binding_to_another_role_is_made_anew() {
        let server = Server::default();
        run(&server);
        let path = format!("{ROOT}/clusterrolebindings/cluster-admin");
        let mut binding = server.get(&path).unwrap();
        binding.set(&["roleRef", "name"], "view");
        server.put(&path, binding);
        server.writes.lock().clear();
        run(&server);
        assert_eq!(*server.writes.lock(), [format!("DELETE {path}"), format!("POST {ROOT}/clusterrolebindings")]);
        assert_eq!(server.get(&path).unwrap().str_at(&["roleRef", "name"]), "cluster-admin");
    }

    #[test]
    fn somebody_elses_write_in_between_is_read_again() {
        let server = Server::default();
        run(&server);
        let path = format!("{ROOT}/clusterroles/system:discovery");
        let mut role = server.get(&path).unwrap();
        role.remove_at(&["rules"]);
        server.put(&path, role);
        server.conflicts.lock().push(path.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(bootstrap_roles(&server)).unwrap();
        assert!(!server.get(&path).unwrap().array_at(&["rules"]).is_empty());
    }

    #[test]
    fn roles_of_long_ago_move_to_the_roles_that_are_gathered_now() {
        let server = Server::default();
        let own = json!({"metadata": {"name": "admin"}, "rules": [{"verbs": ["get"], "apiGroups": ["own"], "resources": ["x"]}]});
        server.put(&format!("{ROOT}/clusterroles/admin"), own);
        run(&server);
        let text = |name: &str| crate::object::to_string(&server.get(&format!("{ROOT}/clusterroles/{name}")).unwrap());
        assert!(text("system:aggregate-to-admin").contains(r#""apiGroups":["own"]"#));
        assert!(text("admin").contains("aggregationRule"));
    }

    #[test]
    fn a_server_that_is_not_ready_fails_the_pass() {
        let server = Server::default();
        *server.broken.lock() = true;
        let failures = pass(&server).now_or_never().unwrap();
        assert_eq!(failures.len(), 1);
        assert!(failures[0].ends_with("not yet"), "{failures:?}");
    }
}
