//! Deletion: preconditions, grace, finalizers, and what is removed at once
//! (apiserver `pkg/registry/rest/delete.go`, `pkg/registry/generic/registry/store.go`).

use std::sync::Arc;

use super::{Admit, MAX_ATTEMPTS, Store, Stored, WriteContext, finish};
use crate::{
    api::{
        ApiError,
        duration::{format_time, parse_time},
        meta::Meta,
        status::GroupResource,
    },
    object::Value,
    registry::strategy::{GracefulDeletion, Strategy},
    storage::{Expect, Op, WriteOutcome, cache::Entry},
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Who deletes the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

/// `DeleteOptions` after validation; the deprecated `orphanDependents` has become a propagation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    pub preconditions: Preconditions,
}

/// What a deletion left behind.
pub enum Deleted {
    /// It is gone; the object as it was.
    Removed(Stored),
    /// It is marked and waits for its grace period or finalizers.
    Marked(Stored),
}

impl Store {
    /// Deletes an object or marks it. `admit` is asked with the object as `old` before anything is written.
    ///
    /// # Errors
    /// NotFound, Conflict for preconditions, Forbidden by the strategy, whatever `admit` says, or the storage's failure.
    pub async fn delete(&self, name: &str, write: WriteContext<'_>, options: &DeleteOptions, admit: &dyn Admit) -> Result<Deleted, ApiError> {
        let key = self.resource.key(write.cx.namespace, name);
        for _ in 0..MAX_ATTEMPTS {
            let Some(entry) = self.consistent().await?.get(&key).cloned() else {
                return Err(ApiError::not_found(self.resource.group_resource(), name));
            };
            if let Some(deleted) = self.delete_once(&key, &entry, &write, options, admit).await? {
                return Ok(deleted);
            }
        }
        Err(self.modified(name))
    }

    /// `None`: somebody else wrote in between, try again.
    async fn delete_once(
        &self,
        key: &Arc<str>,
        entry: &Entry,
        write: &WriteContext<'_>,
        options: &DeleteOptions,
        admit: &dyn Admit,
    ) -> Result<Option<Deleted>, ApiError> {
        let old = self.current(entry, write)?;
        check_preconditions(GroupResource::new(&self.resource.group, &self.resource.kind), &old, &options.preconditions)?;
        write.strategy.check_delete(&old)?;
        admit.admit(None, Some(&old)).await?;
        let mut new = old.clone();
        let stays = mark(write, options, &mut new);
        if !stays {
            // What clients are shown is the object with its last finalizers, at the revision of its end.
            let bytes = self.encode(&old, write)?;
            return Ok(self.remove(key, entry, &old, write.dry_run).await?.map(|revision| Deleted::Removed(finish(old, bytes, revision, false))));
        }
        let bytes = self.encode(&new, write)?;
        if write.dry_run || new == old {
            return Ok(Some(Deleted::Marked(finish(new, bytes, entry.mod_revision(), false))));
        }
        let op = Op::Put { value: bytes.clone().into(), ttl: write.ttl };
        Ok(match self.write(key, Expect::ModRevision(entry.mod_revision()), op).await? {
            WriteOutcome::Committed(revision) => Some(Deleted::Marked(finish(new, bytes, revision, false))),
            WriteOutcome::Conflict(_) => None,
        })
    }
}

/// Compares what the client thinks it deletes with what there is.
pub fn check_preconditions(kind: GroupResource<'_>, object: &Value, wanted: &Preconditions) -> Result<(), ApiError> {
    let name = Meta::of(object).name();
    if let Some(uid) = &wanted.uid
        && uid != Meta::of(object).uid()
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            Meta::of(object).uid()
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    let current = object.str_at(&["metadata", "resourceVersion"]);
    if let Some(revision) = &wanted.resource_version
        && revision != current
    {
        let why = format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({current}). The object might have been modified"
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    Ok(())
}

/// Writes the deletion into the object; whether it has to stay.
fn mark(write: &WriteContext<'_>, options: &DeleteOptions, object: &mut Value) -> bool {
    let marked_before = object.at(&["metadata", "deletionTimestamp"]).is_some();
    let waits = match write.strategy.graceful_deletion(object, options.grace_period_seconds) {
        GracefulDeletion::After(seconds) => grace(write, object, seconds),
        GracefulDeletion::No => false,
    };
    set_propagation_finalizers(object, options.propagation);
    let held = Meta::of(object).finalizers().next().is_some() || write.strategy.keeps_deleted(object);
    if held && !waits {
        mark_now(write, object);
    }
    if (held || waits) && !marked_before {
        bump_generation(object);
        write.strategy.on_marked_for_deletion(object);
    }
    held || waits
}

/// Whether the object waits for its grace period; a shorter one than before moves the time forward.
fn grace(write: &WriteContext<'_>, object: &mut Value, seconds: i64) -> bool {
    let seconds = seconds.max(0);
    let now = write.cx.now;
    let after = |at: jiff::Timestamp, seconds: i64| at.saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(at);
    let before = object.i64_at(&["metadata", "deletionGracePeriodSeconds"]);
    let deadline = parse_time(object.str_at(&["metadata", "deletionTimestamp"])).ok();
    match (deadline, before) {
        (Some(deadline), Some(before)) => {
            // Already waiting: only a shorter period counts (upstream BeforeDelete).
            if before == 0 {
                return false;
            }
            if seconds >= before {
                return true;
            }
            if seconds == 0 {
                return false;
            }
            let start = after(deadline, -before);
            let mut next = after(start, seconds);
            let mut period = seconds;
            if next < now {
                next = now;
                period = period.max(1);
            }
            object.set(&["metadata", "deletionTimestamp"], format_time(next));
            object.set(&["metadata", "deletionGracePeriodSeconds"], period);
            true
        }
        _ if seconds == 0 => false,
        _ => {
            object.set(&["metadata", "deletionTimestamp"], format_time(after(now, seconds)));
            object.set(&["metadata", "deletionGracePeriodSeconds"], seconds);
            true
        }
    }
}

/// Finalizers keep the object, but its grace is over.
fn mark_now(write: &WriteContext<'_>, object: &mut Value) {
    let earlier = parse_time(object.str_at(&["metadata", "deletionTimestamp"])).ok();
    if earlier.is_none_or(|earlier| earlier > write.cx.now) {
        object.set(&["metadata", "deletionTimestamp"], format_time(write.cx.now));
    }
    object.set(&["metadata", "deletionGracePeriodSeconds"], 0);
}

fn bump_generation(object: &mut Value) {
    if let Some(generation) = object.i64_at(&["metadata", "generation"]).filter(|generation| *generation > 0) {
        object.set(&["metadata", "generation"], generation + 1);
    }
}

/// The two finalizers that the garbage collector reads; nothing asked leaves what there is.
fn set_propagation_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let before: Vec<String> = Meta::of(object).finalizers().map(str::to_owned).collect();
    let mut after: Vec<String> = before.iter().filter(|it| *it != ORPHAN && *it != FOREGROUND).cloned().collect();
    match propagation {
        Propagation::Orphan => after.push(ORPHAN.into()),
        Propagation::Foreground => after.push(FOREGROUND.into()),
        Propagation::Background => {}
    }
    if after.is_empty() {
        object.remove_at(&["metadata", "finalizers"]);
    } else if after != before {
        object.set(&["metadata", "finalizers"], after);
    }
}

/// Whether an update has taken away the last thing that kept a deleted object (upstream ShouldDeleteDuringUpdate).
pub fn gone_after_update(strategy: &dyn Strategy, new: &Value, old: &Value) -> bool {
    let marked = !old.str_at(&["metadata", "deletionTimestamp"]).is_empty();
    marked
        && Meta::of(new).finalizers().next().is_none()
        && new.i64_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0
        && !strategy.keeps_deleted(new)
}
