//! Defaulting of built-in kinds: the table's own defaults and functions attached to types, applied in one walk.
//!
//! The walk goes where a value of the type could need something, and nowhere else: which fields those are is computed
//! once. It visits a struct before what is in it, as upstream's generated `SetObjectDefaults_…` do. Trees must have been
//! decoded ([`super::decode`]), so that zero values are absent or in Go's form.
//!
//! The functions themselves live with the kinds, in `registry/builtin/defaults`.

use std::collections::HashMap;

use jiff::Timestamp;

use super::table::{Field, Shape, Struct, Table, Type, TypeId};
use crate::object::{Map, Value};

/// What defaulting may ask about its surroundings.
pub struct Context<'a> {
    /// The time of the request, in whole seconds.
    pub now: Timestamp,
    /// Whether a feature gate is on.
    pub gates: &'a dyn Fn(&str) -> bool,
}

/// Fills what is missing in one struct (or map) value. Must not depend on what is outside of it.
pub type Hook = fn(&mut Map, &Context);

/// The table with functions attached to some of its types.
pub struct Defaulter {
    table: &'static Table,
    /// By type.
    hooks: Vec<Option<Hook>>,
    /// For each type: the fields worth visiting (structs), or whether items and values are (one index, 0).
    visits: Vec<Box<[u32]>>,
}

impl Defaulter {
    /// `hooks` by the OpenAPI name of a struct (`io.k8s.api.core.v1.Pod`) or the Go name of a map (`v1.ResourceList`);
    /// `apart` are fields (by their struct's name and their own) that upstream does not default, whatever their type.
    pub fn new(
        table: &'static Table,
        hooks: impl IntoIterator<Item = (&'static str, Hook)>,
        apart: &[(&str, &str)],
    ) -> Self {
        let maps = (0..table.len()).map(|at| TypeId(at as u32));
        let maps = maps.filter(|id| matches!(table.get(*id).shape, Shape::Map(_)));
        let maps: HashMap<&str, TypeId> = maps.map(|id| (table.get(id).go.as_str(), id)).collect();
        let type_of = |name| table.named(name).or_else(|| maps.get(name).copied());
        let mut by_type = vec![None; table.len()];
        for (name, hook) in hooks {
            let id = type_of(name);
            debug_assert!(id.is_some(), "{name} is in the table");
            if let Some(place) = id.and_then(|id: TypeId| by_type.get_mut(id.index())) {
                *place = Some(hook);
            }
        }
        let visits = visits(table, &by_type, apart);
        Self { table, hooks: by_type, visits }
    }

    /// Whether values of this type are ever changed.
    pub fn touches(&self, ty: TypeId) -> bool {
        self.hook(ty).is_some() || self.visits.get(ty.index()).is_some_and(|fields| !fields.is_empty())
    }

    fn hook(&self, ty: TypeId) -> Option<Hook> {
        self.hooks.get(ty.index()).copied().flatten()
    }

    /// Defaults `value`, a decoded `ty`, in place.
    pub fn apply(&self, ty: TypeId, value: &mut Value, context: &Context) {
        let visits = self.visits.get(ty.index()).map_or(&[][..], |it| it);
        match value {
            Value::Object(map) => {
                if let Some(hook) = self.hook(ty) {
                    hook(map, context);
                }
                match &self.table.get(ty).shape {
                    Shape::Struct(it) => {
                        for field in visits.iter().filter_map(|at| it.fields.get(*at as usize)) {
                            self.field(field, map, context);
                        }
                    }
                    Shape::Map(it) if !visits.is_empty() => {
                        map.values_mut().for_each(|value| self.apply(it.value.ty, value, context));
                    }
                    _ => {}
                }
            }
            Value::Array(items) if !visits.is_empty() => {
                if let Shape::List(it) = &self.table.get(ty).shape {
                    items.iter_mut().for_each(|item| self.apply(it.item.ty, item, context));
                }
            }
            _ => {}
        }
    }

    fn field(&self, field: &Field, map: &mut Map, context: &Context) {
        if let Some(default) = &field.slot.default
            && is_unset(map.get(&field.name), field.slot.pointer)
        {
            map.insert(field.name.clone(), (**default).clone());
        }
        if let Some(value) = map.get_mut(&field.name) {
            self.apply(field.slot.ty, value, context);
        }
    }
}

/// Absent for a pointer, absent or zero for anything else.
fn is_unset(value: Option<&Value>, pointer: bool) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(_) if pointer => false,
        Some(Value::Str(it)) => it.is_empty(),
        Some(Value::Int(it)) => *it == 0,
        Some(Value::Bool(it)) => !it,
        Some(_) => false,
    }
}

/// Which fields lead to a default or a hook. Types refer to each other in cycles, so: repeat until nothing changes.
fn visits(table: &Table, hooks: &[Option<Hook>], apart: &[(&str, &str)]) -> Vec<Box<[u32]>> {
    let types: Vec<&Type> = (0..table.len()).map(|at| table.get(TypeId(at as u32))).collect();
    let mut reaches: Vec<bool> = hooks.iter().map(Option::is_some).collect();
    let reached = |reaches: &[bool], id: TypeId| reaches.get(id.index()).copied().unwrap_or(false);
    let leads = |reaches: &[bool], owner: &Struct, field: &Field| {
        (field.slot.default.is_some() || reached(reaches, field.slot.ty))
            && !apart.contains(&(owner.name.as_str(), field.name.as_str()))
    };
    loop {
        let mut changed = false;
        for (at, ty) in types.iter().enumerate() {
            let reach = match &ty.shape {
                Shape::Struct(it) => it.fields.iter().any(|field| leads(&reaches, it, field)),
                Shape::List(it) => reached(&reaches, it.item.ty),
                Shape::Map(it) => reached(&reaches, it.value.ty),
                Shape::Any | Shape::Scalar(_) | Shape::OneOf(_) => false,
            };
            if reach && !reached(&reaches, TypeId(at as u32)) {
                reaches[at] = true;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    types
        .iter()
        .map(|ty| match &ty.shape {
            Shape::Struct(it) => {
                let fields = it.fields.iter().enumerate().filter(|(_, field)| leads(&reaches, it, field));
                fields.map(|(at, _)| at as u32).collect()
            }
            Shape::List(it) if reached(&reaches, it.item.ty) => [0].into(),
            Shape::Map(it) if reached(&reaches, it.value.ty) => [0].into(),
            _ => Box::default(),
        })
        .collect()
}
