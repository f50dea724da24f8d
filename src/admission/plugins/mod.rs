//! One file a plugin. `table.rs` has their order.

mod default_toleration_seconds;
mod namespace_lifecycle;
mod priority;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

pub use default_toleration_seconds::DefaultTolerationSeconds;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use priority::Priority;
pub use service_account::ServiceAccount;
pub use storage_object_in_use_protection::StorageObjectInUseProtection;
pub use taint_nodes_by_condition::TaintNodesByCondition;
