//! Server-side apply (structured-merge-diff `merge/update.go`, apimachinery `pkg/util/managedfields/internal`).

use super::{
    Converted, WriteContext,
    compare::equal,
    conflict::conflict_error,
    field_set::field_set,
    last_applied,
    managers::{Entry, Operation, Written, decode, encode},
    merge::merge,
    remove::remove_fields,
    set::FieldSet,
    shape::{Ref, Types},
    update::{
        Versioned, conflicts, reconcile_entries, set_managed_fields, strip, take_over, update_entries,
        without_managed_fields, zero_object,
    },
    validate::validate,
};
use crate::{
    api::ApiError,
    object::Value,
    schema::{Table, TypeId, patch::convert_types},
};

/// The manager that owns what was there before anybody's fields were tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// An apply: who and how, and what becomes of the result.
#[derive(Clone, Copy)]
pub struct ApplyContext<'a> {
    pub write: WriteContext<'a>,
    /// The kind of the endpoint.
    pub kind: &'a str,
    /// Take fields over from other managers.
    pub force: bool,
    /// Brings a merged object into the form it would have had it been sent: decoded and defaulted.
    pub finish: &'a dyn Fn(Value) -> Result<Value, String>,
}

/// Applies `config` to the stored object (`None`: to nothing, which creates it). Both are in the version of the
/// request; `live` is decoded, `config` is as it was sent.
///
/// Gives the object to write, with its `managedFields`; `None` if neither it nor they differ from what is stored.
///
/// Errors: 400 for another kind or version or given `managedFields`; 409 for conflicts; 500 without a reason for what
/// does not fit the type, as upstream.
pub fn apply(
    table: &Table,
    ty: TypeId,
    live: Option<&Value>,
    config: &Value,
    ctx: &ApplyContext<'_>,
) -> Result<Option<Value>, ApiError> {
    check_kind(config, ctx)?;
    let stored_list = live.and_then(|live| live.at(&["metadata", "managedFields"])).cloned().unwrap_or_default();
    let entries = decode(stored_list, Written::ByServer)
        .map_err(|e| ApiError::unmapped(format!("failed to decode managed fields: {e}")))?;
    let base = match live {
        Some(live) => without_managed_fields(live),
        None => {
            let mut zero = zero_object(table, ty);
            zero.set(&["apiVersion"], ctx.write.api_version);
            zero.set(&["kind"], ctx.kind);
            zero
        }
    };
    let apply = Apply { types: Types { table }, id: ty, ty: Ref::of(ty), live: &base, config, ctx };
    let entries = if entries.is_empty() { apply.before_first_apply(table, ty)? } else { entries };
    let (mut object, entries) = apply.run(entries)?;
    if ctx.write.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    set_managed_fields(&mut object, encode(entries));
    Ok((live != Some(&object)).then_some(object))
}

fn check_kind(config: &Value, ctx: &ApplyContext<'_>) -> Result<(), ApiError> {
    let same = config.str_at(&["kind"]) == ctx.kind && config.str_at(&["apiVersion"]) == ctx.write.api_version;
    if same { Ok(()) } else { Err(ApiError::bad_request(format!("invalid object type: {}", show_kind(config)))) }
}

/// Go's text of a group-version-kind: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
fn show_kind(object: &Value) -> String {
    let (group, version) = match object.str_at(&["apiVersion"]) {
        "" | "/" => ("", ""),
        text => match text.split_once('/') {
            None => ("", text),
            Some((group, version)) if !version.contains('/') => (group, version),
            // With a version that is none, upstream forgets the kind too.
            Some(_) => return "/, Kind=".into(),
        },
    };
    format!("{group}/{version}, Kind={}", object.str_at(&["kind"]))
}

/// Go's text of an object in messages: `ns/name; apps/v1, Kind=Deployment`.
fn show_object(object: &Value) -> String {
    format!(
        "{}/{}; {}",
        object.str_at(&["metadata", "namespace"]),
        object.str_at(&["metadata", "name"]),
        show_kind(object)
    )
}

struct Apply<'a> {
    types: Types<'a>,
    id: TypeId,
    ty: Ref,
    /// Without `managedFields`.
    live: &'a Value,
    config: &'a Value,
    ctx: &'a ApplyContext<'a>,
}

impl<'a> Apply<'a> {
    /// The first entry of an object that has none: everything that is there has an owner then.
    fn before_first_apply(&self, table: &Table, ty: TypeId) -> Result<Vec<Entry>, ApiError> {
        let zero = zero_object(table, ty);
        let object = Versioned { types: self.types, ty: self.ty, old: &zero, new: self.live };
        let ctx = WriteContext { manager: BEFORE_FIRST_APPLY, ..self.ctx.write };
        object.comparison(&ctx).and_then(|comparison| update_entries(&object, comparison, Vec::new(), &ctx)).map_err(
            |e| {
                let live = show_object(self.live);
                unmapped(format!(
                    "failed to create manager for existing fields: failed to update ManagedFields ({live}): {e}"
                ))
            },
        )
    }

    /// The object and its entries after the apply.
    fn run(&self, entries: Vec<Entry>) -> Result<(Value, Vec<Entry>), ApiError> {
        self.check_config()?;
        validate(&self.types, self.ty, self.live, true)
            .map_err(|e| unmapped(format!("failed to create typed live object ({}): {e}", show_object(self.live))))?;
        let (merged, entries, applier) = self.merge(entries)?;
        let object = Versioned { types: self.types, ty: self.ty, old: self.live, new: &merged };
        let entries = self.settle(&object, entries, &applier)?;
        self.finish(merged, entries, &applier)
    }

    fn check_config(&self) -> Result<(), ApiError> {
        if matches!(self.config.at(&["metadata", "managedFields"]), Some(Value::Array(_))) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        validate(&self.types, self.ty, self.config, false)
            .map_err(|e| unmapped(format!("failed to create typed patch object ({}): {e}", show_object(self.config))))
    }

    /// Lays the configuration over the live object and takes away what the manager has applied before and no longer
    /// wants. Gives the object, the entries with the applier's new one, and that one.
    fn merge(&self, entries: Vec<Entry>) -> Result<(Value, Vec<Entry>, Entry), ApiError> {
        let ctx = &self.ctx.write;
        let live = Versioned { types: self.types, ty: self.ty, old: self.live, new: self.live };
        let mut entries = reconcile_entries(&live, entries, ctx).map_err(unmapped)?;
        let merged = merge(&self.types, self.ty, self.live, self.config)
            .map_err(|e| unmapped(format!("failed to merge config: {e}")))?;
        let mut fields = field_set(&self.types, self.ty, self.config);
        ctx.reset.set(&mut fields);
        let mut applier = ctx.entry(Operation::Apply, fields);
        let last = match entries.iter_mut().find(|entry| entry.is(&applier)) {
            Some(entry) => {
                applier.time = entry.time.take();
                Some(std::mem::replace(entry, applier.clone()))
            }
            None => {
                applier.time = None;
                entries.push(applier.clone());
                None
            }
        };
        let merged = match last.filter(|last| !self.keeps_all(last, &applier, &entries)) {
            Some(last) => {
                self.prune(merged, &entries, &last).map_err(|e| unmapped(format!("failed to prune fields: {e}")))?
            }
            None => merged,
        };
        Ok((merged, entries, applier))
    }

    /// Whether nothing can be pruned, since the manager wants all that it has applied before. Only where one version is
    /// used: a conversion may have an opinion of its own.
    fn keeps_all(&self, last: &Entry, applier: &Entry, entries: &[Entry]) -> bool {
        let request = self.ctx.write.api_version;
        let one_version = last.api_version == request && entries.iter().all(|entry| entry.api_version == request);
        last.fields.is_empty() || (one_version && last.fields.is_within(&applier.fields))
    }

    /// Conflicts, or the loss of other managers.
    fn settle(&self, object: &Versioned<'_>, mut entries: Vec<Entry>, applier: &Entry) -> Result<Vec<Entry>, ApiError> {
        let ctx = &self.ctx.write;
        let comparison = object.comparison(ctx).map_err(unmapped)?;
        if !self.ctx.force {
            let mut found = conflicts(object, &comparison, &entries, applier, ctx).map_err(unmapped)?;
            if !found.is_empty() && ctx.manager == last_applied::MANAGER {
                found = last_applied::remaining(&self.types, self.ty, self.live, found);
            }
            if !found.is_empty() {
                return Err(conflict_error(found));
            }
        }
        take_over(object, &comparison, &mut entries, Some(applier), ctx).map_err(unmapped)?;
        if let Some(entry) = entries.iter_mut().find(|entry| entry.is(applier)) {
            strip(&mut entry.fields);
        }
        entries.retain(|entry| !entry.fields.is_empty());
        Ok(entries)
    }

    /// Only a change of the object renews the time of the entry.
    fn finish(&self, merged: Value, mut entries: Vec<Entry>, applier: &Entry) -> Result<(Value, Vec<Entry>), ApiError> {
        if equal(self.live, &merged) {
            return Ok((self.live.clone(), entries));
        }
        let object = self.typed(merged).map_err(|e| {
            unmapped(format!("failed to convert new object ({}) to proper version: {e}", show_object(self.config)))
        })?;
        if let Some(entry) = entries.iter_mut().find(|entry| entry.is(applier)) {
            entry.time = Some(self.ctx.write.now.into());
        }
        Ok((object, entries))
    }

    /// The merged object decoded and defaulted; those of built-in kinds become Go's first.
    fn typed(&self, mut merged: Value) -> Result<Value, String> {
        let table = self.types.table;
        if table.get(self.id).go.is_empty() {
            return (self.ctx.finish)(merged);
        }
        convert_types(table, self.id, &mut merged)
            .and_then(|()| (self.ctx.finish)(merged))
            .map_err(|e| format!("unable to convert unstructured object to {}: {e}", show_kind(self.config)))
    }

    /// Takes out what `last` had applied and nobody owns now, in the version it was applied in.
    fn prune(&self, merged: Value, entries: &[Entry], last: &Entry) -> Result<Value, String> {
        let merged = Typed { types: self.types, ty: self.ty, value: merged };
        let Some(merged_then) = self.convert(&merged, &last.api_version)? else { return Ok(merged.value) };
        let pruned = merged_then.without(&merged_then.ensure_named(&last.fields));
        let pruned = self.add_back_owned(merged_then.clone(), pruned, &last.api_version, entries)?;
        let pruned = self.add_back_dangling(merged_then, &pruned, last)?;
        let request = self.ctx.write.api_version;
        match self.convert(&pruned, request)? {
            Some(pruned) => Ok(pruned.value),
            None => Err(format!("version {request} is not served")),
        }
    }

    /// Puts back what others own, version by version; the pruned one first, since a conversion may need it.
    fn add_back_owned(
        &self,
        mut merged: Typed<'a>,
        mut pruned: Typed<'a>,
        pruned_version: &str,
        entries: &[Entry],
    ) -> Result<Typed<'a>, String> {
        let mut owned: Vec<(&str, FieldSet)> = Vec::new();
        for entry in entries {
            match owned.iter_mut().find(|(version, _)| *version == entry.api_version) {
                Some((_, fields)) => fields.unite(entry.fields.clone()),
                None => owned.push((&entry.api_version, entry.fields.clone())),
            }
        }
        owned.sort_by_key(|(version, _)| (*version != pruned_version, *version));
        for (version, fields) in owned {
            let Some(merged_now) = self.convert(&merged, version)? else { continue };
            let Some(pruned_now) = self.convert(&pruned, version)? else { continue };
            let mut lost = merged_now.named_fields();
            lost.subtract(&pruned_now.named_fields());
            lost.subtract(&merged_now.ensure_named(&fields));
            pruned = merged_now.without(&lost);
            merged = merged_now;
        }
        Ok(pruned)
    }

    /// Puts back what went although the manager had not applied it itself: members below something it dropped.
    fn add_back_dangling(&self, merged: Typed<'a>, pruned: &Typed<'a>, last: &Entry) -> Result<Typed<'a>, String> {
        let Some(pruned) = self.convert(pruned, &last.api_version)? else { return Ok(merged) };
        let mut lost = merged.named_fields();
        lost.subtract(&pruned.named_fields());
        let lost = lost.intersection(&merged.ensure_named(&last.fields));
        Ok(merged.without(&lost))
    }

    /// The object in a version; `None` where that is not served.
    fn convert(&self, object: &Typed<'a>, api_version: &str) -> Result<Option<Typed<'a>>, String> {
        if object.value.str_at(&["apiVersion"]) == api_version {
            return Ok(Some(object.clone()));
        }
        match self.ctx.write.convert(&object.value, api_version) {
            Converted::Object { table, ty, value } => {
                Ok(Some(Typed { types: Types { table }, ty: Ref::of(ty), value }))
            }
            Converted::Missing => Ok(None),
            Converted::Failed(why) => Err(format!("failed to convert object to version {api_version}: {why}")),
        }
    }
}

/// An object with its type.
#[derive(Clone)]
struct Typed<'a> {
    types: Types<'a>,
    ty: Ref,
    value: Value,
}

impl<'a> Typed<'a> {
    fn without(&self, fields: &FieldSet) -> Typed<'a> {
        Typed { value: remove_fields(&self.types, self.ty, &self.value, fields), ..*self }
    }

    fn ensure_named(&self, fields: &FieldSet) -> FieldSet {
        fields.ensure_named_fields(&self.types, self.ty)
    }

    fn named_fields(&self) -> FieldSet {
        self.ensure_named(&field_set(&self.types, self.ty, &self.value))
    }
}

fn unmapped(message: String) -> ApiError {
    ApiError::unmapped(message)
}
