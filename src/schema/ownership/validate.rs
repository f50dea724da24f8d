//! Does an object fit its type (structured-merge-diff `typed/validate.go`)?

use std::collections::HashSet;

use super::{
    compare::print,
    error::{TypedErrors, show_source, show_value},
    items::item_key,
    shape::{Atom, ListAtom, MapAtom, Part, Ref, ScalarAtom, Types},
};
use crate::{object::Value, schema::patch::go_print};

/// Finds members without a field, wrong JSON types, items that cannot be told apart and, unless `allow_duplicates`,
/// items that come twice.
pub(super) fn validate(types: &Types<'_>, ty: Ref, value: &Value, allow_duplicates: bool) -> Result<(), TypedErrors> {
    let mut walk = Walk { types, allow_duplicates, errors: TypedErrors::default() };
    walk.visit(ty, value);
    walk.errors.into_result()
}

struct Walk<'w, 't> {
    types: &'w Types<'t>,
    allow_duplicates: bool,
    errors: TypedErrors,
}

impl Walk<'_, '_> {
    fn visit(&mut self, ty: Ref, value: &Value) {
        let atom = self.types.resolve(ty);
        match atom.fitting(value).or(atom.first()) {
            Some(Part::Map) if let Some(map) = atom.map => self.map(&map, value),
            Some(Part::List) if let Some(list) = atom.list => self.list(&list, value),
            Some(Part::Scalar) => self.scalar(&atom, value),
            _ => self.errors.push("schema error: invalid atom: inlined".into()),
        }
    }

    fn scalar(&mut self, atom: &Atom<'_>, value: &Value) {
        let (kind, fits) = match (atom.scalar, value) {
            (_, Value::Null) | (None, _) => return,
            (Some(kind), Value::Int(_) | Value::Float(_)) => {
                (kind, matches!(kind, ScalarAtom::Numeric | ScalarAtom::Untyped))
            }
            (Some(kind), Value::Str(_)) => (kind, matches!(kind, ScalarAtom::String | ScalarAtom::Untyped)),
            (Some(kind), Value::Bool(_)) => (kind, matches!(kind, ScalarAtom::Boolean | ScalarAtom::Untyped)),
            (Some(kind), Value::Array(_) | Value::Object(_)) => (kind, false),
        };
        if fits {
            return;
        }
        self.errors.push(match kind {
            ScalarAtom::Numeric => format!("expected numeric (int or float), got {}", go_print::type_name(value)),
            ScalarAtom::String => format!("expected string, got {}", show_source(value)),
            ScalarAtom::Boolean => format!("expected boolean, got {}", show_value(value)),
            ScalarAtom::Untyped => format!("expected any scalar, got {}", show_value(value)),
        });
    }

    fn map(&mut self, map: &MapAtom<'_>, value: &Value) {
        let members = match value {
            Value::Null => return,
            Value::Object(members) => members,
            other => return self.errors.push(format!("expected map, got {}", show_value(other))),
        };
        let mut types = map.in_order();
        for (name, member) in members.iter() {
            let (ty, _) = types.member(name);
            if ty == Ref::Nothing {
                self.errors.push_at(format!(".{name}"), "field not declared in schema".into());
                return;
            }
            let first = self.errors.len();
            self.visit(ty, member);
            self.errors.prefix(first, &format_args!(".{name}"));
        }
    }

    fn list(&mut self, list: &ListAtom<'_>, value: &Value) {
        let items = match value {
            Value::Null => return,
            Value::Array(items) => items,
            other => return self.errors.push(format!("expected list, got {}", show_value(other))),
        };
        let mut seen = HashSet::with_capacity(if list.associative { items.len() } else { 0 });
        for (index, item) in items.iter().enumerate() {
            let first = self.errors.len();
            if !list.associative {
                self.visit(list.item, item);
                self.errors.prefix(first, &format_args!("[{index}]"));
                continue;
            }
            let key = match item_key(self.types, list, item) {
                Ok(key) => key,
                Err(why) => return self.errors.push(format!("element {index}: {why}")),
            };
            if !self.allow_duplicates && seen.contains(&key) {
                self.errors.push(format!("duplicate entries for key {}", print(&key)));
            }
            let first = self.errors.len();
            self.visit(list.item, item);
            if self.errors.len() > first {
                self.errors.prefix(first, &print(&key));
            }
            seen.insert(key);
        }
    }
}
