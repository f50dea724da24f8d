//! A request's body to an object of the endpoint's kind, decoded, defaulted and judged for unknown fields.

use super::{Scope, options::FieldValidation};
use crate::{
    api::{ApiError, field::quote},
    codec::{self, Format},
    object::{Value, parse_reporting_duplicates, yaml},
    schema,
    server::context::{Exchange, Warnings},
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
    let mut shown = if bytes.first() == Some(&b'{') {
        String::from_utf8_lossy(head).into_owned()
    } else {
        head.iter().map(|byte| format!("{byte:02x}")).collect()
    };
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
    let tree = parse(bytes, format, kind)?;
    decode(scope, kind, tree, validation, &cx.warnings)
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
    let api_version = kind.api_version();
    let (given_version, given_kind) = complete_type(&mut value, scope, kind, &api_version)?;
    let refuse = |cause: &str| {
        let version = given_version.rsplit('/').next().unwrap_or("");
        ApiError::bad_request(format!(
            "{given_kind} in version {} cannot be handled as a {}: {cause}",
            quote(version),
            kind.kind
        ))
    };
    check_kind(scope, kind, &given_version, &given_kind, &api_version).map_err(|error| match error {
        Mismatch::Cause(cause) => refuse(&cause),
        Mismatch::Version => ApiError::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )),
        Mismatch::Error(error) => error,
    })?;
    let unknown = if own {
        scope.version.schema.decode(&mut value, source.as_deref()).map_err(|cause| refuse(&cause))?
    } else {
        decode_builtin(kind, &mut value, source.as_deref()).map_err(|cause| refuse(&cause))?
    };
    let problems = schema::strict_errors(unknown, duplicates, source.as_deref());
    match validation {
        FieldValidation::Strict if !problems.is_empty() => {
            return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
        }
        FieldValidation::Warn => warnings.extend(problems),
        _ => {}
    }
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

/// Decodes a kind that is not the row's own (Scale, Eviction, TokenRequest, …) by the built-in table.
pub fn decode_builtin(kind: Kind<'_>, value: &mut Value, source: Option<&[u8]>) -> Result<Vec<String>, String> {
    let table = schema::builtin();
    match table.kind(kind.group, kind.version, kind.kind) {
        Some(ty) => schema::decode(table, ty, value, source).map_err(|error| error.to_string()),
        None => Err(format!("no kind {} is registered for version {}", quote(kind.kind), quote(&kind.api_version()))),
    }
}

/// Fills in a missing apiVersion or kind; answers both.
fn complete_type(
    value: &mut Value,
    scope: &Scope<'_>,
    kind: Kind<'_>,
    api_version: &str,
) -> Result<(String, String), ApiError> {
    let Some(map) = value.as_object_mut() else { return Ok((api_version.to_owned(), kind.kind.to_owned())) };
    let given = |map: &crate::object::Map, name: &str| map.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let (mut version, mut name) = (given(map, "apiVersion"), given(map, "kind"));
    if scope.resource.typed_items && kind.is_rows(scope) && (name.is_empty() || version.is_empty()) {
        // Custom resources have no type to fall back on.
        let shown = String::from_utf8(crate::object::to_vec(value)).unwrap_or_default();
        let missing = if name.is_empty() { "Kind" } else { "apiVersion" };
        return Err(if missing == "Kind" {
            ApiError::bad_request(format!("Object 'Kind' is missing in '{shown}'"))
        } else {
            ApiError::bad_request(format!("Object 'apiVersion' is missing in '{shown}'"))
        });
    }
    if version.is_empty() {
        version = api_version.to_owned();
    }
    if name.is_empty() {
        name = kind.kind.to_owned();
    }
    map.insert("apiVersion", version.as_str());
    map.insert("kind", name.as_str());
    Ok((version, name))
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
        if version != api_version {
            return Err(Mismatch::Version);
        }
        let message =
            format!("{name} in version {} cannot be handled as a {}: wrong kind", quote(kind.version), kind.kind);
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
    if schema::builtin().kind(group, bare, name).is_none() {
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

/// Groups whose kinds share an internal type.
fn related_groups(a: &str, b: &str) -> bool {
    const FAMILIES: [&[&str]; 2] = [&["", "events.k8s.io"], &["extensions", "apps", "networking.k8s.io", "policy"]];
    FAMILIES.iter().any(|family| family.contains(&a) && family.contains(&b))
}
