//! kenter: a Kubernetes API server in one daemon.
//!
//! The map, in reading order; ARCHITECTURE.md has the walks through it.

/// The process: runtime, signals, supervisor status, root tasks; the only place that exits.
pub mod app;
/// Notices changes of the configuration and replaces the running generation.
pub mod reload;
/// Built-in loops behind switches: in-process clients of what serves now.
pub mod controllers;
/// The three servers (aggregator, kube, extensions), their building and what outlives them.
pub mod chain;
/// The generic server: listener, layers, endpoints, negotiation, health, lifecycle.
pub mod server;
/// Mutating and validating admission.
pub mod admission;
/// Who a request is from and what it may do.
pub mod auth;
/// Resources as rows, strategies, and the one generic store.
pub mod registry;
/// Keys and bytes with revisions: the trait, its back ends, the watch cache.
pub mod storage;
/// The type table: defaulting, pruning, validation, merges, field ownership.
pub mod schema;
/// Bytes to objects and back: JSON, YAML, protobuf, Table, metadata-only.
pub mod codec;
/// OpenAPI documents out of the schema.
pub mod openapi;
/// The document tree that writes are made on.
pub mod object;
/// The words every layer shares: names, selectors, quantities, times, Status.
pub mod api;
/// What may be configured: raw, completed, validated.
pub mod options;
/// Certificates and the kubeconfig a newcomer gets.
pub mod pki;
/// Logs and metrics.
pub mod telemetry;
