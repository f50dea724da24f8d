//! The end of a namespace: its contents are deleted, then its finalizer `kubernetes` is taken away (kubernetes
//! `pkg/controller/namespace`). Pods go first, everything else once they are gone; what cannot go yet is told in the
//! namespace's conditions.

mod conditions;
mod contents;

use std::{sync::Arc, time::Duration};

use http::Method;

use self::{
    conditions::Findings,
    contents::{Collection, Contents},
};
use super::{
    ApiClient, ChangeSource,
    namespaces::names_of_namespaces,
    work::{self, Outcome},
};
use crate::api::{ApiError, Meta, Reason};
use crate::object::Value;
use crate::registry::reader::ObjectReader;

const NAME: &str = "namespace-controller";
const FINALIZER: &str = "kubernetes";
/// How often a write is tried against others'.
const MAX_CONFLICTS: usize = 8;

pub struct NamespaceDeletion {
    pub reader: Arc<dyn ObjectReader>,
    pub changes: Arc<dyn ChangeSource>,
    pub client: Arc<dyn ApiClient>,
    /// Between a namespace's mark and the look at its contents: requests that were let in before the mark are stored
    /// by then. Upstream waits 5 s, since its servers may be many and slow to hear.
    pub settle: Duration,
}

impl NamespaceDeletion {
    /// Runs until it is dropped.
    pub async fn run(&self) {
        work::run(vec![names_of_namespaces(&*self.changes)], |namespace| self.sync(namespace)).await;
    }

    /// Looks at one namespace.
    pub async fn sync(&self, name: Arc<str>) -> Outcome {
        let Some(namespace) = self.reader.get("", "namespaces", "", &name) else { return Outcome::Done };
        if !Meta::of(&namespace).is_being_deleted() || finalizers(&namespace).next().is_none() {
            return Outcome::Done;
        }
        tokio::time::sleep(self.settle).await;
        match self.end(&namespace).await {
            Ok(outcome) => outcome,
            Err(error) if error.reason == Reason::NotFound => Outcome::Done,
            Err(error) => {
                tracing::warn!(controller = NAME, namespace = &*name, "cannot end a namespace: {error}");
                Outcome::Again
            }
        }
    }

    async fn end(&self, namespace: &Value) -> Result<Outcome, ApiError> {
        let name = Meta::of(namespace).name();
        let contents = Contents { reader: &*self.reader, client: &*self.client, namespace: name };
        let mut findings = Findings::default();
        let mut collections = contents.collections(&mut findings).await?;
        // Pods first: what they use goes after them.
        collections.sort_by_key(|collection| !collection.is_pods());
        let (pods, others): (Vec<Collection>, Vec<Collection>) = collections.into_iter().partition(Collection::is_pods);
        for collection in &pods {
            contents.delete(collection, &mut findings).await;
        }
        if findings.remain() {
            self.tell(namespace, &findings).await?;
            return Ok(findings.outcome());
        }
        for collection in &others {
            contents.delete(collection, &mut findings).await;
        }
        // Where the namespace goes with this, nobody is left to read that all went well.
        let stays = findings.remain() || finalizers(namespace).any(|it| it != FINALIZER);
        let stays = stays || Meta::of(namespace).finalizers().next().is_some();
        if stays || !namespace.array_at(&["status", "conditions"]).is_empty() {
            self.tell(namespace, &findings).await?;
        }
        if findings.remain() {
            return Ok(findings.outcome());
        }
        self.finalize(name, Meta::of(namespace).uid()).await?;
        Ok(Outcome::Done)
    }

    /// Writes the conditions where they are not what the namespace says.
    async fn tell(&self, namespace: &Value, findings: &Findings) -> Result<(), ApiError> {
        self.change(Meta::of(namespace).name(), Meta::of(namespace).uid(), "status", |namespace| {
            findings.write_into(namespace, jiff::Timestamp::now())
        })
        .await
    }

    async fn finalize(&self, name: &str, uid: &str) -> Result<(), ApiError> {
        self.change(name, uid, "finalize", |namespace| {
            let kept: Vec<Value> = finalizers(namespace).filter(|it| *it != FINALIZER).map(Value::from).collect();
            let changes = kept.len() != finalizers(namespace).count();
            namespace.set(&["spec", "finalizers"], kept);
            changes
        })
        .await
    }

    /// Reads the namespace, changes it, writes it through a subresource; again where somebody else wrote in between.
    async fn change(
        &self,
        name: &str,
        uid: &str,
        subresource: &str,
        change: impl Fn(&mut Value) -> bool,
    ) -> Result<(), ApiError> {
        let mut attempts = 0;
        loop {
            let mut namespace = self.client.call(Method::GET, format!("/api/v1/namespaces/{name}"), None).await?;
            if Meta::of(&namespace).uid() != uid || !change(&mut namespace) {
                return Ok(());
            }
            let path = format!("/api/v1/namespaces/{name}/{subresource}?fieldManager={NAME}");
            match self.client.call(Method::PUT, path, Some(namespace)).await {
                Err(error) if error.reason == Reason::Conflict && attempts < MAX_CONFLICTS => attempts += 1,
                other => return other.map(drop),
            }
        }
    }
}

fn finalizers(namespace: &Value) -> impl Iterator<Item = &str> {
    namespace.array_at(&["spec", "finalizers"]).iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests;
