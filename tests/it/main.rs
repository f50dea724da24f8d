//! Tests of the whole daemon: each starts the built binary on free loopback ports in a throw-away folder and waits for
//! conditions, never for time. `support` has the harness.

mod api;
mod architecture;
mod config;
mod conformance;
mod failures;
mod faults;
mod handover;
mod noticed;
mod reload;
mod supervision;
mod support;
