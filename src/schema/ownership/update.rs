//! Who owns what after a write (structured-merge-diff `merge/update.go`, apimachinery
//! `pkg/util/managedfields/internal`).

use std::sync::OnceLock;

use super::{
    Converted, WriteContext,
    compare::{Comparison, compare},
    conflict::Conflict,
    managers::{Entry, MAX_UPDATE_MANAGERS, Operation, Written, cap_updates, decode, encode},
    reconcile::reconcile,
    set::FieldSet,
    shape::{Ref, Types},
};
use crate::{
    object::{Key, Value},
    schema::{Table, TypeId, zero},
};

const METADATA: &str = "metadata";
const MANAGED_FIELDS: &str = "managedFields";

/// Fields that nobody owns.
fn never_owned() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| {
        FieldSet::of(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    })
}

/// What upstream compares a new object with: a Go struct without content, whose JSON is not always `{}`. So
/// `spec.containers` (null in the zero pod) has no owner of its own, while `metadata.labels` has. Custom resources have
/// no Go type and start empty.
pub(super) fn zero_object(table: &Table, ty: TypeId) -> Value {
    let ty = table.get(ty);
    if ty.go.is_empty() { Value::object() } else { zero::of(table, ty) }
}

fn managed_fields_path() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| FieldSet::of(&[&[METADATA, MANAGED_FIELDS]]))
}

/// Sets `metadata.managedFields` of an object that is about to be written by anything but an apply.
///
/// `live` is the stored object in the version of the request (`None` on create), `new` the wanted one, decoded and
/// defaulted, with whatever `managedFields` the request gave. The writer comes to own what differs between the two;
/// other managers lose it. Where nothing differs the stored list is kept as it is, times included. If the sets cannot
/// be computed the stored list is kept too, since a write never fails for its sake.
pub fn update_managed_fields(table: &Table, ty: TypeId, live: Option<&Value>, new: &mut Value, ctx: &WriteContext<'_>) {
    let given = new.remove_at(&[METADATA, MANAGED_FIELDS]);
    let stored = live.and_then(|live| live.at(&[METADATA, MANAGED_FIELDS]));
    let start = match Start::of(given, stored, ctx) {
        Some(start) => start,
        // The object exists and nothing was tracked (or it was reset just now): tracking does not start again.
        None if live.is_some_and(|live| !live.str_at(&[METADATA, "uid"]).is_empty()) => return,
        None => Start::Entries(Vec::new()),
    };
    let zero;
    let old = match live {
        Some(live) => live,
        None => {
            zero = zero_object(table, ty);
            &zero
        }
    };
    let written = updated(table, ty, old, new, start, ctx).unwrap_or_else(|_| stored.cloned());
    set_managed_fields(new, written);
}

/// The entries a write starts from.
enum Start {
    /// The stored list, untouched.
    Stored(Value),
    /// A list that the request changed.
    Entries(Vec<Entry>),
}

impl Start {
    /// `None`: there are none.
    fn of(given: Option<Value>, stored: Option<&Value>, ctx: &WriteContext<'_>) -> Option<Self> {
        let keep = |stored: Option<&Value>| {
            stored.filter(|list| list.as_array().is_some_and(|list| !list.is_empty())).cloned().map(Self::Stored)
        };
        // Through a subresource the list cannot be changed by hand.
        let given = match given {
            Some(Value::Array(given)) if ctx.subresource.is_empty() => Value::Array(given),
            _ => return keep(stored),
        };
        if stored == Some(&given) {
            return Some(Self::Stored(given));
        }
        if is_reset(&given) {
            return None;
        }
        match decode(given, Written::ByClient) {
            Ok(entries) if !entries.is_empty() => Some(Self::Entries(entries)),
            _ => keep(stored),
        }
    }
}

/// An empty list or one empty entry asks to forget all owners.
fn is_reset(list: &Value) -> bool {
    match list.as_array() {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(|entry| entry.is_empty()),
        _ => false,
    }
}

fn updated(
    table: &Table,
    ty: TypeId,
    old: &Value,
    new: &Value,
    start: Start,
    ctx: &WriteContext<'_>,
) -> Result<Option<Value>, String> {
    let object = Versioned { types: Types { table }, ty: Ref::of(ty), old, new };
    let comparison = object.comparison(ctx)?;
    let entries = match start {
        Start::Stored(list) if comparison.is_same() => return Ok(Some(list)),
        Start::Stored(list) => decode(list, Written::ByServer)?,
        Start::Entries(entries) => entries,
    };
    Ok(encode(update_entries(&object, comparison, entries, ctx)?))
}

/// The entries after an update by `ctx.manager`.
pub(super) fn update_entries(
    object: &Versioned<'_>,
    comparison: Comparison,
    entries: Vec<Entry>,
    ctx: &WriteContext<'_>,
) -> Result<Vec<Entry>, String> {
    let mut entries = reconcile_entries(object, entries, ctx)?;
    take_over(object, &comparison, &mut entries, None, ctx)?;
    let mut fields = comparison.modified.union(comparison.added);
    strip(&mut fields);
    if !fields.is_empty() {
        own(&mut entries, ctx.entry(Operation::Update, fields));
    }
    cap_updates(&mut entries, MAX_UPDATE_MANAGERS);
    Ok(entries)
}

/// Adds to the entry of a manager, or adds the entry.
fn own(entries: &mut Vec<Entry>, entry: Entry) {
    match entries.iter_mut().find(|other| other.is(&entry)) {
        Some(other) => {
            other.fields.unite(entry.fields);
            other.time = entry.time;
        }
        None => entries.push(entry),
    }
}

/// Takes what has changed from all other managers, and drops those that are left with nothing.
///
/// Errors: the object cannot be converted into the version of a manager.
pub(super) fn take_over(
    object: &Versioned<'_>,
    comparison: &Comparison,
    entries: &mut Vec<Entry>,
    applier: Option<&Entry>,
    ctx: &WriteContext<'_>,
) -> Result<(), String> {
    if entries.is_empty() {
        return Ok(());
    }
    let others = other_versions(object, entries, applier, ctx)?;
    let changed = comparison.modified.clone().union(comparison.added.clone());
    entries.retain_mut(|entry| {
        if applier.is_some_and(|applier| applier.is(entry)) {
            return !entry.fields.is_empty();
        }
        let (changed, removed) = match others.of(&entry.api_version, ctx) {
            Side::Same => (&changed, &comparison.removed),
            Side::Other(comparison, changed) => (changed, &comparison.removed),
            Side::Missing => return false,
        };
        entry.fields.subtract(changed);
        entry.fields.subtract(removed);
        !entry.fields.is_empty()
    });
    Ok(())
}

/// What an apply would take from others.
pub(super) fn conflicts(
    object: &Versioned<'_>,
    comparison: &Comparison,
    entries: &[Entry],
    applier: &Entry,
    ctx: &WriteContext<'_>,
) -> Result<Vec<Conflict>, String> {
    let others = other_versions(object, entries, Some(applier), ctx)?;
    let changed = comparison.modified.clone().union(comparison.added.clone());
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| !applier.is(entry)) {
        let changed = match others.of(&entry.api_version, ctx) {
            Side::Same => &changed,
            Side::Other(_, changed) => changed,
            Side::Missing => continue,
        };
        let fields = entry.fields.intersection(changed);
        if !fields.is_empty() {
            let owner = Entry {
                manager: entry.manager.clone(),
                operation: entry.operation,
                api_version: entry.api_version.clone(),
                subresource: entry.subresource.clone(),
                time: None,
                fields: FieldSet::new(),
            };
            found.push(Conflict { owner, fields });
        }
    }
    Ok(found)
}

/// Comparisons in the versions of other managers, each with what has changed; `None` where a version is not served.
struct OtherVersions(Vec<(String, Option<(Comparison, FieldSet)>)>);

enum Side<'a> {
    Same,
    Other(&'a Comparison, &'a FieldSet),
    Missing,
}

impl OtherVersions {
    fn of(&self, api_version: &str, ctx: &WriteContext<'_>) -> Side<'_> {
        if api_version == ctx.api_version {
            return Side::Same;
        }
        match self.0.iter().find(|(version, _)| version == api_version) {
            Some((_, Some((comparison, changed)))) => Side::Other(comparison, changed),
            _ => Side::Missing,
        }
    }
}

fn other_versions(
    object: &Versioned<'_>,
    entries: &[Entry],
    applier: Option<&Entry>,
    ctx: &WriteContext<'_>,
) -> Result<OtherVersions, String> {
    let mut others = OtherVersions(Vec::new());
    for entry in entries {
        let version = &entry.api_version;
        let known = version == ctx.api_version || others.0.iter().any(|(other, _)| other == version);
        if known || applier.is_some_and(|applier| applier.is(entry)) {
            continue;
        }
        let compared = object.comparison_in(version, ctx)?.map(|comparison| {
            let changed = comparison.modified.clone().union(comparison.added.clone());
            (comparison, changed)
        });
        others.0.push((version.clone(), compared));
    }
    Ok(others)
}

/// An object before and after, in the version of the request.
pub(super) struct Versioned<'a> {
    pub types: Types<'a>,
    pub ty: Ref,
    pub old: &'a Value,
    pub new: &'a Value,
}

impl Versioned<'_> {
    /// What differs, apart from what the request never owns.
    pub fn comparison(&self, ctx: &WriteContext<'_>) -> Result<Comparison, String> {
        let mut comparison =
            compare(&self.types, self.ty, self.old, self.new).map_err(|e| format!("failed to compare objects: {e}"))?;
        filter(&mut comparison, ctx);
        Ok(comparison)
    }

    /// The same in another version; `None` where that is not served.
    fn comparison_in(&self, api_version: &str, ctx: &WriteContext<'_>) -> Result<Option<Comparison>, String> {
        let old = match ctx.convert(self.old, api_version) {
            Converted::Object { value, .. } => value,
            Converted::Missing => return Ok(None),
            Converted::Failed(why) => return Err(format!("failed to convert old object: {why}")),
        };
        let (table, ty, new) = match ctx.convert(self.new, api_version) {
            Converted::Object { table, ty, value } => (table, ty, value),
            Converted::Missing => return Ok(None),
            Converted::Failed(why) => return Err(format!("failed to convert new object: {why}")),
        };
        let mut comparison = compare(&Types { table }, Ref::of(ty), &old, &new)
            .map_err(|e| format!("failed to compare objects: {e}"))?;
        filter(&mut comparison, ctx);
        Ok(Some(comparison))
    }
}

fn filter(comparison: &mut Comparison, ctx: &WriteContext<'_>) {
    // `managedFields` is taken out of the new object before, so it seems to be removed.
    comparison.removed.subtract_recursively(managed_fields_path());
    ctx.reset.comparison(comparison);
}

/// Brings sets up to date with types that became atomic since they were written; sets in versions that are no longer
/// served are dropped.
pub(super) fn reconcile_entries(
    object: &Versioned<'_>,
    mut entries: Vec<Entry>,
    ctx: &WriteContext<'_>,
) -> Result<Vec<Entry>, String> {
    let mut failed = None;
    entries.retain_mut(|entry| {
        let reconciled = if entry.api_version == ctx.api_version {
            reconcile(&object.types, object.ty, &entry.fields)
        } else {
            match ctx.convert(object.old, &entry.api_version) {
                Converted::Object { table, ty, .. } => reconcile(&Types { table }, Ref::of(ty), &entry.fields),
                Converted::Missing => return false,
                Converted::Failed(why) => {
                    failed.get_or_insert(why);
                    return true;
                }
            }
        };
        if let Some(fields) = reconciled {
            entry.fields = fields;
        }
        true
    });
    failed.map_or(Ok(entries), Err)
}

/// Takes from a set what nobody owns.
pub(super) fn strip(fields: &mut FieldSet) {
    fields.subtract(never_owned());
}

/// Puts a list into an object, or takes it out.
pub(super) fn set_managed_fields(object: &mut Value, list: Option<Value>) {
    match list {
        Some(list) => *object.make(&[METADATA, MANAGED_FIELDS]) = list,
        None => {
            object.remove_at(&[METADATA, MANAGED_FIELDS]);
        }
    }
}

/// The object without its list.
pub(super) fn without_managed_fields(object: &Value) -> Value {
    let Some(members) = object.as_object() else { return object.clone() };
    let strip = |metadata: &Value| match metadata.as_object() {
        Some(metadata) => metadata
            .iter()
            .filter(|(name, _)| name.as_str() != MANAGED_FIELDS)
            .map(|(name, value)| (Key::clone(name), value.clone()))
            .collect::<crate::object::Map>()
            .into(),
        None => metadata.clone(),
    };
    members
        .iter()
        .map(|(name, value)| (Key::clone(name), if name.as_str() == METADATA { strip(value) } else { value.clone() }))
        .collect::<crate::object::Map>()
        .into()
}
