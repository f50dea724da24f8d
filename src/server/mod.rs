//! The generic server: what every one of the three servers is made of, and the listener in front of them.

pub mod attributes;
pub mod context;
pub mod current;
pub mod debug;
pub mod discovery;
pub mod endpoints;
pub mod generic;
pub mod health;
mod heavy;
pub mod hooks;
pub mod http;
pub mod layers;
pub mod lifecycle;
pub mod listen;
pub mod negotiate;
pub mod query;
pub mod request_info;
pub mod respond;
pub mod rights;
pub mod stack;
