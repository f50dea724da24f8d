//! The words every layer shares. Values only: parsing and printing a value gives it back.

pub mod clock;
pub mod duration;
pub mod field;
pub mod fields;
pub mod go_url;
pub mod hex;
pub mod intstr;
pub mod ip;
pub mod labels;
pub mod meta;
pub mod names;
pub mod quantity;
pub mod release;
pub mod status;
pub mod unique;
pub mod version;
pub mod warnings;

#[cfg(test)]
pub(crate) mod vectors;

pub use field::{ErrorList, FieldError, Path};
pub use meta::{Meta, MetaMut};
pub use status::{ApiError, Reason};
