//! Errors of fields, as validation gathers them (apimachinery `pkg/util/validation/field`).

use std::fmt;

use crate::object::{Value, to_string};
pub use crate::object::{is_printable, quote};

/// A field's place, printed as upstream prints it: `spec.containers[0].image`, `metadata.labels[app]`.
/// Cheap to extend: each child borrows its parent, and text is made only when an error is.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself; prints as `<nil>` is never wanted, so as nothing.
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub const fn new(name: &'a str) -> Self {
        Self { parent: None, step: Step::Child(name) }
    }

    pub const fn child(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Child(name) }
    }

    pub const fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(path) = at {
            steps.push(path.step);
            at = path.parent;
        }
        let mut first = true;
        for step in steps.iter().rev() {
            match step {
                Step::Root => continue,
                Step::Child(name) if first => f.write_str(name)?,
                Step::Child(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => write!(f, "[{key}]")?,
            }
            first = false;
        }
        Ok(())
    }
}

/// What is wrong with a field; decides the cause's reason and the text's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    Required,
    Invalid,
    TypeInvalid,
    NotSupported,
    Duplicate,
    Forbidden,
    NotFound,
    TooLong,
    TooShort,
    TooMany,
    TooFew,
    Internal,
}

impl ErrorType {
    /// The `reason` of the Status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub kind: ErrorType,
    pub field: String,
    /// The text without the field: `Invalid value: "x": must be …`. What the cause's `message` is.
    pub body: String,
    /// The rule that found it (`format=k8s-label-key`, `minimum`), where upstream names one; `""` elsewhere.
    pub origin: &'static str,
    /// Whether a declarative rule may say the same, and then says it instead.
    pub covered: bool,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() { f.write_str(&self.body) } else { write!(f, "{}: {}", self.field, self.body) }
    }
}

/// A value as an error shows it: strings quoted as Go quotes them, everything else as compact JSON.
pub fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => quote(text),
        other => to_string(other),
    }
}

fn items(count: usize) -> &'static str {
    if count == 1 { "item" } else { "items" }
}

fn characters(count: usize) -> &'static str {
    if count == 1 { "character" } else { "characters" }
}

impl FieldError {
    fn new(kind: ErrorType, field: &dyn fmt::Display, value: Option<String>, detail: &str) -> Self {
        let mut body = kind.text().to_owned();
        if let Some(value) = value {
            body.push_str(": ");
            body.push_str(&value);
        }
        if !detail.is_empty() {
            body.push_str(": ");
            body.push_str(detail);
        }
        Self { kind, field: field.to_string(), body, origin: "", covered: false }
    }

    pub fn required(field: &dyn fmt::Display, detail: &str) -> Self {
        Self::new(ErrorType::Required, field, None, detail)
    }

    pub fn invalid(field: &dyn fmt::Display, value: impl Into<Value>, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, Some(show(&value.into())), detail)
    }

    /// Like [`FieldError::invalid`] for a value that is at hand by reference.
    pub fn invalid_ref(field: &dyn fmt::Display, value: &Value, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, Some(show(value)), detail)
    }

    /// For values that upstream prints in a form of its own (Go structs, maps): `shown` is used as it is.
    pub fn invalid_shown(field: &dyn fmt::Display, shown: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, Some(shown.into()), detail)
    }

    /// Like [`FieldError::invalid`], without the value: what is wrong is not in it, or it must not be shown.
    pub fn invalid_omitted(field: &dyn fmt::Display, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, None, detail)
    }

    /// Names the rule that found it.
    pub fn with_origin(mut self, origin: &'static str) -> Self {
        self.origin = origin;
        self
    }

    /// Lets an enforced declarative rule of the same origin say it instead.
    pub fn covered_by_declarative(mut self) -> Self {
        self.covered = true;
        self
    }

    pub fn type_invalid(field: &dyn fmt::Display, shown: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::TypeInvalid, field, Some(shown.into()), detail)
    }

    /// `supported` is shown sorted as given, quoted.
    pub fn not_supported<S: AsRef<str>>(field: &dyn fmt::Display, value: impl Into<Value>, supported: &[S]) -> Self {
        Self::not_supported_shown(field, show(&value.into()), supported)
    }

    /// Like [`FieldError::not_supported`], for values that upstream prints in a form of its own.
    pub fn not_supported_shown<S: AsRef<str>>(
        field: &dyn fmt::Display,
        shown: impl Into<String>,
        supported: &[S],
    ) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|s| quote(s.as_ref())).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorType::NotSupported, field, Some(shown.into()), &detail)
    }

    pub fn duplicate(field: &dyn fmt::Display, value: impl Into<Value>) -> Self {
        Self::new(ErrorType::Duplicate, field, Some(show(&value.into())), "")
    }

    /// Like [`FieldError::duplicate`], for values that upstream prints in a form of its own.
    pub fn duplicate_shown(field: &dyn fmt::Display, shown: impl Into<String>) -> Self {
        Self::new(ErrorType::Duplicate, field, Some(shown.into()), "")
    }

    pub fn forbidden(field: &dyn fmt::Display, detail: &str) -> Self {
        Self::new(ErrorType::Forbidden, field, None, detail)
    }

    pub fn not_found(field: &dyn fmt::Display, value: impl Into<Value>) -> Self {
        Self::new(ErrorType::NotFound, field, Some(show(&value.into())), "")
    }

    /// `may not be more than <max> bytes`.
    pub fn too_long(field: &dyn fmt::Display, max: usize) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(ErrorType::TooLong, field, None, &format!("may not be more than {max} {unit}"))
    }

    /// `may not be more than <max> characters`.
    pub fn too_long_characters(field: &dyn fmt::Display, max: usize) -> Self {
        Self::new(ErrorType::TooLong, field, None, &format!("may not be more than {max} {}", characters(max)))
    }

    /// `value is too long`, where the limit is not told.
    pub fn too_long_unbounded(field: &dyn fmt::Display) -> Self {
        Self::new(ErrorType::TooLong, field, None, "value is too long")
    }

    /// `must be at least <min> characters`.
    pub fn too_short(field: &dyn fmt::Display, min: usize) -> Self {
        Self::new(ErrorType::TooShort, field, None, &format!("must be at least {min} {}", characters(min)))
    }

    /// `has too many items`, where the limit is not told.
    pub fn too_many_unbounded(field: &dyn fmt::Display, actual: usize) -> Self {
        Self::new(ErrorType::TooMany, field, Some(actual.to_string()), "has too many items")
    }

    pub fn too_many(field: &dyn fmt::Display, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} {}", items(max));
        Self::new(ErrorType::TooMany, field, Some(actual.to_string()), &detail)
    }

    pub fn too_few(field: &dyn fmt::Display, actual: usize, min: usize) -> Self {
        let detail = format!("must have at least {min} {}", items(min));
        Self::new(ErrorType::TooFew, field, Some(actual.to_string()), &detail)
    }

    pub fn internal(field: &dyn fmt::Display, detail: &str) -> Self {
        Self::new(ErrorType::Internal, field, None, detail)
    }
}

/// More problems of one object are not kept: it is invalid after the first, and nobody reads as many.
const MOST_ERRORS: usize = 10_000;

/// All problems of one object, in the order they were found; the first ten thousand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorList(Vec<FieldError>);

impl ErrorList {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn push(&mut self, error: FieldError) {
        if self.0.len() < MOST_ERRORS {
            self.0.push(error);
        }
    }
    /// Adds an error before the one at `at`, or at the end.
    pub fn insert(&mut self, at: usize, error: FieldError) {
        self.0.insert(at.min(self.0.len()), error);
        self.0.truncate(MOST_ERRORS);
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }
    pub fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        let room = MOST_ERRORS.saturating_sub(self.0.len());
        self.0.extend(errors.into_iter().take(room));
    }
    pub fn retain(&mut self, keep: impl FnMut(&FieldError) -> bool) {
        self.0.retain(keep);
    }
    /// Keeps the first of several errors that read the same.
    pub fn dedup(&mut self) {
        let mut seen = std::collections::HashSet::new();
        self.0.retain(|error| seen.insert(error.to_string()));
    }
}

impl IntoIterator for ErrorList {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<FieldError> for ErrorList {
    fn from_iter<T: IntoIterator<Item = FieldError>>(errors: T) -> Self {
        Self(errors.into_iter().take(MOST_ERRORS).collect())
    }
}

/// Nothing for none, one error plain, several as `[a, b]` without repetitions; as Go's aggregate prints.
impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for error in &self.0 {
            let text = error.to_string();
            if seen.insert(text.clone()) {
                texts.push(text);
            }
        }
        match texts.as_slice() {
            [] => Ok(()),
            [only] => f.write_str(only),
            _ => write!(f, "[{}]", texts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_upstreams() {
        let spec = Path::new("spec");
        let ports = spec.child("ports");
        let port = ports.index(3);
        assert_eq!(port.child("name").to_string(), "spec.ports[3].name");
        let metadata = Path::new("metadata");
        assert_eq!(metadata.child("labels").key("app").to_string(), "metadata.labels[app]");
    }

    #[test]
    fn several_errors_are_bracketed_without_repetitions() {
        let path = Path::new("a");
        let mut list = ErrorList::new();
        list.push(FieldError::invalid(&path, "x", "bad"));
        assert_eq!(list.to_string(), "a: Invalid value: \"x\": bad");
        list.push(FieldError::invalid(&path, "x", "bad"));
        list.push(FieldError::required(&path, ""));
        assert_eq!(list.to_string(), "[a: Invalid value: \"x\": bad, a: Required value]");
    }
}
