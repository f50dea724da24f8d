//! The words every layer shares. Values only: parsing and printing a value gives it back.

pub mod field;
pub mod status;

pub use field::{ErrorList, FieldError, Path};
pub use status::{ApiError, Reason};
