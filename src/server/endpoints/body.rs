//! A request's body to an object of the endpoint's kind, decoded, defaulted and judged for unknown fields.

use super::{Scope, options::FieldValidation};
use crate::{
    api::{ApiError, field::quote, hex},
    codec::{self, Format},
    object::{Value, parse_reporting_duplicates, yaml},
    schema,
    server::{
        context::{Exchange, Warnings},
        heavy,
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
pub struct Tree {
    pub value: Value,
    pub duplicates: Vec<String>,
    /// The JSON text, where it was JSON.
    pub source: Option<bytes::Bytes>,
}

/// Parses a body by its format. `kind` words the error.
pub fn parse(bytes: bytes::Bytes, format: Format, kind: Kind<'_>) -> Result<Tree, ApiError> {
    let unrecognised = |cause: &str| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {cause} ({})",
            kind.kind,
            excerpt(&bytes)
        ))
    };
    match format {
        Format::Json => match parse_reporting_duplicates(&bytes) {
            Ok(parsed) => {
                let cause = type_meta_error(&parsed.value);
                if let Some(cause) = cause {
                    return Err(unrecognised(&format!("couldn't get version/kind; json parse error: {cause}")));
                }
                Ok(Tree { value: parsed.value, duplicates: parsed.duplicates, source: Some(bytes) })
            }
            Err(error) => Err(unrecognised(&format!("couldn't get version/kind; json parse error: {error}"))),
        },
        Format::Yaml => {
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| unrecognised("error converting YAML to JSON: yaml: invalid Unicode"))?;
            // JSON is YAML, and ten times quicker to read as JSON.
            if let Ok(parsed) = parse_reporting_duplicates(&bytes) {
                return Ok(Tree { value: parsed.value, duplicates: parsed.duplicates, source: None });
            }
            let parsed =
                yaml::parse(text).map_err(|error| unrecognised(&format!("error converting YAML to JSON: {error}")))?;
            if let Some(cause) = type_meta_error(&parsed.value) {
                return Err(unrecognised(&format!("couldn't get version/kind; json parse error: {cause}")));
            }
            Ok(Tree { value: parsed.value, duplicates: parsed.duplicates, source: None })
        }
        Format::Protobuf => match codec::decode_protobuf(&bytes) {
            Ok(value) => Ok(Tree { value, duplicates: Vec::new(), source: None }),
            Err(error) => Err(unrecognised(&error)),
        },
    }
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
    let format = if scope.resource.typed_items
        && scope
            .subresource
            .is_none_or(|sub| !matches!(sub.behaviour, crate::registry::resource::SubresourceBehaviour::Scale(_)))
    {
        crate::server::negotiate::body_format_without_protobuf(&cx.parts.headers)?
    } else {
        crate::server::negotiate::body_format(&cx.parts.headers)?
    };
    let bytes = cx.read_body().await?;
    let kind = Kind::of(scope);
    let warnings = &cx.warnings;
    heavy::run(weight(&bytes, format), || {
        let tree = parse(bytes.clone(), format, kind).map_err(|error| {
            let number = kind.is_rows(scope) && scope.resource.typed_items;
            number.then(|| number_problem(&bytes, kind)).flatten().unwrap_or(error)
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
    let version = quote(kind.version);
    let told = || format!("{0} in version {version} cannot be handled as a {0}: {error}", kind.kind);
    error.starts_with("json: cannot unmarshal number").then(|| ApiError::bad_request(told()))
}

/// Checks kind and version, decodes and defaults a tree.
pub fn decode(
    scope: &Scope<'_>,
    kind: Kind<'_>,
    tree: Tree,
    validation: FieldValidation,
    warnings: &Warnings,
) -> Result<Value, ApiError> {
    let Tree { mut value, duplicates, source } = tree;
    if value.is_null() {
        value = Value::object();
    }
    let own = kind.is_rows(scope);
    let custom = own && scope.resource.typed_items;
    let api_version = kind.api_version();
    let (given_version, given_kind) = match custom {
        true => own_type(&value, kind, source.as_deref())?,
        false => complete_type(&mut value, kind, &api_version),
    };
    let refuse = |cause: &str| {
        let version = given_version.rsplit('/').next().unwrap_or("");
        ApiError::bad_request(format!(
            "{given_kind} in version {} cannot be handled as a {}: {cause}",
            quote(version),
            kind.kind
        ))
    };
    if custom && given_version != api_version {
        // It is read as what it says it is, before it is refused for that.
        let problems = custom_problems(unknown_elsewhere(scope, &given_version, &value), duplicates, source.as_deref());
        tell(problems, validation, warnings, &refuse)?;
        return Err(version_mismatch(&given_version, &api_version));
    }
    check_kind(scope, kind, &given_version, &given_kind, &api_version).map_err(|error| match error {
        Mismatch::Cause(cause) => refuse(&cause),
        Mismatch::Version => version_mismatch(&given_version, &api_version),
        Mismatch::Error(error) => error,
    })?;
    let unknown = if own {
        scope.version.schema.decode(&mut value, source.as_deref()).map_err(|cause| refuse(&cause))?
    } else {
        decode_builtin(kind, &mut value, source.as_deref()).map_err(|cause| refuse(&cause))?
    };
    let problems = match custom {
        // What its text says twice is found before what its schema does not know.
        true => custom_problems(unknown, duplicates, source.as_deref()),
        false => schema::strict_errors(unknown, duplicates, source.as_deref()),
    };
    tell(problems, validation, warnings, &refuse)?;
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
        FieldValidation::Warn => warnings.extend(problems),
        _ => {}
    }
    Ok(())
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

/// The apiVersion and kind of a custom resource, which has no type to fall back on.
fn own_type(value: &Value, kind: Kind<'_>, source: Option<&[u8]>) -> Result<(String, String), ApiError> {
    let (version, name) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
    if !name.is_empty() {
        return Ok((version.to_owned(), name.to_owned()));
    }
    let printed = crate::object::to_vec(value);
    let text = source.unwrap_or(&printed);
    Err(ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{}' ({})",
        kind.kind,
        String::from_utf8_lossy(text),
        excerpt(text)
    )))
}

/// Fills in a missing apiVersion or kind; answers both.
fn complete_type(value: &mut Value, kind: Kind<'_>, api_version: &str) -> (String, String) {
    let Some(map) = value.as_object_mut() else { return (api_version.to_owned(), kind.kind.to_owned()) };
    let given = |map: &crate::object::Map, name: &str| map.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let (mut version, mut name) = (given(map, "apiVersion"), given(map, "kind"));
    if version.is_empty() {
        version = api_version.to_owned();
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
    if version.matches('/').count() > 1 {
        let message = format!(
            "the object provided is unrecognized (must be of type {}): unexpected GroupVersion string: {version}",
            kind.kind
        );
        return Err(Mismatch::Error(ApiError::bad_request(message)));
    }
    let (group, bare) = version.split_once('/').unwrap_or(("", version));
    if schema::builtin().kind(group, bare, name).is_none() && !is_unserved(group, bare, name) {
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
    Err(Mismatch::Cause(cause))
}

/// Kinds of versions that are known but have no types here, since nothing serves them.
fn is_unserved(group: &str, version: &str, kind: &str) -> bool {
    (group, version, kind) == ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition")
}

/// Groups whose kinds share an internal type.
fn related_groups(a: &str, b: &str) -> bool {
    const FAMILIES: [&[&str]; 2] = [&["", "events.k8s.io"], &["extensions", "apps", "networking.k8s.io", "policy"]];
    FAMILIES.iter().any(|family| family.contains(&a) && family.contains(&b))
}
