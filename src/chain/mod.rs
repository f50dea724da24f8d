//! The chain of servers (aggregator → kube → extensions → not found), its building, and what outlives it.
//!
//! Every request is answered. "Not mine" differs from "refused": only the first goes on to the next server. Chain does
//! not know reload; it builds when asked.

mod addresses;
mod aggregator;
pub mod build;
pub mod client;
mod components;
mod connect;
pub mod custom;
pub mod delegate;
pub mod dialer;
mod extensions;
mod kube;
mod not_found;
mod observe;
pub mod reader;
pub mod shared;

pub use build::{Generation, check_authorities, create_server_chain};
pub use shared::Shared;
