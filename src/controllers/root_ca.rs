//! The ConfigMap `kube-root-ca.crt` in every namespace: what verifies this server (kubernetes
//! `pkg/controller/certificates/rootcacertpublisher`).

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use http::Method;
use tokio::sync::watch;

use super::{
    ApiClient, ChangeSource,
    namespaces::{is_active, names_of_namespaces, namespaces_of},
    work::{self, Names, Outcome},
};
use crate::api::{Meta, Reason};
use crate::json;
use crate::object::{Key, Map, Value};
use crate::registry::reader::ObjectReader;

const NAME: &str = "root-ca-certificate-publisher-controller";
const CONFIG_MAP: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const WHAT_FOR: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

pub struct RootCaPublisher {
    pub reader: Arc<dyn ObjectReader>,
    pub changes: Arc<dyn ChangeSource>,
    pub client: Arc<dyn ApiClient>,
    /// PEM; `None` while nobody knows what verifies this server.
    pub authority: watch::Receiver<Option<Arc<str>>>,
}

impl RootCaPublisher {
    /// Runs until it is dropped.
    pub async fn run(&self) {
        let namespaces = names_of_namespaces(&*self.changes);
        let maps = namespaces_of(&*self.changes, "configmaps", CONFIG_MAP);
        work::run(vec![namespaces, maps, self.all_when_the_authority_changes()], |namespace| self.sync(namespace))
            .await;
    }

    fn all_when_the_authority_changes(&self) -> Names<'_> {
        let changes = stream::unfold(self.authority.clone(), move |mut authority| async move {
            if authority.changed().await.is_err() {
                // The last authority stays.
                return std::future::pending().await;
            }
            let all = self.reader.list("", "namespaces", None);
            let names: Vec<Arc<str>> = all.iter().map(|namespace| Arc::from(Meta::of(namespace).name())).collect();
            Some((names, authority))
        });
        changes.boxed()
    }

    /// Looks at one namespace.
    pub async fn sync(&self, namespace: Arc<str>) -> Outcome {
        let Some(authority) = self.authority.borrow().clone() else { return Outcome::Done };
        if !is_active(&*self.reader, &namespace) {
            return Outcome::Done;
        }
        let found = self.reader.get("", "configmaps", &namespace, CONFIG_MAP);
        let written = match found {
            None => {
                let map = wanted(
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}}),
                    &authority,
                );
                self.client.call(Method::POST, path(&namespace, ""), Some(map)).await
            }
            Some(found) => {
                let map = wanted((*found).clone(), &authority);
                if map == *found {
                    return Outcome::Done;
                }
                self.client.call(Method::PUT, path(&namespace, CONFIG_MAP), Some(map)).await
            }
        };
        match written {
            Ok(_) => Outcome::Done,
            // Others were quicker: what they wrote is told, and looked at then.
            Err(error) if matches!(error.reason, Reason::AlreadyExists | Reason::NotFound | Reason::Conflict) => {
                Outcome::Done
            }
            Err(error) => {
                if is_active(&*self.reader, &namespace) {
                    tracing::warn!(controller = NAME, %namespace, "cannot publish the authority: {error}");
                }
                Outcome::Again
            }
        }
    }
}

fn path(namespace: &str, name: &str) -> String {
    let slash = if name.is_empty() { "" } else { "/" };
    format!("/api/v1/namespaces/{namespace}/configmaps{slash}{name}?fieldManager={NAME}")
}

/// The map with the authority as its only content, and what it is for where nobody has said it.
fn wanted(mut map: Value, authority: &str) -> Value {
    map.set(&["data"], Map::from([(Key::from_static("ca.crt"), Value::from(authority))]));
    if Meta::of(&map).annotation(DESCRIPTION).unwrap_or("").is_empty() {
        map.make(&["metadata", "annotations"]).make_object().insert(DESCRIPTION, WHAT_FOR);
    }
    map
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::auth::testing::Objects;
    use crate::controllers::testing::{NoChanges, Server};

    fn world() -> (Arc<Objects>, Arc<Server>, RootCaPublisher, watch::Sender<Option<Arc<str>>>) {
        let (objects, server) = (Arc::new(Objects::default()), Arc::new(Server::default()));
        objects.put("", "namespaces", json!({"metadata": {"name": "n"}, "status": {"phase": "Active"}}));
        let (sender, authority) = watch::channel(Some(Arc::from("PEM")));
        let publisher = RootCaPublisher {
            reader: objects.clone(),
            changes: Arc::new(NoChanges),
            client: server.clone(),
            authority,
        };
        (objects, server, publisher, sender)
    }

    #[test]
    fn the_authority_is_published_once_and_put_right_when_somebody_changed_it() {
        let (objects, server, publisher, _sender) = world();
        assert_eq!(publisher.sync("n".into()).now_or_never().unwrap(), Outcome::Done);
        let path = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt";
        let mut map = server.get(path).unwrap();
        assert_eq!(map.str_at(&["data", "ca.crt"]), "PEM");
        map.set(&["metadata", "namespace"], "n");
        objects.put("", "configmaps", map.clone());
        publisher.sync("n".into()).now_or_never().unwrap();
        assert_eq!(server.writes.lock().len(), 1);
        map.set(&["data"], json!({"ca.crt": "other", "more": "x"}));
        objects.put("", "configmaps", map);
        publisher.sync("n".into()).now_or_never().unwrap();
        assert_eq!(server.get(path).unwrap().get("data"), Some(&Value::from([("ca.crt", "PEM")])));
    }

    #[test]
    fn a_new_authority_makes_every_namespace_be_looked_at() {
        let (_objects, _server, publisher, sender) = world();
        let mut names = publisher.all_when_the_authority_changes();
        assert!(names.next().now_or_never().is_none());
        sender.send(Some(Arc::from("NEW"))).unwrap();
        assert_eq!(names.next().now_or_never().flatten(), Some(vec![Arc::from("n")]));
    }

    #[test]
    fn nothing_is_published_while_nobody_knows_the_authority() {
        let (_objects, server, publisher, sender) = world();
        sender.send(None).unwrap();
        publisher.sync("n".into()).now_or_never().unwrap();
        assert!(server.writes.lock().is_empty());
    }
}
