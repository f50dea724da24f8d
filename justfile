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
