//! One object laid over another of the same type (structured-merge-diff `typed/merge.go`).

use std::collections::HashMap;

use super::{
    compare::print,
    error::TypedErrors,
    items::{Named, in_order},
    shape::{Atom, ListAtom, MapAtom, Part, Ref, Types},
};
use crate::object::{Key, Map, Value};

/// `config` over `live`: nothing is removed, and where both have a leaf, `config` wins. Lists are ordered as in `config`
/// as far as both have the items.
pub(super) fn merge(types: &Types<'_>, ty: Ref, live: &Value, config: &Value) -> Result<Value, TypedErrors> {
    let mut walk = Walk { types, errors: TypedErrors::default() };
    let merged = walk.visit(ty, Some(live), Some(config));
    walk.errors.into_result()?;
    Ok(merged.unwrap_or_default())
}

struct Walk<'w, 't> {
    types: &'w Types<'t>,
    errors: TypedErrors,
}

impl Walk<'_, '_> {
    fn visit(&mut self, ty: Ref, lhs: Option<&Value>, rhs: Option<&Value>) -> Option<Value> {
        let (Some(left), Some(right)) = (lhs, rhs) else { return lhs.or(rhs).cloned() };
        let atom = self.types.resolve(ty);
        // Where the two are of different JSON types the handler of the right one has the last word.
        self.part(&atom, atom.fitting(right), left, right)
    }

    fn part(&mut self, atom: &Atom<'_>, part: Option<Part>, lhs: &Value, rhs: &Value) -> Option<Value> {
        match part.or(atom.first()) {
            Some(Part::Map) if let Some(map) = atom.map => self.map(&map, lhs, rhs),
            Some(Part::List) if let Some(list) = atom.list => self.list(&list, lhs, rhs),
            _ => Some(rhs.clone()),
        }
    }

    fn map(&mut self, map: &MapAtom<'_>, lhs: &Value, rhs: &Value) -> Option<Value> {
        let left = lhs.as_object().map_or(&[][..], Map::as_slice);
        let right = rhs.as_object().map_or(&[][..], Map::as_slice);
        if map.atomic || (left.is_empty() && right.is_empty()) {
            return Some(rhs.clone());
        }
        let mut members: Vec<(Key, Value)> = Vec::with_capacity(left.len().max(right.len()));
        let mut types = map.in_order();
        super::set::zip(left, right, |name, a, b| {
            let (ty, _) = types.member(name);
            let first = self.errors.len();
            if let Some(merged) = self.visit(ty, a, b) {
                members.push((name.clone(), merged));
            }
            self.errors.prefix(first, &format_args!(".{name}"));
        });
        (!members.is_empty()).then(|| Value::Object(Map::from_members(members, |_| {})))
    }

    fn list(&mut self, list: &ListAtom<'_>, lhs: &Value, rhs: &Value) -> Option<Value> {
        let left = lhs.as_array().unwrap_or(&[]);
        let right = rhs.as_array().unwrap_or(&[]);
        if !list.associative || (left.is_empty() && right.is_empty()) {
            return Some(rhs.clone());
        }
        let before = self.errors.len();
        let right = in_order(self.types, list, right, &mut self.errors);
        let right_index = index(&right);
        for (at, named) in right.iter().enumerate() {
            if right_index.get(&named.key).is_some_and(|first| first.at != at) {
                self.errors.push(format!("duplicate entries for key {}", print(&named.key)));
            }
        }
        let left = in_order(self.types, list, left, &mut self.errors);
        if self.errors.len() > before {
            return None;
        }
        let left_index = index(&left);
        let mut zipper = Zipper { walk: self, item: list.item, left: &left, left_index, right: &right, right_index };
        let merged = zipper.run();
        (!merged.is_empty()).then_some(Value::Array(merged))
    }
}

/// Where a name is first, and whether it comes again.
struct First {
    at: usize,
    repeated: bool,
}

fn index<'a>(named: &'a [Named<'_>]) -> HashMap<&'a Key, First> {
    let mut index: HashMap<&Key, First> = HashMap::with_capacity(named.len());
    for (at, named) in named.iter().enumerate() {
        index.entry(&named.key).and_modify(|first| first.repeated = true).or_insert(First { at, repeated: false });
    }
    index
}

struct Zipper<'z, 'w, 't> {
    walk: &'z mut Walk<'w, 't>,
    item: Ref,
    left: &'z [Named<'z>],
    left_index: HashMap<&'z Key, First>,
    right: &'z [Named<'z>],
    right_index: HashMap<&'z Key, First>,
}

impl Zipper<'_, '_, '_> {
    /// Walks over both lists: what only the left has keeps its place among the left's items; what both have takes the
    /// order of the right. O(n + m).
    fn run(&mut self) -> Vec<Value> {
        let (left, right) = (self.left, self.right);
        let mut out = Vec::with_capacity(left.len().max(right.len()));
        let shared: Vec<&Key> =
            right.iter().map(|named| &named.key).filter(|key| self.left_index.contains_key(*key)).collect();
        let mut shared = shared.into_iter();
        let mut next_shared = shared.next();
        let mut merged = vec![false; right.len()];
        let (mut l, mut r) = (0, 0);
        while l < left.len() || r < right.len() {
            if let (Some(a), Some(b)) = (left.get(l), right.get(r)) {
                if a.key == b.key {
                    self.take_right(r, &mut merged, &mut out);
                    (l, r) = (l + 1, r + 1);
                    next_shared = shared.next();
                    continue;
                }
                if self.right_index.contains_key(&a.key) && next_shared.is_some_and(|next| *next != a.key) {
                    // Shared, but another one's turn has come first.
                    l += 1;
                    continue;
                }
            }
            if let Some(a) = left.get(l) {
                match self.right_index.get(&a.key) {
                    None => {
                        out.push(a.item.clone());
                        l += 1;
                        continue;
                    }
                    Some(first) if merged.get(first.at) == Some(&true) => l += 1,
                    Some(_) => {}
                }
            }
            if let Some(b) = right.get(r) {
                self.take_right(r, &mut merged, &mut out);
                r += 1;
                if next_shared.is_some_and(|next| *next == b.key) {
                    next_shared = shared.next();
                }
            }
        }
        out
    }

    fn take_right(&mut self, at: usize, merged: &mut [bool], out: &mut Vec<Value>) {
        let Some(named) = self.right.get(at) else { return };
        if let Some(merged) = merged.get_mut(at) {
            *merged = true;
        }
        // Items that came twice on the left are not merged but replaced.
        static NULL: Value = Value::Null;
        let left = self
            .left_index
            .get(&named.key)
            .and_then(|first| if first.repeated { Some(&NULL) } else { self.left.get(first.at).map(|left| left.item) });
        // What is wrong inside an item upstream forgets here; it was validated before.
        let errors = std::mem::take(&mut self.walk.errors);
        out.extend(self.walk.visit(self.item, left, Some(named.item)));
        self.walk.errors = errors;
    }
}
