//! What differs between two objects of one type (structured-merge-diff `typed/compare.go`).

use super::{
    element::field_key,
    error::TypedErrors,
    items::{Named, by_name, groups},
    set::{FieldSet, Member, Node},
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
    walk.visit(ty, old, new, &mut out);
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
    fn visit(&mut self, ty: Ref, lhs: &Value, rhs: &Value, out: &mut Out) {
        let atom = self.types.resolve(ty);
        let (left, right) = (atom.fitting(lhs), atom.fitting(rhs));
        if left != right {
            self.part(&atom, left, lhs, rhs, out);
        }
        self.part(&atom, right, lhs, rhs, out);
    }

    /// All fields of a value that came or went.
    fn whole(&mut self, ty: Ref, value: &Value) -> Value {
        match value {
            Value::Object(members) if !members.is_empty() => match self.types.resolve(ty).map {
                Some(map) if !map.atomic => self.whole_map(&map, members),
                _ => Member::leaf(),
            },
            Value::Array(items) if !items.is_empty() => match self.types.resolve(ty).list {
                Some(list) if list.associative => self.whole_list(&list, items),
                _ => Member::leaf(),
            },
            _ => Member::leaf(),
        }
    }

    fn whole_map(&mut self, map: &MapAtom<'_>, members: &Map) -> Value {
        let mut node = Member::with_capacity(members.len());
        let mut types = map.in_order();
        for (name, value) in members.iter() {
            let first = self.errors.len();
            let below = self.whole(types.member(name).0, value);
            self.errors.prefix(first, &format_args!(".{name}"));
            node.push(field_key(name), below);
        }
        node.into_value()
    }

    fn whole_list(&mut self, list: &ListAtom<'_>, items: &[Value]) -> Value {
        let named = by_name(self.types, list, items, &mut self.errors);
        let mut node = Member::with_capacity(named.len());
        for group in groups(&named) {
            let Some(first) = group.first() else { continue };
            // Items of one name are of one piece.
            let below = if group.len() > 1 { Member::leaf() } else { self.whole(list.item, first.item) };
            node.push(first.key.clone(), below);
        }
        node.into_value()
    }

    fn part(&mut self, atom: &Atom<'_>, part: Option<Part>, lhs: &Value, rhs: &Value, out: &mut Out) {
        match part.or(atom.first()) {
            Some(Part::Map) if let Some(map) = atom.map => self.map(&map, lhs, rhs, out),
            Some(Part::List) if let Some(list) = atom.list => self.list(&list, lhs, rhs, out),
            _ => leaf(lhs, rhs, out),
        }
    }

    fn map(&mut self, map: &MapAtom<'_>, lhs: &Value, rhs: &Value, out: &mut Out) {
        let left = lhs.as_object().map_or(&[][..], Map::as_slice);
        let right = rhs.as_object().map_or(&[][..], Map::as_slice);
        if map.atomic || (left.is_empty() && right.is_empty()) {
            return leaf(lhs, rhs, out);
        }
        let mut types = map.in_order();
        super::set::zip(left, right, |name, a, b| {
            let (ty, _) = types.member(name);
            let first = self.errors.len();
            match (a, b) {
                (Some(a), Some(b)) => {
                    let mut below = Out::default();
                    self.visit(ty, a, b, &mut below);
                    if !below.is_empty() {
                        out.push(field_key(name), below);
                    }
                }
                (Some(a), None) => out.removed.below.push((field_key(name), self.whole(ty, a))),
                (None, Some(b)) => out.added.below.push((field_key(name), self.whole(ty, b))),
                (None, None) => {}
            }
            self.errors.prefix(first, &format_args!(".{name}"));
        });
    }

    fn list(&mut self, list: &ListAtom<'_>, lhs: &Value, rhs: &Value, out: &mut Out) {
        let left = lhs.as_array().unwrap_or(&[]);
        let right = rhs.as_array().unwrap_or(&[]);
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
        let (a, b) = (left.first(), right.first());
        let Some(key) = a.or(b).map(|named| &named.key) else { return };
        let first = self.errors.len();
        match (left, right) {
            ([a], [b]) => {
                let mut below = Out::default();
                self.visit(list.item, a.item, b.item, &mut below);
                out.push(key.clone(), below);
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = left.len() == right.len() && left.iter().zip(right).all(|(a, b)| equal(a.item, b.item));
                if !same {
                    out.modified.push_leaf(key.clone());
                }
            }
            _ => {
                let whole = |walk: &mut Self, named: &[Named<'_>]| match named {
                    [only] => Some(walk.whole(list.item, only.item)),
                    [] => None,
                    _ => Some(Member::leaf()),
                };
                let (went, came) = (whole(self, left), whole(self, right));
                out.removed.below.extend(went.map(|node| (key.clone(), node)));
                out.added.below.extend(came.map(|node| (key.clone(), node)));
            }
        }
        if self.errors.len() > first {
            self.errors.prefix(first, &print(key));
        }
    }
}

/// A name inside a `fieldsV1` tree as messages print it.
pub(super) fn print(key: &str) -> String {
    super::element::PathElement::parse(key).ok().flatten().map(|element| element.to_string()).unwrap_or_default()
}

fn leaf(lhs: &Value, rhs: &Value, out: &mut Out) {
    out.modified.member |= !equal(lhs, rhs);
}
