//! The built-in kinds: rows out of one data table, strategies where a kind has behaviour of its own.
//!
//! `data/resources.json` (made by `tools/gen-resources.py`) names everything discovery shows. Each group's module
//! answers which strategy, lifecycle and subresource behaviour its kinds have. Most kinds share one strategy ([`kind`]):
//! a row of [`rules`] and, at full depth, what their module adds to it.

pub mod apiextensions;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod conversion;
mod coordination;
pub mod core;
pub mod defaults;
mod discovery;
mod events;
mod groups;
mod internal;
mod kind;
mod networking;
mod node;
mod policy;
mod printers;
pub mod rbac;
mod reviews;
mod rules;
mod scheduling;
mod storage;
mod table;

pub use groups::Wiring;
pub use networking::ip_address;
pub use printers::SCALE_TABLE;
pub use table::{group_versions, rows};
