//! What a kind's printer makes of an object: the row that `kubectl get` shows.
//!
//! A row is made once for a state of an object and written many times, so what depends on the time of the request
//! (ages) is kept as the time it counts from and told only when the row is written.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{api::duration, object::Value};

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Value(Value),
    /// Text with an age in it.
    Aging(Box<Aging>),
}

/// Text whose middle is the time between `at` and the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aging {
    pub before: String,
    pub at: Timestamp,
    pub after: String,
    pub tense: Tense,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tense {
    /// `5m`
    Since,
    /// `in 5m` while `at` is to come, `5m ago` once it is past.
    Around,
}

/// What stands for a time that is not set.
const UNKNOWN: &str = "<unknown>";

impl Cell {
    /// The age of something; unknown where there is no time.
    pub fn age(at: Option<Timestamp>) -> Self {
        Self::since("", at, "")
    }

    /// The age of something amid text.
    pub fn since(before: &str, at: Option<Timestamp>, after: &str) -> Self {
        match at {
            Some(at) => {
                Self::Aging(Box::new(Aging { before: before.into(), at, after: after.into(), tense: Tense::Since }))
            }
            None => Self::Value(format!("{before}{UNKNOWN}{after}").into()),
        }
    }

    /// The cell as it is at `now`.
    pub fn value(&self, now: Timestamp) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Aging(aging) => aging.text(now).into(),
        }
    }
}

impl Aging {
    pub fn text(&self, now: Timestamp) -> String {
        format!("{}{}{}", self.before, self.tense.told(self.at, now), self.after)
    }
}

impl Tense {
    /// The words for the time between `at` and `now`.
    pub fn told(self, at: Timestamp, now: Timestamp) -> String {
        match self {
            Self::Since => duration::age(at, now),
            Self::Around if at > now => format!("in {}", duration::age(now, at)),
            Self::Around => format!("{} ago", duration::age(at, now)),
        }
    }
}

impl<T: Into<Value>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// The row of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrintedRow {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// Whatever the object is about is over.
    pub completed: Option<Completed>,
}

/// The `Completed` condition of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    pub reason: &'static str,
    pub message: &'static str,
}

impl From<Vec<Cell>> for PrintedRow {
    fn from(cells: Vec<Cell>) -> Self {
        Self { cells, completed: None }
    }
}

/// What a list does with its rows beyond printing each: sorting, marking one of them.
pub type Arrange = fn(&mut [(Value, PrintedRow)]);

/// The printer of a kind. It is handed objects in the version that writes are judged in: the storage version of
/// built-in kinds, the request's of custom resources.
#[derive(Clone)]
pub struct Printer {
    row: Arc<dyn Fn(&Value) -> PrintedRow + Send + Sync>,
    /// Only lists that are asked for are arranged, neither single objects nor watches.
    pub arrange: Option<Arrange>,
    /// The rows of an empty list are a null: so it is with printers that gather what they meet.
    pub gathers: bool,
}

impl Printer {
    pub fn new<R: Into<PrintedRow>>(row: impl Fn(&Value) -> R + Send + Sync + 'static) -> Self {
        Self { row: Arc::new(move |object| row(object).into()), arrange: None, gathers: false }
    }

    pub fn arranged(self, arrange: Arrange) -> Self {
        Self { arrange: Some(arrange), ..self }
    }

    pub fn gathering(self) -> Self {
        Self { gathers: true, ..self }
    }

    pub fn row(&self, object: &Value) -> PrintedRow {
        (self.row)(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_when_the_row_is_written() {
        let at = Timestamp::from_second(1_000).unwrap();
        let cell = Cell::since("3 (", Some(at), " ago)");
        let later = |seconds: i64| cell.value(Timestamp::from_second(1_000 + seconds).unwrap());
        assert_eq!((later(5), later(200)), ("3 (5s ago)".into(), "3 (3m20s ago)".into()));
        assert_eq!(Cell::age(None).value(at), UNKNOWN.into());
    }

    #[test]
    fn a_time_to_come_is_told_as_such() {
        let at = Timestamp::from_second(1_000).unwrap();
        let now = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        assert_eq!(Tense::Around.told(at, now(990)), "in 10s");
        assert_eq!(Tense::Around.told(at, now(1_010)), "10s ago");
    }
}
