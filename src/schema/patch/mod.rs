//! The three patches that say what to change: JSON patch, JSON merge patch, strategic merge patch.
//!
//! Each is read once for a request ([`JsonPatch::parse`], [`parse_merge_patch`], [`parse_strategic_patch`]) and may be
//! applied several times, since a write that loses a race is made again on the newer object. What a patch does and how
//! it fails is upstream's, leniences included. Bounded: at most 10,000 operations, 3 MiB of copies, and no document
//! deeper than a parser would take. Knows nothing of ownership or of what is valid.

mod error;
pub mod go_print;
mod json_patch;
mod merge_patch;
mod shown;
mod strategic;
#[cfg(test)]
mod tests;

pub use error::PatchError;
pub use json_patch::{JsonPatch, MAX_COPIED_BYTES, MAX_OPERATIONS};
pub use merge_patch::{merge_patch, parse_merge_patch};
pub use shown::{Opened, show_patched};
pub use strategic::{convert_types, parse_strategic_patch, strategic_merge};
