//! Who owns which field: `metadata.managedFields` for every write, and server-side apply.
//!
//! Owners and their fields are kept as sets of paths ([`FieldSet`]); which parts of an object are fields of their own
//! (members of structs and granular maps, items of sets and keyed lists) is what the type table says. Mirrors
//! sigs.k8s.io/structured-merge-diff v6.4.2 and apimachinery `pkg/util/managedfields`.
//!
//! Relies on: objects are decoded, so a built-in kind has exactly the members Go would print (this decides what a
//! create owns). Promises: [`update_managed_fields`] never fails and never changes anything but the list; [`apply`]
//! changes nothing that the applied object does not name or its manager has not owned; all work is linear, up to a
//! logarithm, in the objects and sets. Knows no store, no request and no strategy: who writes, when, and what is never
//! owned are told by [`WriteContext`]; other versions of an object come through [`Versions`].

mod apply;
mod compare;
mod conflict;
mod element;
mod error;
mod field_set;
mod filter;
mod items;
mod last_applied;
mod managers;
mod merge;
mod reconcile;
mod remove;
mod scale;
mod set;
mod shape;
#[cfg(test)]
mod tests;
mod times;
mod update;
mod validate;

pub use apply::{ApplyContext, apply};
pub use compare::Comparison;
pub use element::PathElement;
pub use error::TypedErrors;
pub use filter::{FieldFilter, Pattern, PatternElement};
pub use managers::{Operation, validate_managed_fields};
pub use scale::Replicas;
pub use set::{FieldSet, Path};
pub use times::keep_times;
pub use update::update_managed_fields;

use self::managers::Entry;
use super::{Table, TypeId};
use crate::object::Value;

/// Who writes, and how.
#[derive(Clone, Copy)]
pub struct WriteContext<'a> {
    /// `fieldManager`, or what stands for it out of the user agent; empty becomes `unknown`.
    pub manager: &'a str,
    /// `status`, `scale`; empty for the object itself.
    pub subresource: &'a str,
    /// The version of the request, in which both objects are: `apps/v1`.
    pub api_version: &'a str,
    /// The time of the write, RFC 3339 in UTC with whole seconds.
    pub now: &'a str,
    /// What the strategy puts back, and so is never owned through this endpoint.
    pub reset: FieldFilter<'a>,
    /// Needed where owners may have used other versions; without it their entries are dropped.
    pub versions: Option<&'a dyn Versions>,
}

impl<'a> WriteContext<'a> {
    fn convert(&self, object: &Value, api_version: &str) -> Converted<'a> {
        if api_version.matches('/').count() > 1 {
            return Converted::Failed(format!("unexpected GroupVersion string: {api_version}"));
        }
        self.versions.map_or(Converted::Missing, |versions| versions.convert(object, api_version))
    }

    fn entry(&self, operation: Operation, fields: FieldSet) -> Entry {
        Entry {
            manager: if self.manager.is_empty() { "unknown" } else { self.manager }.into(),
            operation,
            api_version: self.api_version.into(),
            subresource: self.subresource.into(),
            time: Some(self.now.into()),
            fields,
        }
    }
}

/// The way to the other versions of a kind.
pub trait Versions {
    /// The object in the version `api_version` (`autoscaling/v2`), whatever version it is in.
    fn convert(&self, object: &Value, api_version: &str) -> Converted<'_>;
}

/// An object in another version.
pub enum Converted<'a> {
    Object {
        table: &'a Table,
        ty: TypeId,
        value: Value,
    },
    /// That version is not served.
    Missing,
    /// The conversion failed; the text is for the log or, on apply, the answer.
    Failed(String),
}
