//! The table of built-in kinds, read from `data/types.txt` (made by `tools/gen-types`).
//!
//! The text is part of the binary and everything borrows from it. One type a line, the first has id 1; columns are
//! separated by tabs:
//!
//! ```text
//! S  go  scalar
//! L  go  item  list type or -  keys,…  m if a protobuf message of its own
//! M  go  value  map type or -
//! O  go  name                        then a line "␠variant  tag" each
//! T  go  name  flags  unions  required   flags: o has an OpenAPI definition, a atomic; required: the order in which OpenAPI lists
//!                                    required members, where it is not that of the tags; then its members:
//! ␠name  type  flags  tag or -  …    flags: p pointer, e omitempty, z omitzero, r required, m merge, k retainKeys, x replace,
//!                                    n nil differs from empty, G granular where its type is atomic
//!                                    then i= embedded in, k= merge key, g= gates, e= enumeration, d= shown default, D= default
//! ␠@  type  tag                      an embedded struct, for protobuf alone
//! K  group  version  kind  type
//! ```
//!
//! The reader trusts the text as far as it can without panicking: a line it cannot read is left out, and the tests
//! prove that there is none.

use std::{str::Split, sync::OnceLock};

use super::table::{
    AdditionalMembers, Field, Granularity, List, ListType, MapOf, Omit, OneOf, PatchStrategy, Scalar, Shape, Slot,
    Struct, Table, Type, TypeId, WireEntry, WireMember,
};
use crate::object::{self, Key, Value, register_static_keys};

static TEXT: &str = include_str!("data/types.txt");

/// The table of all built-in kinds, read once on first use (2 ms). Registers all field names as static keys.
pub fn builtin() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        // First, so that fields and parsed members share their names, which makes comparing them cheap.
        register_static_keys(static_keys());
        read(TEXT)
    })
}

/// The names of all fields, and what field ownership calls them (`f:<name>`).
fn static_keys() -> impl Iterator<Item = &'static str> {
    let names: std::collections::BTreeSet<&'static str> = field_names().collect();
    let owned: String = names.iter().map(|name| format!("f:{name}")).collect();
    let mut owned: &'static str = owned.leak();
    let owned: Vec<&'static str> = names
        .iter()
        .filter_map(|name| {
            let (first, rest) = owned.split_at_checked(name.len() + 2)?;
            owned = rest;
            Some(first)
        })
        .collect();
    names.into_iter().chain(owned)
}

fn field_names() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter_map(|line| line.strip_prefix(' ')?.split('\t').next()).filter(|name| *name != "@")
}

fn read(text: &'static str) -> Table {
    let mut table = Table::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let mut members = Vec::new();
        while let Some(member) = lines.peek().and_then(|line| line.strip_prefix(' ')) {
            members.push(member);
            lines.next();
        }
        let mut columns = Columns(line.split('\t'));
        match columns.text() {
            "K" => {
                let (group, version, kind) = (columns.key(), columns.key(), columns.key());
                table.add_kind(group, version, kind, columns.ty());
            }
            word => {
                let go = columns.key();
                if let Some(shape) = shape(word, columns, &members) {
                    let name = match &shape {
                        Shape::Struct(it) => it.name.clone(),
                        Shape::OneOf(it) => it.name.clone(),
                        _ => Key::default(),
                    };
                    let id = table.add(Type { go, ..Type::new(shape) });
                    if !name.is_empty() {
                        table.add_name(name, id);
                    }
                }
            }
        }
    }
    table.note_printed();
    table
}

/// The columns of a line; past the end they are empty.
struct Columns(Split<'static, char>);

impl Columns {
    fn text(&mut self) -> &'static str {
        self.0.next().unwrap_or("")
    }
    fn key(&mut self) -> Key {
        Key::from_static(self.text())
    }
    fn ty(&mut self) -> TypeId {
        TypeId(self.text().parse().unwrap_or(0))
    }
}

fn shape(word: &str, mut columns: Columns, members: &[&'static str]) -> Option<Shape> {
    Some(match word {
        "S" => Shape::Scalar(scalar(columns.text())?),
        "L" => Shape::List(Box::new(list(columns))),
        "M" => {
            let value = Slot::of(columns.ty());
            let (granularity, map_type_shown) = granularity(columns.text());
            Shape::Map(Box::new(MapOf { value, granularity, map_type_shown }))
        }
        "O" => Shape::OneOf(Box::new(OneOf {
            name: columns.key(),
            variants: members.iter().map(|it| variant(it)).collect(),
        })),
        "T" => Shape::Struct(Box::new(structure(columns, members))),
        _ => return None,
    })
}

fn scalar(word: &str) -> Option<Scalar> {
    Some(match word {
        "string" => Scalar::String,
        "bool" => Scalar::Bool,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "double" => Scalar::Double,
        "bytes" => Scalar::Bytes,
        "quantity" => Scalar::Quantity,
        "time" => Scalar::Time,
        "microtime" => Scalar::MicroTime,
        "duration" => Scalar::Duration,
        "intorstring" => Scalar::IntOrString,
        "rawextension" => Scalar::RawExtension,
        "unknown" => Scalar::Unknown,
        "fieldsv1" => Scalar::FieldsV1,
        "json" => Scalar::Json,
        _ => return None,
    })
}

fn list(mut columns: Columns) -> List {
    let item = Slot::of(columns.ty());
    let word = columns.text();
    let list_type = match word {
        "set" => ListType::Set,
        "map" => ListType::Map,
        _ => ListType::Atomic,
    };
    let keys = keys(columns.text(), ',');
    List { item, list_type, list_type_shown: word != "-", keys, message: columns.text() == "m" }
}

fn granularity(word: &str) -> (Granularity, bool) {
    match word {
        "atomic" => (Granularity::Atomic, true),
        "granular" => (Granularity::Granular, true),
        _ => (Granularity::Granular, false),
    }
}

fn keys(text: &'static str, separator: char) -> Box<[Key]> {
    text.split(separator).filter(|key| !key.is_empty()).map(Key::from_static).collect()
}

fn variant(line: &'static str) -> (TypeId, u32) {
    let mut columns = Columns(line.split('\t'));
    (columns.ty(), columns.text().parse().unwrap_or(0))
}

fn structure(mut columns: Columns, members: &[&'static str]) -> Struct {
    let name = columns.key();
    let flags = columns.text();
    let unions = columns.text();
    let required_order = keys(columns.text(), ',');
    let mut fields = Vec::with_capacity(members.len());
    let mut wire = Vec::with_capacity(members.len());
    for line in members {
        let mut columns = Columns(line.split('\t'));
        let member = match columns.text() {
            "@" => {
                let embedded = WireMember::Embedded(columns.ty());
                wire.extend(columns.text().parse().map(|tag| WireEntry { tag, member: embedded }));
                continue;
            }
            name => name,
        };
        let ty = columns.ty();
        let (field, tag) = field(member, ty, columns);
        wire.extend(tag.map(|tag| WireEntry { tag, member: WireMember::Field(fields.len() as u32) }));
        fields.push(field);
    }
    wire.sort_by_key(|entry| entry.tag);
    Struct {
        name,
        fields: fields.into(),
        wire: wire.into(),
        granularity: if flags.contains('a') { Granularity::Atomic } else { Granularity::Granular },
        additional: AdditionalMembers::Pruned,
        embedded_resource: false,
        openapi: flags.contains('o'),
        unions: json(unions),
        required_order,
        rest: None,
        printed: Box::default(),
    }
}

fn json(text: &str) -> Option<Box<Value>> {
    if text.is_empty() { None } else { object::parse(text.as_bytes()).ok().map(Box::new) }
}

fn field(name: &'static str, ty: TypeId, mut columns: Columns) -> (Field, Option<u32>) {
    let flags = columns.text();
    let has = |flag| flags.contains(flag);
    let mut field = Field {
        name: Key::new(name),
        slot: Slot { pointer: has('p'), ..Slot::of(ty) },
        omit: if has('z') {
            Omit::Zero
        } else if has('e') {
            Omit::Empty
        } else {
            Omit::Never
        },
        required: has('r'),
        patch: PatchStrategy { merge: has('m'), retain_keys: has('k'), replace: has('x') },
        merge_key: Key::default(),
        embedded_in: Key::default(),
        gate: Key::default(),
        nil_differs: has('n'),
        granularity: has('G').then_some(Granularity::Granular),
        enumeration: Box::default(),
        shown_default: None,
    };
    let tag = columns.text().parse().ok();
    for column in columns.0 {
        let Some((word, value)) = column.split_once('=') else { continue };
        match word {
            "i" => field.embedded_in = Key::from_static(value),
            "k" => field.merge_key = Key::from_static(value),
            "g" => field.gate = Key::from_static(value),
            // One of the values may be the empty text.
            "e" => field.enumeration = value.split('|').map(Key::from_static).collect(),
            "d" => field.shown_default = json(value),
            "D" => {
                field.shown_default = json(value);
                field.slot.default = json(value);
            }
            _ => {}
        }
    }
    (field, tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_text_is_read_and_every_reference_resolves() {
        let table = builtin();
        let types = TEXT.lines().filter(|line| line.starts_with(['S', 'L', 'M', 'O', 'T'])).count();
        let kinds = TEXT.lines().filter(|line| line.starts_with('K')).count();
        assert_eq!(table.len(), types + 1);
        assert_eq!(table.kinds().len(), kinds);
        assert!(kinds > 300 && types > 1_700, "the table is whole");
        let fields =
            TEXT.lines().filter(|line| line.starts_with(' ') && line.contains('\t') && !line.starts_with(" @"));
        let known = |id: TypeId| assert!(id != TypeId::ANY && id.index() < table.len(), "{id:?}");
        let mut seen = 0;
        for at in 1..table.len() {
            match &table.get(TypeId(at as u32)).shape {
                Shape::Any => panic!("type {at} was not read"),
                Shape::Scalar(_) => {}
                Shape::List(it) => known(it.item.ty),
                Shape::Map(it) => known(it.value.ty),
                Shape::OneOf(it) => {
                    it.variants.iter().for_each(|(id, tag)| {
                        known(*id);
                        assert!(*tag > 0);
                    });
                    seen += it.variants.len();
                }
                Shape::Struct(it) => {
                    it.fields.iter().for_each(|field| known(field.slot.ty));
                    assert!(it.fields.windows(2).all(|pair| pair[0].name < pair[1].name), "{} is sorted", it.name);
                    assert!(it.wire.windows(2).all(|pair| pair[0].tag < pair[1].tag), "{} has unique tags", it.name);
                    seen += it.fields.len();
                }
            }
        }
        assert_eq!(seen, fields.count());
        table.kinds().iter().for_each(|row| known(row.ty));
    }

    #[test]
    fn a_service_port_is_what_upstream_says() {
        let table = builtin();
        let id = table.kind("", "v1", "Service").unwrap();
        assert_eq!(table.get(id).go.as_str(), "v1.Service");
        let spec = table.struct_of(table.struct_of(id).unwrap().field("spec").unwrap().slot.ty).unwrap();
        let ports = spec.field("ports").unwrap();
        assert_eq!((ports.patch.merge, ports.merge_key.as_str()), (true, "port"));
        let Shape::List(list) = &table.get(ports.slot.ty).shape else { panic!("a list") };
        assert_eq!((list.list_type, list.keys.join(",")), (ListType::Map, "port,protocol".to_owned()));
        let port = table.struct_of(list.item.ty).unwrap();
        let protocol = port.field("protocol").unwrap();
        assert_eq!(protocol.slot.default.as_deref(), Some(&Value::from("TCP")));
        assert_eq!(protocol.enumeration.join("|"), "SCTP|TCP|UDP");
        assert!(port.field("Port").is_none() && port.field("port").unwrap().required);
        assert_eq!(table.named("io.k8s.api.core.v1.Service"), Some(id));
    }

    #[test]
    fn options_kinds_belong_to_every_group() {
        let table = builtin();
        assert!(table.kind("apps", "v1", "DeleteOptions").is_some());
        assert!(Table::over(table).kind("example.com", "v1", "DeleteOptions").is_some());
        assert!(table.kind("apps", "v1", "Pod").is_none());
    }

    #[test]
    fn field_names_are_static_keys() {
        builtin();
        assert!(static_keys().any(|name| name == "volumeClaimTemplates"));
    }
}
