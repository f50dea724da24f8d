//! How a member merges: what Go's struct tags say (apimachinery `strategicpatch/meta.go`, forked `json/fields.go`).

use super::{PatchError, unmapped};
use crate::{
    api::field::quote,
    schema::{Field, Scalar, Shape, Struct, Table, Type, TypeId},
};

/// The type that a map of the object has.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'t> {
    table: &'t Table,
    ty: TypeId,
    /// Go holds a pointer to it.
    pointer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    None,
    Merge,
    Replace,
}

/// A member: its type (of its items, for a list) and how it merges.
#[derive(Clone, Copy)]
pub(super) struct Member<'t> {
    pub schema: Lookup<'t>,
    pub strategy: Strategy,
    /// Empty: a list of scalars, which merges as a set.
    pub merge_key: &'t str,
}

impl<'t> Lookup<'t> {
    pub fn root(table: &'t Table, ty: TypeId) -> Self {
        Self { table, ty, pointer: false }
    }

    fn get(&self) -> &'t Type {
        self.table.get(self.ty)
    }

    /// `reflect.Kind` of the type, as errors name it.
    pub fn kind(&self) -> &'static str {
        if self.pointer { "ptr" } else { kind(self.get()) }
    }

    fn field(&self, name: &str) -> Result<&'t Field, PatchError> {
        let ty = self.get();
        let fields = match &ty.shape {
            Shape::Struct(it) => find(it, name),
            _ if kind(ty) == "struct" => None,
            _ => {
                return Err(unmapped(format!(
                    "merging an object in json but data type is not struct, instead is: {}",
                    kind(ty)
                )));
            }
        };
        fields.ok_or_else(|| {
            let go = ty.go.rsplit('.').next().unwrap_or("");
            unmapped(format!("unable to find api field in struct {go} for the json field {}", quote(name)))
        })
    }

    /// A member that is a map.
    pub fn member(&self, name: &str) -> Result<Member<'t>, PatchError> {
        let field = self.field(name)?;
        let strategy = match (field.patch.merge, field.patch.replace) {
            (true, _) => Strategy::Merge,
            (false, true) => Strategy::Replace,
            (false, false) => Strategy::None,
        };
        let schema = Self { table: self.table, ty: field.slot.ty, pointer: field.slot.pointer };
        Ok(Member { schema, strategy, merge_key: &field.merge_key })
    }

    /// A member that is a list; its schema is that of the items.
    pub fn list_member(&self, name: &str) -> Result<Member<'t>, PatchError> {
        let mut member = self.member(name)?;
        let list = member.schema;
        member.schema = match (&list.get().shape, list.pointer) {
            (Shape::List(it), pointer) => {
                let item = Self { table: self.table, ty: it.item.ty, pointer: it.item.pointer };
                if !pointer && item.kind() == "slice" {
                    return Err(unmapped("unexpected slice of slice"));
                }
                item
            }
            (Shape::Scalar(Scalar::Bytes), _) | (_, true) => Self { pointer: false, ..list },
            _ => return Err(unmapped(format!("expected slice or array type, but got: {}", self.kind()))),
        };
        Ok(member)
    }
}

/// Go's lookup: the exact name, or else one that differs in case.
fn find<'t>(fields: &'t Struct, name: &str) -> Option<&'t Field> {
    fields.field(name).or_else(|| fields.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)))
}

fn kind(ty: &Type) -> &'static str {
    match &ty.shape {
        Shape::Any => "interface",
        Shape::Struct(_) | Shape::OneOf(_) => "struct",
        Shape::List(_) => "slice",
        Shape::Map(_) => "map",
        Shape::Scalar(scalar) => match scalar {
            Scalar::String => "string",
            Scalar::Bool => "bool",
            Scalar::Int32 => "int32",
            Scalar::Int64 => "int64",
            Scalar::Double => "float64",
            Scalar::Bytes => "slice",
            Scalar::Quantity
            | Scalar::Time
            | Scalar::MicroTime
            | Scalar::Duration
            | Scalar::IntOrString
            | Scalar::RawExtension
            | Scalar::Unknown
            | Scalar::FieldsV1
            | Scalar::Json => "struct",
        },
    }
}
