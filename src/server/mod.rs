//! The generic server: what every one of the three servers is made of, and the listener in front of them.

pub mod current;
pub mod http;
pub mod listen;
