//! Resources as rows, strategies, and the one generic store.

pub mod reader;
