//! The built-in kinds: rows out of one data table, strategies where a kind has behaviour of its own.
//!
//! `data/resources.json` (made by `tools/gen-resources.py`) names everything discovery shows. Each group's module
//! answers which strategy, lifecycle and subresource behaviour its kinds have; a kind that no module knows has the
//! default strategy.

mod apps;
pub mod core;
pub mod defaults;
mod groups;
pub mod rbac;
mod reviews;
mod table;

pub use groups::Wiring;
pub use table::rows;
