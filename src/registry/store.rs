//! The one generic store: create, update, delete of any row (apiserver `pkg/registry/generic/registry/store.go`).
//!
//! Reads go to the watch cache. A write is judged against the newest object, encoded once and committed with the
//! expectation that nobody wrote in between; who is given a transformation (a patch, an update without a version) is
//! run again against the newer object when somebody did. Validating admission and everything a user may decide is
//! handed in by the caller.

mod delete;
mod encode;
mod metadata;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;

pub use delete::{DeleteOptions, Deleted, Preconditions, Propagation, check_preconditions};
pub use encode::{decode_stored, encode_stored};
use metadata::before_create;

use super::{
    resource::{Behaviour, Resource},
    strategy::{Lifecycle, Strategy, StrategyContext, Undo},
};
use crate::{
    api::{
        ApiError, ErrorList, FieldError, Path, Reason, field::quote, meta::Meta, names::is_path_segment_name,
        status::GroupResource,
    },
    object::Value,
    schema::ownership::keep_times,
    storage::{
        Expect, Op, Revision, Storage, StorageError, Write, WriteOutcome,
        cache::{CacheError, Entry, ResourceCache, Snapshot, splice::with_revision},
    },
};

/// How often a transformation is run again when others write the same object; upstream retries without end within the
/// request's deadline, which the caller's deadline bounds here too.
const MAX_ATTEMPTS: usize = 64;

/// How often a generated name is drawn (upstream maxNameGenerationCreateAttempts).
const MAX_NAME_ATTEMPTS: usize = 8;

/// Reads and writes of one row.
pub struct Store {
    pub resource: Arc<Resource>,
    pub cache: Arc<ResourceCache>,
    storage: Arc<dyn Storage>,
}

/// What a write may know of its request.
#[derive(Clone, Copy)]
pub struct WriteContext<'a> {
    pub strategy: &'a dyn Strategy,
    /// apiVersion in which the write is judged ([`Resource::hub`]); what `transform` and `admit` see.
    pub version: &'a str,
    pub cx: StrategyContext<'a>,
    pub dry_run: bool,
    /// How long the object may live (events).
    pub ttl: Option<Duration>,
}

/// The last word before an object is stored: validating admission. `old` is `None` on create.
pub trait Admit: Send + Sync {
    fn admit<'a>(&'a self, new: Option<&'a Value>, old: Option<&'a Value>) -> AdmitFuture<'a>;
}
pub type AdmitFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>>;

/// Makes the wished object out of the current one (`None` where there is none yet, for kinds that allow creation by
/// update and for apply).
pub trait Transform: Send {
    fn transform<'a>(&'a mut self, old: Option<&'a Value>) -> TransformFuture<'a>;

    /// Whether a uid in what it makes is a precondition (a PUT) rather than a change that validation judges (a patch).
    fn uid_is_precondition(&self) -> bool {
        false
    }
}
pub type TransformFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, ApiError>> + Send + 'a>>;

/// An object as it is now.
pub struct Stored {
    /// In the version of the write, with its resourceVersion.
    pub object: Value,
    /// The stored form as JSON.
    pub bytes: Bytes,
    pub revision: Revision,
    pub created: bool,
    /// Nothing was written, and what is stored is from an earlier schema: `bytes` are not what is shown.
    pub revived: bool,
    /// What the strategy has to say to the client.
    pub warnings: Vec<String>,
}

impl Store {
    pub fn new(resource: Arc<Resource>, cache: Arc<ResourceCache>, storage: Arc<dyn Storage>) -> Self {
        Self { resource, cache, storage }
    }

    fn gr(&self) -> GroupResource<'_> {
        self.resource.group_resource()
    }

    fn lifecycle(&self) -> Option<&Arc<dyn Lifecycle>> {
        match &self.resource.behaviour {
            Behaviour::Stored { lifecycle, .. } => lifecycle.as_ref(),
            _ => None,
        }
    }

    /// Turns what the storage says into what the client is told, in one place.
    pub fn storage_error(&self, error: StorageError) -> ApiError {
        match error {
            StorageError::Compacted(_) => ApiError::expired("The resourceVersion for the provided list is too old."),
            StorageError::Future { asked, current } => ApiError::too_large_resource_version(asked, current, 1),
            StorageError::Full(why) => ApiError::internal(format!("etcdserver: mvcc: database space exceeded: {why}")),
            other => ApiError::internal(other.to_string()),
        }
    }

    /// The same for what the cache says.
    pub fn cache_error(&self, error: CacheError) -> ApiError {
        match error {
            CacheError::NotReady { waiting } => {
                let seconds = (0.06 * waiting.as_secs_f64()).exp().clamp(1.0, 30.0);
                ApiError::too_many_requests("storage is (re)initializing", seconds as u32)
            }
            CacheError::TooOld { .. } => ApiError::expired(error.to_string()),
            CacheError::TooLarge { asked, current } | CacheError::Behind { asked, current } => {
                ApiError::too_large_resource_version(asked, current, 1)
            }
            CacheError::Closed => ApiError::not_found(self.gr(), ""),
            CacheError::Storage(error) => self.storage_error(error),
        }
    }

    /// A snapshot that shows every write acknowledged before the call.
    pub async fn consistent(&self) -> Result<Snapshot, ApiError> {
        self.cache.consistent().await.map_err(|error| self.cache_error(error))
    }

    /// The key of a name that somebody asks for.
    ///
    /// # Errors
    /// A name that would be no part of a path.
    pub fn key_of(&self, namespace: &str, name: &str) -> Result<Arc<str>, ApiError> {
        let problems = is_path_segment_name(name);
        if !problems.is_empty() {
            let name = quote(name);
            return Err(ApiError::bad_request(format!("Name parameter invalid: {name}: {}", problems.join(";"))));
        }
        let key = self.resource.key(namespace, name);
        if self.resource.namespaced && matches!(namespace, "." | "..") {
            let shown = quote(key.strip_prefix("/registry").unwrap_or(&key));
            return Err(ApiError::unmapped(format!("invalid key: {shown}")));
        }
        Ok(key)
    }

    /// The newest entry of a name.
    ///
    /// # Errors
    /// NotFound, or the storage's failure.
    pub async fn get(&self, namespace: &str, name: &str) -> Result<Arc<Entry>, ApiError> {
        let key = self.key_of(namespace, name)?;
        let snapshot = self.consistent().await?;
        snapshot.get(&key).cloned().ok_or_else(|| ApiError::not_found(self.gr(), name))
    }

    /// Whether the history reaches back to what there was at `at`.
    pub fn keeps(&self, at: Revision) -> bool {
        at >= self.storage.compacted_revision()
    }

    /// A page of what there was at `at`, out of the storage's history: keys below `prefix` from `start` on; whether
    /// there are more.
    pub async fn history(
        &self,
        prefix: &str,
        start: &str,
        limit: usize,
        at: Revision,
    ) -> Result<(Vec<Arc<Entry>>, bool), ApiError> {
        let page =
            self.storage.list(prefix, start, limit, Some(at)).await.map_err(|error| self.storage_error(error))?;
        Ok((page.items.iter().map(|row| self.cache.entry_of(row)).collect(), page.more))
    }

    /// How many keys below `prefix` there were from `start` on.
    pub async fn count_after(&self, prefix: &str, start: &str, at: Revision) -> Result<usize, ApiError> {
        let page = self.storage.list(prefix, start, 0, Some(at)).await.map_err(|error| self.storage_error(error))?;
        Ok(page.items.len())
    }

    /// The object of an entry as a tree: in the storage version, or for custom resources in the version it is stored in.
    pub fn object(&self, entry: &Entry) -> Result<Value, ApiError> {
        let mut object = decode_stored(entry.value_bytes()).map_err(|why| {
            ApiError::internal(format!(
                "stored object {} at revision {} is damaged: {why}",
                entry.key(),
                entry.mod_revision()
            ))
        })?;
        // Always, since a deletion's entry has the revision of its end, not of its content.
        if let Some(revive) = &self.resource.revive {
            revive.revive(&mut object);
        }
        Ok(object)
    }

    /// The object of an entry in the version of a write.
    fn current(&self, entry: &Entry, write: &WriteContext<'_>) -> Result<Value, ApiError> {
        let mut object = self.object(entry)?;
        self.resource.convert(&mut object, &self.resource.storage_group_version, write.version)?;
        Ok(object)
    }

    /// The bytes to store of an object in the version of a write.
    fn encode(&self, object: &Value, write: &WriteContext<'_>) -> Result<Vec<u8>, ApiError> {
        let storage = &*self.resource.storage_group_version;
        if storage == write.version {
            return Ok(encode_stored(object));
        }
        Ok(encode_stored(&self.to_storage(object, write)?))
    }

    /// An object in the version of a write as it is stored.
    fn to_storage(&self, object: &Value, write: &WriteContext<'_>) -> Result<Value, ApiError> {
        let mut stored = object.clone();
        self.resource.convert(&mut stored, write.version, &self.resource.storage_group_version)?;
        if let Some(revive) = &self.resource.revive {
            revive.revive(&mut stored);
        }
        Ok(stored)
    }

    /// What a write shows: of a custom resource that is stored in another version what is left of it there.
    fn as_read(&self, object: Value, stored: &[u8], write: &WriteContext<'_>) -> Result<Value, ApiError> {
        let storage = &*self.resource.storage_group_version;
        if storage == write.version || self.resource.revive.is_none() {
            return Ok(object);
        }
        let mut object = decode_stored(stored).map_err(|error| ApiError::internal(error.to_string()))?;
        self.resource.convert(&mut object, storage, write.version)?;
        Ok(object)
    }

    /// Whether a write would change nothing of what is stored.
    fn is_unchanged(
        &self,
        entry: &Entry,
        (new, old): (&Value, &Value),
        write: &WriteContext<'_>,
    ) -> Result<bool, ApiError> {
        if !metadata::unchanged(new, old) {
            return Ok(false);
        }
        if self.resource.revive.is_none() {
            return Ok(true);
        }
        let stored = self.to_storage(new, write)?;
        Ok(decode_stored(entry.value_bytes()).is_ok_and(|kept| metadata::unchanged(&stored, &kept)))
    }

    /// Stores a new object. `new` is in the version of the write, decoded, defaulted, admitted by the mutating plugins.
    pub async fn create(&self, new: Value, write: WriteContext<'_>, admit: &dyn Admit) -> Result<Stored, ApiError> {
        let generated = Meta::of(&new).name().is_empty() && !new.str_at(&["metadata", "generateName"]).is_empty();
        if !generated {
            return self.create_once(new, &write, admit).await;
        }
        let taken = |error: &ApiError| error.reason == Reason::AlreadyExists;
        for _ in 1..MAX_NAME_ATTEMPTS {
            match self.create_once(new.clone(), &write, admit).await {
                Err(error) if taken(&error) => {}
                other => return other,
            }
        }
        let last = self.create_once(new, &write, admit).await;
        last.map_err(|error| if taken(&error) { exhausted(error) } else { error })
    }

    async fn create_once(
        &self,
        mut new: Value,
        write: &WriteContext<'_>,
        admit: &dyn Admit,
    ) -> Result<Stored, ApiError> {
        metadata::fill_system_fields(write, &mut new);
        let undo = self.begin(&mut new, None, write).await?;
        let result = match before_create(&self.resource, write, &mut new) {
            Ok(()) => self.create_admitted(&new, write, admit).await,
            Err(error) => Err(error),
        };
        undo(result.is_ok() && !write.dry_run).await;
        let (bytes, revision) = result?;
        let warnings = write.strategy.warnings(&write.cx, &new, None);
        let new = self.as_read(new, &bytes, write)?;
        Ok(Stored { warnings, ..finish(new, bytes, revision, true) })
    }

    async fn create_admitted(
        &self,
        new: &Value,
        write: &WriteContext<'_>,
        admit: &dyn Admit,
    ) -> Result<(Vec<u8>, Revision), ApiError> {
        admit.admit(Some(new), None).await?;
        let key = self.resource.key(write.cx.namespace, Meta::of(new).name());
        let bytes = self.encode(new, write)?;
        if write.dry_run {
            return match self.consistent().await?.get(&key) {
                Some(found) => Err(self.exists(found)),
                None => Ok((bytes, 0)),
            };
        }
        let op = Op::Put { value: bytes.clone().into(), ttl: write.ttl };
        match self.write(&key, Expect::Absent, op).await? {
            WriteOutcome::Committed(revision) => Ok((bytes, revision)),
            WriteOutcome::Conflict(_) => {
                let found = self.consistent().await?.get(&key).cloned();
                Err(found.map_or_else(
                    || ApiError::already_exists(self.gr(), Meta::of(new).name()),
                    |found| self.exists(&found),
                ))
            }
        }
    }

    fn exists(&self, found: &Entry) -> ApiError {
        let mut error = ApiError::already_exists(self.gr(), found.name());
        let terminating = self.object(found).is_ok_and(|it| it.at(&["metadata", "deletionTimestamp"]).is_some());
        if terminating {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    async fn begin(&self, new: &mut Value, old: Option<&Value>, write: &WriteContext<'_>) -> Result<Undo, ApiError> {
        match self.lifecycle().filter(|_| write.strategy.runs_lifecycle()) {
            Some(lifecycle) => lifecycle.begin(new, old, write.dry_run).await,
            None => Ok(Box::new(|_| Box::pin(std::future::ready(())))),
        }
    }

    async fn write(&self, key: &Arc<str>, expect: Expect, op: Op) -> Result<WriteOutcome, ApiError> {
        self.storage.write(Write { key: key.clone(), expect, op }).await.map_err(|error| self.storage_error(error))
    }

    /// Replaces an object by what `transform` makes of it, again and again while others write it, unless the result
    /// carries a resourceVersion of its own. A missing object is created where the strategy allows it or
    /// `create_missing` says so.
    ///
    /// # Errors
    /// NotFound, Conflict, Invalid, whatever `transform` and `admit` say, or the storage's failure.
    pub async fn update(
        &self,
        name: &str,
        write: WriteContext<'_>,
        transform: &mut dyn Transform,
        admit: &dyn Admit,
        create_missing: bool,
    ) -> Result<Stored, ApiError> {
        let key = self.key_of(write.cx.namespace, name)?;
        for _ in 0..MAX_ATTEMPTS {
            let found = self.consistent().await?.get(&key).cloned();
            let attempt = match found {
                Some(entry) => self.update_once(&key, &entry, &write, transform, admit).await?,
                None if create_missing || write.strategy.allow_create_on_update() => {
                    self.create_by_update(name, &write, transform, admit, create_missing).await?
                }
                None => return Err(ApiError::not_found(self.gr(), name)),
            };
            match attempt {
                Some(stored) => return Ok(stored),
                None => tokio::task::yield_now().await,
            }
        }
        Err(self.modified(name))
    }

    fn modified(&self, name: &str) -> ApiError {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        ApiError::conflict(self.gr(), name, why)
    }

    async fn create_by_update(
        &self,
        name: &str,
        write: &WriteContext<'_>,
        transform: &mut dyn Transform,
        admit: &dyn Admit,
        applied: bool,
    ) -> Result<Option<Stored>, ApiError> {
        let mut new = transform.transform(None).await?;
        let key = || self.resource.key(write.cx.namespace, name);
        let given = parse_resource_version(&new)?;
        if applied && given.is_some_and(|revision| revision != 0) {
            return Err(ApiError::conflict(self.gr(), name, &storage_conflict(&key())));
        }
        // A PUT that names a version creates all the same; one that names an object does not.
        let uid = Meta::of(&new).uid();
        if !applied && !uid.is_empty() {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(ApiError::conflict(self.gr(), name, &format!("{}: {why}", storage_invalid(&key()))));
        }
        new.remove_at(&["metadata", "resourceVersion"]);
        match self.create_once(new, write, admit).await {
            Ok(stored) => Ok(Some(stored)),
            Err(error) if error.reason == Reason::AlreadyExists && !write.dry_run => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `None`: somebody else wrote in between, try again.
    async fn update_once(
        &self,
        key: &Arc<str>,
        entry: &Entry,
        write: &WriteContext<'_>,
        transform: &mut dyn Transform,
        admit: &dyn Admit,
    ) -> Result<Option<Stored>, ApiError> {
        let old = self.current(entry, write)?;
        let mut new = transform.transform(Some(&old)).await?;
        let given = parse_resource_version(&new)?.filter(|revision| *revision != 0);
        match given {
            None if !write.strategy.allow_unconditional_update() => return Err(self.version_required(&new)),
            Some(revision) if revision != entry.mod_revision() => return Err(self.modified(entry.name())),
            Some(_) => {}
            // The client takes whatever is there, so the write is one of the newest version.
            None => new.set(&["metadata", "resourceVersion"], entry.mod_revision().to_string()),
        }
        if let Some(uid) = new.at(&["metadata", "uid"]).and_then(Value::as_str)
            && !uid.is_empty()
            && uid != Meta::of(&old).uid()
            && transform.uid_is_precondition()
        {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                Meta::of(&old).uid()
            );
            return Err(ApiError::conflict(self.gr(), entry.name(), &format!("{}: {why}", storage_invalid(key))));
        }
        let undo = self.begin(&mut new, Some(&old), write).await?;
        let result = match metadata::before_update(&self.resource, write, &mut new, &old) {
            Ok(()) => {
                keep_times(&old, &mut new);
                self.update_admitted(key, entry, (&old, &new), write, admit).await
            }
            Err(error) => Err(error),
        };
        undo(matches!(result, Ok(Some(_))) && !write.dry_run).await;
        // Made again of the newer object, a patch fits it; an object whose version the client chose does not, and is refused.
        let Some((bytes, revision)) = result? else { return Ok(None) };
        let warnings = write.strategy.warnings(&write.cx, &new, Some(&old));
        let new = self.as_read(new, &bytes, write)?;
        let revived = revision == entry.mod_revision() && self.resource.revive.is_some();
        Ok(Some(Stored { warnings, revived, ..finish(new, bytes, revision, false) }))
    }

    async fn update_admitted(
        &self,
        key: &Arc<str>,
        entry: &Entry,
        (old, new): (&Value, &Value),
        write: &WriteContext<'_>,
        admit: &dyn Admit,
    ) -> Result<Option<(Vec<u8>, Revision)>, ApiError> {
        admit.admit(Some(new), Some(old)).await?;
        let bytes = self.encode(new, write)?;
        if delete::gone_after_update(write.strategy, new, old) {
            return Ok(self
                .remove(key, entry.mod_revision(), new, write.dry_run)
                .await?
                .map(|revision| (bytes, revision)));
        }
        if write.dry_run || self.is_unchanged(entry, (new, old), write)? {
            return Ok(Some((bytes, entry.mod_revision())));
        }
        let op = Op::Put { value: bytes.clone().into(), ttl: write.ttl };
        Ok(match self.write(key, Expect::ModRevision(entry.mod_revision()), op).await? {
            WriteOutcome::Committed(revision) => Some((bytes, revision)),
            WriteOutcome::Conflict(_) => None,
        })
    }

    /// Removes the object that was written at a revision for good; `None` where somebody wrote in between.
    async fn remove(
        &self,
        key: &Arc<str>,
        written: Revision,
        object: &Value,
        dry_run: bool,
    ) -> Result<Option<Revision>, ApiError> {
        if dry_run {
            return Ok(Some(written));
        }
        match self.write(key, Expect::ModRevision(written), Op::Delete).await? {
            WriteOutcome::Committed(revision) => {
                if let Some(lifecycle) = self.lifecycle() {
                    lifecycle.after_delete(object).await;
                }
                Ok(Some(revision))
            }
            WriteOutcome::Conflict(_) => Ok(None),
        }
    }

    fn version_required(&self, new: &Value) -> ApiError {
        let metadata = Path::new("metadata");
        let field = metadata.child("resourceVersion");
        let error = FieldError::invalid_shown(&field, "0", "must be specified for an update");
        ApiError::invalid(
            &self.resource.group,
            &self.resource.plural,
            Meta::of(new).name(),
            &ErrorList::from_iter([error]),
        )
    }
}

/// The storage's own words for a lost expectation (apiserver `pkg/storage/errors.go`).
fn storage_conflict(key: &str) -> String {
    format!("StorageError: key not found, Code: 1, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: ")
}

/// What upstream's storage says where a precondition does not hold; the precondition's own words follow.
pub fn storage_invalid(key: &str) -> String {
    format!("StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg")
}

/// The number in metadata.resourceVersion; `None` where absent or empty.
///
/// # Errors
/// Upstream leaves this one unmapped: 500 with the parser's words.
pub fn parse_resource_version(object: &Value) -> Result<Option<Revision>, ApiError> {
    let text = object.str_at(&["metadata", "resourceVersion"]);
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        ApiError::unmapped(format!("strconv.ParseUint: parsing {}: invalid syntax", crate::api::field::quote(text)))
    })
}

fn exhausted(mut error: ApiError) -> ApiError {
    error.message += ", the server was not able to generate a unique name for the object";
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = 1;
    }
    error
}

/// The object with its resourceVersion; a dry run's create has none.
fn finish(mut object: Value, bytes: Vec<u8>, revision: Revision, created: bool) -> Stored {
    if revision == 0 {
        object.remove_at(&["metadata", "resourceVersion"]);
        return Stored { object, bytes: bytes.into(), revision, created, revived: false, warnings: Vec::new() };
    }
    object.set(&["metadata", "resourceVersion"], revision.to_string());
    let bytes = with_revision(&bytes, revision).into();
    Stored { object, bytes, revision, created, revived: false, warnings: Vec::new() }
}
