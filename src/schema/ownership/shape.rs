//! The type table as ownership sees it: what may stand in a place, and whether its parts have owners of their own.
//!
//! Upstream derives this from OpenAPI (kube-openapi `pkg/schemaconv`); the rules where a type says little are the same
//! here: times, quantities and texts with a format take any scalar, a struct without fields takes anything.

use std::cmp::Ordering;

use crate::{
    object::{Key, Value},
    schema::{AdditionalMembers, Field, Granularity, ListType, Scalar, Shape, Slot, Struct, Table, TypeId},
};

/// The type of a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ref {
    Type {
        id: TypeId,
        /// A parent keeps unknown members (`x-kubernetes-preserve-unknown-fields`), and so do all below it.
        open: bool,
        /// What the field says of a struct, where that is not what its type says.
        granularity: Option<Granularity>,
    },
    /// Anything: maps are granular, lists atomic.
    Deduced,
    /// Anything, of one piece.
    Untyped,
    /// No such place.
    Nothing,
}

impl Ref {
    pub fn of(id: TypeId) -> Self {
        Self::Type { id, open: false, granularity: None }
    }
}

/// What scalars may stand in a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ScalarAtom {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ListAtom<'t> {
    /// A set or a list with keys; else the list is of one piece.
    pub associative: bool,
    /// Empty for a set.
    pub keys: &'t [Key],
    pub item: Ref,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MapAtom<'t> {
    pub atomic: bool,
    pub fields: Option<&'t Struct>,
    /// The type of members that have no field; [`Ref::Nothing`] where there may be none.
    pub element: Ref,
    open: bool,
}

impl<'t> MapAtom<'t> {
    fn of_field(&self, field: &Field) -> Ref {
        Ref::Type { id: field.slot.ty, open: self.open, granularity: field.granularity }
    }

    /// The type of a member, and whether it is a field of a struct.
    pub fn member(&self, name: &str) -> (Ref, bool) {
        match self.fields.and_then(|fields| fields.field(name)) {
            Some(field) => (self.of_field(field), true),
            None => (self.element, false),
        }
    }
}

/// Types of members that are asked for in the order of their names: a walk over the fields beside the members.
pub(super) struct InOrder<'m, 't> {
    map: &'m MapAtom<'t>,
    fields: &'t [Field],
}

impl<'t> MapAtom<'t> {
    pub fn in_order(&self) -> InOrder<'_, 't> {
        InOrder { map: self, fields: self.fields.map_or(&[], |it| &it.fields) }
    }
}

impl InOrder<'_, '_> {
    /// As [`MapAtom::member`]; `name` must come after all that were asked for before.
    pub fn member(&mut self, name: &Key) -> (Ref, bool) {
        while let Some((field, rest)) = self.fields.split_first() {
            match field.name.cmp(name) {
                Ordering::Less => self.fields = rest,
                Ordering::Equal => return (self.map.of_field(field), true),
                Ordering::Greater => break,
            }
        }
        (self.map.element, false)
    }
}

/// The JSON types that may stand in a place; often only one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Atom<'t> {
    pub scalar: Option<ScalarAtom>,
    pub list: Option<ListAtom<'t>>,
    pub map: Option<MapAtom<'t>>,
}

/// Which part of an atom a value is handled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Scalar,
    List,
    Map,
}

impl<'t> Atom<'t> {
    const fn untyped(list_item: Ref, map_element: Ref, atomic: bool) -> Self {
        Self {
            scalar: Some(ScalarAtom::Untyped),
            list: Some(ListAtom { associative: false, keys: &[], item: list_item }),
            map: Some(MapAtom { atomic, fields: None, element: map_element, open: false }),
        }
    }

    /// `Some` where the value's JSON type is one of the atom's.
    pub fn fitting(&self, value: &Value) -> Option<Part> {
        match value {
            Value::Null => None,
            Value::Array(_) => self.list.map(|_| Part::List),
            Value::Object(_) => self.map.map(|_| Part::Map),
            _ => self.scalar.map(|_| Part::Scalar),
        }
    }

    /// The part that handles values that fit none: the first of map, scalar, list.
    pub fn first(&self) -> Option<Part> {
        (self.map.map(|_| Part::Map)).or(self.scalar.map(|_| Part::Scalar)).or(self.list.map(|_| Part::List))
    }

    /// The type below a node of a field set, and whether the node is a field of a struct.
    pub fn below(&self, _types: &Types<'_>, element: &str) -> (Ref, bool) {
        if let Some(name) = element.strip_prefix("f:") {
            self.map.map_or((Ref::Nothing, false), |map| map.member(name))
        } else if element.starts_with("k:") {
            (self.list.map_or(Ref::Nothing, |list| list.item), false)
        } else {
            (Ref::Nothing, false)
        }
    }
}

/// A table to resolve types in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Types<'t> {
    pub table: &'t Table,
}

impl<'t> Types<'t> {
    pub fn resolve(&self, ty: Ref) -> Atom<'t> {
        match ty {
            Ref::Nothing => Atom::default(),
            Ref::Deduced => Atom::untyped(Ref::Untyped, Ref::Deduced, false),
            Ref::Untyped => Atom::untyped(Ref::Untyped, Ref::Untyped, true),
            Ref::Type { id, open, granularity } => self.resolve_type(id, open, granularity),
        }
    }

    fn resolve_type(&self, id: TypeId, open: bool, granularity: Option<Granularity>) -> Atom<'t> {
        let ty = self.table.get(id);
        match &ty.shape {
            Shape::Any | Shape::OneOf(_) => self.resolve(Ref::Deduced),
            Shape::Scalar(scalar) => {
                let format = ty.validation.as_ref().and_then(|it| it.format.as_deref()).unwrap_or("");
                self.resolve_scalar(*scalar, format)
            }
            Shape::Struct(fields) => {
                let open = open || fields.additional == AdditionalMembers::Preserved;
                let element = if open || fields.fields.is_empty() { Ref::Deduced } else { Ref::Nothing };
                let atomic = granularity.unwrap_or(fields.granularity) == Granularity::Atomic;
                Atom { map: Some(MapAtom { atomic, fields: Some(fields), element, open }), ..Atom::default() }
            }
            Shape::List(list) => {
                let associative = list.list_type != ListType::Atomic;
                let item = Ref::Type { id: list.item.ty, open, granularity: None };
                Atom { list: Some(ListAtom { associative, keys: &list.keys, item }), ..Atom::default() }
            }
            Shape::Map(map) => {
                let atomic = map.granularity == Granularity::Atomic;
                let element = Ref::Type { id: map.value.ty, open, granularity: None };
                Atom { map: Some(MapAtom { atomic, fields: None, element, open }), ..Atom::default() }
            }
        }
    }

    fn resolve_scalar(&self, scalar: Scalar, format: &str) -> Atom<'t> {
        let kind = match scalar {
            Scalar::String if matches!(format, "" | "byte") => ScalarAtom::String,
            Scalar::Bytes | Scalar::Duration => ScalarAtom::String,
            Scalar::Bool => ScalarAtom::Boolean,
            Scalar::Int32 | Scalar::Int64 | Scalar::Double => ScalarAtom::Numeric,
            Scalar::String | Scalar::Quantity | Scalar::Time | Scalar::MicroTime => ScalarAtom::Untyped,
            Scalar::IntOrString | Scalar::Json => return self.resolve(Ref::Deduced),
            Scalar::RawExtension | Scalar::Unknown => return self.resolve(Ref::Untyped),
            Scalar::FieldsV1 => return Atom { scalar: None, list: None, ..self.resolve(Ref::Deduced) },
        };
        Atom { scalar: Some(kind), ..Atom::default() }
    }

    /// What a key member is where an item does not say it. Mirrors the `default` of OpenAPI, which has zero values too.
    pub fn key_default(&self, item: Ref, name: &str) -> Result<Option<&'t Value>, &'static str> {
        let Some(map) = self.resolve(item).map else { return Err("associative list may not have non-map types") };
        let field = map.fields.and_then(|fields| fields.field(name));
        Ok(field.and_then(|field| field.shown_default.as_deref().or(slot_default(&field.slot))))
    }
}

fn slot_default(slot: &Slot) -> Option<&Value> {
    slot.default.as_deref()
}
