//! Why a patch cannot be read or applied.

use std::fmt;

use crate::api::{ApiError, Reason, status::Details};

/// A failed patch, by what the client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is malformed: 400 with the text.
    Malformed(String),
    /// A JSON patch has more operations than are allowed: 413.
    TooManyOperations(usize),
    /// The patch is well-formed but does not apply: 422. Clients see upstream's text for any such answer; what went
    /// wrong is for the log.
    Rejected(String),
    /// What upstream has no answer for: 500 without a reason, and the text.
    Unmapped(String),
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) | Self::Rejected(text) | Self::Unmapped(text) => f.write_str(text),
            Self::TooManyOperations(got) => {
                write!(f, "The allowed maximum operations in a JSON patch is {}, got {got}", super::MAX_OPERATIONS)
            }
        }
    }
}

impl std::error::Error for PatchError {}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(text) => ApiError::bad_request(text),
            PatchError::TooManyOperations(_) => ApiError::request_entity_too_large(&error.to_string()),
            PatchError::Rejected(_) => {
                let text = "the server rejected our request due to an error in our request";
                ApiError::new(422, Reason::Invalid, text).with_details(Details::default())
            }
            PatchError::Unmapped(text) => ApiError::unmapped(text),
        }
    }
}
