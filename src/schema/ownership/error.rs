//! What is wrong with an object's types, in upstream's words (structured-merge-diff `typed/helpers.go`, `validate.go`).

use std::fmt;

use crate::{object::Value, schema::patch::go_print};

/// At most this many errors are kept: an object with one wrong list could give thousands.
const MAX_ERRORS: usize = 100;

/// Errors with the place of each. Printed alone, or after `errors:` one a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedErrors(Vec<(String, String)>);

impl TypedErrors {
    pub(super) fn push(&mut self, message: String) {
        self.push_at(String::new(), message);
    }

    pub(super) fn push_at(&mut self, path: String, message: String) {
        if self.0.len() < MAX_ERRORS {
            self.0.push((path, message));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts a path element before the places of the errors from `first` on.
    pub(super) fn prefix(&mut self, first: usize, element: &dyn fmt::Display) {
        if let Some(errors) = self.0.get_mut(first..).filter(|errors| !errors.is_empty()) {
            let element = element.to_string();
            errors.iter_mut().for_each(|(path, _)| path.insert_str(0, &element));
        }
    }

    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for TypedErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, (path, message): &(String, String)| {
            if path.is_empty() { f.write_str(message) } else { write!(f, "{path}: {message}") }
        };
        if let [only] = self.0.as_slice() {
            return one(f, only);
        }
        f.write_str("errors:")?;
        for error in &self.0 {
            f.write_str("\n  ")?;
            one(f, error)?;
        }
        Ok(())
    }
}

impl std::error::Error for TypedErrors {}

/// `%v` of upstream's wrapped value: a pointer to a struct with one member.
pub(super) fn show_value(value: &Value) -> String {
    format!("&{{{}}}", go_print::plain(value))
}

/// `%#v` of the same.
pub(super) fn show_source(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{}}}", go_print::source(value))
}
