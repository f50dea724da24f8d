//! Deletion: preconditions, grace, finalizers, and what is removed at once
//! (apiserver `pkg/registry/rest/delete.go`, `pkg/registry/generic/registry/store.go`).

use std::sync::Arc;

use super::{Admit, MAX_ATTEMPTS, Store, Stored, WriteContext, finish, storage_invalid};
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
    /// Whether this is one of the objects of a collection that is deleted.
    pub in_collection: bool,
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
    pub async fn delete(
        &self,
        name: &str,
        write: WriteContext<'_>,
        options: &DeleteOptions,
        admit: &dyn Admit,
    ) -> Result<Deleted, ApiError> {
        let key = self.key_of(write.cx.namespace, name)?;
        if options.propagation.is_none()
            && let Some(text) = write.strategy.orphaning_warning()
        {
            write.cx.warnings.add(text);
        }
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

    /// Deletes an object that cannot be read, and only such: without admission, finalizers and preconditions
    /// (`pkg/registry/generic/registry/corrupt_obj_deleter.go`).
    ///
    /// # Errors
    /// NotFound, Conflict where it can be read, or the storage's failure.
    pub async fn delete_unreadable(&self, name: &str, write: WriteContext<'_>) -> Result<(), ApiError> {
        let key = self.key_of(write.cx.namespace, name)?;
        let Some(entry) = self.consistent().await?.get(&key).cloned() else {
            return Err(ApiError::not_found(self.gr(), name));
        };
        if self.object(&entry).is_ok() {
            let why = "unsafe deletion is not allowed because the object is decodable from storage";
            return Err(ApiError::conflict(self.gr(), name, &format!("{}: {why}", storage_invalid(&key))));
        }
        if write.dry_run {
            return Ok(());
        }
        match self.write(&key, Expect::ModRevision(entry.mod_revision()), Op::Delete).await? {
            WriteOutcome::Committed(_) => Ok(()),
            WriteOutcome::Conflict(_) => Err(self.modified(name)),
        }
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
        write.strategy.check_preconditions(&old, &options.preconditions)?;
        check_preconditions(
            GroupResource::new(&self.resource.group, &self.resource.kind),
            &old,
            &options.preconditions,
        )?;
        write.strategy.check_delete(&old)?;
        admit.admit(None, Some(&old)).await?;
        let mut new = old.clone();
        let taken_over = !options.in_collection && write.strategy.takes_over_deletion(&write.cx, &mut new);
        let marking =
            if taken_over { Marking { stays: true, graceful: false } } else { mark(write, options, &mut new) };
        if !marking.stays {
            // What clients are shown is the object with its last finalizers, at the revision of its end.
            // Where the deletion was written into it, watchers see that first.
            let announced = marking.graceful && has_other_grace(&new, &old);
            let last = if marking.graceful { new } else { old };
            let bytes = self.encode(&last, write)?;
            let mut written = entry.mod_revision();
            if announced && !write.dry_run {
                let op = Op::Put { value: bytes.clone().into(), ttl: write.ttl };
                match self.write(key, Expect::ModRevision(written), op).await? {
                    WriteOutcome::Committed(revision) => written = revision,
                    WriteOutcome::Conflict(_) => return Ok(None),
                }
            }
            return Ok(self
                .remove(key, written, &last, write.dry_run)
                .await?
                .map(|revision| Deleted::Removed(finish(last, bytes, revision, false))));
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

/// Whether a deletion has changed when the object is to be gone.
fn has_other_grace(new: &Value, old: &Value) -> bool {
    let differs = |member: &str| new.at(&["metadata", member]) != old.at(&["metadata", member]);
    differs("deletionTimestamp") || differs("deletionGracePeriodSeconds")
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

/// What a deletion did to the object.
struct Marking {
    /// It waits for its grace period, finalizers or owner.
    stays: bool,
    /// Its kind is one of graceful deletion, and the deletion is written into it although it goes at once.
    graceful: bool,
}

/// Writes the deletion into the object.
fn mark(write: &WriteContext<'_>, options: &DeleteOptions, object: &mut Value) -> Marking {
    let marked_before = object.at(&["metadata", "deletionTimestamp"]).is_some();
    let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let decision = write.strategy.graceful_deletion(object, asked);
    let graceful = matches!(decision, GracefulDeletion::After(_));
    let waits = match decision {
        GracefulDeletion::After(_) if marked_before => shorten_grace(write, object, asked),
        GracefulDeletion::After(seconds) => begin_grace(write, object, seconds.max(0)),
        GracefulDeletion::No => false,
    };
    set_propagation_finalizers(object, options.propagation, write.strategy.orphans_by_default());
    let held = Meta::of(object).finalizers().next().is_some() || write.strategy.keeps_deleted(object);
    if held && !waits {
        mark_now(write, object);
    }
    if (held || graceful) && !marked_before {
        bump_generation(object);
    }
    if held || waits {
        write.strategy.on_marked_for_deletion(object);
    }
    Marking { stays: held || waits, graceful }
}

fn after(at: jiff::Timestamp, seconds: i64) -> jiff::Timestamp {
    at.saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(at)
}

/// Whether the object waits.
fn begin_grace(write: &WriteContext<'_>, object: &mut Value, seconds: i64) -> bool {
    object.set(&["metadata", "deletionTimestamp"], format_time(after(write.cx.now, seconds)));
    object.set(&["metadata", "deletionGracePeriodSeconds"], seconds);
    seconds > 0
}

/// An object that waits already: only a shorter period counts (upstream BeforeDelete). Whether it waits on.
fn shorten_grace(write: &WriteContext<'_>, object: &mut Value, asked: Option<i64>) -> bool {
    let before = object.i64_at(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    let deadline = parse_time(object.str_at(&["metadata", "deletionTimestamp"])).ok();
    let (Some(deadline), true) = (deadline, before != 0) else { return false };
    let Some(mut seconds) = asked.filter(|seconds| *seconds < before) else { return true };
    let mut next = after(after(deadline, -before), seconds);
    if next < write.cx.now {
        next = write.cx.now;
        seconds = seconds.min(1);
    }
    object.set(&["metadata", "deletionTimestamp"], format_time(next));
    object.set(&["metadata", "deletionGracePeriodSeconds"], seconds);
    seconds > 0
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

/// The two finalizers that the garbage collector reads; nothing asked leaves what there is, or orphans where that is
/// the kind's custom.
fn set_propagation_finalizers(object: &mut Value, propagation: Option<Propagation>, orphans_by_default: bool) {
    let decided = Meta::of(object).has_finalizer(ORPHAN) || Meta::of(object).has_finalizer(FOREGROUND);
    let custom = (orphans_by_default && !decided).then_some(Propagation::Orphan);
    let Some(propagation) = propagation.or(custom) else { return };
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
