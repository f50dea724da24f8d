//! Events: one kind of stored object with two faces, core/v1 and events.k8s.io/v1 (kubernetes
//! `pkg/registry/core/event`, `pkg/apis/core/validation/events.go`, `pkg/apis/events/v1/conversion.go`). Stored is the
//! core one; what a write may say depends on the face.

use crate::{
    api::{ApiError, ErrorList, FieldError, Meta, Path},
    object::{Value, to_string},
    registry::{
        builtin::kind::{NameRule, Own, validate_metadata_as_on_create, validate_metadata_on_update},
        strategy::StrategyContext,
        validation::{FIELD_IMMUTABLE, validate_immutable_or, validate_qualified_name},
    },
    schema,
};

const MAX_REPORTING_INSTANCE: usize = 128;
const MAX_ACTION: usize = 128;
const MAX_REASON: usize = 128;
const MAX_NOTE: usize = 1024;

/// The endpoint of one of the two groups.
pub enum Event {
    /// core/v1: next to nothing is asked for.
    Core,
    /// events.k8s.io/v1: strict.
    Events,
}

impl Own for Event {
    fn judges_metadata(&self) -> bool {
        true
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let controller = match self {
            Self::Core => "reportingComponent",
            Self::Events => "reportingController",
        };
        validate_any(new, controller, errors);
        match (self, old) {
            (Self::Core, _) => {}
            (Self::Events, None) => validate_new(new, errors),
            (Self::Events, Some(old)) => validate_change(new, old, errors),
        }
    }
}

fn is_given(value: Option<&Value>) -> bool {
    value.is_some_and(|it| !it.is_null())
}

/// What both faces ask of any event.
fn validate_any(event: &Value, controller: &str, errors: &mut ErrorList) {
    let own = Meta::of(event).namespace();
    let about = event.str_at(&["involvedObject", "namespace"]);
    let timed = is_given(event.get("eventTime"));
    let fits = match (timed, about) {
        (false, "") => own == "default" || own.is_empty(),
        (false, about) => own == about,
        (true, "") => own == "default" || own == "kube-system",
        (true, _) => true,
    };
    if !fits {
        let object = Path::new("involvedObject");
        errors.push(FieldError::invalid(&object.child("namespace"), about, "does not match event.namespace"));
    }
    if !timed {
        return;
    }
    let reporting = event.str_at(&["reportingComponent"]);
    let path = Path::new(controller);
    if reporting.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    validate_qualified_name(reporting, &path, errors);
    for (member, limit) in
        [("reportingInstance", MAX_REPORTING_INSTANCE), ("action", MAX_ACTION), ("reason", MAX_REASON)]
    {
        if event.str_at(&[member]).is_empty() {
            errors.push(FieldError::required(&Path::new(member), ""));
        }
        validate_length(event, member, limit, errors);
    }
    validate_length(event, "message", MAX_NOTE, errors);
}

fn validate_length(event: &Value, member: &'static str, limit: usize, errors: &mut ErrorList) {
    if event.str_at(&[member]).len() > limit {
        errors.push(FieldError::invalid(&Path::new(member), "", &format!("can have at most {limit} characters")));
    }
}

fn validate_new(event: &Value, errors: &mut ErrorList) {
    validate_metadata_as_on_create(event, true, NameRule::Subdomain, errors);
    validate_series(event, errors);
    if !is_given(event.get("eventTime")) {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = event.str_at(&["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(&Path::new("type"), "", &format!("has invalid value: {kind}")));
    }
    let source = |member: &str| !event.str_at(&["source", member]).is_empty();
    for (member, given) in [
        ("firstTimestamp", is_given(event.get("firstTimestamp"))),
        ("lastTimestamp", is_given(event.get("lastTimestamp"))),
        ("count", event.i64_at(&["count"]).unwrap_or(0) != 0),
        ("source", source("component") || source("host")),
    ] {
        if given {
            errors.push(FieldError::invalid(&Path::new(member), "", "needs to be unset"));
        }
    }
}

fn validate_series(event: &Value, errors: &mut ErrorList) {
    let Some(series) = event.get("series").filter(|it| !it.is_null()) else { return };
    if series.i64_at(&["count"]).unwrap_or(0) < 2 {
        errors.push(FieldError::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if !is_given(series.get("lastObservedTime")) {
        errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
    }
}

fn validate_change(new: &Value, old: &Value, errors: &mut ErrorList) {
    validate_metadata_on_update(new, old, errors);
    if new.get("series") != old.get("series") {
        validate_series(new, errors);
    }
    validate_reference(new, old, "involvedObject", errors);
    let mut same = |member: &'static str, zero: Value| {
        validate_immutable_or(new.get(member), old.get(member), zero, &Path::new(member), errors);
    };
    same("reason", "".into());
    same("message", "".into());
    let source = |event: &Value| {
        (event.str_at(&["source", "component"]).to_owned(), event.str_at(&["source", "host"]).to_owned())
    };
    if source(new) != source(old) {
        let (component, host) = source(new);
        let shown = format!("{{\"Component\":{},\"Host\":{}}}", to_string(&component.into()), to_string(&host.into()));
        errors.push(FieldError::invalid_shown(&Path::new("source"), shown, FIELD_IMMUTABLE));
    }
    let mut same = |member: &'static str, zero: Value| {
        validate_immutable_or(new.get(member), old.get(member), zero, &Path::new(member), errors);
    };
    same("firstTimestamp", Value::Null);
    same("lastTimestamp", Value::Null);
    same("count", 0.into());
    same("reason", "".into());
    same("type", "".into());
    same("eventTime", Value::Null);
    same("action", "".into());
    validate_reference(new, old, "related", errors);
    for (member, name) in [("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")] {
        validate_immutable_or(new.get(member), old.get(member), "".into(), &Path::new(name), errors);
    }
}

/// A reference to an object, which Go shows by its own names.
fn validate_reference(new: &Value, old: &Value, member: &'static str, errors: &mut ErrorList) {
    let (now, before) = (new.get(member), old.get(member));
    if now == before {
        return;
    }
    const MEMBERS: [(&str, &str); 7] = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    let shown = now.map_or("null".to_owned(), |now| {
        let members = MEMBERS.map(|(shown, name)| format!("\"{shown}\":{}", to_string(&now.str_at(&[name]).into())));
        format!("{{{}}}", members.join(","))
    });
    errors.push(FieldError::invalid_shown(&Path::new(member), shown, FIELD_IMMUTABLE));
}

/// What a member is called in core/v1 and in events.k8s.io/v1.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// From one face to the other; `to` is an `apiVersion`.
pub fn convert(event: &mut Value, to: &str) -> Result<(), ApiError> {
    let Some(map) = event.as_object_mut() else { return Ok(()) };
    let to_core = to == "v1";
    for (core, events) in NAMES {
        let (from, to) = if to_core { (events, core) } else { (core, events) };
        if let Some(value) = map.remove(from) {
            map.insert(to, value);
        }
    }
    let table = schema::builtin();
    let group = if to_core { "" } else { "events.k8s.io" };
    if let Some(ty) = table.kind(group, "v1", "Event") {
        schema::normalise(table, ty, event);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn both_faces_show_the_same_event_each_as_go_prints_it() {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"}, "eventTime": "2024-05-01T10:00:00.123456Z",
            "regarding": {"kind": "Pod"}, "note": "n", "reportingController": "example.com/c"
        });
        let before = event.clone();
        convert(&mut event, "v1").unwrap();
        assert_eq!(event.str_at(&["involvedObject", "kind"]), "Pod");
        assert_eq!(event.str_at(&["message"]), "n");
        assert_eq!(event.str_at(&["reportingComponent"]), "example.com/c");
        assert_eq!(event.get("reportingInstance"), Some(&"".into()));
        assert_eq!(event.get("firstTimestamp"), Some(&Value::Null));
        convert(&mut event, "events.k8s.io/v1").unwrap();
        for member in ["regarding", "note", "reportingController", "eventTime"] {
            assert_eq!(event.get(member), before.get(member), "{member}");
        }
        assert_eq!(event.get("reportingInstance"), None);
    }
}
