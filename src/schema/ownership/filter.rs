//! Fields that a request never owns, because the strategy of its resource puts them back.

use super::{
    compare::Comparison,
    element::PathElement,
    set::{FieldSet, Node},
};
use crate::object::{Key, Map};

/// What to leave out of all sets; decided by the resource's strategy (upstream's reset fields).
#[derive(Clone, Copy, Debug, Default)]
pub enum FieldFilter<'a> {
    #[default]
    All,
    /// These and all below them are left out: `status` on the main endpoint.
    Without(&'a FieldSet),
    /// Only what one of the patterns reaches is kept: `spec.containers[*].resources` on `pods/resize`.
    Only(&'a [Pattern]),
}

/// A path with wildcards; what lies below its end is included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pattern(pub Vec<PatternElement>);

#[derive(Clone, Debug, PartialEq)]
pub enum PatternElement {
    /// Any member or item.
    Any,
    One(PathElement),
}

impl Pattern {
    /// A pattern of member names; `*` stands for any member or item.
    pub fn of(elements: &[&str]) -> Self {
        Self(
            elements
                .iter()
                .map(|name| match *name {
                    "*" => PatternElement::Any,
                    name => PatternElement::One(PathElement::Field(Key::new(name))),
                })
                .collect(),
        )
    }
}

impl FieldFilter<'_> {
    pub(super) fn set(&self, set: &mut FieldSet) {
        match self {
            Self::All => {}
            Self::Without(fields) => set.subtract_recursively(fields),
            Self::Only(patterns) => {
                let patterns: Vec<&[PatternElement]> = patterns.iter().map(|pattern| pattern.0.as_slice()).collect();
                *set = only(set.as_map(), &patterns).into_set();
            }
        }
    }

    pub(super) fn comparison(&self, comparison: &mut Comparison) {
        self.set(&mut comparison.added);
        self.set(&mut comparison.modified);
        self.set(&mut comparison.removed);
    }
}

fn only(members: &Map, patterns: &[&[PatternElement]]) -> Node {
    let mut out = Node::default();
    for (key, node) in members.iter().filter(|(key, _)| key.as_str() != ".") {
        let mut rest: Vec<&[PatternElement]> = Vec::new();
        for pattern in patterns {
            match pattern.split_first() {
                Some((PatternElement::Any, below)) => rest.push(below),
                Some((PatternElement::One(element), below)) if element.to_key() == *key => rest.push(below),
                _ => {}
            }
        }
        if rest.is_empty() {
            continue;
        }
        if rest.iter().any(|below| below.is_empty()) {
            out.below.push((key.clone(), node.clone()));
            continue;
        }
        let Some(map) = node.as_object() else { continue };
        let mut kept = only(map, &rest);
        // A member on the way to what a pattern names is kept, as upstream does.
        kept.member = map.is_empty() || map.contains_key(".");
        out.push(key.clone(), kept);
    }
    out
}
