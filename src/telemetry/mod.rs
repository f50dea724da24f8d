//! What an operator sees of the process: the log and the metrics.
//!
//! Both belong to the process, not to a generation, and are reached from everywhere: the log through `tracing`'s macros,
//! metrics through [`metrics()`]. A leaf: everything may use it, it uses nothing above the words of the API.

mod checks;
pub mod log;
pub mod metrics;
mod process;
mod vector;

pub use checks::checks;
pub use log::{AccessLine, LogHandle};
pub use metrics::{Metrics, metrics};
pub use vector::BareCounter;
