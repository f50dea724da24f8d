//! What Go's decoder and encoder make of a tree whose type is known: wrong types are refused in Go's words, unknown
//! members are dropped and reported, numbers, quantities, times and base64 take their canonical form, and zero values
//! stand or fall with `omitempty`. The result equals what kube-apiserver prints after decoding the same text.
//!
//! One walk, in place: subtrees are neither copied nor rebuilt. Mirrors sigs.k8s.io/json (a fork of encoding/json,
//! case-sensitive) with the UnmarshalJSON methods of apimachinery and apiextensions. Not for custom resources, whose
//! trees are kept as they come and pruned by their schema instead.

use std::fmt;

use super::{
    go_base64, source,
    table::{Field, OneOf, Scalar, Shape, Struct, Table, Type, TypeId},
    zero,
};
use crate::{
    api::{duration, field::quote, quantity::Quantity},
    object::{self, FieldPath, Key, Map, Room, Value, print_float},
};

/// Strict errors and type errors gathered at most; Go stops at the same number of strict ones.
const MAX_PROBLEMS: usize = 100;

/// Why a tree is no value of its type, in Go's words (`json: cannot unmarshal string into Go struct field …`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub message: String,
    /// Where the wrong type is and the Go type that was to be there; for those who word it otherwise than JSON.
    pub mismatch: Option<(FieldPath, String)>,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for DecodeError {}

/// Decodes `value` as a `ty`, in place, and returns the paths of unknown members, which are dropped.
///
/// `source` is the JSON text the tree was parsed from, if there is one: it decides which of several errors came first
/// and how a refused number was written. Without it (YAML, patches) the order is that of sorted members, which is what
/// upstream sees too. It is read only when there is something to report.
///
/// # Errors
/// The first thing Go would refuse. `value` is then half decoded and of no use.
pub fn decode(table: &Table, ty: TypeId, value: &mut Value, source: Option<&[u8]>) -> Result<Vec<String>, DecodeError> {
    // An empty list here is not what a missing one is: it asks to forget all owners, and goes when they are computed.
    let managed_fields = &["metadata", "managedFields"];
    let forget = value.at(managed_fields).and_then(Value::as_array).is_some_and(<[Value]>::is_empty);
    let unknown = decode_tree(table, ty, value, source)?;
    if forget && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields", Value::Array(Vec::new()));
    }
    Ok(unknown)
}

fn decode_tree(
    table: &Table,
    ty: TypeId,
    value: &mut Value,
    source: Option<&[u8]>,
) -> Result<Vec<String>, DecodeError> {
    let mut walker = Walker::new(table, Mode::Decode);
    walker.root(ty, value);
    if !walker.problems.is_empty() {
        return Err(first_problem(walker.problems, source));
    }
    let mut room = Room::default();
    let unknown: Vec<String> = walker.unknown.iter().map_while(|path| path.text_within(&mut room)).collect();
    Ok(match source {
        Some(text) if unknown.len() > 1 => source::in_order(text, unknown),
        _ => unknown,
    })
}

/// Gives members that were written several times what Go makes of them: structs and maps are filled again and again,
/// everything else is replaced. `replaced` are the values before the last, in the order of the text.
pub fn merge_repeated(table: &Table, ty: TypeId, value: &mut Value, replaced: Vec<(FieldPath, Value)>) {
    let mut whole: Vec<(FieldPath, Value)> = Vec::new();
    for (path, earlier) in replaced {
        match whole.last_mut().filter(|(known, _)| *known == path) {
            Some((_, first)) => {
                let later = earlier;
                let ty = type_at(table, ty, &path);
                let first_value = std::mem::take(first);
                *first = ty.map_or(later.clone(), |ty| fill(table, ty, first_value, later));
            }
            None => whole.push((path, earlier)),
        }
    }
    for (path, earlier) in whole {
        let (Some(ty), Some(last)) = (type_at(table, ty, &path), value_at(value, &path)) else { continue };
        let later = last.take();
        *last = fill(table, ty, earlier, later);
    }
}

/// `later` read into what `earlier` was read into.
fn fill<'t>(table: &'t Table, ty: &'t Type, earlier: Value, later: Value) -> Value {
    let (Value::Object(mut map), Value::Object(more)) = (earlier, later.clone()) else { return later };
    match &ty.shape {
        Shape::Map(_) => {
            for (key, value) in more {
                map.insert(key, value);
            }
        }
        Shape::Struct(it) => {
            for (key, value) in more {
                let field = it.field(&key).map(|field| table.get(field.slot.ty));
                let value = match (field, map.remove(&key)) {
                    (Some(ty), Some(before)) => fill(table, ty, before, value),
                    _ => value,
                };
                map.insert(key, value);
            }
        }
        _ => return later,
    }
    Value::Object(map)
}

fn type_at<'t>(table: &'t Table, ty: TypeId, path: &FieldPath) -> Option<&'t Type> {
    path.steps().iter().try_fold(table.get(ty), |ty, step| match (step, &ty.shape) {
        (object::Step::Key(key), Shape::Struct(it)) => it.field(key).map(|field| table.get(field.slot.ty)),
        (object::Step::Key(_), Shape::Map(it)) => Some(table.get(it.value.ty)),
        (object::Step::Index(_), Shape::List(it)) => Some(table.get(it.item.ty)),
        _ => None,
    })
}

fn value_at<'v>(value: &'v mut Value, path: &FieldPath) -> Option<&'v mut Value> {
    path.steps().iter().try_fold(value, |value, step| match (step, value) {
        (object::Step::Key(key), Value::Object(map)) => map.get_mut(key),
        (object::Step::Index(index), Value::Array(items)) => items.get_mut(*index),
        _ => None,
    })
}

/// Gives a tree that was decoded once, and changed since by code that may leave zero values behind, the form in
/// which Go prints it. Trusts scalars.
pub fn normalise(table: &Table, ty: TypeId, value: &mut Value) {
    Walker::new(table, Mode::Print).root(ty, value);
}

/// The same after a round through protobuf, in which kube-apiserver stores most kinds: an empty list or map is a missing
/// one, which prints as null where it prints at all.
pub fn normalise_stored(table: &Table, ty: TypeId, value: &mut Value) {
    Walker::new(table, Mode::Stored).root(ty, value);
}

/// The errors of strict decoding in the order in which Go meets them: `unknown field "spec.foo"`,
/// `duplicate field "metadata.labels.x"`, at most 100. Repeated members inside unknown ones are Go's secret.
pub fn strict_errors(unknown: Vec<String>, duplicates: Vec<String>, source: Option<&[u8]>) -> Vec<String> {
    let mut errors: Vec<source::Wanted> = unknown.iter().map(|path| source::Wanted::first(path.clone())).collect();
    for path in duplicates {
        let hidden = unknown.iter().any(|outer| {
            path.strip_prefix(outer.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        let wanted = source::Wanted::second(path);
        if !hidden && !errors.contains(&wanted) {
            errors.push(wanted);
        }
    }
    if let Some(text) = source.filter(|_| errors.len() > 1) {
        source::sort(text, &mut errors);
    }
    errors.truncate(MAX_PROBLEMS);
    let word = |wanted: &source::Wanted| if wanted.repeated { "duplicate" } else { "unknown" };
    errors.iter().map(|wanted| format!("{} field {}", word(wanted), quote(&wanted.path))).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Decode,
    Print,
    Stored,
}

struct Walker<'t> {
    table: &'t Table,
    mode: Mode,
    problems: Vec<Problem>,
    unknown: Vec<FieldPath>,
}

/// Something Go refuses.
struct Problem {
    path: FieldPath,
    /// Ends Go's decoding at once (an UnmarshalJSON method failed); the others wait for the end.
    aborts: bool,
    text: Text,
    /// The Go type that the value has not.
    wanted: Option<String>,
}

enum Text {
    Whole(String),
    /// Before and after the number as it was written; the number as far as the tree knows it.
    Number(String, String, String),
}

/// Where the walk is. Each step borrows the one above, so that nothing is allocated unless there is a problem.
struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    /// A field and the type it belongs to.
    Field(&'a Field, &'a Type),
    Key(&'a Key),
    Index(usize),
    /// Inside a type with a decoder of its own, which neither reports unknown members nor lets errors wait.
    Apart,
}

impl<'a> At<'a> {
    fn below<'b>(&'b self, step: Step<'b>) -> At<'b>
    where
        'a: 'b,
    {
        At { parent: Some(self), step }
    }

    /// Steps from the root to here.
    fn steps(&self) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(here) = at {
            steps.push(here.step);
            at = here.parent;
        }
        steps.reverse();
        steps
    }

    fn is_apart(&self) -> bool {
        matches!(self.step, Step::Apart) || self.parent.is_some_and(At::is_apart)
    }

    fn path(&self) -> FieldPath {
        let mut path = FieldPath::default();
        for step in self.steps() {
            match step {
                Step::Field(field, _) => path.push_key(&field.name),
                Step::Key(key) => path.push_key(key),
                Step::Index(index) => path.push_index(index),
                Step::Root | Step::Apart => {}
            }
        }
        path
    }

    /// `Go struct field Container.spec.containers.image`, or `Go value` where there is no field above.
    fn target(&self) -> String {
        let (mut owner, mut apart, mut names) = ("", false, Vec::new());
        for step in self.steps() {
            match step {
                Step::Field(field, ty) => {
                    if !field.embedded_in.is_empty() {
                        names.push(field.embedded_in.as_str());
                    }
                    names.push(field.name.as_str());
                    if !apart {
                        owner = ty.go.rsplit('.').next().unwrap_or("");
                    }
                }
                Step::Apart => apart = true,
                Step::Root | Step::Key(_) | Step::Index(_) => {}
            }
        }
        if names.is_empty() { "Go value".into() } else { format!("Go struct field {owner}.{}", names.join(".")) }
    }
}

impl<'t> Walker<'t> {
    fn new(table: &'t Table, mode: Mode) -> Self {
        Self { table, mode, problems: Vec::new(), unknown: Vec::new() }
    }

    fn root(&mut self, ty: TypeId, value: &mut Value) {
        self.value(self.table.get(ty), value, &At { parent: None, step: Step::Root });
    }

    /// A value that is no null pointer. Null is what Go makes of it: nothing happens to a fresh zero value.
    fn value(&mut self, ty: &'t Type, value: &mut Value, at: &At) {
        match &ty.shape {
            Shape::Any => {}
            Shape::Scalar(scalar) => self.scalar(*scalar, ty, value, at),
            Shape::Struct(it) => match value {
                Value::Object(map) => self.members(it, ty, map, at),
                Value::Null => *value = zero::of(self.table, ty),
                _ => self.mismatch(ty, value, at),
            },
            Shape::List(list) => match value {
                Value::Array(items) => {
                    let item = self.table.get(list.item.ty);
                    for (index, value) in items.iter_mut().enumerate() {
                        self.value(item, value, &at.below(Step::Index(index)));
                    }
                }
                Value::Null => {}
                _ => self.mismatch(ty, value, at),
            },
            Shape::Map(map_of) => match value {
                Value::Object(map) => {
                    let inner = self.table.get(map_of.value.ty);
                    for (key, value) in map.iter_mut() {
                        self.value(inner, value, &at.below(Step::Key(key)));
                        if self.mode == Mode::Stored && value.is_null() {
                            stored_entry(inner, value);
                        }
                    }
                }
                Value::Null => {}
                _ => self.mismatch(ty, value, at),
            },
            Shape::OneOf(one_of) => self.one_of(one_of, value, at),
        }
    }

    /// The members of a struct: unknown ones go, known ones are decoded, empty ones go if Go omits them, missing ones
    /// come if Go prints them. Members and fields are both sorted, so they are walked side by side.
    fn members(&mut self, it: &'t Struct, ty: &'t Type, map: &mut Map, at: &At) {
        let mut fields = it.fields.iter().peekable();
        map.retain(|key, value| {
            while fields.next_if(|field| field.name.as_str() < key.as_str()).is_some() {}
            match fields.next_if(|field| field.name == *key) {
                Some(field) => self.member(field, ty, value, at),
                None => {
                    self.note_unknown(key, at);
                    false
                }
            }
        });
        for field in it.present() {
            if !map.contains_key(&field.name) {
                map.insert(field.name.clone(), zero::of_field(self.table, field));
            }
        }
    }

    /// Whether the member is printed.
    fn member(&mut self, field: &'t Field, owner: &'t Type, value: &mut Value, at: &At) -> bool {
        let ty = self.table.get(field.slot.ty);
        if !(field.slot.pointer && value.is_null()) {
            self.value(ty, value, &at.below(Step::Field(field, owner)));
            if self.mode == Mode::Stored && !field.slot.pointer && is_empty_collection(ty, value) {
                *value = Value::Null;
            }
        }
        let kept = self.mode == Mode::Decode && field.nil_differs && !value.is_null();
        kept || !zero::is_omitted(field, ty, value)
    }

    fn note_unknown(&mut self, key: &Key, at: &At) {
        if self.mode == Mode::Decode && self.unknown.len() < MAX_PROBLEMS && !at.is_apart() {
            self.unknown.push(at.below(Step::Key(key)).path());
        }
    }

    fn one_of(&mut self, it: &'t OneOf, value: &mut Value, at: &At) {
        let at = at.below(Step::Apart);
        let fits = |ty: &Type, value: &Value| {
            matches!(
                (&ty.shape, value),
                (Shape::Struct(_), Value::Object(_))
                    | (Shape::List(_), Value::Array(_))
                    | (Shape::Scalar(Scalar::Bool), Value::Bool(_))
            )
        };
        let variants = || it.variants.iter().map(|(id, _)| self.table.get(*id));
        match variants().find(|ty| fits(ty, value)) {
            Some(ty) => {
                self.value(ty, value, &at);
                // Upstream prints an empty list of alternatives as the other alternative, which is missing.
                if matches!(value, Value::Array(items) if items.is_empty()) {
                    *value = Value::Null;
                }
            }
            None if variants().any(|ty| matches!(ty.shape, Shape::Scalar(Scalar::Bool))) => {
                if value.is_null() && self.mode != Mode::Decode {
                    *value = Value::Bool(false);
                } else {
                    self.abort(&at, "boolean or JSON schema expected".into());
                }
            }
            None => *value = Value::Null,
        }
    }

    fn scalar(&mut self, scalar: Scalar, ty: &Type, value: &mut Value, at: &At) {
        if value.is_null() {
            // Duration's decoder reads text even out of null.
            if scalar == Scalar::Duration && self.mode == Mode::Decode {
                self.abort(at, "time: invalid duration \"\"".into());
            }
            *value = zero::of_scalar(scalar);
            return;
        }
        if self.mode != Mode::Decode {
            return;
        }
        match scalar {
            Scalar::String if matches!(value, Value::Str(_)) => {}
            Scalar::Bool if matches!(value, Value::Bool(_)) => {}
            Scalar::Int64 if matches!(value, Value::Int(_)) => {}
            Scalar::Int32 if matches!(value, Value::Int(it) if i32::try_from(*it).is_ok()) => {}
            Scalar::String | Scalar::Bool | Scalar::Int64 | Scalar::Int32 => self.mismatch(ty, value, at),
            Scalar::Double => match value {
                Value::Int(_) => {}
                Value::Float(it) => *value = zero::canonical_double(*it),
                _ => self.mismatch(ty, value, at),
            },
            Scalar::Bytes => self.bytes(ty, value, at),
            Scalar::Quantity => self.quantity(value, at),
            Scalar::Time | Scalar::MicroTime | Scalar::Duration => self.time(scalar, value, at),
            Scalar::IntOrString => match value {
                Value::Str(_) => {}
                Value::Int(it) if i32::try_from(*it).is_ok() => {}
                _ => self.refuse(at, value, "int32", true),
            },
            Scalar::RawExtension | Scalar::Unknown | Scalar::FieldsV1 | Scalar::Json => {}
        }
    }

    fn bytes(&mut self, ty: &Type, value: &mut Value, at: &At) {
        let Value::Str(text) = value else { return self.mismatch(ty, value, at) };
        match go_base64::canonical(text) {
            Ok(None) => {}
            Ok(Some(canonical)) => *text = canonical,
            Err(offset) => {
                let text = Text::Whole(format!("illegal base64 data at input byte {offset}"));
                self.problem(Problem { path: at.path(), aborts: false, text, wanted: None });
            }
        }
    }

    fn quantity(&mut self, value: &mut Value, at: &At) {
        match Quantity::from_value(value) {
            Ok(quantity) => *value = Value::Str(quantity.to_string()),
            Err(error) => self.abort(at, error.to_string()),
        }
    }

    fn time(&mut self, scalar: Scalar, value: &mut Value, at: &At) {
        let Value::Str(text) = value else { return self.refuse(at, value, "string", true) };
        let canonical = match scalar {
            Scalar::Duration => duration::parse_duration(text).map(|it| Value::Str(duration::format_duration(it))),
            Scalar::MicroTime => duration::canonical_micro_time(value),
            _ => duration::canonical_time(value),
        };
        match canonical {
            Ok(canonical) => *value = canonical,
            Err(error) => self.abort(at, error.to_string()),
        }
    }

    /// The JSON type does not fit the Go type; Go goes on and reports the first such error at the end.
    fn mismatch(&mut self, ty: &Type, value: &Value, at: &At) {
        if self.mode == Mode::Decode {
            self.refuse(at, value, &ty.go, false);
        }
    }

    fn refuse(&mut self, at: &At, value: &Value, go: &str, aborts: bool) {
        let aborts = aborts || at.is_apart();
        let what = value.json_type();
        let before = format!("json: cannot unmarshal {what}");
        let after = format!(" into {} of type {go}", at.target());
        let text = match value {
            Value::Int(it) if is_number(go) => Text::Number(before, it.to_string(), after),
            Value::Float(it) if is_number(go) => Text::Number(before, print_float(*it), after),
            _ => Text::Whole(before + &after),
        };
        self.problem(Problem { path: at.path(), aborts, text, wanted: Some(go.to_owned()) });
    }

    fn abort(&mut self, at: &At, message: String) {
        self.problem(Problem { path: at.path(), aborts: true, text: Text::Whole(message), wanted: None });
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// Go types whose errors show the number that does not fit.
fn is_number(go: &str) -> bool {
    matches!(go, "int32" | "int64" | "float64")
}

fn is_empty_collection(ty: &Type, value: &Value) -> bool {
    match (&ty.shape, value) {
        (Shape::List(list), Value::Array(items)) => items.is_empty() && !list.message,
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// What protobuf gives back for a null in a map: an entry whose value is empty, not missing.
fn stored_entry(ty: &Type, value: &mut Value) {
    match &ty.shape {
        Shape::Scalar(Scalar::Bytes) => *value = Value::Str(String::new()),
        Shape::List(_) => *value = Value::Array(Vec::new()),
        _ => {}
    }
}

/// The problem Go reports: the first that ends its walk, else the first of all.
fn first_problem(mut problems: Vec<Problem>, source: Option<&[u8]>) -> DecodeError {
    let places = match source {
        Some(text) => source::locate(text, problems.iter().map(|problem| problem.path.to_string())),
        None => vec![None; problems.len()],
    };
    let first = problems
        .iter()
        .zip(&places)
        .enumerate()
        .min_by_key(|(at, (problem, place))| (!problem.aborts, place.as_ref().map(|place| place.start), *at))
        .map_or(0, |(at, _)| at);
    let written = places.get(first).cloned().flatten().and_then(|place| source?.get(place));
    let Problem { path, text, wanted, .. } = problems.swap_remove(first);
    let message = match text {
        Text::Whole(text) => text,
        Text::Number(before, number, after) => {
            let number = written.map_or(number, |text| String::from_utf8_lossy(text).into_owned());
            format!("{before} {number}{after}")
        }
    };
    DecodeError { message, mismatch: wanted.map(|wanted| (path, wanted)) }
}

#[cfg(test)]
mod tests;
