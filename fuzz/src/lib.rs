//! What is fuzzed: each target takes any bytes and must neither panic nor take more time or memory than they are worth.
//! Beyond that each holds what its reader promises: what was read prints as something that reads the same.
//!
//! libFuzzer drives these through `fuzz_targets/`; `cargo test --test it fuzz` drives them with mutated seeds.
//! Targets with several inputs take them one behind the other, with NUL bytes between, which no text here contains.

mod fixtures;
pub mod mutate;
pub mod seeds;
mod targets;

/// A target and its name, which is also the name of its corpus.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// How many mutated seeds a normal test run tries: less where one costs more.
    pub runs: u64,
}

/// All of them, each in `fuzz_targets/<name>.rs` too.
pub const TARGETS: &[Target] = &[
    Target { name: "json", run: targets::json, runs: 20_000 },
    Target { name: "yaml", run: targets::yaml, runs: 20_000 },
    Target { name: "protobuf", run: targets::protobuf, runs: 20_000 },
    Target { name: "cbor", run: targets::cbor, runs: 20_000 },
    Target { name: "json_patch", run: targets::json_patch, runs: 20_000 },
    Target { name: "merge_patch", run: targets::merge_patch, runs: 20_000 },
    Target { name: "strategic_patch", run: targets::strategic_patch, runs: 20_000 },
    Target { name: "apply", run: targets::apply, runs: 20_000 },
    Target { name: "object", run: targets::object, runs: 20_000 },
    Target { name: "custom", run: targets::custom, runs: 10_000 },
    Target { name: "selectors", run: targets::selectors, runs: 20_000 },
    Target { name: "continue_token", run: targets::continue_token, runs: 20_000 },
    Target { name: "quantity", run: targets::quantity, runs: 20_000 },
    Target { name: "scalars", run: targets::scalars, runs: 10_000 },
    Target { name: "request", run: targets::request, runs: 20_000 },
    Target { name: "configuration", run: targets::configuration, runs: 1_000 },
];

/// Runs one target on one input; a name that is none is a mistake in `fuzz_targets/`.
#[cfg_attr(test, allow(dead_code))]
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no target {name}")).run)(data);
}
