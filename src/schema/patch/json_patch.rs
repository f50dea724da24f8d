//! JSON patch, RFC 6902, with the leniences of gopkg.in/evanphx/json-patch.v4 `patch.go`.
//!
//! Where it differs from that library: `test` compares numbers and texts as values, not as written (`1` and `1.0` stay
//! different), and what makes the library panic is refused.

use super::PatchError;
use crate::{
    api::field::quote,
    object::{Key, MAX_DEPTH, Map, Parsed, Value, parse, parse_reporting_duplicates, to_vec},
};

/// More operations are refused.
pub const MAX_OPERATIONS: usize = 10_000;
/// All `copy` operations together may add this much, in bytes of JSON.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// How many items and members all operations together may push aside to make or close a gap: seconds of work.
const MAX_MOVED: usize = 500_000_000;
/// How many nodes the search for too deep documents may look at in all.
const MAX_VISITED: usize = 10_000_000;

/// A patch that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPatch(Vec<Operation>);

/// An operation with what of it could be read; a member of the wrong type fails when it is needed.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    kind: Kind,
    path: Result<String, Missing>,
    from: Result<String, Missing>,
    /// `None`: the member is missing, which is almost the same as null.
    value: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Add,
    Remove,
    Replace,
    Move,
    Test,
    Copy,
    Other(String),
}

/// Why `path` or `from` cannot be had.
#[derive(Clone, Debug, PartialEq)]
enum Missing {
    Absent,
    NoText(&'static str),
}

impl JsonPatch {
    /// Reads a patch. With `report` (field validation Warn or Strict) unknown and repeated members are told as well,
    /// and members of wrong types are refused.
    pub fn parse(text: &[u8], report: bool) -> Result<(Self, Vec<String>), PatchError> {
        let malformed = |why: String| match report {
            true => PatchError::Malformed(format!("error decoding patch: {why}")),
            false => PatchError::Malformed(why),
        };
        let mut problems = Vec::new();
        let value = if report {
            let Parsed { value, duplicates, .. } =
                parse_reporting_duplicates(text).map_err(|e| malformed(e.message))?;
            problems.extend(duplicates.into_iter().map(|path| format!("json patch duplicate field \"{path}\"")));
            value
        } else {
            parse(text).map_err(|e| malformed(e.message))?
        };
        let (list, item) = match report {
            true => ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp"),
            false => ("jsonpatch.Patch", "jsonpatch.Operation"),
        };
        let wrong = |value: &Value, ty: &str| {
            malformed(format!("json: cannot unmarshal {} into Go value of type {ty}", value.json_type()))
        };
        let operations = match value {
            Value::Null => Vec::new(),
            Value::Array(items) => items,
            other => return Err(wrong(&other, list)),
        };
        if let Some(other) = operations.iter().find(|it| !matches!(it, Value::Object(_) | Value::Null)) {
            return Err(wrong(other, item));
        }
        if report {
            check_types(&operations).map_err(malformed)?;
            problems.extend(unknown_members(&operations));
        }
        if operations.len() > MAX_OPERATIONS {
            return Err(PatchError::TooManyOperations(operations.len()));
        }
        Ok((Self(operations.into_iter().map(Operation::read).collect()), problems))
    }

    /// The ways to the containers that the operations look into, as far down as a document can have any: what a path
    /// says is as long as its writer likes.
    pub(super) fn paths(&self) -> impl Iterator<Item = Vec<String>> {
        let texts = self.0.iter().flat_map(|operation| [operation.path.as_deref(), operation.from.as_deref()]);
        texts.flatten().map(|path| {
            let mut names: Vec<String> = path.split('/').skip(1).take(MAX_DEPTH).map(unescape).collect();
            names.pop();
            names
        })
    }

    /// Applies all operations, or none. Not atomic in `doc`, which is consumed.
    pub fn apply(&self, doc: Value) -> Result<Value, PatchError> {
        let mut document = Document { root: doc, copied: 0, visits: MAX_VISITED, moves: MAX_MOVED };
        for operation in &self.0 {
            document.apply(operation).map_err(PatchError::Rejected)?;
        }
        Ok(document.root)
    }
}

fn check_types(operations: &[Value]) -> Result<(), String> {
    for operation in operations {
        for name in ["op", "path", "from"] {
            match operation.get(name) {
                None | Some(Value::Null | Value::Str(_)) => {}
                Some(other) => {
                    return Err(format!(
                        "json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                        other.json_type()
                    ));
                }
            }
        }
    }
    Ok(())
}

/// At most a hundred, as upstream.
fn unknown_members(operations: &[Value]) -> Vec<String> {
    let names = operations.iter().enumerate().flat_map(|(at, operation)| {
        let members = operation.as_object().map(Map::keys).into_iter().flatten();
        members.map(move |name| (at, name.as_str()))
    });
    names
        .filter(|(_, name)| !matches!(*name, "op" | "path" | "from" | "value"))
        .map(|(at, name)| format!("json patch unknown field \"[{at}].{name}\""))
        .take(100)
        .collect()
}

impl Operation {
    fn read(value: Value) -> Self {
        let mut members = match value {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let mut text = |name: &str| match members.get_mut(name).map(Value::take) {
            None | Some(Value::Null) => Err(Missing::Absent),
            Some(Value::Str(text)) => Ok(text),
            Some(other) => Err(Missing::NoText(other.json_type())),
        };
        let kind = match text("op").as_deref() {
            Ok("add") => Kind::Add,
            Ok("remove") => Kind::Remove,
            Ok("replace") => Kind::Replace,
            Ok("move") => Kind::Move,
            Ok("test") => Kind::Test,
            Ok("copy") => Kind::Copy,
            Ok(other) => Kind::Other(other.into()),
            Err(_) => Kind::Other("unknown".into()),
        };
        let (path, from) = (text("path"), text("from"));
        Self { kind, path, from, value: members.remove("value") }
    }

    /// The path, or the error of operations that do not say why they lack it.
    fn path(&self, name: &str) -> Result<&str, String> {
        self.path.as_deref().map_err(|_| format!("{name} operation failed to decode path: missing value"))
    }

    /// The path, or the error of operations that say why they lack it.
    fn path_or_why(&self, name: &str) -> Result<&str, String> {
        let why = "operation missing path field: missing value";
        self.path.as_deref().map_err(|missing| format!("{name} operation failed to decode path: {}", missing.say(why)))
    }

    fn from(&self, name: &str) -> Result<&str, String> {
        let why = "operation, missing from field: missing value";
        self.from.as_deref().map_err(|missing| format!("{name} operation failed to decode from: {}", missing.say(why)))
    }
}

impl Missing {
    fn say(&self, absent: &str) -> String {
        match self {
            Self::Absent => absent.into(),
            Self::NoText(ty) => format!("json: cannot unmarshal {ty} into Go value of type string"),
        }
    }
}

/// A place: what holds it, its name there, and how deep it lies.
struct Place<'d> {
    container: &'d mut Value,
    key: String,
    depth: usize,
    /// What is left of [`MAX_MOVED`].
    moves: &'d mut usize,
}

struct Document {
    root: Value,
    copied: usize,
    /// What is left of [`MAX_VISITED`] and [`MAX_MOVED`].
    visits: usize,
    moves: usize,
}

impl Document {
    fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        match &operation.kind {
            Kind::Add => self.add(operation),
            Kind::Remove => self.remove(operation),
            Kind::Replace => self.replace(operation),
            Kind::Move => self.relocate(operation),
            Kind::Test => self.test(operation),
            Kind::Copy => self.copy(operation),
            Kind::Other(kind) => Err(format!("Unexpected kind: {kind}")),
        }
    }

    /// The place of a path; `None` where there is nothing that could hold it.
    fn place(&mut self, path: &str) -> Option<Place<'_>> {
        let mut segments = path.split('/');
        // Whatever stands before the first slash is lost.
        segments.next()?;
        let key = segments.next_back()?;
        let (mut container, moves) = (&mut self.root, &mut self.moves);
        let mut depth = 1;
        for segment in segments {
            depth += 1;
            container = match container {
                Value::Object(map) => map.get_mut(&unescape(segment))?,
                Value::Array(items) => {
                    let at = index(&unescape(segment), items.len()).ok()?;
                    items.get_mut(at)?
                }
                _ => return None,
            };
        }
        matches!(container, Value::Object(_) | Value::Array(_)).then(|| Place {
            container,
            key: unescape(key),
            depth,
            moves,
        })
    }

    fn add(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path("add")?;
        let value = operation.value.clone().unwrap_or_default();
        self.check_depth(&value, path)?;
        let place = self
            .place(path)
            .ok_or_else(|| format!("add operation does not apply: doc is missing path: \"{path}\": missing value"))?;
        place.add(value).map_err(|why| format!("error in add for path: '{path}': {why}"))
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path("remove")?;
        let place = self.place(path).ok_or_else(|| {
            format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        place.remove().map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn replace(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path_or_why("replace")?;
        let value = operation.value.clone().unwrap_or_default();
        if path.is_empty() {
            return match value {
                Value::Object(_) | Value::Array(_) => {
                    self.root = value;
                    Ok(())
                }
                _ => Err("replace operation value must be object or array: %!w(<nil>)".into()),
            };
        }
        self.check_depth(&value, path)?;
        let place = self
            .place(path)
            .ok_or_else(|| format!("replace operation does not apply: doc is missing path: {path}: missing value"))?;
        if place.get().is_err() {
            return Err(format!("replace operation does not apply: doc is missing key: {path}: missing value"));
        }
        place.set(value);
        Ok(())
    }

    fn relocate(&mut self, operation: &Operation) -> Result<(), String> {
        let from = operation.from("move")?;
        let place = self
            .place(from)
            .ok_or_else(|| format!("move operation does not apply: doc is missing from path: {from}: missing value"))?;
        let key = place.key.clone();
        let failed = |why| format!("error in move for path: '{key}': {why}");
        place.get().map_err(failed)?;
        let value = place.remove().map_err(failed)?;
        let path = operation.path_or_why("move")?;
        self.check_depth(&value, path)?;
        let place = self.place(path).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: missing value")
        })?;
        place.add(value).map_err(|why| format!("error in move for path: '{path}': {why}"))
    }

    fn copy(&mut self, operation: &Operation) -> Result<(), String> {
        let from = operation.from("copy")?;
        let place = self
            .place(from)
            .ok_or_else(|| format!("copy operation does not apply: doc is missing from path: {from}: missing value"))?;
        let value = place.get().map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
        // Null costs nothing, as it is no node upstream.
        let (value, size) = match value {
            None | Some(Value::Null) => (Value::Null, 0),
            Some(value) => (value.clone(), to_vec(value).len()),
        };
        let path = operation.path("copy")?;
        if self.place(path).is_none() {
            return Err(format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            ));
        }
        self.copied = self.copied.saturating_add(size);
        if self.copied > MAX_COPIED_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED_BYTES}",
                self.copied
            ));
        }
        self.check_depth(&value, path)?;
        let Some(place) = self.place(path) else { return Ok(()) };
        place.add(value).map_err(|why| format!("error while adding value during copy: {why}"))
    }

    fn test(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path_or_why("test")?;
        let wanted = operation.value.as_ref();
        let failed = || format!("testing value {path} failed: test failed");
        if path.is_empty() {
            return if wanted == Some(&self.root) { Ok(()) } else { Err(failed()) };
        }
        let place = self
            .place(path)
            .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: missing value"))?;
        let there = place.get().map_err(|why| format!("error in test for path: '{path}': {why}"))?;
        match (there, wanted) {
            (None | Some(Value::Null), None | Some(Value::Null)) => Ok(()),
            (Some(there), Some(wanted)) if there == wanted => Ok(()),
            _ => Err(failed()),
        }
    }

    /// Refuses what would make the document deeper than a parser takes: later walks recurse.
    fn check_depth(&mut self, value: &Value, path: &str) -> Result<(), String> {
        let above = path.matches('/').count();
        let room = MAX_DEPTH.checked_sub(above);
        match room {
            Some(room) if fits(value, room, &mut self.visits) => Ok(()),
            _ => Err("exceeded max depth".into()),
        }
    }
}

/// Whether a value has no more than `room` levels; gives up (and says no) when there are no visits left.
fn fits(value: &Value, room: usize, visits: &mut usize) -> bool {
    if *visits == 0 {
        return false;
    }
    *visits -= 1;
    match value {
        Value::Object(map) => room > 0 && map.values().all(|value| fits(value, room - 1, visits)),
        Value::Array(items) => room > 0 && items.iter().all(|value| fits(value, room - 1, visits)),
        _ => true,
    }
}

impl Place<'_> {
    /// What is there; in a map also nothing may be, in a list that is an error.
    fn get(&self) -> Result<Option<&Value>, String> {
        match &*self.container {
            Value::Array(items) => index(&self.key, items.len()).map(|at| items.get(at)),
            container => Ok(container.get(&self.key)),
        }
    }

    /// Puts a value in the place of another.
    fn set(self, value: Value) {
        match self.container {
            Value::Object(map) => {
                map.insert(Key::new(&self.key), value);
            }
            Value::Array(items) => {
                if let Ok(at) = index(&self.key, items.len())
                    && let Some(item) = items.get_mut(at)
                {
                    *item = value;
                }
            }
            _ => {}
        }
    }

    fn add(self, value: Value) -> Result<(), String> {
        debug_assert!(self.depth <= MAX_DEPTH, "checked before");
        match self.container {
            Value::Object(map) => {
                charge(self.moves, if map.contains_key(&self.key) { 0 } else { map.len() })?;
                map.insert(Key::new(&self.key), value);
            }
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                let wanted = number(&self.key)
                    .map_err(|why| format!("value was not a proper array index: '{}': {why}", self.key))?;
                // From the end, -1 is behind the last item.
                let at = resolve(wanted, items.len() + 1)?;
                charge(self.moves, items.len() - at)?;
                items.insert(at, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, String> {
        match self.container {
            Value::Array(items) => {
                let at = index(&self.key, items.len())?;
                charge(self.moves, items.len() - at)?;
                Ok(items.remove(at))
            }
            container => container
                .as_object_mut()
                .map(|map| charge(self.moves, map.len()).map(|()| map.remove(&self.key)))
                .transpose()?
                .flatten()
                .ok_or_else(|| format!("Unable to remove nonexistent key: {}: missing value", self.key)),
        }
    }
}

/// Pays for what stands behind a place.
fn charge(moves: &mut usize, behind: usize) -> Result<(), String> {
    *moves = moves.checked_sub(behind).ok_or("too many items and members are moved")?;
    Ok(())
}

/// The place of an existing item; negative numbers count from the end.
fn index(text: &str, length: usize) -> Result<usize, String> {
    resolve(number(text)?, length)
}

fn resolve(wanted: i64, length: usize) -> Result<usize, String> {
    let at = if wanted < 0 { wanted + length as i64 } else { wanted };
    match usize::try_from(at) {
        Ok(at) if at < length => Ok(at),
        _ => Err(format!("Unable to access invalid index: {wanted}: invalid index referenced")),
    }
}

/// Go's `strconv.Atoi`.
fn number(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let valid = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    text.parse().map_err(|_| {
        let why = if valid { "value out of range" } else { "invalid syntax" };
        format!("strconv.Atoi: parsing {}: {why}", quote(text))
    })
}

/// `~1` and `~0` in one pass, others as they are.
fn unescape(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some((before, after)) = rest.split_once('~') {
        out.push_str(before);
        rest = after;
        match after.as_bytes().first() {
            Some(b'0') => out.push('~'),
            Some(b'1') => out.push('/'),
            _ => {
                out.push('~');
                continue;
            }
        }
        rest = after.get(1..).unwrap_or("");
    }
    out.push_str(rest);
    out
}
