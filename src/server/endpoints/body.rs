//! A request's body to an object of the endpoint's kind, decoded, defaulted and judged for unknown fields.

use super::{Scope, known::is_known, options::FieldValidation};
use crate::{
    api::{ApiError, field::quote, hex},
    codec::{self, Format},
    object::{FieldPath, Parsed, Value, parse_reporting_duplicates, yaml},
    schema,
    server::{
        context::{Exchange, Warnings},
        heavy,
        negotiate::{body_format, body_format_without_protobuf},
    },
};

/// The kind an endpoint's bodies have, which subresources may have of their own.
#[derive(Clone, Copy)]
pub struct Kind<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
}

impl<'a> Kind<'a> {
    pub fn of(scope: &Scope<'a>) -> Self {
        match scope.subresource {
            Some(subresource) => {
                Self { group: &subresource.group, version: &subresource.version, kind: &subresource.kind }
            }
            None => Self { group: &scope.resource.group, version: &scope.version.name, kind: &scope.resource.kind },
        }
    }

    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether this is the kind of the row itself.
    fn is_rows(&self, scope: &Scope<'_>) -> bool {
        self.group == &*scope.resource.group && self.kind == &*scope.resource.kind
    }
}

/// A tree and what strict decoding has to say of its text.
#[derive(Debug)]
pub struct Tree {
    pub value: Value,
    /// Repeated members, by path.
    pub duplicates: Vec<String>,
    /// What these had before.
    pub replaced: Vec<(FieldPath, Value)>,
    /// What the text's own reader has against it: YAML's repeated members, as the one error that they are.
    pub strict: Option<String>,
    pub source: Source,
}

/// The text that a tree was made of, where errors tell of it.
#[derive(Debug)]
pub enum Source {
    Json(bytes::Bytes),
    Yaml(bytes::Bytes),
    Cbor(bytes::Bytes),
    None,
}

impl Source {
    /// The JSON text, where it was JSON.
    pub fn json(&self) -> Option<&[u8]> {
        match self {
            Self::Json(text) => Some(text),
            Self::Yaml(_) | Self::Cbor(_) | Self::None => None,
        }
    }

    /// What was sent, where it was text.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Json(text) | Self::Yaml(text) => Some(text),
            Self::Cbor(_) | Self::None => None,
        }
    }
}

/// Why a body is no object.
#[derive(Debug)]
pub struct Failure {
    pub cause: String,
    /// The apiVersion and kind that it has or is taken for, where these could be read.
    of: Option<(String, String)>,
}

impl Failure {
    fn unrecognised(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), of: None }
    }

    /// As the endpoints of objects tell it (apiserver `transformDecodeError`).
    pub fn into_error(self, kind: Kind<'_>, body: &[u8]) -> ApiError {
        let Self { cause, of } = self;
        match of {
            Some((version, given)) => refusal(&version, &given, kind, &cause),
            None => ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {cause} ({})",
                kind.kind,
                excerpt(body)
            )),
        }
    }
}

fn refusal(version: &str, given: &str, kind: Kind<'_>, cause: &str) -> ApiError {
    let version = quote(version.rsplit('/').next().unwrap_or(""));
    ApiError::bad_request(format!("{given} in version {version} cannot be handled as a {}: {cause}", kind.kind))
}

/// Parses a body by its format and reads what it says it is.
pub fn parse(bytes: bytes::Bytes, format: Format, kind: Kind<'_>) -> Result<Tree, Failure> {
    let plain = |value, source| Tree { value, duplicates: Vec::new(), replaced: Vec::new(), strict: None, source };
    match format {
        Format::Json => match parse_reporting_duplicates(&bytes) {
            Ok(Parsed { value, duplicates, replaced }) => {
                check_type_meta(&value)?;
                Ok(Tree { duplicates, replaced, ..plain(value, Source::Json(bytes)) })
            }
            Err(error) => Err(no_type_meta(&error.to_string())),
        },
        Format::Yaml => {
            let document = yaml::parse(&bytes).map_err(|error| Failure::unrecognised(error.to_string()))?;
            check_type_meta(&document.value)?;
            Ok(Tree { strict: document.strict_error(), ..plain(document.value, Source::Yaml(bytes)) })
        }
        Format::Protobuf => parse_protobuf(&bytes, kind).map(|value| plain(value, Source::None)),
        Format::Cbor => {
            let no_type = |cause: &str| format!("unable to determine group/version/kind: {cause}");
            let value =
                codec::cbor::decode(&bytes).map_err(|error| Failure::unrecognised(no_type(&error.to_string())))?;
            if let Some(cause) = codec::cbor::type_meta_error(&value) {
                return Err(Failure::unrecognised(no_type(&cause)));
            }
            Ok(plain(value, Source::Cbor(bytes)))
        }
    }
}

/// What the envelope does not say is what the endpoint takes.
fn parse_protobuf(bytes: &[u8], kind: Kind<'_>) -> Result<Value, Failure> {
    let mut envelope = codec::open_protobuf(bytes).map_err(|error| Failure::unrecognised(error.to_string()))?;
    if envelope.kind.is_empty() {
        envelope.kind = kind.kind.into();
    }
    // What is no version is none.
    if envelope.api_version.is_empty() || envelope.api_version.matches('/').count() > 1 {
        envelope.api_version = kind.api_version().into();
    }
    codec::decode_envelope(&envelope)
        .map_err(|cause| Failure { cause, of: Some((envelope.api_version.to_string(), envelope.kind.to_string())) })
}

fn no_type_meta(cause: &str) -> Failure {
    Failure::unrecognised(format!("couldn't get version/kind; json parse error: {cause}"))
}

fn check_type_meta(value: &Value) -> Result<(), Failure> {
    if let Some(cause) = type_meta_error(value) {
        return Err(no_type_meta(&cause));
    }
    let version = value.str_at(&["apiVersion"]);
    if version.matches('/').count() > 1 {
        return Err(Failure::unrecognised(format!("unexpected GroupVersion string: {version}")));
    }
    Ok(())
}

/// Go's words where apiVersion and kind cannot be read.
fn type_meta_error(value: &Value) -> Option<String> {
    const STRUCT: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    match value {
        Value::Null => None,
        Value::Object(map) => ["apiVersion", "kind"].iter().find_map(|name| match map.get(name) {
            None | Some(Value::Null | Value::Str(_)) => None,
            Some(other) => Some(format!(
                "json: cannot unmarshal {} into Go struct field .{name} of type string",
                other.json_type()
            )),
        }),
        other => Some(format!("json: cannot unmarshal {} into Go value of type {STRUCT}", other.json_type())),
    }
}

/// The body's beginning as errors show it: text where it looks like JSON, else hex.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 30;
    if bytes.is_empty() {
        return "<empty>".into();
    }
    let head = bytes.get(..SHOWN).unwrap_or(bytes);
    let mut shown =
        if bytes.first() == Some(&b'{') { String::from_utf8_lossy(head).into_owned() } else { hex::encode(head) };
    if bytes.len() > SHOWN {
        shown.push_str(" ...");
    }
    shown
}

/// Reads the request's body as an object of `kind`.
pub async fn read(cx: &mut Exchange, scope: &Scope<'_>, validation: FieldValidation) -> Result<Value, ApiError> {
    let format = if scope.resource.typed_items && !scope.is_scale() {
        body_format_without_protobuf(&cx.parts.headers, cx.formats)?
    } else {
        body_format(&cx.parts.headers, cx.formats)?
    };
    let bytes = cx.read_body().await?;
    let kind = Kind::of(scope);
    let warnings = &cx.warnings;
    heavy::run(weight(&bytes, format), || {
        let tree = parse(bytes.clone(), format, kind).map_err(|failure| {
            let number = kind.is_rows(scope) && scope.resource.typed_items;
            number.then(|| number_problem(&bytes, kind)).flatten().unwrap_or_else(|| failure.into_error(kind, &bytes))
        })?;
        decode(scope, kind, tree, validation, warnings)
    })
    .await
}

/// How much work a body is, for [`heavy::run`].
pub fn weight(bytes: &[u8], format: Format) -> usize {
    if format == Format::Yaml { heavy::yaml_weight(bytes) } else { bytes.len() }
}

/// A custom resource's numbers are read after its kind is known.
fn number_problem(bytes: &[u8], kind: Kind<'_>) -> Option<ApiError> {
    let error = parse_reporting_duplicates(bytes).err()?.to_string();
    error.starts_with("json: cannot unmarshal number").then(|| refusal(kind.version, kind.kind, kind, &error))
}

/// Checks kind and version, decodes and defaults a tree.
pub fn decode(
    scope: &Scope<'_>,
    kind: Kind<'_>,
    tree: Tree,
    validation: FieldValidation,
    warnings: &Warnings,
) -> Result<Value, ApiError> {
    let Tree { mut value, duplicates, replaced, strict, source: text } = tree;
    let source = text.json();
    if value.is_null() {
        value = Value::object();
    }
    let own = kind.is_rows(scope);
    let custom = own && scope.resource.typed_items;
    let api_version = kind.api_version();
    let (given_version, given_kind) = match custom {
        true => own_type(&value, kind, text.text())?,
        false => complete_type(&mut value, kind, &api_version),
    };
    let refuse = |cause: &str| refusal(&given_version, &given_kind, kind, cause);
    if !custom && given_version.ends_with('/') {
        return Err(refuse(&missing("apiVersion", &value, text.text())));
    }
    let all = |problems: Vec<String>| strict.into_iter().chain(problems).collect::<Vec<_>>();
    if custom && given_version != api_version {
        // It is read as what it says it is, before it is refused for that.
        let problems = custom_problems(unknown_elsewhere(scope, &given_version, &value), duplicates, source);
        tell(all(problems), validation, warnings, &refuse)?;
        return Err(version_mismatch(&given_version, &api_version));
    }
    if let Err(mismatch) = check_kind(scope, kind, &given_version, &given_kind, &api_version) {
        let error = match mismatch {
            Mismatch::Cause(cause) => return Err(refuse(&cause)),
            Mismatch::Error(error) => return Err(error),
            Mismatch::Converting(cause) => refuse(&cause),
            Mismatch::Version => version_mismatch(&given_version, &api_version),
        };
        let (group, version) = given_version.split_once('/').unwrap_or(("", &given_version));
        let table = schema::builtin();
        // Versions without types here are read as the one that is asked for.
        let ty = table.kind(group, version, &given_kind).or_else(|| {
            let same = given_kind == kind.kind;
            same.then(|| table.kind(kind.group, kind.version, kind.kind)).flatten()
        });
        if let Some(ty) = ty {
            let unknown = schema::decode(table, ty, &mut value, source).map_err(|cause| refuse(&cause.to_string()))?;
            tell(all(schema::strict_errors(unknown, duplicates, source)), validation, warnings, &refuse)?;
        }
        return Err(error);
    }
    if !custom
        && !replaced.is_empty()
        && let Some(ty) = schema::builtin().kind(kind.group, kind.version, kind.kind)
    {
        schema::merge_repeated(schema::builtin(), ty, &mut value, replaced);
    }
    let unknown = if own {
        scope.version.schema.decode(&mut value, source).map_err(|cause| refuse(&worded(&text, kind, cause)))?
    } else {
        decode_builtin(kind, &mut value, source).map_err(|cause| refuse(&worded(&text, kind, cause)))?
    };
    let problems = match custom {
        // What its text says twice is found before what its schema does not know.
        true => custom_problems(unknown, duplicates, source),
        false => match &text {
            Source::Cbor(bytes) => codec::cbor::unknown_field(bytes, &unknown).into_iter().collect(),
            _ => schema::strict_errors(unknown, duplicates, source),
        },
    };
    tell(all(problems), validation, warnings, &refuse)?;
    if own {
        scope.version.schema.default(&mut value);
    } else {
        crate::registry::builtin::defaults::apply_defaults(
            kind.group,
            kind.version,
            kind.kind,
            &mut value,
            crate::api::clock::now_seconds(),
        );
    }
    Ok(value)
}

/// Refuses an object for what strict decoding found, or warns of it.
fn tell(
    problems: Vec<String>,
    validation: FieldValidation,
    warnings: &Warnings,
    refuse: &dyn Fn(&str) -> ApiError,
) -> Result<(), ApiError> {
    match validation {
        FieldValidation::Strict if !problems.is_empty() => {
            return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
        }
        FieldValidation::Warn => problems.iter().for_each(|problem| warnings.extend(warning_lines(problem))),
        _ => {}
    }
    Ok(())
}

/// A strict error as warnings: those of YAML are several in one text.
pub fn warning_lines(problem: &str) -> Vec<String> {
    const PREFIXES: [&str; 2] =
        ["yaml: unmarshal errors:\n", "error converting YAML to JSON: yaml: unmarshal errors:\n"];
    match PREFIXES.iter().find_map(|prefix| problem.strip_prefix(prefix)) {
        Some(list) => list.lines().map(|line| line.trim().to_owned()).collect(),
        None => vec![problem.to_owned()],
    }
}

fn version_mismatch(given: &str, expected: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({expected})"
    ))
}

/// What strict decoding says of a custom resource: what its text says twice is found before what its schema does not know.
fn custom_problems(unknown: Vec<String>, duplicates: Vec<String>, source: Option<&[u8]>) -> Vec<String> {
    [schema::strict_errors(Vec::new(), duplicates, source), schema::strict_errors(unknown, Vec::new(), None)].concat()
}

/// Members that are unknown to the version a custom resource says it is of; all, where there is no such version.
fn unknown_elsewhere(scope: &Scope<'_>, version: &str, value: &Value) -> Vec<String> {
    if let Some(other) = scope.resource.versions.iter().find(|other| &*other.group_version == version) {
        return other.schema.decode(&mut value.clone(), None).unwrap_or_default();
    }
    let group = version.split_once('/').map(|(group, _)| group);
    if group != Some(&*scope.resource.group) || value.str_at(&["kind"]) != &*scope.resource.kind {
        return Vec::new();
    }
    let members = value.as_object().into_iter().flat_map(crate::object::Map::iter).map(|(name, _)| name.as_str());
    let mut unknown: Vec<String> =
        members.filter(|name| !["apiVersion", "kind", "metadata"].contains(name)).map(str::to_owned).collect();
    unknown.sort_unstable();
    unknown
}

/// Decodes a kind that is not the row's own (Scale, Eviction, TokenRequest, …) by the built-in table.
pub fn decode_builtin(kind: Kind<'_>, value: &mut Value, source: Option<&[u8]>) -> Result<Vec<String>, String> {
    let table = schema::builtin();
    match table.kind(kind.group, kind.version, kind.kind) {
        Some(ty) => schema::decode(table, ty, value, source).map_err(|error| error.to_string()),
        None => Err(format!("no kind {} is registered for version {}", quote(kind.kind), quote(&kind.api_version()))),
    }
}

/// What decoding refuses, in the words of the format it was read from.
fn worded(source: &Source, kind: Kind<'_>, cause: String) -> String {
    let Source::Cbor(bytes) = source else { return cause };
    let table = schema::builtin();
    let told = || {
        let ty = table.kind(kind.group, kind.version, kind.kind)?;
        let (path, wanted) = schema::decode(table, ty, &mut codec::cbor::decode(bytes).ok()?, None).err()?.mismatch?;
        codec::cbor::mismatch(bytes, table.get(ty), &path, &wanted)
    };
    told().unwrap_or(cause)
}

/// The apiVersion and kind of a custom resource, which has no type to fall back on.
fn own_type(value: &Value, kind: Kind<'_>, source: Option<&[u8]>) -> Result<(String, String), ApiError> {
    let (version, name) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
    if !name.is_empty() {
        return Ok((version.to_owned(), name.to_owned()));
    }
    let printed = crate::object::to_vec(value);
    let cause = missing("Kind", value, source);
    Err(Failure::unrecognised(cause).into_error(kind, source.unwrap_or(&printed)))
}

/// What is said where a kind or version is missing. `text` is what was sent, if it was text.
pub fn missing(what: &str, value: &Value, text: Option<&[u8]>) -> String {
    let printed = crate::object::to_vec(value);
    format!("Object '{what}' is missing in '{}'", String::from_utf8_lossy(text.unwrap_or(&printed)))
}

/// Fills in a missing apiVersion or kind; answers both.
fn complete_type(value: &mut Value, kind: Kind<'_>, api_version: &str) -> (String, String) {
    let Some(map) = value.as_object_mut() else { return (api_version.to_owned(), kind.kind.to_owned()) };
    let given = |map: &crate::object::Map, name: &str| map.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let (mut version, mut name) = (given(map, "apiVersion"), given(map, "kind"));
    let (group, bare) = version.split_once('/').unwrap_or(("", &version));
    if bare.is_empty() && (group.is_empty() || group == kind.group) {
        version = api_version.to_owned();
    } else if group.is_empty() {
        version = bare.to_owned();
    }
    if name.is_empty() {
        name = kind.kind.to_owned();
    }
    map.insert("apiVersion", version.as_str());
    map.insert("kind", name.as_str());
    (version, name)
}

enum Mismatch {
    Cause(String),
    /// It is of a kind that is known, and read as that before it is refused.
    Converting(String),
    Version,
    Error(ApiError),
}

/// What stands in the way of taking the given kind for the endpoint's.
fn check_kind(scope: &Scope<'_>, kind: Kind<'_>, version: &str, name: &str, api_version: &str) -> Result<(), Mismatch> {
    if version == api_version && name == kind.kind {
        return Ok(());
    }
    // Evictions are taken in the version they had before, in which they read the same.
    if (kind.group, kind.kind, name, version) == ("policy", "Eviction", "Eviction", "policy/v1beta1") {
        return Ok(());
    }
    if scope.resource.typed_items && kind.is_rows(scope) {
        // What is wrong with the kind is for the strategy to say.
        return Ok(());
    }
    if scope.resource.typed_items && scope.is_scale() {
        let message = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";
        return Err(Mismatch::Error(ApiError::bad_request(message)));
    }
    let (group, bare) = version.split_once('/').unwrap_or(("", version));
    if !is_known(kind.group, group, bare, name) {
        let cause = format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(name),
            quote(version)
        );
        return Err(Mismatch::Cause(cause));
    }
    // Another version of the same kind converts; the endpoint refuses it for its version.
    if name == kind.kind && (group == kind.group || related_groups(group, kind.group)) {
        return Err(Mismatch::Version);
    }
    let go = |group: &str| group.split('.').next().filter(|it| !it.is_empty()).unwrap_or("core").to_owned();
    let cause = format!("converting ({bare}.{name}) to ({}.{}): unknown conversion", go(kind.group), kind.kind);
    Err(Mismatch::Converting(cause))
}

/// Groups whose kinds share an internal type.
fn related_groups(a: &str, b: &str) -> bool {
    const FAMILIES: [&[&str]; 2] = [&["", "events.k8s.io"], &["extensions", "apps", "networking.k8s.io", "policy"]];
    FAMILIES.iter().any(|family| family.contains(&a) && family.contains(&b))
}
