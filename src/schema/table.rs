//! The shape of types: structs, lists, maps, scalars.
//!
//! Invariants: a [`TypeId`] is valid in the table that gave it and in every table laid over that one; the fields of
//! a struct are sorted by name and unique; embedded ("inline") structs are flattened into their parent, and only the
//! protobuf view ([`Struct::wire`]) still knows them. Types may refer to each other in cycles, so walks follow the
//! value and never the type alone.

use std::collections::HashMap;

use crate::object::{Key, Value};

/// A type of a [`Table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(super) u32);

impl TypeId {
    /// Anything at all, kept as it is; in every table.
    pub const ANY: TypeId = TypeId(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Types and the kinds that are made of them.
#[derive(Debug, Default)]
pub struct Table {
    /// Whose types come first; ids below its length are its own.
    base: Option<&'static Table>,
    base_len: u32,
    types: Vec<Type>,
    names: HashMap<Key, TypeId>,
    /// Sorted by (group, version, kind).
    kinds: Vec<KindRow>,
}

impl Table {
    /// A table that holds nothing but [`TypeId::ANY`].
    pub fn new() -> Self {
        Self { types: vec![Type::any()], ..Self::default() }
    }

    /// A table that starts with all types of `base` (so that a custom resource can refer to `ObjectMeta`) and owns only
    /// what is added to it.
    pub fn over(base: &'static Table) -> Self {
        Self { base: Some(base), base_len: base.len() as u32, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.base_len as usize + self.types.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type behind `id`; an id of another table answers as [`TypeId::ANY`] or some other type, never panics.
    pub fn get(&self, id: TypeId) -> &Type {
        static ANY: Type = Type::any();
        match self.base {
            Some(base) if id.0 < self.base_len => base.get(id),
            _ => self.types.get(id.0.wrapping_sub(self.base_len) as usize).unwrap_or(&ANY),
        }
    }

    /// The struct behind `id`, if it is one.
    pub fn struct_of(&self, id: TypeId) -> Option<&Struct> {
        match &self.get(id).shape {
            Shape::Struct(it) => Some(it),
            _ => None,
        }
    }

    /// Whether the type is one of the base's, not of this table's own.
    pub fn is_of_base(&self, id: TypeId) -> bool {
        self.base.is_some() && id.0 < self.base_len && id != TypeId::ANY
    }

    /// Adds a type. Types that refer to each other are added as [`Type::any`] first and set later ([`Table::set`]).
    pub fn add(&mut self, ty: Type) -> TypeId {
        let id = TypeId(self.len() as u32);
        self.types.push(ty);
        id
    }

    /// Gives back memory that was kept for more types.
    pub fn shrink(&mut self) {
        self.types.shrink_to_fit();
    }

    /// Replaces a type that this table owns; ids of the base are left alone.
    pub fn set(&mut self, id: TypeId, ty: Type) {
        if let Some(slot) = id.0.checked_sub(self.base_len).and_then(|at| self.types.get_mut(at as usize)) {
            *slot = ty;
        }
    }

    /// Notes which fields of built-in structs are always printed; needs all types, so it is called last.
    pub(super) fn note_printed(&mut self) {
        for at in 0..self.types.len() {
            let Some(Type { shape: Shape::Struct(it), .. }) = self.types.get(at) else { continue };
            let printed = it.fields.iter().enumerate();
            let printed = printed.filter(|(_, field)| super::zero::is_always_printed(field, self.get(field.slot.ty)));
            let printed = printed.map(|(at, _)| at as u32).collect();
            if let Some(Type { shape: Shape::Struct(it), .. }) = self.types.get_mut(at) {
                it.printed = printed;
            }
        }
    }

    /// Names the type of a kind, or another type for one that is named already.
    pub fn add_kind(&mut self, group: impl Into<Key>, version: impl Into<Key>, kind: impl Into<Key>, ty: TypeId) {
        let row = KindRow { group: group.into(), version: version.into(), kind: kind.into(), ty };
        match self.kinds.binary_search_by(|other| other.key().cmp(&row.key())) {
            Ok(at) => self.kinds[at] = row,
            Err(at) => self.kinds.insert(at, row),
        }
    }

    pub fn add_name(&mut self, name: impl Into<Key>, id: TypeId) {
        self.names.insert(name.into(), id);
    }

    /// The type of a kind. The options kinds and `WatchEvent` belong to every group and version.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        let own = self.kinds.binary_search_by(|row| row.key().cmp(&(group, version, kind)));
        match own {
            Ok(at) => self.kinds.get(at).map(|row| row.ty),
            Err(_) if self.base.is_some() => self.base?.kind(group, version, kind),
            Err(_) if EVERYWHERE.contains(&kind) && (group, version) != ("", "v1") => self.kind("", "v1", kind),
            Err(_) => None,
        }
    }

    /// All kinds of this table (not of its base), sorted by group, version and kind.
    pub fn kinds(&self) -> &[KindRow] {
        &self.kinds
    }

    /// The type with an OpenAPI model name, `io.k8s.api.core.v1.Pod`.
    pub fn named(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied().or_else(|| self.base?.named(name))
    }
}

/// Kinds that upstream registers in every group and version.
const EVERYWHERE: [&str; 7] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"];

/// A kind and its type.
#[derive(Clone, Debug)]
pub struct KindRow {
    pub group: Key,
    pub version: Key,
    pub kind: Key,
    pub ty: TypeId,
}

impl KindRow {
    fn key(&self) -> (&str, &str, &str) {
        (&self.group, &self.version, &self.kind)
    }
}

/// One type.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    pub shape: Shape,
    /// Go's name of it as error texts print it: `v1.Container`, `[]v1.Container`, `map[string]string`, `int32`;
    /// empty for custom resources.
    pub go: Key,
    /// The keywords a custom resource's schema adds; `None` for built-in types.
    pub validation: Option<Box<Validation>>,
    /// `x-kubernetes-preserve-unknown-fields`: what no schema below describes is kept, whatever the value's shape.
    pub preserve_unknown: bool,
}

impl Type {
    pub const fn any() -> Self {
        Self::new(Shape::Any)
    }

    pub const fn new(shape: Shape) -> Self {
        Self { shape, go: Key::from_static(""), validation: None, preserve_unknown: false }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Anything, kept as it is: in custom resources `x-kubernetes-preserve-unknown-fields` without a type. (Built-in
    /// types that hold anything are scalars, since Go reads and prints each in its own way.)
    Any,
    Scalar(Scalar),
    Struct(Box<Struct>),
    List(Box<List>),
    Map(Box<MapOf>),
    /// JSON that takes one of several shapes (apiextensions' `JSONSchemaPropsOrBool` and its brothers): the first member
    /// type whose JSON type fits.
    OneOf(Box<OneOf>),
}

/// Values without members that a merge or an owner could tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    /// Base64 text.
    Bytes,
    Quantity,
    /// RFC 3339, whole seconds; null when zero.
    Time,
    /// RFC 3339, microseconds; null when zero.
    MicroTime,
    /// Go's duration text, `1m30s`.
    Duration,
    IntOrString,
    /// An object of any kind (`runtime.RawExtension`).
    RawExtension,
    /// The same, but in protobuf with an envelope (`runtime.Unknown`; audit events have some).
    Unknown,
    /// The field set of a managedFields entry.
    FieldsV1,
    /// Any JSON (`apiextensions.JSON`, table cells).
    Json,
}

/// How lists merge and who owns what in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListType {
    #[default]
    Atomic,
    Set,
    Map,
}

/// Whether the members of a struct or map have owners of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Granularity {
    #[default]
    Granular,
    Atomic,
}

/// What may stand in one place: the member of a struct, an item of a list, a value of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    pub ty: TypeId,
    /// What a missing value (or a null that may not be) becomes. Built-in kinds: only where upstream's generated
    /// defaulting sets it, so a zero value counts as missing unless `pointer`.
    pub default: Option<Box<Value>>,
    /// Null is a value of its own (custom resources: `nullable: true`).
    pub nullable: bool,
    /// Go holds a pointer: absent and zero differ. True for everything in custom resources.
    pub pointer: bool,
}

impl Slot {
    pub const fn of(ty: TypeId) -> Self {
        Self { ty, default: None, nullable: false, pointer: false }
    }
}

/// When Go's JSON leaves a member out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Omit {
    #[default]
    Never,
    /// `omitempty`: false, 0, "", nil, empty list or map. A struct that is no pointer is never empty.
    Empty,
    /// `omitzero`: also a struct (or time) that is zero.
    Zero,
}

/// `patchStrategy` of strategic merge patches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PatchStrategy {
    pub merge: bool,
    pub retain_keys: bool,
    /// Written out as `replace` (the same as none, but OpenAPI shows it).
    pub replace: bool,
}

/// A struct: named members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Struct {
    /// OpenAPI model name, `io.k8s.api.core.v1.Pod`; for custom resources of the root only, else empty.
    pub name: Key,
    /// Sorted by name.
    pub fields: Box<[Field]>,
    /// Protobuf's view, in tag order; empty where a type has no protobuf form.
    pub wire: Box<[WireEntry]>,
    pub granularity: Granularity,
    /// What happens with members that have no field.
    pub additional: AdditionalMembers,
    /// `additionalProperties` beside properties: what members without a field are.
    pub rest: Option<Slot>,
    /// `x-kubernetes-embedded-resource`: has apiVersion, kind, metadata that are not pruned.
    pub embedded_resource: bool,
    /// Has an OpenAPI definition of its own.
    pub openapi: bool,
    /// `x-kubernetes-unions` as OpenAPI shows it.
    pub unions: Option<Box<Value>>,
    /// The order in which OpenAPI lists required members, where it is not that of [`Struct::wire`].
    pub required_order: Box<[Key]>,
    /// Indices of the fields that Go prints whether set or not.
    pub(super) printed: Box<[u32]>,
}

/// Members without a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdditionalMembers {
    /// Dropped and, under strict validation, refused.
    #[default]
    Pruned,
    /// Kept (`x-kubernetes-preserve-unknown-fields: true`).
    Preserved,
}

impl Struct {
    /// The fields that Go prints whether they are set or not.
    pub fn present(&self) -> impl Iterator<Item = &Field> {
        self.printed.iter().filter_map(|at| self.fields.get(*at as usize))
    }

    /// The field of a member; names are case-sensitive. O(log n).
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok().and_then(|at| self.fields.get(at))
    }
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: Key,
    pub slot: Slot,
    pub omit: Omit,
    /// OpenAPI's `required`.
    pub required: bool,
    pub patch: PatchStrategy,
    /// `patchMergeKey`; empty if none.
    pub merge_key: Key,
    /// Go's names of the embedded structs the field comes from, joined by dots (`VolumeSource`); error texts show them.
    pub embedded_in: Key,
    /// The feature gate that must be on for the field to be used; empty if none. Several gates are joined by commas.
    pub gate: Key,
    /// Defaulting tells an empty list or map from a missing one, so decoding keeps it for the function that does (and
    /// which removes it).
    pub nil_differs: bool,
    /// Whether the members of this struct have owners of their own here, where that is not as its type says.
    pub granularity: Option<Granularity>,
    /// The values OpenAPI lists for a string that is an enumeration; empty if it is none.
    pub enumeration: Box<[Key]>,
    /// OpenAPI's `default`, which built-in kinds also show for zero values (`0`, `""`, `{}`) that defaulting never sets.
    pub shown_default: Option<Box<Value>>,
}

/// A list.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    pub item: Slot,
    pub list_type: ListType,
    /// OpenAPI shows a list type (a missing one means atomic as well).
    pub list_type_shown: bool,
    /// Members that identify an item of a `Map` list.
    pub keys: Box<[Key]>,
    /// Protobuf wraps the list into a message of its own, whose field 1 repeats the items (`Verbs`, `ExtraValue`).
    pub message: bool,
}

/// A map from text to values of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct MapOf {
    pub value: Slot,
    pub granularity: Granularity,
    /// OpenAPI shows a map type (a missing one means granular as well).
    pub map_type_shown: bool,
}

/// A type that is one of several, told apart by its JSON type.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOf {
    pub name: Key,
    /// With their protobuf tags, in order of the tags.
    pub variants: Box<[(TypeId, u32)]>,
}

/// One entry of protobuf's view of a struct. How a value is written follows from its type: booleans and integers as
/// varints, doubles as 64 fixed bits, all else with a length; lists repeat the entry, maps repeat a message with key 1
/// and value 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireEntry {
    pub tag: u32,
    pub member: WireMember,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireMember {
    /// The field with this index in [`Struct::fields`].
    Field(u32),
    /// An embedded struct whose JSON members stand in the parent, but which is a message of its own here.
    Embedded(TypeId),
}

/// Keywords of a custom resource's schema that judge values (OpenAPI v3 as far as structural schemas allow them).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validation {
    pub format: Option<Key>,
    pub pattern: Option<Key>,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub unique_items: bool,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    /// Allowed values; empty if any.
    pub enumeration: Box<[Value]>,
    pub required: Box<[Key]>,
    /// `allOf`, `anyOf`, `oneOf`, `not` (value validations only, so each is again such a set with members below).
    pub all_of: Box<[Nested]>,
    pub any_of: Box<[Nested]>,
    pub one_of: Box<[Nested]>,
    pub not: Option<Box<Nested>>,
    /// `x-kubernetes-validations`, as written.
    pub rules: Box<[Value]>,
    /// What the root says of `metadata`: constraints of `name` and `generateName`.
    pub metadata: Option<Box<Nested>>,
    /// The schema says nothing of the value's type, although it says what is in one.
    pub untyped: bool,
    /// `additionalProperties: false`.
    pub forbids_additional: bool,
}

/// A value validation inside `allOf` and its like: judgements on the value and on what is below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nested {
    pub here: Validation,
    /// Types are only allowed where they say "integer or string".
    pub types: Box<[Key]>,
    pub properties: Box<[(Key, Nested)]>,
    pub items: Option<Box<Nested>>,
    pub additional: Option<Box<Nested>>,
}
