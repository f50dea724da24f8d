//! The one place that asks for the time, so that what depends on it can be found.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use jiff::Timestamp;

/// The wall clock.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The wall clock in whole seconds, as object timestamps have it.
pub fn now_seconds() -> Timestamp {
    // A second within jiff's range stays within it when its fraction is dropped.
    Timestamp::from_second(now().as_second()).unwrap_or_default()
}

/// Time since the process first asked; never goes back.
pub fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
