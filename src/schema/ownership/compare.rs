//! What differs between two objects of one type (structured-merge-diff `typed/compare.go`).

use super::{
    element::field_key,
    error::TypedErrors,
    items::{Named, by_name, groups},
    set::{FieldSet, Node},
    shape::{Atom, ListAtom, MapAtom, Part, Ref, Types},
};
use crate::object::{Key, Map, Value};

/// The fields that came, went, or have another value. None is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Comparison {
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

/// Equality as upstream's: 1 and 1.0 are equal.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Int(b)) | (Value::Int(b), Value::Float(a)) => *a == *b as f64,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && equal(a, b))
        }
        _ => a == b,
    }
}

/// Compares two objects of type `ty`; `metadata.managedFields` is not looked at.
pub(super) fn compare(types: &Types<'_>, ty: Ref, old: &Value, new: &Value) -> Result<Comparison, TypedErrors> {
    let mut walk = Walk { types, errors: TypedErrors::default() };
    let mut out = Out::default();
    walk.visit(ty, Some(old), Some(new), &mut out);
    walk.errors.into_result()?;
    Ok(Comparison { added: out.added.into_set(), modified: out.modified.into_set(), removed: out.removed.into_set() })
}

#[derive(Default)]
struct Out {
    added: Node,
    modified: Node,
    removed: Node,
}

impl Out {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    fn push(&mut self, key: Key, below: Out) {
        let sets =
            [(&mut self.added, below.added), (&mut self.modified, below.modified), (&mut self.removed, below.removed)];
        for (set, below) in sets.into_iter().filter(|(_, below)| !below.is_empty()) {
            set.push(key.clone(), below);
        }
    }
}

struct Walk<'w, 't> {
    types: &'w Types<'t>,
    errors: TypedErrors,
}

impl Walk<'_, '_> {
    fn visit(&mut self, ty: Ref, lhs: Option<&Value>, rhs: Option<&Value>, out: &mut Out) {
        // Whatever came or went is in a set itself; what is below it may be too.
        match (lhs, rhs) {
            (None, None) => return,
            (None, Some(_)) => out.added.member = true,
            (Some(_), None) => out.removed.member = true,
            (Some(_), Some(_)) => {}
        }
        let atom = self.types.resolve(ty);
        let fit = |value: Option<&Value>| value.and_then(|value| atom.fitting(value));
        match (lhs, rhs, fit(lhs), fit(rhs)) {
            (_, None, part, _) => self.part(&atom, part, lhs, rhs, out),
            (None, _, _, part) => self.part(&atom, part, lhs, rhs, out),
            (_, _, left, right) if left == right => self.part(&atom, right, lhs, rhs, out),
            (_, _, left, right) => {
                self.part(&atom, left, lhs, rhs, out);
                self.part(&atom, right, lhs, rhs, out);
            }
        }
    }

    fn part(&mut self, atom: &Atom<'_>, part: Option<Part>, lhs: Option<&Value>, rhs: Option<&Value>, out: &mut Out) {
        match part.or(atom.first()) {
            Some(Part::Map) if let Some(map) = atom.map => self.map(&map, lhs, rhs, out),
            Some(Part::List) if let Some(list) = atom.list => self.list(&list, lhs, rhs, out),
            _ => leaf(lhs, rhs, out),
        }
    }

    fn map(&mut self, map: &MapAtom<'_>, lhs: Option<&Value>, rhs: Option<&Value>, out: &mut Out) {
        let left = lhs.and_then(Value::as_object).map_or(&[][..], Map::as_slice);
        let right = rhs.and_then(Value::as_object).map_or(&[][..], Map::as_slice);
        if map.atomic || (left.is_empty() && right.is_empty()) {
            return leaf(lhs, rhs, out);
        }
        super::set::zip(left, right, |name, a, b| {
            let (ty, _) = map.member(name);
            let first = self.errors.len();
            let mut below = Out::default();
            self.visit(ty, a, b, &mut below);
            self.errors.prefix(first, &format_args!(".{name}"));
            if !below.is_empty() {
                out.push(field_key(name), below);
            }
        });
    }

    fn list(&mut self, list: &ListAtom<'_>, lhs: Option<&Value>, rhs: Option<&Value>, out: &mut Out) {
        let left = lhs.and_then(Value::as_array).unwrap_or(&[]);
        let right = rhs.and_then(Value::as_array).unwrap_or(&[]);
        if !list.associative || (left.is_empty() && right.is_empty()) {
            return leaf(lhs, rhs, out);
        }
        if left == right {
            return;
        }
        let left = by_name(self.types, list, left, &mut self.errors);
        let right = by_name(self.types, list, right, &mut self.errors);
        let (mut left, mut right) = (groups(&left).peekable(), groups(&right).peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.first().map(|it| &it.key).cmp(&b.first().map(|it| &it.key)),
            };
            let a = if order.is_gt() { &[] } else { left.next().unwrap_or(&[]) };
            let b = if order.is_lt() { &[] } else { right.next().unwrap_or(&[]) };
            self.items(list, a, b, out);
        }
    }

    /// Items of one name: the usual one on each side, or repetitions, which are of one piece.
    fn items(&mut self, list: &ListAtom<'_>, left: &[Named<'_>], right: &[Named<'_>], out: &mut Out) {
        let Some(key) = left.first().or(right.first()).map(|named| named.key.clone()) else { return };
        let mut below = Out::default();
        let (a, b) = (left.first().map(|it| it.item), right.first().map(|it| it.item));
        let first = self.errors.len();
        match (left.len(), right.len()) {
            (0 | 1, 0 | 1) => self.visit(list.item, a, b, &mut below),
            (2.., 2..) => {
                let same = left.len() == right.len() && left.iter().zip(right).all(|(a, b)| equal(a.item, b.item));
                below.modified.member = !same;
            }
            (2.., _) => {
                if b.is_some() {
                    self.visit(list.item, None, b, &mut below);
                }
                below.removed.member = true;
            }
            _ => {
                if a.is_some() {
                    self.visit(list.item, a, None, &mut below);
                }
                below.added.member = true;
            }
        }
        if self.errors.len() > first {
            self.errors.prefix(first, &print(&key));
        }
        out.push(key, below);
    }
}

/// A name inside a `fieldsV1` tree as messages print it.
pub(super) fn print(key: &str) -> String {
    super::element::PathElement::parse(key).ok().flatten().map(|element| element.to_string()).unwrap_or_default()
}

fn leaf(lhs: Option<&Value>, rhs: Option<&Value>, out: &mut Out) {
    if let (Some(lhs), Some(rhs)) = (lhs, rhs)
        && !equal(lhs, rhs)
    {
        out.modified.member = true;
    }
}
