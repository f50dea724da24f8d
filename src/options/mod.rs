//! Options: what may be configured, in three phases that each have a type of their own.
//!
//! [`ServerRunOptions`] is what was written (`load`: files, variables, flags, every value with its place);
//! `complete()` makes [`CompletedOptions`] of it, in which nothing is undecided; `validate()` makes
//! [`ValidatedOptions`], which exists only if nothing was wrong, or gives every problem at once.
//!
//! A validated value holds no handles, is never changed, and is equal to another only if every option and the
//! contents of every referenced file are. Secrets hide in debug output. Only `load` touches the disk, so that all
//! else is tested by the hundred and run again on every reload. Nothing here knows admission plugins, controllers or
//! kinds: their names come in as a [`Catalogue`].
//!
//! Read on in `raw/` (what may be written), `flags.rs` (kube-apiserver's flags), `load.rs`, `complete/`.

pub mod catalogue;
mod command_line;
mod complete;
pub mod completed;
mod csv;
pub mod flags;
mod gates;
mod invocation;
mod layers;
mod load;
pub mod problem;
pub mod raw;
mod reference;
pub mod schema;
mod show;
pub mod token_file;
pub mod types;
mod validate;

#[cfg(test)]
mod tests;

pub use catalogue::Catalogue;
pub use command_line::{CommandLine, parse as parse_command_line, usage};
pub use complete::CompletedOptions;
pub use completed::Sections;
pub use invocation::{DEFAULT_CONFIG, Invocation};
pub use load::{ServerRunOptions, WatchPaths};
pub use problem::{KeyPath, Origin, Problem, Warning};
pub use reference::{json_schema, markdown as reference};
pub use show::{flags as show_flags, json as show_json, toml as show_toml, value as show_value, written};
pub use validate::{Problems, ValidatedOptions};

/// Reads, completes and validates what the invocation names: the whole way, for start, check and reload alike.
pub fn read(invocation: &Invocation, catalogue: &Catalogue) -> Result<ValidatedOptions, Problems> {
    ServerRunOptions::load(invocation).complete(catalogue).validate()
}

/// [`read`], and then the deeper look that a reload takes before it commits: `probe` gets options that passed every
/// check and says what else is wrong with them.
pub fn check(
    invocation: &Invocation,
    catalogue: &Catalogue,
    probe: impl FnOnce(&ValidatedOptions) -> Vec<Problem>,
) -> Result<ValidatedOptions, Problems> {
    let options = read(invocation, catalogue)?;
    match probe(&options) {
        list if list.is_empty() => Ok(options),
        list => Err(Problems { list, warnings: options.warnings().to_vec(), watch: options.watch().clone() }),
    }
}

/// Where the daemon that was started in this way has its state and listens for `kenter reload`, whatever else is wrong
/// with its configuration.
pub fn state(invocation: &Invocation, catalogue: &Catalogue) -> completed::State {
    ServerRunOptions::load(invocation).complete(catalogue).sections().state.clone()
}
