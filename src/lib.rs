//! kenter: a Kubernetes API server in one daemon.
//!
//! The map, in reading order; ARCHITECTURE.md has the walks through it.

/// Mutating and validating admission.
pub mod admission;
/// The words every layer shares: names, selectors, quantities, times, Status.
pub mod api;
/// The process: runtime, signals, supervisor status, root tasks; the only place that exits.
pub mod app;
/// Who a request is from and what it may do.
pub mod auth;
/// The three servers (aggregator, kube, extensions), their building and what outlives them.
pub mod chain;
/// Bytes to objects and back: JSON, YAML, protobuf, Table, metadata-only.
pub mod codec;
/// Built-in loops behind switches: in-process clients of what serves now.
pub mod controllers;
/// The document tree that writes are made on.
pub mod object;
/// OpenAPI documents out of the schema.
pub mod openapi;
/// What may be configured: raw, completed, validated.
pub mod options;
/// Certificates and the kubeconfig a newcomer gets.
pub mod pki;
/// Resources as rows, strategies, and the one generic store.
pub mod registry;
/// Notices changes of the configuration and replaces the running generation.
pub mod reload;
/// The type table: defaulting, pruning, validation, merges, field ownership.
pub mod schema;
/// The generic server: listener, layers, endpoints, negotiation, health, lifecycle.
pub mod server;
/// Keys and bytes with revisions: the trait, its back ends, the watch cache.
pub mod storage;
/// Logs and metrics.
pub mod telemetry;
