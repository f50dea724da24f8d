//! Tests of the whole daemon: each starts the built binary on free loopback ports in a throw-away folder and waits for
//! conditions, never for time. `support` has the harness.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod api;
mod architecture;
mod bounds;
mod clients;
mod config;
mod conformance;
mod failures;
mod faults;
mod fuzz;
mod handover;
mod hostile;
mod model;
mod noticed;
mod packaging;
mod reload;
mod services;
mod supervision;
mod support;
