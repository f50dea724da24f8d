//! Resources as rows, policy in small strategies, mechanism in one store.
//!
//! Routes, discovery, schema and key prefix come from the same row ([`resource::Resource`]). Strategies do no I/O
//! and run in a fixed order; the store is the only writer. Admission is not known here: the endpoints hand the
//! store the functions that decide whether an object may be stored. Who only reads gets the narrow [`reader`].

pub mod builtin;
pub mod catalog;
pub mod dynamic;
pub mod printer;
pub mod reader;
pub mod resource;
pub mod selectable;
pub mod store;
pub mod strategy;
pub mod validation;
