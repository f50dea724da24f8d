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
    object::{FieldPath, Key, Map, Value, print_float},
};

/// Strict errors and type errors gathered at most; Go stops at the same number of strict ones.
const MAX_PROBLEMS: usize = 100;

/// Why a tree is no value of its type, in Go's words (`json: cannot unmarshal string into Go struct field …`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(pub String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
    let mut walker = Walker::new(table, Mode::Decode);
    walker.root(ty, value);
    if !walker.problems.is_empty() {
        return Err(first_problem(walker.problems, source));
    }
    let unknown: Vec<String> = walker.unknown.iter().map(FieldPath::to_string).collect();
    Ok(match source {
        Some(text) if unknown.len() > 1 => source::in_order(text, unknown),
        _ => unknown,
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
    if let Some(text) = source {
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
        let fits = |ty: &Type, value: &Value| match (&ty.shape, value) {
            (Shape::Struct(_), Value::Object(_)) | (Shape::List(_), Value::Array(_)) => true,
            (Shape::Scalar(Scalar::Bool), Value::Bool(_)) => true,
            _ => false,
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
                self.problem(Problem { path: at.path(), aborts: false, text });
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
        self.problem(Problem { path: at.path(), aborts, text });
    }

    fn abort(&mut self, at: &At, message: String) {
        self.problem(Problem { path: at.path(), aborts: true, text: Text::Whole(message) });
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
    DecodeError(match problems.swap_remove(first).text {
        Text::Whole(text) => text,
        Text::Number(before, number, after) => {
            let number = written.map_or(number, |text| String::from_utf8_lossy(text).into_owned());
            format!("{before} {number}{after}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        object::{self, to_string},
        schema::{builtin, vectors},
    };

    fn kind(group: &str, kind: &str) -> TypeId {
        builtin().kind(group, "v1", kind).unwrap()
    }

    fn read(ty: TypeId, text: &str) -> Result<(String, Vec<String>), String> {
        let mut value = object::parse(text.as_bytes()).unwrap();
        let unknown = decode(builtin(), ty, &mut value, Some(text.as_bytes())).map_err(|error| error.0)?;
        Ok((to_string(&value), unknown))
    }

    #[track_caller]
    fn refused(ty: TypeId, text: &str, message: &str) {
        assert_eq!(read(ty, text).unwrap_err(), message);
    }

    #[test]
    fn wrong_types_are_refused_in_gos_words() {
        let (config, pod) = (kind("", "ConfigMap"), kind("", "Pod"));
        refused(
            config,
            r#"{"data":[]}"#,
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
        );
        refused(
            config,
            r#"{"data":{"k":1}}"#,
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        );
        refused(
            config,
            r#"{"metadata":"x"}"#,
            "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        );
        refused(
            config,
            r#"{"immutable":"x"}"#,
            "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool",
        );
        for number in ["1.5", "3.0", "9223372036854775808"] {
            let message = format!(
                "json: cannot unmarshal number {number} into Go struct field ObjectMeta.metadata.generation of type int64"
            );
            refused(config, &format!(r#"{{"metadata":{{"generation":{number}}}}}"#), &message);
        }
        refused(
            pod,
            r#"{"spec":{"containers":[{"ports":[{"containerPort":"x"}]}]}}"#,
            "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        );
        refused(
            pod,
            r#"{"spec":{"volumes":[{"emptyDir":1}]}}"#,
            "json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        );
        refused(pod, "[]", "json: cannot unmarshal array into Go value of type v1.Pod");
        refused(
            kind("policy", "PodDisruptionBudget"),
            r#"{"spec":{"minAvailable":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32",
        );
        refused(
            config,
            r#"{"metadata":{"creationTimestamp":5}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        );
        refused(kind("", "Secret"), r#"{"data":{"a":"QUJ"}}"#, "illegal base64 data at input byte 0");
    }

    #[test]
    fn errors_inside_a_schema_s_alternatives_name_the_outer_struct() {
        let crd = kind("apiextensions.k8s.io", "CustomResourceDefinition");
        let schema = |inner: &str| {
            format!(
                r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{{"properties":{{"x":{inner}}}}}}}}}]}}}}"#
            )
        };
        refused(
            crd,
            &schema(r#"{"minimum":"x"}"#),
            "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.minimum of type float64",
        );
        refused(
            crd,
            &schema(r#"{"items":{"type":[]}}"#),
            "json: cannot unmarshal array into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.items.type of type string",
        );
        refused(crd, &schema(r#"{"additionalProperties":1}"#), "boolean or JSON schema expected");
        // Upstream's own decoders are not told to be strict.
        assert_eq!(read(crd, &schema(r#"{"items":{"foo":1}}"#)).unwrap().1, Vec::<String>::new());
        assert_eq!(
            read(crd, &schema(r#"{"foo":1}"#)).unwrap().1,
            ["spec.versions[0].schema.openAPIV3Schema.properties.x.foo"]
        );
    }

    #[test]
    fn the_error_that_comes_first_in_the_text_is_the_one_reported() {
        let pod = kind("", "Pod");
        let text = r#"{"spec":{"containers":3,"nodeName":4},"metadata":{"name":5}}"#;
        refused(
            pod,
            text,
            "json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container",
        );
        let mut value = object::parse(text.as_bytes()).unwrap();
        let sorted = decode(builtin(), pod, &mut value, None).unwrap_err();
        assert_eq!(
            sorted.0,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"
        );
        // A decoder of a type's own ends everything at once, before errors that wait are told.
        let text = r#"{"metadata":{"name":5,"creationTimestamp":"x"}}"#;
        assert!(read(pod, text).unwrap_err().starts_with("parsing time"));
    }

    #[test]
    fn unknown_members_are_dropped_and_reported_in_the_order_of_the_text() {
        let text = r#"{"metadata":{"foo":1},"spec":{"containers":[{"name":"c","imagee":"x","ports":[{"nope":1}]}],"zz":{}},"Kind":"x","a":1}"#;
        let (value, unknown) = read(kind("", "Pod"), text).unwrap();
        assert_eq!(
            unknown,
            ["metadata.foo", "spec.containers[0].imagee", "spec.containers[0].ports[0].nope", "spec.zz", "Kind", "a"]
        );
        assert_eq!(
            value,
            r#"{"metadata":{},"spec":{"containers":[{"name":"c","ports":[{"containerPort":0}],"resources":{}}]},"status":{}}"#
        );
    }

    #[test]
    fn strict_errors_stand_in_the_order_of_the_text() {
        let text = br#"{"metadata":{"name":"a","name":"b","foo":1,"foo":2},"x":{"y":1,"y":2},"data":{"k":"1","k":"2"},"data":{}}"#;
        let parsed = object::parse_reporting_duplicates(text).unwrap();
        let mut value = parsed.value;
        let unknown = decode(builtin(), kind("", "ConfigMap"), &mut value, Some(text)).unwrap();
        assert_eq!(
            strict_errors(unknown, parsed.duplicates, Some(text)),
            [
                r#"duplicate field "metadata.name""#,
                r#"unknown field "metadata.foo""#,
                r#"unknown field "x""#,
                r#"duplicate field "data.k""#,
                r#"duplicate field "data""#,
            ]
        );
    }

    #[test]
    fn values_take_the_form_in_which_go_prints_them() {
        let text = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2024-01-02T03:04:05.5+01:00","labels":{},"name":""},
            "spec":{"containers":[{"name":"c","env":[{"name":"","value":""}],"resources":{"limits":{"cpu":0.5,"memory":"1024Ki"}}}],
            "hostNetwork":false,"terminationGracePeriodSeconds":null,"nodeSelector":null},"status":{"startTime":null}}"#;
        assert_eq!(
            read(kind("", "Pod"), text).unwrap().0,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2024-01-02T02:04:05Z"},"spec":{"containers":[{"env":[{"name":""}],"name":"c","resources":{"limits":{"cpu":"500m","memory":"1Mi"}}}]},"status":{}}"#
        );
    }

    #[test]
    fn a_list_that_was_stored_empty_is_null_where_it_is_printed() {
        let role = kind("rbac.authorization.k8s.io", "Role");
        let mut value = object::parse(br#"{"rules":[]}"#).unwrap();
        decode(builtin(), role, &mut value, None).unwrap();
        assert_eq!(to_string(&value), r#"{"metadata":{},"rules":[]}"#);
        normalise_stored(builtin(), role, &mut value);
        assert_eq!(to_string(&value), r#"{"metadata":{},"rules":null}"#);
    }

    #[test]
    fn what_go_printed_is_decoded_to_itself() {
        let cases = vectors::read("vectors/protobuf.json");
        assert!(cases.len() > 600);
        for case in &cases {
            let (group, version, kind) = vectors::split_kind(case.str_at(&["kind"]));
            let ty = builtin().kind(group, version, kind).unwrap();
            let printed = case.get("json").unwrap();
            let mut value = printed.clone();
            let unknown = decode(builtin(), ty, &mut value, None).unwrap();
            let name = format!("{} {}", case.str_at(&["kind"]), case.str_at(&["case"]));
            if name == "v1/ConfigMap zero-time" {
                // A pointer to a zero time, which prints as null, is no pointer when it is read back.
                continue;
            }
            assert_eq!(unknown, Vec::<String>::new(), "{name}");
            assert_eq!(to_string(&value), to_string(printed), "{name}");
            normalise(builtin(), ty, &mut value);
            assert_eq!(to_string(&value), to_string(printed), "{name} normalised");
            normalise_stored(builtin(), ty, &mut value);
            assert_eq!(to_string(&value), to_string(case.get("json_decoded").unwrap_or(printed)), "{name} stored");
        }
    }
}
