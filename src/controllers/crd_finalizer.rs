//! Deletes the objects of a CustomResourceDefinition that is deleted, then lets it go
//! (apiextensions-apiserver `pkg/controller/finalizer`).

use std::time::Duration;

use futures_util::{TryStreamExt, stream};

use super::{
    ApiClient,
    crd::{Definitions, until_served, write_status},
};
use crate::{
    api::{ApiError, Reason, clock, duration::format_time, meta::Meta, warnings::Warnings},
    object::{Value, parse},
    registry::{
        dynamic::definition::{self, CLEANUP, ESTABLISHED, TERMINATING},
        store::{Admit, AdmitFuture, DeleteOptions, Store, WriteContext},
        strategy::StrategyContext,
    },
    storage::cache::{Entry, WatchScope, WatchStart},
};

/// How many objects are deleted at once.
const WORKERS: usize = 32;
/// How long is waited for objects that others have to let go.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a try ended.
pub enum Outcome {
    Done,
    /// Somebody wrote the definition meanwhile; what there is now has to be looked at.
    Changed,
    Failed(String),
}

impl From<ApiError> for Outcome {
    fn from(error: ApiError) -> Self {
        match error.reason {
            Reason::NotFound => Self::Done,
            Reason::Conflict => Self::Changed,
            _ => Self::Failed(error.to_string()),
        }
    }
}

struct Condition {
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// Deletes all objects of a definition, waits until they are gone, and takes the finalizer away.
pub async fn finalize(client: &dyn ApiClient, definitions: &dyn Definitions, entry: &Entry) -> Outcome {
    // From then on nothing new is created.
    until_served(definitions.served(), entry.mod_revision()).await;
    match try_finalize(client, definitions, entry).await {
        Ok(outcome) => outcome,
        Err(error) => error.into(),
    }
}

async fn try_finalize(
    client: &dyn ApiClient,
    definitions: &dyn Definitions,
    entry: &Entry,
) -> Result<Outcome, ApiError> {
    let mut crd = parse(entry.value_bytes()).map_err(|error| ApiError::internal(error.to_string()))?;
    let begun = Condition {
        status: "True",
        reason: "InstanceDeletionInProgress",
        message: "CustomResource deletion is in progress".to_owned(),
    };
    set(&mut crd, &begun);
    let mut crd = write_status(client, crd).await?;
    let ended = if definition::overlaps_built_in(&crd) {
        Condition {
            status: "False",
            reason: "OverlappingBuiltInResource",
            message: "instances overlap with built-in resources in storage".to_owned(),
        }
    } else if !definition::is_true(&crd, ESTABLISHED) {
        Condition { status: "False", reason: "NeverEstablished", message: "resource was never established".to_owned() }
    } else {
        match delete_objects(definitions, &crd).await {
            Ok(()) => Condition {
                status: "False",
                reason: "InstanceDeletionCompleted",
                message: "removed all instances".to_owned(),
            },
            Err((reason, message)) => {
                set(&mut crd, &Condition { status: "True", reason, message: message.clone() });
                write_status(client, crd).await?;
                return Ok(Outcome::Failed(message));
            }
        }
    };
    set(&mut crd, &ended);
    let left: Vec<String> = Meta::of(&crd).finalizers().filter(|it| *it != CLEANUP).map(str::to_owned).collect();
    crd.set(&["metadata", "finalizers"], left);
    write_status(client, crd).await?;
    Ok(Outcome::Done)
}

fn set(crd: &mut Value, condition: &Condition) {
    let now = format_time(clock::now_seconds());
    definition::set_condition(crd, TERMINATING, condition.status, condition.reason, &condition.message, &now);
}

/// The server's own deletions are admitted.
struct Anything;
impl Admit for Anything {
    fn admit<'a>(&'a self, _new: Option<&'a Value>, _old: Option<&'a Value>) -> AdmitFuture<'a> {
        Box::pin(async { Ok(()) })
    }
}

/// The error is the condition's reason and message.
async fn delete_objects(definitions: &dyn Definitions, crd: &Value) -> Result<(), (&'static str, String)> {
    const FAILED: &str = "InstanceDeletionFailed";
    let name = Meta::of(crd).name();
    let Some(store) = definitions.store(name, Meta::of(crd).uid()) else {
        let why = format!("could not list instances: unable to find a custom resource client for {name}");
        return Err((FAILED, why));
    };
    let all = store.consistent().await.map_err(|error| (FAILED, format!("could not list instances: {error}")))?;
    let warnings = Warnings::default();
    stream::iter(all.iter().map(Ok))
        .try_for_each_concurrent(WORKERS, |entry| delete_one(&store, entry, &warnings))
        .await
        .map_err(|error| (FAILED, format!("could not issue all deletes: {error}")))?;
    let gone = tokio::time::timeout(PATIENCE, until_empty(&store)).await;
    let why = match gone {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "context deadline exceeded".to_owned(),
    };
    Err(("InstanceDeletionCheck", format!("could not confirm zero CustomResources remaining: {why}")))
}

async fn delete_one(store: &Store, entry: &Entry, warnings: &Warnings) -> Result<(), ApiError> {
    let Some(strategy) = store.resource.strategy() else { return Ok(()) };
    let cx = StrategyContext {
        namespace: entry.namespace(),
        now: clock::now_seconds(),
        user: crate::auth::user::APISERVER,
        groups: &[],
        warnings,
    };
    let version = &*store.resource.storage_group_version;
    let write = WriteContext { strategy: &**strategy, version, cx, dry_run: false, ttl: None };
    match store.delete(entry.name(), write, &DeleteOptions::default(), &Anything).await {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn until_empty(store: &Store) -> Result<(), ApiError> {
    loop {
        // Watching first, so that the last deletion is not missed.
        let watcher = store.cache.watch(WatchStart::Now, WatchScope::default(), WORKERS);
        if store.consistent().await?.is_empty() {
            return Ok(());
        }
        let mut watcher = watcher.map_err(|error| store.cache_error(error))?;
        // Why it ended does not matter.
        let _ = watcher.next(&mut Vec::new()).await;
    }
}
