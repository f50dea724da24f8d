//! The last phase: checks that need more than one option, and the value that exists only when all passed.

use std::{ops::Deref, sync::Arc};

use super::completed::Sections;

/// Options that passed every check. Cheap to clone, never changed, equal only if every option and the contents of
/// every referenced file are equal.
#[derive(Clone, Debug)]
pub struct ValidatedOptions(Arc<Sections>);

impl Deref for ValidatedOptions {
    type Target = Sections;
    fn deref(&self) -> &Sections {
        &self.0
    }
}

impl PartialEq for ValidatedOptions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}
