//! Notices changes of the configuration and replaces the running generation.

pub mod catalogue;
pub mod diff;
