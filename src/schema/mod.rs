//! The type table and what is done by it: decoding, defaulting, pruning, validation, merges, field ownership.
//!
//! One structure describes built-in kinds and custom resources alike. [`builtin`] is the table of built-in kinds,
//! made from the facts of a Kubernetes release by `tools/gen-types`; a custom resource has a small table of its own
//! laid over it ([`Table::over`]). Nothing here does I/O or knows what a resource, a store or a request is.

pub mod builtin;
pub mod decode;
pub mod defaults;
pub mod go_base64;
pub mod ownership;
pub mod patch;
pub mod prune;
mod source;
pub mod structural;
pub mod table;
#[cfg(test)]
pub(crate) mod vectors;
pub mod zero;

pub use builtin::builtin;
pub use decode::{DecodeError, decode, merge_repeated, normalise, normalise_stored, strict_errors};
pub use table::{
    AdditionalMembers, Field, Granularity, KindRow, List, ListType, MapOf, Nested, Omit, OneOf, PatchStrategy, Scalar,
    Shape, Slot, Struct, Table, Type, TypeId, Validation, WireEntry, WireMember,
};
