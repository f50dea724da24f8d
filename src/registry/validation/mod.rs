//! Rules that kinds share: object metadata, selectors, addresses, numbers, and the declarative rules.
//!
//! Every function reads a value, knows its path, and adds what is wrong to an [`ErrorList`](crate::api::ErrorList)
//! in upstream's order and words. Nothing here knows a kind or does I/O. Missing members count as their zero value,
//! as in Go. Names and formats themselves are judged in [`crate::api::names`].
//!
//! Read next: [`object_meta`], which every object goes through; [`rules`] for the everyday ones.

pub mod address;
pub mod condition;
pub mod declarative;
pub mod object_meta;
pub mod options;
pub mod rules;
pub mod selector;
pub mod webhook;

#[cfg(test)]
mod tests;

pub use object_meta::{validate_bare_finalizers, validate_object_meta, validate_object_meta_update};
pub use rules::*;
pub use selector::{LabelSelectorOptions, validate_label_selector};
