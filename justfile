# What a day needs. `just --list` shows it.

# Compiles everything, quickly: without the descriptions, which cost a minute.
check:
    cargo check --no-default-features --all-targets

# Unit tests of a module: `just unit storage::cache`.
unit module="":
    cargo test --no-default-features --lib {{module}}

# Tests of the real process: `just it reload`.
it module="":
    cargo test --no-default-features --test it {{module}}

# All that has to hold before a change lands.
ci:
    .ci/run

# The recorded answers of a real kube-apiserver; a case's area or name narrows it.
oracle case="":
    cargo build --no-default-features
    tests/conformance/oracle check --start "target/debug/kenter run --controllers= --state-dir {state}/data" {{case}}

# Adds what passes now to the list that must pass.
ratchet:
    cargo build
    tests/conformance/oracle check --start "target/debug/kenter run --controllers= --state-dir {state}/data" \
        --must-pass tests/conformance/must-pass.txt --update

# Random operations against a model, and hostile clients, for longer than a test run has.
properties seconds="600":
    KENTER_PROPERTY_SECONDS={{seconds}} cargo test --no-default-features --test it -- --nocapture model:: hostile::

# A fuzz target under libFuzzer, from seeds out of the recordings; needs a nightly compiler and cargo-fuzz.
fuzz target="json" seconds="60":
    cargo run --manifest-path fuzz/Cargo.toml --bin seed
    cargo +nightly fuzz run {{target}} -- -max_total_time={{seconds}}

# A daemon to play with, in ./demo.
run:
    cargo run --release -- run --state-dir demo/state

# The option reference.
reference:
    cargo run --no-default-features -- config reference

# The hot paths, measured.
bench name="":
    cargo bench --no-default-features {{name}}

# The units under a booted systemd in a container; needs root and systemd-container.
systemd:
    cargo build --no-default-features
    tests/systemd/nspawn.sh target/debug/kenter
