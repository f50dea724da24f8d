//! patch: a change of the current object, in one of four languages.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Endpoints, Scope, body,
    body::Kind,
    encode,
    options::{FieldValidation, WriteOptions},
    ownership, update,
    update::{Source, Wanted},
};
use crate::{
    admission::Operation,
    api::{ApiError, ErrorList, FieldError, Meta, Path, clock, duration::parse_time},
    codec::{self, Format},
    object::{Key, Map, Value, to_string, yaml},
    schema::{
        self,
        ownership::{ApplyContext, apply},
        patch::{
            JsonPatch, Opened, convert_types, go_print, merge_patch, parse_merge_patch, parse_strategic_patch,
            show_patched, strategic_merge,
        },
    },
    server::{
        context::{Exchange, Warnings},
        heavy,
        http::Response,
        negotiate::unsupported_media_type,
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
    /// An apply in CBOR.
    ApplyCbor,
}

impl Language {
    const ALL: [Self; 5] = [Self::Json, Self::Merge, Self::Strategic, Self::Apply, Self::ApplyCbor];

    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
            Self::ApplyCbor => "application/apply-patch+cbor",
        }
    }

    fn is_apply(self) -> bool {
        matches!(self, Self::Apply | Self::ApplyCbor)
    }

    /// # Errors
    /// 415: the router's for built-in kinds, the handler's for custom resources.
    fn of(cx: &Exchange, scope: &Scope<'_>) -> Result<Self, ApiError> {
        let given = cx.header("content-type").split(';').next().unwrap_or("").trim();
        let allowed = |language: &Self| match language {
            Self::Strategic => scope.resource.strategic_merge,
            Self::ApplyCbor => cx.formats.contains(&Format::Cbor),
            _ => true,
        };
        let known = Self::ALL.into_iter().filter(allowed).find(|language| language.media_type() == given);
        known.ok_or_else(|| {
            if scope.resource.typed_items {
                let types: Vec<&str> = Self::ALL.iter().filter(|it| allowed(it)).map(|it| it.media_type()).collect();
                unsupported_media_type(&types)
            } else {
                ApiError::unsupported_media_type("415: Unsupported Media Type").with_details(Default::default())
            }
        })
    }
}

impl Endpoints {
    pub(super) async fn patch(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let language = Language::of(cx, scope)?;
        let options = WriteOptions::decode(&cx.query, "PatchOptions", Some(language.is_apply()))?;
        let accepted = encode::accepted(cx, scope, false)?;
        let bytes = cx.read_body().await?;
        let manager = ownership::manager(cx, &options.field_manager);
        let value = options.to_value("PatchOptions", &cx.query);
        let admission = self.admission_for(cx, scope, Operation::Update, options.dry_run, &value)?;
        let format = if language == Language::Apply { Format::Yaml } else { Format::Json };
        let patch = heavy::run(body::weight(&bytes, format), || {
            Patch::read(language, bytes.clone(), scope, &options, &manager, &cx.warnings)
        });
        let patch = patch.await?;
        let by_patch = |old: Option<&Value>| patch.patched(old);
        let by_apply = |old: Option<&Value>| patch.applied(old);
        let source = if language.is_apply() { Source::Apply(&by_apply) } else { Source::Patch(&by_patch) };
        let mut transform = Wanted {
            source,
            scope,
            manager: &manager,
            admission: &admission,
            warnings: &cx.warnings,
            rights: &self.rights,
            user: cx.user.clone(),
        };
        let write = admission.write(scope);
        let creates = language.is_apply() && scope.subresource.is_none();
        let stored = scope.store()?.update(scope.name, write, &mut transform, &admission, creates).await?;
        let status = if stored.created { 201 } else { 200 };
        update::answer(cx, scope, accepted, status, stored)
    }
}

/// A patch that was read once and may be made several times.
struct Patch<'a> {
    /// What to do; a patch that cannot be read fails where it is made, after the object was found.
    change: Result<Change, ApiError>,
    scope: &'a Scope<'a>,
    options: &'a WriteOptions,
    manager: &'a str,
    warnings: &'a Warnings,
    /// What strict reading has against the patch's own text.
    problems: Vec<String>,
}

enum Change {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Map),
    Apply(Value),
}

impl<'a> Patch<'a> {
    fn read(
        language: Language,
        bytes: Bytes,
        scope: &'a Scope<'a>,
        options: &'a WriteOptions,
        manager: &'a str,
        warnings: &'a Warnings,
    ) -> Result<Self, ApiError> {
        let report = options.field_validation != FieldValidation::Ignore;
        let read = match language {
            Language::Json => JsonPatch::parse(&bytes, report).map(|(patch, problems)| (Change::Json(patch), problems)),
            Language::Merge => {
                parse_merge_patch(&bytes, report).map(|(patch, problems)| (Change::Merge(patch), problems))
            }
            Language::Strategic => {
                parse_strategic_patch(&bytes, report).map(|(patch, problems)| (Change::Strategic(patch), problems))
            }
            Language::Apply | Language::ApplyCbor => {
                let format = if language == Language::Apply { Format::Yaml } else { Format::Cbor };
                let (config, problem) = read_config(&bytes, format)?;
                Ok((Change::Apply(config), problem.into_iter().collect()))
            }
        };
        let (change, problems) = match read {
            Ok((change, problems)) => (Ok(change), problems),
            Err(_) if crate::object::parse(&bytes).is_err() => return Err(ApiError::bad_request("invalid JSON patch")),
            Err(error) => (Err(ApiError::from(error)), Vec::new()),
        };
        Ok(Self { change, scope, options, manager, warnings, problems })
    }

    /// The current object with the change made, decoded and defaulted.
    fn patched(&self, old: Option<&Value>) -> Result<Value, ApiError> {
        let scope = self.scope;
        let old = old.ok_or_else(|| ApiError::not_found(scope.gr(), scope.name))?;
        let kind = self.kind();
        let change = self.change.as_ref().map_err(Clone::clone)?;
        let (table, ty) = self.typed()?;
        let mut converted = Ok(());
        let (mut new, shown): (Value, Box<dyn Fn(&Value) -> String>) = match change {
            Change::Json(patch) => {
                let shown = move |new: &Value| show_patched(table, ty, new, &Opened::by_operations(patch));
                (patch.apply(old.clone())?, Box::new(shown))
            }
            Change::Merge(patch) => {
                let shown = move |new: &Value| show_patched(table, ty, new, &Opened::by_merge(patch));
                (merge_patch(old.clone(), patch)?, Box::new(shown))
            }
            Change::Strategic(patch) => {
                let mut merged = strategic_merge(table, ty, old.clone(), patch)?;
                converted = convert_types(table, ty, &mut merged);
                (merged, Box::new(move |_| go_print::plain_map(patch)))
            }
            Change::Apply(_) => return Err(ApiError::internal("an apply is not a patch of text")),
        };
        let before = new.clone();
        let custom = scope.resource.typed_items && !scope.is_scale();
        let refuse = |cause: &str| {
            let field = Path::new("patch");
            let text = if custom { to_string(&sorted(&before)) } else { shown(&before) };
            let error = FieldError::invalid(&field, text, cause);
            ApiError::invalid("", "", "", &ErrorList::from_iter([error]))
        };
        let refuse_plain = |cause: &str| refuse(cause);
        if new.as_object().is_none() {
            return Err(refuse_plain(&format!(
                "json: cannot unmarshal {} into Go value of type {}",
                new.json_type(),
                kind.kind
            )));
        }
        self.complete_type(&mut new).map_err(|cause| refuse_plain(&cause))?;
        let unknown = converted.and_then(|()| self.decode(&mut new)).map_err(|cause| refuse_plain(&cause))?;
        let mut problems = self.problems.clone();
        problems.extend(schema::strict_errors(unknown, Vec::new(), None));
        match self.options.field_validation {
            FieldValidation::Strict if !problems.is_empty() => {
                return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
            }
            FieldValidation::Warn => self.warnings.extend(problems),
            _ => {}
        }
        self.default(&mut new);
        self.settle_identity(&mut new)?;
        Ok(new)
    }

    fn kind(&self) -> Kind<'a> {
        Kind::of(self.scope)
    }

    /// The type the change is made on: the row's own, or the Scale's.
    fn typed(&self) -> Result<(&crate::schema::Table, crate::schema::TypeId), ApiError> {
        if self.scope.is_scale() {
            let (table, kind) = (crate::schema::builtin(), self.kind());
            let ty = table.kind(kind.group, kind.version, kind.kind);
            return Ok((table, ty.ok_or_else(|| ApiError::internal("the scale has no type"))?));
        }
        Ok(self.scope.version.schema.typed())
    }

    fn decode(&self, new: &mut Value) -> Result<Vec<String>, String> {
        if self.scope.is_scale() {
            body::decode_builtin(self.kind(), new, None)
        } else {
            self.scope.version.schema.decode(new, None)
        }
    }

    fn default(&self, new: &mut Value) {
        if !self.scope.is_scale() {
            self.scope.version.schema.default(new);
        }
    }

    /// Gives a patched object the kind and version of the endpoint, which a patch may take away but not change. (A
    /// strategic one may, to no effect.)
    ///
    /// # Errors
    /// What decoding says of the other kind.
    fn complete_type(&self, new: &mut Value) -> Result<(), String> {
        let kind = self.kind();
        if self.scope.resource.typed_items && !self.scope.is_scale() {
            // What a custom resource says that it is, is judged later.
            let missing = || format!("Object 'Kind' is missing in '{}'", to_string(&sorted(new)));
            return if new.str_at(&["kind"]).is_empty() { Err(missing()) } else { Ok(()) };
        }
        let expected = (kind.api_version(), kind.kind);
        let strategic = matches!(self.change, Ok(Change::Strategic(_)));
        let given = |name: &str, expected: &str| match new.str_at(&[name]) {
            "" => expected.to_owned(),
            _ if strategic => expected.to_owned(),
            given => given.to_owned(),
        };
        let (version, name) = (given("apiVersion", &expected.0), given("kind", expected.1));
        if let (Some(Value::Str(_) | Value::Null) | None, Some(Value::Str(_) | Value::Null) | None) =
            (new.get("apiVersion"), new.get("kind"))
        {
            new.set(&["apiVersion"], version.as_str());
            new.set(&["kind"], name.as_str());
        }
        if (version.as_str(), name.as_str()) == (expected.0.as_str(), expected.1) {
            return Ok(());
        }
        let (group, short) = version.rsplit_once('/').unwrap_or(("", &version));
        let other = Kind { group, version: short, kind: &name };
        body::decode_builtin(other, &mut new.clone(), None).map_err(|cause| match cause.starts_with("no kind ") {
            true => format!("{cause} in scheme \"pkg/runtime/scheme.go:111\""),
            false => cause,
        })?;
        Err(format!("unable to decode {group}/{short}, Kind={name} into *{}.{}", kind.version, kind.kind))
    }

    /// Checks that a patch has not turned one object into another; a namespace that it took away comes back.
    fn settle_identity(&self, new: &mut Value) -> Result<(), ApiError> {
        let scope = self.scope;
        match Meta::of(new).name() {
            "" => {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({} based on URL) was undeterminable: name must be provided",
                    scope.name
                )));
            }
            name if name != scope.name => {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    scope.name
                )));
            }
            _ => {}
        }
        if scope.resource.namespaced {
            match Meta::of(new).namespace() {
                "" => new.set(&["metadata", "namespace"], scope.namespace),
                given if given != scope.namespace => {
                    return Err(ApiError::bad_request(
                        "the namespace of the provided object does not match the namespace sent on the request",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The current object with the configuration applied; `None` where that changes nothing.
    fn applied(&self, old: Option<&Value>) -> Result<Option<Value>, ApiError> {
        let Ok(Change::Apply(config)) = &self.change else { return Err(ApiError::internal("a patch is not an apply")) };
        let scope = self.scope;
        if config.at(&["metadata", "managedFields"]).is_some_and(|it| !it.is_null()) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        if let (None, Some(uid)) =
            (old, config.at(&["metadata", "uid"]).and_then(Value::as_str).filter(|uid| !uid.is_empty()))
        {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(ApiError::conflict(scope.gr(), scope.name, &why));
        }
        let (table, ty) = self.typed()?;
        let finish = |mut object: Value| {
            match self.scope.is_scale() {
                true => drop(self.decode(&mut object)?),
                false => self.scope.version.schema.decode_applied(&mut object)?,
            }
            self.default(&mut object);
            Ok(object)
        };
        // What only the server sets is not the applier's to own.
        let mut config = config.clone();
        if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
            for name in SERVER_SET {
                if metadata.get(name).and_then(Value::as_str).is_none_or(|text| parse_time(text).is_ok()) {
                    metadata.remove(name);
                }
            }
            if old.is_none() {
                metadata.remove("resourceVersion");
            }
        }
        let result = ownership::with_context(scope, self.manager, clock::now_seconds(), |write| {
            let context = ApplyContext {
                write: *write,
                kind: self.kind().kind,
                force: self.options.force == Some(true),
                finish: &finish,
            };
            apply(table, ty, old, &config, &context)
        })?;
        // What is wrong with the text comes after what is wrong with the object.
        match self.options.field_validation {
            FieldValidation::Strict if !self.problems.is_empty() => {
                let text = format!("error strict decoding patch: {}", self.problems.join(", "));
                return Err(ApiError::bad_request(text));
            }
            FieldValidation::Warn => {
                self.problems.iter().for_each(|problem| self.warnings.extend(body::warning_lines(problem)));
            }
            _ => {}
        }
        let Some(mut object) = result else { return Ok(None) };
        self.settle_identity(&mut object)?;
        Ok(Some(object))
    }
}

/// An object with its members in alphabetical order, as Go prints a map.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut members: Vec<(Key, Value)> = map.iter().map(|(name, it)| (name.clone(), sorted(it))).collect();
            members.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Members of metadata that an applied configuration may carry, as `kubectl get -o yaml` prints them, and that are never
/// taken from it.
const SERVER_SET: [&str; 1] = ["creationTimestamp"];

/// An apply's body, and what a strict reader has against it.
fn read_config(bytes: &Bytes, format: Format) -> Result<(Value, Option<String>), ApiError> {
    let failed = |what: &str, cause: String| ApiError::bad_request(format!("error {what} patch: {cause}"));
    let (value, strict) = match format {
        Format::Cbor => (codec::cbor::decode(bytes).map_err(|error| failed("decoding", error.to_string()))?, None),
        _ => {
            // What looks like JSON is first met where it is applied.
            let what = if is_json_prefix(bytes) { "decoding" } else { "encoding" };
            let within = |cause: String| format!("error converting YAML to JSON: {cause}");
            let document = yaml::parse(bytes).map_err(|error| match what {
                "decoding" => failed(what, within(error.to_string())),
                _ => failed(what, error.to_string()),
            })?;
            let strict = document.strict_error().map(within);
            (document.value, strict)
        }
    };
    if !matches!(value, Value::Object(_) | Value::Null) {
        if format == Format::Cbor {
            return Err(failed("decoding", codec::cbor::not_a_map(&value)));
        }
        let kind = value.json_type();
        return Err(failed(
            "decoding",
            format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            ),
        ));
    }
    Ok((value, strict))
}

fn is_json_prefix(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes.get(..64).unwrap_or(bytes));
    text.trim_start().starts_with('{')
}
