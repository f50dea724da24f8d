//! The account `default` in every active namespace (kubernetes `pkg/controller/serviceaccount`).

use std::sync::Arc;

use http::Method;

use super::{
    ApiClient, ChangeSource,
    namespaces::{is_active, names_of_namespaces, namespaces_of},
    work::{self, Outcome},
};
use crate::api::Reason;
use crate::json;
use crate::registry::reader::ObjectReader;

const NAME: &str = "serviceaccount-controller";
const ACCOUNT: &str = "default";

pub struct DefaultServiceAccount {
    pub reader: Arc<dyn ObjectReader>,
    pub changes: Arc<dyn ChangeSource>,
    pub client: Arc<dyn ApiClient>,
}

impl DefaultServiceAccount {
    /// Runs until it is dropped.
    pub async fn run(&self) {
        let namespaces = names_of_namespaces(&*self.changes);
        let accounts = namespaces_of(&*self.changes, "serviceaccounts", ACCOUNT);
        work::run(vec![namespaces, accounts], |namespace| self.sync(namespace)).await;
    }

    /// Looks at one namespace.
    pub async fn sync(&self, namespace: Arc<str>) -> Outcome {
        if !is_active(&*self.reader, &namespace) {
            return Outcome::Done;
        }
        if self.reader.get("", "serviceaccounts", &namespace, ACCOUNT).is_some() {
            return Outcome::Done;
        }
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts?fieldManager={NAME}");
        match self.client.call(Method::POST, path, Some(account)).await {
            Ok(_) => Outcome::Done,
            Err(error) if matches!(error.reason, Reason::AlreadyExists | Reason::NotFound) => Outcome::Done,
            Err(error) => {
                // A namespace that began to end a moment ago refuses; the next look sees it.
                if is_active(&*self.reader, &namespace) {
                    tracing::warn!(controller = NAME, %namespace, "cannot create the default account: {error}");
                }
                Outcome::Again
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::auth::testing::Objects;
    use crate::controllers::testing::{NoChanges, Server};

    #[test]
    fn only_an_active_namespace_without_the_account_gets_one() {
        let (objects, server) = (Arc::new(Objects::default()), Arc::new(Server::default()));
        for (name, phase) in [("new", "Active"), ("has", "Active"), ("ending", "Terminating")] {
            objects.put("", "namespaces", json!({"metadata": {"name": name}, "status": {"phase": phase}}));
        }
        objects.put("", "serviceaccounts", json!({"metadata": {"namespace": "has", "name": "default"}}));
        let controller =
            DefaultServiceAccount { reader: objects, changes: Arc::new(NoChanges), client: server.clone() };
        for name in ["new", "has", "ending", "gone"] {
            assert_eq!(controller.sync(name.into()).now_or_never().unwrap(), Outcome::Done);
        }
        assert_eq!(*server.writes.lock(), ["POST /api/v1/namespaces/new/serviceaccounts"]);
    }

    #[test]
    fn a_refusal_is_tried_again() {
        let (objects, server) = (Arc::new(Objects::default()), Arc::new(Server::default()));
        objects.put("", "namespaces", json!({"metadata": {"name": "n"}, "status": {"phase": "Active"}}));
        *server.broken.lock() = true;
        let controller = DefaultServiceAccount { reader: objects, changes: Arc::new(NoChanges), client: server };
        assert_eq!(controller.sync("n".into()).now_or_never().unwrap(), Outcome::Again);
    }
}
