//! One place in a schema, seen alike whether it is a type of the table or a value validation inside `allOf` and its
//! brothers.

use crate::{
    object::Key,
    schema::table::{Nested, Scalar, Shape, Slot, Struct, Table, Type, TypeId, Validation},
};

#[derive(Clone, Copy)]
pub enum Node<'t> {
    Type { table: &'t Table, ty: &'t Type, nullable: bool },
    Nested(&'t Nested),
}

/// The JSON types a node may have.
#[derive(Clone, Copy)]
pub struct Types<'t>(Kinds<'t>);

#[derive(Clone, Copy)]
enum Kinds<'t> {
    Fixed(&'static [&'static str]),
    Written(&'t [Key]),
}

impl Types<'_> {
    pub fn is_empty(self) -> bool {
        match self.0 {
            Kinds::Fixed(names) => names.is_empty(),
            Kinds::Written(names) => names.is_empty(),
        }
    }

    pub fn has(self, name: &str) -> bool {
        match self.0 {
            Kinds::Fixed(names) => names.contains(&name),
            Kinds::Written(names) => names.iter().any(|it| it.as_str() == name),
        }
    }

    /// The type where there is exactly one.
    pub fn only(&self) -> &str {
        match self.0 {
            Kinds::Fixed([name]) => name,
            Kinds::Written([name]) => name.as_str(),
            _ => "",
        }
    }

    pub fn joined(self) -> String {
        match self.0 {
            Kinds::Fixed(names) => names.join(","),
            Kinds::Written(names) => names.iter().map(Key::as_str).collect::<Vec<_>>().join(","),
        }
    }
}

impl<'t> Node<'t> {
    pub fn of(table: &'t Table, id: TypeId) -> Self {
        Self::Type { table, ty: table.get(id), nullable: false }
    }

    fn at(table: &'t Table, slot: &Slot) -> Self {
        Self::Type { table, ty: table.get(slot.ty), nullable: slot.nullable }
    }

    pub fn validation(self) -> Option<&'t Validation> {
        match self {
            Self::Type { ty, .. } => ty.validation.as_deref(),
            Self::Nested(nested) => Some(&nested.here),
        }
    }

    pub fn nullable(self) -> bool {
        matches!(self, Self::Type { nullable: true, .. })
    }

    pub fn types(self) -> Types<'t> {
        let ty = match self {
            Self::Nested(nested) => return Types(Kinds::Written(&nested.types)),
            Self::Type { ty, .. } => ty,
        };
        if ty.validation.as_ref().is_some_and(|it| it.untyped) {
            return Types(Kinds::Fixed(&[]));
        }
        Types(Kinds::Fixed(match &ty.shape {
            Shape::Scalar(Scalar::String) => &["string"],
            Shape::Scalar(Scalar::Bool) => &["boolean"],
            Shape::Scalar(Scalar::Int64) => &["integer"],
            Shape::Scalar(Scalar::Double) => &["number"],
            Shape::Scalar(Scalar::IntOrString) => &["integer", "string"],
            Shape::List(_) => &["array"],
            Shape::Struct(_) | Shape::Map(_) => &["object"],
            Shape::Any | Shape::Scalar(_) | Shape::OneOf(_) => &[],
        }))
    }

    fn fields(self) -> Option<(&'t Table, &'t Struct)> {
        match self {
            Self::Type { table, ty, .. } => match &ty.shape {
                Shape::Struct(it) => Some((table, it)),
                _ => None,
            },
            Self::Nested(_) => None,
        }
    }

    pub fn is_embedded_resource(self) -> bool {
        self.fields().is_some_and(|(_, it)| it.embedded_resource)
    }

    /// A member that the schema itself describes.
    pub fn property(self, name: &str) -> Option<Node<'t>> {
        match self {
            Self::Nested(nested) => {
                let at = nested.properties.binary_search_by(|(key, _)| key.as_str().cmp(name)).ok()?;
                nested.properties.get(at).map(|(_, nested)| Node::Nested(nested))
            }
            Self::Type { .. } => {
                let (table, it) = self.fields()?;
                let field = it.field(name)?;
                if table.is_of_base(field.slot.ty) {
                    // The metadata that every object has; the schema can only say something of its names.
                    return self.validation()?.metadata.as_deref().map(Node::Nested);
                }
                Some(Node::at(table, &field.slot))
            }
        }
    }

    /// What members without a property are, if a schema says so.
    pub fn additional(self) -> Option<Node<'t>> {
        match self {
            Self::Nested(nested) => nested.additional.as_deref().map(Node::Nested),
            Self::Type { table, ty, .. } => match &ty.shape {
                Shape::Struct(it) => it.rest.as_ref().map(|slot| Node::at(table, slot)),
                Shape::Map(it) => Some(Node::at(table, &it.value)),
                _ => None,
            },
        }
    }

    pub fn item(self) -> Option<Node<'t>> {
        match self {
            Self::Nested(nested) => nested.items.as_deref().map(Node::Nested),
            Self::Type { table, ty, .. } => match &ty.shape {
                Shape::List(it) => Some(Node::at(table, &it.item)),
                _ => None,
            },
        }
    }
}
