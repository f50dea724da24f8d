//! Options: raw → completed → validated.

pub mod catalogue;
pub mod completed;
pub mod go_duration;
pub mod raw;
pub mod token_file;
pub mod types;
pub mod validate;

pub use catalogue::Catalogue;
pub use completed::Sections;
pub use validate::ValidatedOptions;
