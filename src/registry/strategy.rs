//! What differs between kinds: a handful of pure functions (apiserver `pkg/registry/rest`).

use std::{future::Future, pin::Pin};

use jiff::Timestamp;

pub use crate::api::names::{name_is_dns_label, name_is_dns_subdomain, name_is_dns1035_label, name_is_path_segment};
use crate::{
    api::{ApiError, ErrorList, names::Messages, warnings::Warnings},
    object::Value,
    registry::store::Preconditions,
    schema::ownership::{FieldSet, Pattern},
};

/// What a strategy may know of the request.
#[derive(Clone, Copy, Debug)]
pub struct StrategyContext<'a> {
    /// Empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The time of the request; what new timestamps are set to (`duration::format_time`).
    pub now: Timestamp,
    pub user: &'a str,
    pub groups: &'a [String],
    /// Where a strategy tells the client of what it changed.
    pub warnings: &'a Warnings,
}

/// How a resource answers a deletion that is not immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GracefulDeletion {
    /// Never graceful.
    No,
    /// Stays, marked, until this many seconds have passed and its owner confirms with a deletion at grace 0.
    After(i64),
}

/// What [`Strategy::reset_fields`] leaves out of managedFields.
#[derive(Clone, Copy, Debug)]
pub enum ResetFields {
    None,
    /// These and all below them: `status` on the main resource. Make the set once, in a `OnceLock`.
    Without(&'static FieldSet),
    /// All but what one of the patterns reaches.
    Only(&'static [Pattern]),
}

/// The policy of one kind (or of one subresource). Every function is pure; all run on the storage version, in this
/// order: prepare, validate, warn, canonicalise.
pub trait Strategy: Send + Sync {
    /// Clears what clients may not set and fills what the server decides, before a create is validated.
    fn prepare_for_create(&self, _cx: &StrategyContext<'_>, _new: &mut Value) {}

    /// Problems of a new object, object metadata excepted: the store checks that with [`Strategy::validate_name`].
    fn validate_create(&self, _cx: &StrategyContext<'_>, _new: &Value, _errors: &mut ErrorList) {}

    /// Keeps what clients may not change (status on the main resource, spec on the status subresource) and decides
    /// the generation.
    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, _new: &mut Value, _old: &Value) {}

    fn validate_update(&self, _cx: &StrategyContext<'_>, _new: &Value, _old: &Value, _errors: &mut ErrorList) {}

    /// Texts of `Warning` headers for a write that succeeds. `old` is `None` on create.
    fn warnings(&self, _cx: &StrategyContext<'_>, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Brings equal objects to the same form after validation.
    fn canonicalise(&self, _new: &mut Value) {}

    /// What is wrong with a name (`prefix`: with a generateName). The default is a DNS-1123 subdomain.
    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        name_is_dns_subdomain(name, prefix)
    }

    /// Whether a PUT of a missing object creates it.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT may leave out the resourceVersion.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Fields of which ownership is never tracked through this endpoint, since the strategy puts them back.
    fn reset_fields(&self) -> ResetFields {
        ResetFields::None
    }

    /// Whether this deletion is graceful, and how long. `asked` is the option `gracePeriodSeconds`.
    fn graceful_deletion(&self, _object: &Value, _asked: Option<i64>) -> GracefulDeletion {
        GracefulDeletion::No
    }

    /// Whether a deletion answers the object instead of a Status.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// An object that may not be removed yet although it has no `metadata.finalizers` (namespaces: `spec.finalizers`).
    fn keeps_deleted(&self, _object: &Value) -> bool {
        false
    }

    /// Whether the rules for a create judge metadata too, at their place in the order. The store then only looks at it
    /// where they found nothing.
    fn judges_metadata(&self) -> bool {
        false
    }

    /// Whether a deletion that says nothing about dependents orphans them.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// What clients are told whose deletion says nothing about dependents.
    fn orphaning_warning(&self) -> Option<&'static str> {
        None
    }

    /// Runs whenever a deletion leaves the object there, marked (namespaces: `status.phase`).
    fn on_marked_for_deletion(&self, _object: &mut Value) {}

    /// A refusal of this deletion (system namespaces, priority classes).
    fn check_delete(&self, _object: &Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Whether writes through this endpoint run the row's [`Lifecycle`]; that of a status does not.
    fn runs_lifecycle(&self) -> bool {
        true
    }

    /// What this kind asks of a deletion's preconditions before all others are asked the same (definitions word it in their
    /// own way).
    fn check_preconditions(&self, _object: &Value, _wanted: &Preconditions) -> Result<(), ApiError> {
        Ok(())
    }

    /// Marks an object for its deletion in the kind's own way, instead of everything that a deletion does otherwise
    /// (definitions). `false`: the usual is done. Deletions of whole collections are always the usual.
    fn takes_over_deletion(&self, _cx: &StrategyContext<'_>, _object: &mut Value) -> bool {
        false
    }

    /// Called with each object before it is shown, for fields that the stored form lacks (services' defaults).
    fn decorate(&self, _object: &mut Value) {}
}

/// The strategy of kinds that have no file of their own: nothing but object metadata is judged.
pub struct DefaultStrategy;
impl Strategy for DefaultStrategy {}

/// Work around a write that is more than a pure function: allocation of addresses and ports.
pub trait Lifecycle: Send + Sync {
    /// Before a create or update is prepared and judged; metadata is filled in already. What was taken has to be given
    /// back by [`Undo`] where the write fails.
    fn begin<'a>(&'a self, new: &'a mut Value, old: Option<&'a Value>, dry_run: bool) -> LifecycleFuture<'a>;

    /// After an object is gone for good; the client is answered when this is done.
    fn after_delete<'a>(&'a self, object: &'a Value) -> Released<'a>;
}

/// Runs once: `true` when the write is durable, `false` when it failed and what was taken has to be given back. Dropped
/// without being run where the client went away in between: nobody knows then whether the write was done.
pub type Undo = Box<dyn FnOnce(bool) -> Released<'static> + Send>;
pub type Released<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
pub type LifecycleFuture<'a> = Pin<Box<dyn Future<Output = Result<Undo, ApiError>> + Send + 'a>>;
