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

    pub fn steps(&self) -> &[Step] {
        &self.0
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
