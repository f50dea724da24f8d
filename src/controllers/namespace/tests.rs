use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;

use super::*;
use crate::auth::testing::Objects;
use crate::controllers::testing::NoChanges;
use crate::json;

/// A server with pods and widgets in one namespace.
#[derive(Default)]
struct World {
    pods: Mutex<Vec<Value>>,
    widgets: Mutex<Vec<Value>>,
    namespace: Mutex<Value>,
    log: Mutex<Vec<String>>,
    /// Discovery of the widgets' group fails.
    broken_group: Mutex<bool>,
}

impl World {
    fn answer(&self, method: &Method, path: &str, body: Option<Value>) -> Result<Value, ApiError> {
        let path = path.split('?').next().unwrap_or(path);
        if *method != Method::GET {
            self.log.lock().push(format!("{method} {path}"));
        }
        let verbs = json!(["delete", "deletecollection", "list"]);
        let items = |items: &Mutex<Vec<Value>>| json!({"items": (items.lock().clone())});
        // Deleted is what nothing holds.
        let drain =
            |items: &Mutex<Vec<Value>>| items.lock().retain(|item| Meta::of(item).finalizers().next().is_some());
        match (method.as_str(), path) {
            ("GET", "/api/v1") => Ok(json!({"resources": [
                {"name": "pods", "namespaced": true, "verbs": (verbs.clone())},
                {"name": "pods/log", "namespaced": true, "verbs": ["get"]},
                {"name": "nodes", "namespaced": false, "verbs": verbs}
            ]})),
            ("GET", "/apis") => Ok(
                json!({"groups": [{"name": "x.io", "preferredVersion": {"version": "v2"}, "versions": [{"version": "v2"}, {"version": "v1"}]}]}),
            ),
            ("GET", "/apis/x.io/v2" | "/apis/x.io/v1") if *self.broken_group.lock() => {
                Err(ApiError::service_unavailable("down"))
            }
            ("GET", "/apis/x.io/v2" | "/apis/x.io/v1") => {
                Ok(json!({"resources": [{"name": "widgets", "namespaced": true, "verbs": verbs}]}))
            }
            ("GET", "/api/v1/namespaces/n/pods") => Ok(items(&self.pods)),
            ("DELETE", "/api/v1/namespaces/n/pods") => {
                drain(&self.pods);
                Ok(Value::Null)
            }
            ("GET", "/apis/x.io/v2/namespaces/n/widgets") => Ok(items(&self.widgets)),
            ("DELETE", "/apis/x.io/v2/namespaces/n/widgets") => {
                drain(&self.widgets);
                Ok(Value::Null)
            }
            ("GET", "/api/v1/namespaces/n") => Ok(self.namespace.lock().clone()),
            ("PUT", "/api/v1/namespaces/n/status" | "/api/v1/namespaces/n/finalize") => {
                *self.namespace.lock() = body.unwrap_or_default();
                Ok(Value::Null)
            }
            other => panic!("nobody should ask {other:?}"),
        }
    }
}

impl ApiClient for World {
    fn call(&self, method: Method, path: String, body: Option<Value>) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(async move { self.answer(&method, &path, body) })
    }
}

fn ending() -> Value {
    json!({"metadata": {"name": "n", "uid": "u", "deletionTimestamp": "2024-01-01T00:00:00Z"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"}})
}

fn held(by: &str) -> Value {
    json!({"metadata": {"name": "a", "finalizers": [by]}})
}

fn start(pods: Vec<Value>, widgets: Vec<Value>, namespace: Value) -> (Arc<World>, NamespaceDeletion) {
    let (objects, world) = (Arc::new(Objects::default()), Arc::new(World::default()));
    *world.pods.lock() = pods;
    *world.widgets.lock() = widgets;
    *world.namespace.lock() = namespace.clone();
    objects.put("", "namespaces", namespace);
    let (changes, client) = (Arc::new(NoChanges), world.clone());
    (world, NamespaceDeletion { reader: objects, changes, client, settle: Duration::ZERO })
}

async fn sync(controller: &NamespaceDeletion) -> Outcome {
    controller.sync("n".into()).await
}

fn condition(world: &World, kind: &str) -> String {
    let namespace = world.namespace.lock();
    let conditions = namespace.array_at(&["status", "conditions"]);
    let found = conditions.iter().find(|it| it.str_at(&["type"]) == kind);
    found.map_or(String::new(), |it| format!("{}: {}", it.str_at(&["status"]), it.str_at(&["message"])))
}

#[tokio::test]
async fn contents_go_pods_first_and_then_the_finalizer() {
    let (world, controller) =
        start(vec![json!({"metadata": {"name": "p"}})], vec![json!({"metadata": {"name": "w"}})], ending());
    assert_eq!(sync(&controller).await, Outcome::Done);
    assert_eq!(
        *world.log.lock(),
        [
            "DELETE /api/v1/namespaces/n/pods",
            "DELETE /apis/x.io/v2/namespaces/n/widgets",
            "PUT /api/v1/namespaces/n/finalize"
        ]
    );
    assert_eq!(world.namespace.lock().array_at(&["spec", "finalizers"]), []);
}

#[tokio::test]
async fn while_a_pod_is_held_nothing_else_goes_and_the_namespace_says_so() {
    let (world, controller) = start(vec![held("x.io/f")], vec![json!({"metadata": {"name": "w"}})], ending());
    assert!(matches!(sync(&controller).await, Outcome::After(_)));
    assert_eq!(world.widgets.lock().len(), 1);
    assert_eq!(
        condition(&world, "NamespaceContentRemaining"),
        "True: Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(
        condition(&world, "NamespaceFinalizersRemaining"),
        "True: Some content in the namespace has finalizers remaining: x.io/f in 1 resource instances"
    );
    let writes = world.log.lock().len();
    sync(&controller).await;
    assert_eq!(world.log.lock().len(), writes + 1, "conditions that are right are not written again");
}

#[tokio::test]
async fn a_group_that_cannot_be_asked_keeps_the_namespace() {
    let (world, controller) = start(vec![], vec![], ending());
    *world.broken_group.lock() = true;
    assert_eq!(sync(&controller).await, Outcome::Again);
    assert!(
        condition(&world, "NamespaceDeletionDiscoveryFailure")
            .starts_with("True: Discovery failed for some groups, 2 failing")
    );
    assert_eq!(world.namespace.lock().array_at(&["spec", "finalizers"]).len(), 1);
}

#[test]
fn a_namespace_that_lives_or_was_finalized_is_left_alone() {
    let mut living = ending();
    living.remove_at(&["metadata", "deletionTimestamp"]);
    let mut finalized = ending();
    finalized.remove_at(&["spec", "finalizers"]);
    for namespace in [living, finalized] {
        let (world, controller) = start(vec![], vec![], namespace);
        assert_eq!(controller.sync("n".into()).now_or_never().unwrap(), Outcome::Done);
        assert!(world.log.lock().is_empty());
    }
}

#[tokio::test]
async fn finalizers_of_others_stay() {
    let mut namespace = ending();
    namespace.set(&["spec", "finalizers"], json!(["example.com/f", "kubernetes"]));
    let (world, controller) = start(vec![], vec![], namespace);
    assert_eq!(sync(&controller).await, Outcome::Done);
    assert_eq!(world.namespace.lock().at(&["spec", "finalizers"]), Some(&json!(["example.com/f"])));
    assert_eq!(condition(&world, "NamespaceContentRemaining"), "False: All content successfully removed");
}
