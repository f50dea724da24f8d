//! Everything a namespace may hold, asked of discovery each time, and its deletion (kubernetes
//! `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`).

use std::{collections::HashSet, time::Duration};

use http::Method;

use super::conditions::Findings;
use crate::{
    api::{ApiError, Meta, Reason},
    controllers::ApiClient,
    json,
    object::Value,
    registry::reader::ObjectReader,
};

/// Terminal pods wait for nobody.
const TERMINAL: [&str; 2] = ["Succeeded", "Failed"];
/// What upstream allows an object with a finalizer.
const FINALIZER_ESTIMATE: Duration = Duration::from_secs(15);

/// One resource of one version.
#[derive(Debug, PartialEq, Eq)]
pub struct Collection {
    pub group: String,
    pub version: String,
    pub resource: String,
    /// Its objects can be deleted all at once.
    pub whole: bool,
}

impl Collection {
    pub fn is_pods(&self) -> bool {
        self.group.is_empty() && self.resource == "pods"
    }

    fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        format!("{root}/{}/namespaces/{namespace}/{}", self.version, self.resource)
    }

    fn name(&self) -> String {
        format!("{}.{}", self.resource, self.group)
    }
}

pub struct Contents<'a> {
    pub reader: &'a dyn ObjectReader,
    pub client: &'a dyn ApiClient,
    pub namespace: &'a str,
}

impl Contents<'_> {
    async fn get(&self, path: String) -> Result<Value, ApiError> {
        self.client.call(Method::GET, path, None).await
    }

    /// All namespaced resources whose objects can be deleted, each in its group's preferred version.
    pub async fn collections(&self, findings: &mut Findings) -> Result<Vec<Collection>, ApiError> {
        let mut collections = Vec::new();
        let core = self.get("/api/v1".to_owned()).await?;
        add(&core, "", "v1", &mut HashSet::new(), &mut collections);
        let groups = self.get("/apis".to_owned()).await?;
        for group in groups.array_at(&["groups"]) {
            let name = group.str_at(&["name"]);
            let preferred = group.str_at(&["preferredVersion", "version"]);
            let others = group.array_at(&["versions"]).iter().map(|version| version.str_at(&["version"]));
            let versions = std::iter::once(preferred).chain(others.filter(|version| *version != preferred));
            let mut seen = HashSet::new();
            for version in versions {
                match self.get(format!("/apis/{name}/{version}")).await {
                    Ok(resources) => add(&resources, name, version, &mut seen, &mut collections),
                    // It went between the two questions.
                    Err(error) if error.reason == Reason::NotFound => {}
                    Err(error) => {
                        findings.undiscovered.insert(format!("{name}/{version}"), error.message.clone());
                    }
                }
            }
        }
        Ok(collections)
    }

    /// Deletes a collection and notes what is left of it.
    pub async fn delete(&self, collection: &Collection, findings: &mut Findings) {
        if self.reader.is_empty(&collection.group, &collection.resource, self.namespace) == Some(true) {
            return;
        }
        if let Err(error) = self.try_delete(collection, findings).await {
            findings.failures.push(error.message.clone());
        }
    }

    async fn try_delete(&self, collection: &Collection, findings: &mut Findings) -> Result<(), ApiError> {
        let path = collection.path(self.namespace);
        let grace = if collection.is_pods() { self.grace_of_pods() } else { Duration::ZERO };
        let options = || json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        if collection.whole {
            let deleted = self.client.call(Method::DELETE, path.clone(), Some(options())).await;
            if deleted.as_ref().is_err_and(|error| !is_unsupported(error)) {
                return deleted.map(drop);
            }
        } else {
            for item in self.get(path.clone()).await?.array_at(&["items"]) {
                let item = format!("{path}/{}", Meta::of(item).name());
                let deleted = self.client.call(Method::DELETE, item, Some(options())).await;
                if deleted.as_ref().is_err_and(|error| !is_unsupported(error)) {
                    return deleted.map(drop);
                }
            }
        }
        let left = match self.get(path).await {
            Err(error) if is_unsupported(&error) => return Ok(()),
            left => left?,
        };
        self.note(collection, left.array_at(&["items"]), grace, findings)
    }

    fn note(
        &self,
        collection: &Collection,
        left: &[Value],
        grace: Duration,
        findings: &mut Findings,
    ) -> Result<(), ApiError> {
        if left.is_empty() {
            return Ok(());
        }
        findings.remaining.insert(collection.name(), left.len());
        let mut held = false;
        for finalizer in left.iter().flat_map(|item| Meta::of(item).finalizers()) {
            *findings.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            held = true;
        }
        if grace.is_zero() && !held {
            let text = format!(
                "unexpected items still remain in namespace: {} for gvr: {}/{}, Resource={}",
                self.namespace, collection.group, collection.version, collection.resource
            );
            return Err(ApiError::internal(text));
        }
        findings.grace = findings.grace.max(if grace.is_zero() { FINALIZER_ESTIMATE } else { grace });
        Ok(())
    }

    /// How long the slowest pod may take.
    fn grace_of_pods(&self) -> Duration {
        let pods = self.reader.list("", "pods", Some(self.namespace));
        let waiting = pods.iter().filter(|pod| !TERMINAL.contains(&pod.str_at(&["status", "phase"])));
        let longest = waiting.filter_map(|pod| pod.i64_at(&["spec", "terminationGracePeriodSeconds"])).max();
        Duration::from_secs(longest.and_then(|it| u64::try_from(it).ok()).unwrap_or(0))
    }
}

fn is_unsupported(error: &ApiError) -> bool {
    matches!(error.reason, Reason::NotFound | Reason::MethodNotAllowed) || error.code == 405
}

/// Takes the resources of a version that no preferred version had.
fn add(list: &Value, group: &str, version: &str, seen: &mut HashSet<String>, into: &mut Vec<Collection>) {
    for resource in list.array_at(&["resources"]) {
        let name = resource.str_at(&["name"]);
        let can = |verb: &str| resource.array_at(&["verbs"]).iter().any(|it| it.as_str() == Some(verb));
        let is_part = name.contains('/');
        if is_part || !resource.bool_at(&["namespaced"]) || !can("delete") || !seen.insert(name.to_owned()) {
            continue;
        }
        into.push(Collection {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: name.to_owned(),
            whole: can("deletecollection"),
        });
    }
}
