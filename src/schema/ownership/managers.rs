//! The entries of `metadata.managedFields`: who owns what, in which version, since when
//! (apimachinery `pkg/util/managedfields/internal/managedfields.go`, `capmanagers.go`).

use super::set::FieldSet;
use crate::{
    api::field::quote,
    object::{Key, Map, Value, to_string},
};

/// More managers of operation Update than this are merged, the oldest first.
pub(super) const MAX_UPDATE_MANAGERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub manager: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
    /// RFC 3339; an entry that only changed its set has none.
    pub time: Option<String>,
    pub fields: FieldSet,
}

impl Entry {
    /// Whether two entries are of the same manager. An applier keeps its entry when it changes to another version.
    pub fn is(&self, other: &Entry) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// Upstream's name of a manager; only used to sort where all else is equal.
    pub fn identifier(&self) -> String {
        let mut out = String::from("{");
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                if out.len() > 1 {
                    out.push(',');
                }
                out.push_str(&format!("\"{name}\":{}", to_string(&Value::from(value))));
            }
        };
        put("manager", &self.manager);
        put("operation", self.operation.as_str());
        if self.operation == Operation::Update {
            put("apiVersion", &self.api_version);
        }
        put("subresource", &self.subresource);
        out.push('}');
        out
    }

    fn seconds(&self) -> i64 {
        let time = self.time.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        time.map_or(0, |time| time.as_second())
    }

    fn into_value(self) -> Value {
        let mut out: Vec<(Key, Value)> = Vec::with_capacity(7);
        let mut put = |name: &'static str, value: Value| out.push((Key::from_static(name), value));
        put("apiVersion", self.api_version.into());
        put("fieldsType", "FieldsV1".into());
        put("fieldsV1", self.fields.into_fields_v1());
        if !self.manager.is_empty() {
            put("manager", self.manager.into());
        }
        put("operation", self.operation.as_str().into());
        if !self.subresource.is_empty() {
            put("subresource", self.subresource.into());
        }
        if let Some(time) = self.time {
            put("time", time.into());
        }
        Value::Object(Map::from_members(out, |_| {}))
    }
}

/// How far the writer of a list is trusted to have written it in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// By a server: taken as it is.
    ByServer,
    /// By a client: names are checked and brought into canonical form.
    ByClient,
}

/// Reads a `managedFields` list. The later of two entries of one manager wins.
///
/// Errors: the first entry that is invalid, in upstream's words.
pub(super) fn decode(list: Value, written: Written) -> Result<Vec<Entry>, String> {
    let items = match list {
        Value::Array(items) => items,
        _ => return Ok(Vec::new()),
    };
    let mut entries: Vec<Entry> = Vec::with_capacity(items.len() + 1);
    for (index, item) in items.into_iter().enumerate() {
        let entry = decode_entry(index, item, written)?;
        match entries.iter_mut().find(|other| other.is(&entry)) {
            Some(other) => *other = entry,
            None => entries.push(entry),
        }
    }
    Ok(entries)
}

fn decode_entry(index: usize, mut item: Value, written: Written) -> Result<Entry, String> {
    let mut text = |name: &str| match item.get_mut(name) {
        Some(Value::Str(text)) => std::mem::take(text),
        _ => String::new(),
    };
    let operation = match text("operation").as_str() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    match text("fieldsType").as_str() {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {} in managed fields entry {index}", quote(other))),
    }
    let (manager, subresource, time) = (text("manager"), text("subresource"), text("time"));
    let fields = item.get_mut("fieldsV1").map(Value::take).unwrap_or_default();
    let fields = match written {
        Written::ByServer => FieldSet::from_canonical(fields),
        Written::ByClient => FieldSet::from_fields_v1(&fields).map_err(|why| {
            format!("error decoding versioned set from managed fields entry {index}: error decoding set: {why}")
        })?,
    };
    let time = (!time.is_empty()).then_some(time);
    Ok(Entry { manager, operation, api_version, subresource, time, fields })
}

/// Writes a list: appliers first, then by time (whole seconds), manager, version, subresource. `None` if it is empty.
pub(super) fn encode(mut entries: Vec<Entry>) -> Option<Value> {
    if entries.is_empty() {
        return None;
    }
    if entries.len() > 1 {
        let mut timed: Vec<(i64, Entry)> = entries.into_iter().map(|entry| (entry.seconds(), entry)).collect();
        timed.sort_by(|(p_time, p), (q_time, q)| {
            (p.operation.cmp(&q.operation))
                .then(p_time.cmp(q_time))
                .then_with(|| p.manager.cmp(&q.manager))
                .then_with(|| p.api_version.cmp(&q.api_version))
                .then_with(|| p.subresource.cmp(&q.subresource))
        });
        entries = timed.into_iter().map(|(_, entry)| entry).collect();
    }
    Some(Value::Array(entries.into_iter().map(Entry::into_value).collect()))
}

/// Merges the oldest Update entries, one bucket for each version, until there are no more than `most`.
pub(super) fn cap_updates(entries: &mut Vec<Entry>, most: usize) {
    let mut length = entries.iter().filter(|entry| entry.operation == Operation::Update).count();
    if length <= most {
        return;
    }
    let (mut updates, mut rest): (Vec<Entry>, Vec<Entry>) =
        std::mem::take(entries).into_iter().partition(|entry| entry.operation == Operation::Update);
    updates.sort_by_cached_key(|entry| (entry.seconds(), entry.identifier()));
    let mut updates: Vec<Option<Entry>> = updates.into_iter().map(Some).collect();
    // By version, the place of the oldest entry, which the second oldest turns into the bucket.
    let mut firsts: Vec<(String, usize)> = Vec::new();
    for at in 0..updates.len() {
        if length <= most {
            break;
        }
        let Some(entry) = updates.get_mut(at).and_then(Option::take) else { continue };
        let Some(first) = firsts.iter().find(|(version, _)| *version == entry.api_version).map(|(_, first)| *first)
        else {
            firsts.push((entry.api_version.clone(), at));
            if let Some(slot) = updates.get_mut(at) {
                *slot = Some(entry);
            }
            continue;
        };
        let bucket = Entry {
            manager: ANCIENT.into(),
            operation: Operation::Update,
            api_version: entry.api_version.clone(),
            subresource: String::new(),
            time: None,
            fields: FieldSet::new(),
        };
        let existing = updates.iter().position(|other| other.as_ref().is_some_and(|other| other.is(&bucket)));
        let is_bucket = entry.is(&bucket);
        let place = existing.unwrap_or(first);
        if let Some(Some(other)) = updates.get_mut(place) {
            if existing.is_none() && !is_bucket {
                let fields = std::mem::take(&mut other.fields);
                *other = Entry { fields, ..bucket };
            }
            other.fields.unite(entry.fields);
            other.time = entry.time;
            length -= 1;
        }
    }
    rest.extend(updates.into_iter().flatten());
    *entries = rest;
}

/// Why a `managedFields` list is invalid, if it is; as upstream's `ValidateManagedFields`, which looks at what admission
/// left behind.
pub fn validate_managed_fields(list: &Value) -> Result<(), String> {
    decode(list.clone(), Written::ByClient).map(|_| ())
}
