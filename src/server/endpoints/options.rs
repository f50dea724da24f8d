//! The options objects of requests, decoded from the query (or a deletion's body) and validated
//! (apimachinery `pkg/apis/meta/internalversion/validation`, `pkg/apis/meta/v1/validation`).

use crate::{
    api::{
        ApiError, ErrorList, FieldError, Path,
        field::{quote, show},
    },
    object::Value,
    registry::store::{DeleteOptions, Preconditions, Propagation},
    server::query::{Query, is_true},
};

/// Group of the options kinds in Invalid errors.
const META: &str = "meta.k8s.io";

fn refuse(kind: &str, errors: ErrorList) -> Result<(), ApiError> {
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(META, kind, "", &errors)) }
}

/// Go's strconv.ParseInt of a parameter that is present.
fn integer(query: &Query, name: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = query.first(name) else { return Ok(None) };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(it) if whole => Ok(Some(it)),
        _ => {
            let why = if whole { "value out of range" } else { "invalid syntax" };
            Err(ApiError::bad_request(format!("strconv.ParseInt: parsing {}: {why}", quote(text))))
        }
    }
}

fn boolean(query: &Query, name: &str) -> Option<bool> {
    query.first(name).map(is_true)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Exact,
    NotOlderThan,
}

/// `ListOptions`, for list, watch and deletecollection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    pub resource_version: String,
    pub version_match: Option<Match>,
    pub limit: i64,
    pub continue_token: String,
    pub timeout_seconds: Option<i64>,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    pub fn decode(query: &Query, watch: bool) -> Result<Self, ApiError> {
        let text = |name: &str| query.first(name).unwrap_or("").to_owned();
        let mut options = Self {
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            resource_version: text("resourceVersion"),
            version_match: None,
            limit: integer(query, "limit")?.unwrap_or(0),
            continue_token: text("continue"),
            timeout_seconds: integer(query, "timeoutSeconds")?,
            allow_bookmarks: boolean(query, "allowWatchBookmarks").unwrap_or(false),
            send_initial_events: boolean(query, "sendInitialEvents"),
        };
        let mut version_match = query.first("resourceVersionMatch").unwrap_or("");
        // Gate WatchList: a watch from "now with what there is" is one with initial events.
        let from_start = matches!(options.resource_version.as_str(), "" | "0");
        if watch && from_start && version_match.is_empty() && options.send_initial_events.is_none() {
            options.send_initial_events = Some(true);
            version_match = "NotOlderThan";
        }
        options.validate(version_match, watch)?;
        options.version_match = match version_match {
            "Exact" => Some(Match::Exact),
            "NotOlderThan" => Some(Match::NotOlderThan),
            _ => None,
        };
        Ok(options)
    }

    fn validate(&self, version_match: &str, watch: bool) -> Result<(), ApiError> {
        let mut errors = ErrorList::new();
        let field = Path::new("resourceVersionMatch");
        let forbidden = |detail: &str| FieldError::forbidden(&field, detail);
        if watch {
            self.validate_watch(version_match, &field, &mut errors);
        } else {
            if !version_match.is_empty() {
                if self.resource_version.is_empty() {
                    errors.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
                }
                self.validate_match(version_match, &field, &mut errors);
                if version_match == "Exact" && self.resource_version == "0" {
                    errors.push(forbidden(r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#));
                }
            }
            if self.send_initial_events.is_some() {
                let field = Path::new("sendInitialEvents");
                errors.push(FieldError::forbidden(&field, "sendInitialEvents is forbidden for list"));
            }
        }
        refuse("ListOptions", errors)
    }

    fn validate_match(&self, version_match: &str, field: &Path<'_>, errors: &mut ErrorList) {
        if !self.continue_token.is_empty() {
            errors.push(FieldError::forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(version_match, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(field, version_match, &["Exact", "NotOlderThan", ""]));
        }
    }

    fn validate_watch(&self, version_match: &str, field: &Path<'_>, errors: &mut ErrorList) {
        match (version_match, self.send_initial_events) {
            ("", None) => {}
            (_, None) => errors.push(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )),
            (given, Some(_)) => {
                if given != "NotOlderThan" {
                    errors.push(FieldError::forbidden(
                        field,
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                    ));
                }
                if !given.is_empty() && !self.continue_token.is_empty() {
                    errors.push(FieldError::forbidden(
                        field,
                        "resourceVersionMatch is forbidden when continue is provided",
                    ));
                }
            }
        }
        if !matches!(version_match, "" | "NotOlderThan") {
            errors.push(FieldError::not_supported(field, version_match, &["NotOlderThan"]));
        }
    }
}

/// How strictly unknown and repeated fields are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// `CreateOptions`, `UpdateOptions` and `PatchOptions`, which differ in name and in `force`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub field_manager: String,
    pub field_validation: FieldValidation,
    pub force: Option<bool>,
}

impl WriteOptions {
    /// `kind` is the options' kind. `apply`: the request is a server-side apply, which needs a manager and may force.
    pub fn decode(query: &Query, kind: &str, apply: Option<bool>) -> Result<Self, ApiError> {
        let mut errors = ErrorList::new();
        let field_manager = query.first("fieldManager").unwrap_or("").to_owned();
        let force = boolean(query, "force");
        match apply {
            Some(true) if field_manager.is_empty() => {
                errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
            }
            Some(false) if force.is_some() => {
                errors.push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        validate_field_manager(&field_manager, &mut errors);
        let dry_run = dry_run(&query.all("dryRun").collect::<Vec<_>>(), &mut errors);
        let given = query.first("fieldValidation").unwrap_or("");
        let field_validation = match given {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::new("fieldValidation"), other, &supported));
                FieldValidation::Warn
            }
        };
        refuse(kind, errors)?;
        Ok(Self { dry_run, field_manager, field_validation, force })
    }

    /// The options as an object, for admission.
    pub fn to_value(&self, kind: &str, query: &Query) -> Value {
        let mut value = crate::json!({ "kind": (kind), "apiVersion": "meta.k8s.io/v1" });
        if self.dry_run {
            value.set(&["dryRun"], vec!["All"]);
        }
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(text) = query.first(name).filter(|text| !text.is_empty())
                && let Some(map) = value.as_object_mut()
            {
                map.insert(name, text);
            }
        }
        if let Some(force) = self.force {
            value.set(&["force"], force);
        }
        value
    }
}

/// The longest manager name, in bytes.
const MAX_MANAGER: usize = 128;

fn validate_field_manager(manager: &str, errors: &mut ErrorList) {
    let field = Path::new("fieldManager");
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::too_long(&field, MAX_MANAGER));
    }
    for (at, c) in manager.char_indices() {
        if !printable(c) {
            let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
            errors.push(FieldError::invalid(&field, manager, &detail));
        }
    }
}

/// Go's unicode.IsPrint, as far as a manager's name can tell.
pub fn printable(c: char) -> bool {
    c == ' '
        || (!c.is_control()
            && !c.is_whitespace()
            && !matches!(c as u32, 0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb))
}

fn dry_run(given: &[&str], errors: &mut ErrorList) -> bool {
    if given.is_empty() {
        return false;
    }
    let known = given.iter().all(|value| *value == "All");
    if !known {
        let shown: Value = given.iter().map(|value| Value::from(*value)).collect::<Vec<_>>().into();
        errors.push(FieldError::not_supported(&Path::new("dryRun"), shown, &["All"]));
    }
    known
}

/// A deletion's options with what only the endpoint needs.
#[derive(Clone, Debug, Default)]
pub struct Deletion {
    pub options: DeleteOptions,
    pub dry_run: bool,
    /// As sent, for admission.
    pub value: Value,
    /// The object is to be deleted because it cannot be read, and only then.
    pub ignore_read_error: bool,
    /// `orphanDependents=false` was given; then a deletion that is not immediate answers 202.
    pub orphan_dependents: Option<bool>,
}

/// The option to delete what cannot be read.
const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Reads `DeleteOptions` out of a body's tree (already decoded) or, where there is none, out of the query.
pub fn delete_options(body: Option<Value>, query: &Query) -> Result<Deletion, ApiError> {
    let value = match body {
        Some(body) => body,
        None => from_query(query)?,
    };
    let orphan_dependents = value.at(&["orphanDependents"]).and_then(Value::as_bool);
    let policy = value.at(&["propagationPolicy"]).and_then(Value::as_str);
    let mut errors = ErrorList::new();
    let field = Path::new("propagationPolicy");
    if let (Some(policy), Some(_)) = (policy, orphan_dependents) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid_shown(&field, show(&policy.into()), detail));
    }
    let propagation = match policy {
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Background") => Some(Propagation::Background),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            errors.push(FieldError::not_supported(&field, other, &["Foreground", "Background", "Orphan", "nil"]));
            None
        }
        None => orphan_dependents.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
    };
    let given: Vec<&str> = value.array_at(&["dryRun"]).iter().filter_map(Value::as_str).collect();
    let dry_run = dry_run(&given, &mut errors);
    let ignore_read_error = value.bool_at(&[IGNORE_READ_ERROR]);
    if ignore_read_error {
        let field = Path::new(IGNORE_READ_ERROR);
        for other in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"] {
            if value.get(other).is_some_and(|it| !it.is_null()) {
                let detail = format!("cannot be set together with .{other}");
                errors.push(FieldError::invalid_shown(&field, "true", &detail));
            }
        }
    }
    refuse("DeleteOptions", errors)?;
    let text = |name: &str| value.at(&["preconditions", name]).and_then(Value::as_str).map(str::to_owned);
    let options = DeleteOptions {
        grace_period_seconds: value
            .i64_at(&["gracePeriodSeconds"])
            .map(|seconds| if seconds < 0 { 1 } else { seconds }),
        propagation,
        preconditions: Preconditions { uid: text("uid"), resource_version: text("resourceVersion") },
        in_collection: false,
    };
    Ok(Deletion { options, dry_run, value, orphan_dependents, ignore_read_error })
}

fn from_query(query: &Query) -> Result<Value, ApiError> {
    let mut value = crate::json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" });
    if let Some(seconds) = integer(query, "gracePeriodSeconds")? {
        value.set(&["gracePeriodSeconds"], seconds);
    }
    if let Some(orphan) = boolean(query, "orphanDependents") {
        value.set(&["orphanDependents"], orphan);
    }
    if let Some(policy) = query.first("propagationPolicy") {
        value.set(&["propagationPolicy"], policy);
    }
    // Not named in any document, but upstream's conversion of a query takes them (Convert_url_Values_To_v1_DeleteOptions).
    for name in ["uid", "resourceVersion"] {
        if let Some(wanted) = query.first(name).filter(|wanted| !wanted.is_empty()) {
            value.set(&["preconditions", name], wanted);
        }
    }
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    if !dry_run.is_empty() {
        value.set(&["dryRun"], dry_run);
    }
    if let Some(ignore) = boolean(query, IGNORE_READ_ERROR) {
        value.set(&[IGNORE_READ_ERROR], ignore);
    }
    for name in ["uid", "resourceVersion"] {
        if let Some(text) = query.first(name).filter(|text| !text.is_empty()) {
            value.set(&["preconditions", name], text);
        }
    }
    Ok(value)
}
