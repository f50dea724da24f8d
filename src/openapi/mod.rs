//! OpenAPI documents, versions 2 and 3, out of what is served: the names and verbs of resources, the type table for
//! built-in kinds, the written schemas of custom ones.
//!
//! Promises: documents have the structure of upstream's (paths, operation ids, parameters, models, extensions); equal
//! sources give equal bytes. The texts of models come from `k8s-openapi` (feature `descriptions`), those of operations
//! and parameters are our own. Nothing here does I/O, keeps a document or knows a server; whoever serves documents
//! keeps them.
//!
//! Where to look: [`source`] is what goes in, [`operations`] and [`models`] are what both versions have in common,
//! [`document`] writes them.

mod custom;
mod descriptions;
mod document;
mod known_groups;
mod models;
mod operations;
mod parameters;
mod protobuf;
mod sections;
pub mod source;
#[cfg(test)]
mod tests;

pub use descriptions::Descriptions;
pub use document::{Form, v2, v3};
pub use sections::Section;
pub use source::{GroupVersion, Gvk, Resource, Subresource};
