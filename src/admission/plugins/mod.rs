//! One file a plugin. `table.rs` has their order.

mod namespace_lifecycle;

pub use namespace_lifecycle::NamespaceLifecycle;
