//! A place in a tree, printed as Kubernetes prints it: `spec.ports[0].name`.

use std::fmt;

use super::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(Key),
    Index(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    pub fn push_key(&mut self, key: &Key) {
        self.0.push(Step::Key(key.clone()));
    }

    pub fn push_index(&mut self, index: usize) {
        self.0.push(Step::Index(index));
    }

    pub fn pop(&mut self) {
        self.0.pop();
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The path written out, while there is room: a long name stands in the paths of all that is below it, so that what
    /// they take together is no small number times the input.
    pub fn text_within(&self, room: &mut Room) -> Option<String> {
        room.take(self)
    }

    pub fn steps(&self) -> &[Step] {
        &self.0
    }
}

/// Bytes that all paths told of one object may take together.
#[derive(Clone, Copy, Debug)]
pub struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(8 << 20)
    }
}

impl Room {
    /// The text, if there is room left; the last one may be longer than that.
    pub fn take(&mut self, text: &dyn fmt::Display) -> Option<String> {
        (self.0 > 0).then(|| {
            let text = text.to_string();
            self.0 = self.0.saturating_sub(text.len());
            text
        })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => write!(f, "{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
