//! Errors as clients see them: `metav1.Status` (apimachinery `pkg/api/errors`).

use std::fmt;

use super::field::{ErrorList, quote};
use crate::object::{Map, Value};

/// `reason` of a Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Unknown,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    ServerTimeout,
    StoreReadError,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    Expired,
    ServiceUnavailable,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Invalid => "Invalid",
            Self::ServerTimeout => "ServerTimeout",
            Self::StoreReadError => "StorageReadError",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::BadRequest => "BadRequest",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::InternalError => "InternalError",
            Self::Expired => "Expired",
            Self::ServiceUnavailable => "ServiceUnavailable",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// The plural for most reasons, the Kind for Invalid.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

/// A failure on its way to the client. Everything below the server's edge returns this or an error that
/// turns into it in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    pub code: u16,
    pub reason: Reason,
    pub message: String,
    /// `None` leaves `details` out; an empty one prints `{}`.
    pub details: Option<Details>,
    /// `metadata.continue`, for expired list tokens.
    pub continue_token: String,
}

impl std::ops::Deref for ApiError {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}
impl std::ops::DerefMut for ApiError {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.0
    }
}

/// A group and a resource's plural: `deployments.apps`, or just `pods` in the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupResource<'a> {
    pub group: &'a str,
    pub resource: &'a str,
}

impl<'a> GroupResource<'a> {
    pub const fn new(group: &'a str, resource: &'a str) -> Self {
        Self { group, resource }
    }
}

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

impl ApiError {
    pub fn new(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, reason, message: message.into(), details: None, continue_token: String::new() }))
    }

    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(details);
        self
    }

    fn about(self, gr: GroupResource<'_>, name: &str) -> Self {
        self.with_details(Details {
            name: name.into(),
            group: gr.group.into(),
            kind: gr.resource.into(),
            ..Details::default()
        })
    }

    pub fn not_found(gr: GroupResource<'_>, name: &str) -> Self {
        Self::new(404, Reason::NotFound, format!("{gr} {} not found", quote(name))).about(gr, name)
    }

    pub fn already_exists(gr: GroupResource<'_>, name: &str) -> Self {
        Self::new(409, Reason::AlreadyExists, format!("{gr} {} already exists", quote(name))).about(gr, name)
    }

    /// Every generated name was taken.
    pub fn generate_name_conflict(gr: GroupResource<'_>, name: &str, retry_after_seconds: u32) -> Self {
        let message = format!(
            "{gr} {} already exists, the server was not able to generate a unique name for the object",
            quote(name)
        );
        let mut error = Self::new(409, Reason::AlreadyExists, message).about(gr, name);
        if let Some(details) = &mut error.details {
            details.retry_after_seconds = retry_after_seconds;
        }
        error
    }

    /// Fields that other managers own; one cause for each.
    pub fn apply_conflict(causes: Vec<Cause>, message: impl Into<String>) -> Self {
        Self::new(409, Reason::Conflict, message).with_details(Details { causes, ..Details::default() })
    }

    /// What an answer that is no Status means (webhooks, proxied requests). `unexpected` keeps `message` as a cause.
    pub fn generic_server_response(
        code: u16,
        verb: &str,
        gr: GroupResource<'_>,
        name: &str,
        message: &str,
        retry_after_seconds: u32,
        unexpected: bool,
    ) -> Self {
        let (reason, mut text) = response_reason(code, verb, message);
        if !(gr.resource.is_empty() && gr.group.is_empty()) {
            let verb = verb.to_lowercase();
            text =
                if name.is_empty() { format!("{text} ({verb} {gr})") } else { format!("{text} ({verb} {gr} {name})") };
        }
        let mut error = Self::new(code, reason, text).about(gr, name);
        if let Some(details) = &mut error.details {
            details.retry_after_seconds = retry_after_seconds;
            if unexpected {
                let reason = "UnexpectedServerResponse".into();
                details.causes.push(Cause { reason, message: message.into(), field: String::new() });
            }
        }
        error
    }

    pub fn conflict(gr: GroupResource<'_>, name: &str, why: &str) -> Self {
        Self::new(409, Reason::Conflict, format!("Operation cannot be fulfilled on {gr} {}: {why}", quote(name)))
            .about(gr, name)
    }

    /// The three forms of upstream's NewForbidden: without a resource, without a name, with both.
    pub fn forbidden(gr: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = match (gr.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{gr} is forbidden: {why}"),
            (false, false) => format!("{gr} {} is forbidden: {why}", quote(name)),
        };
        Self::new(403, Reason::Forbidden, message).about(gr, name)
    }

    /// `group` and `kind` name the object's kind (not the plural).
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &ErrorList) -> Self {
        let gk = GroupResource::new(group, kind);
        let colon = if errors.is_empty() { "" } else { ": " };
        let mut error = Self::new(422, Reason::Invalid, format!("{gk} {} is invalid{colon}{errors}", quote(name)));
        let causes = errors
            .iter()
            .map(|e| Cause { reason: e.kind.reason().into(), message: e.body.clone(), field: e.field.clone() })
            .collect();
        error.details =
            Some(Details { name: name.into(), group: group.into(), kind: kind.into(), causes, ..Details::default() });
        error
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Reason::BadRequest, message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, Reason::Unauthorized, "Unauthorized")
    }

    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, Reason::Gone, message)
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, Reason::Expired, message)
    }

    /// `<verb> is not supported on resources of kind "<gr>"`.
    pub fn method_not_supported(gr: GroupResource<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {}", quote(&gr.to_string()));
        Self::new(405, Reason::MethodNotAllowed, message).about(gr, "")
    }

    pub fn internal(cause: impl Into<String>) -> Self {
        let cause = cause.into();
        let mut error = Self::new(500, Reason::InternalError, format!("Internal error occurred: {cause}"));
        error.details =
            Some(Details { causes: vec![Cause { message: cause, ..Cause::default() }], ..Details::default() });
        error
    }

    /// An error that upstream did not map: code 500, empty reason, the text alone.
    pub fn unmapped(message: impl Into<String>) -> Self {
        Self::new(500, Reason::Unknown, message)
    }

    pub fn timeout(why: &str, retry_after_seconds: u32) -> Self {
        Self::new(504, Reason::Timeout, format!("Timeout: {why}"))
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// A read that asks for a revision that is not there yet.
    pub fn too_large_resource_version(asked: u64, current: u64, retry_after_seconds: u32) -> Self {
        let mut error =
            Self::timeout(&format!("Too large resource version: {asked}, current: {current}"), retry_after_seconds);
        if let Some(details) = &mut error.details {
            details.causes.push(Cause {
                reason: "ResourceVersionTooLarge".into(),
                message: "Too large resource version".into(),
                field: String::new(),
            });
        }
        error
    }

    pub fn server_timeout(gr: GroupResource<'_>, operation: &str, retry_after_seconds: u32) -> Self {
        let message =
            format!("The {operation} operation against {gr} could not be completed at this time, please try again.");
        let mut error = Self::new(500, Reason::ServerTimeout, message).about(gr, operation);
        if let Some(details) = &mut error.details {
            details.retry_after_seconds = retry_after_seconds;
        }
        error
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::new(429, Reason::TooManyRequests, message)
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, Reason::ServiceUnavailable, message)
    }

    pub fn request_entity_too_large(why: &str) -> Self {
        Self::new(413, Reason::RequestEntityTooLarge, format!("Request entity too large: {why}"))
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, Reason::UnsupportedMediaType, message)
    }

    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, Reason::NotAcceptable, message)
    }

    /// The Status object, kind and apiVersion included.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if !self.continue_token.is_empty() {
            metadata.insert("continue", self.continue_token.as_str());
        }
        let mut status = Map::from([
            ("kind", Value::from("Status")),
            ("apiVersion", "v1".into()),
            ("metadata", metadata.into()),
            ("status", "Failure".into()),
        ]);
        put(&mut status, "message", &self.message);
        put(&mut status, "reason", self.reason.as_str());
        if let Some(details) = &self.details {
            status.insert("details", details.to_value());
        }
        status.insert("code", i64::from(self.code));
        status.into()
    }
}

fn response_reason(code: u16, verb: &str, message: &str) -> (Reason, String) {
    let (reason, text) = match code {
        409 if verb == "POST" => (Reason::AlreadyExists, "the server reported a conflict"),
        409 => (Reason::Conflict, "the server reported a conflict"),
        404 => (Reason::NotFound, "the server could not find the requested resource"),
        400 => (Reason::BadRequest, "the server rejected our request for an unknown reason"),
        401 => (Reason::Unauthorized, "the server has asked for the client to provide credentials"),
        403 => (Reason::Forbidden, message),
        406 if matches!(message, "" | "unknown") => {
            (Reason::NotAcceptable, "the server was unable to respond with a content type that the client supports")
        }
        406 => (Reason::NotAcceptable, message),
        415 => (Reason::UnsupportedMediaType, message),
        405 => (Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"),
        422 => (Reason::Invalid, "the server rejected our request due to an error in our request"),
        503 => (Reason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => (
            Reason::Timeout,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        429 => {
            (Reason::TooManyRequests, "the server has received too many requests and has asked us to try again later")
        }
        500.. => {
            let text = format!("an error on the server ({}) has prevented the request from succeeding", quote(message));
            return (Reason::InternalError, text);
        }
        _ => {
            let text = format!("the server responded with the status code {code} but did not return more information");
            return (Reason::Unknown, text);
        }
    };
    (reason, text.to_owned())
}

impl Details {
    pub fn to_value(&self) -> Value {
        let mut out = Map::new();
        put(&mut out, "name", &self.name);
        put(&mut out, "group", &self.group);
        put(&mut out, "kind", &self.kind);
        put(&mut out, "uid", &self.uid);
        if !self.causes.is_empty() {
            out.insert("causes", Value::Array(self.causes.iter().map(Cause::to_value).collect()));
        }
        if self.retry_after_seconds > 0 {
            out.insert("retryAfterSeconds", i64::from(self.retry_after_seconds));
        }
        out.into()
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut out = Map::new();
        put(&mut out, "reason", &self.reason);
        put(&mut out, "message", &self.message);
        put(&mut out, "field", &self.field);
        out.into()
    }
}

/// Sets a text member unless it is empty (Go's omitempty).
fn put(map: &mut Map, key: &'static str, text: &str) {
    if !text.is_empty() {
        map.insert(crate::object::Key::from_static(key), text);
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
