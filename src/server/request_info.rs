//! What a path and method mean: verb, group, version, resource, name
//! (apiserver `pkg/endpoints/request/requestinfo.go`).

use std::borrow::Cow;

use ::http::Method;

use super::query::Query;

/// A request's meaning, made once and read by every layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    pub resource_request: bool,
    pub path: String,
    /// `get`, `list`, `watch`, … for resources; the method in lower case for other paths; empty for methods that
    /// mean nothing.
    pub verb: String,
    pub api_prefix: String,
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub subresource: String,
    pub name: String,
    /// All parts from the resource on.
    pub parts: Vec<String>,
    pub field_selector: String,
    pub label_selector: String,
    /// The verb came from a `/watch/` or `/proxy/` path.
    pub verb_from_path: bool,
}

/// Subresources that stream (filter chain: not counted, not timed out).
const STREAMING: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

/// Second-level parts of `namespaces/<x>/…` that belong to the namespace itself.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl RequestInfo {
    /// # Errors
    /// A `/watch/` or `/proxy/` path with nothing after it; upstream answers 500.
    pub fn new(method: &Method, path: &str, query: &Query) -> Result<Self, String> {
        // An escaped slash divides like any other.
        let path = decode_path(path);
        let mut info = Self { path: path.to_string(), verb: method.as_str().to_ascii_lowercase(), ..Self::default() };
        let parts = split(&path);
        if parts.len() < 3 {
            return Ok(info);
        }
        let prefix = parts[0];
        let rest = match prefix {
            "api" => &parts[1..],
            "apis" if parts.len() >= 4 => {
                info.group = parts[1].to_string();
                &parts[2..]
            }
            _ => return Ok(info),
        };
        info.resource_request = true;
        info.api_prefix = prefix.to_owned();
        let Some((version, rest)) = rest.split_first() else { return Ok(info) };
        info.version = version.to_string();
        info.resource(method, rest, query)?;
        Ok(info)
    }

    fn resource(&mut self, method: &Method, mut parts: &[&str], query: &Query) -> Result<(), String> {
        self.verb = match *method {
            Method::POST => "create",
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "",
        }
        .to_owned();
        if let Some(word) = parts.first().filter(|part| **part == "watch" || **part == "proxy") {
            if parts.len() < 2 {
                return Err(format!("unable to determine kind and namespace from url, {}", self.path));
            }
            self.verb = word.to_string();
            self.verb_from_path = true;
            parts = &parts[1..];
        }
        if parts.first().is_some_and(|part| *part == "namespaces")
            && let Some(namespace) = parts.get(1)
        {
            self.namespace = namespace.to_string();
            // `namespaces/x/status` is about the namespace, `namespaces/x/pods` about what is in it.
            if parts.get(2).is_some_and(|part| !NAMESPACE_SUBRESOURCES.contains(part)) {
                parts = &parts[2..];
            }
        }
        self.parts = parts.iter().map(|part| part.to_string()).collect();
        let part = |at: usize| parts.get(at).map(|part| part.to_string()).unwrap_or_default();
        self.resource = part(0);
        self.name = part(1);
        if !(self.verb_from_path && self.verb == "proxy") {
            self.subresource = part(2);
        }
        self.collection(query);
        Ok(())
    }

    /// What only requests without a name have: list, watch, deletecollection and their selectors.
    fn collection(&mut self, query: &Query) {
        if self.name.is_empty() && self.verb == "get" {
            let watch = query.first("watch").is_some_and(super::query::is_true);
            self.verb = if watch { "watch" } else { "list" }.to_owned();
        }
        if self.name.is_empty() && self.verb == "delete" {
            self.verb = "deletecollection".to_owned();
        }
        if !matches!(self.verb.as_str(), "list" | "watch" | "deletecollection") {
            return;
        }
        let field_selector = query.first("fieldSelector").unwrap_or("");
        if self.verb != "deletecollection"
            && self.name.is_empty()
            && let Some(name) = exact_name(field_selector)
        {
            self.name = name;
        }
        if !self.verb_from_path {
            self.field_selector = field_selector.to_owned();
            self.label_selector = query.first("labelSelector").unwrap_or("").to_owned();
        }
    }

    /// Whether the request may stay open for long: it is not counted among those in flight and has no deadline.
    pub fn long_running(&self) -> bool {
        if !self.resource_request {
            return self.path.starts_with("/debug/pprof/");
        }
        self.verb == "watch" || self.verb == "proxy" || STREAMING.contains(&self.subresource.as_str())
    }
}

/// The parts of a decoded path, without empty ones at the ends.
fn split(path: &str) -> Vec<&str> {
    let trimmed = path.trim_matches('/');
    if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() }
}

/// A path or a part of one with its escapes undone; the listener's first layer has refused malformed ones.
pub fn decode_path(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|b| (*b as char).to_digit(16));
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// Whether every `%` of a raw path begins an escape.
pub fn escapes_are_whole(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.iter().enumerate().all(|(at, byte)| {
        *byte != b'%' || bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    })
}

/// The name a field selector requires, if it is a possible one.
fn exact_name(selector: &str) -> Option<String> {
    let parsed = crate::api::fields::Selector::parse(selector).ok()?;
    let name = parsed.requires_exact_match("metadata.name")?;
    let possible = !name.is_empty() && crate::api::names::is_path_segment_name(name).is_empty();
    possible.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: Method, url: &str) -> RequestInfo {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        RequestInfo::new(&method, path, &Query::parse(query)).unwrap()
    }

    #[test]
    fn paths_mean_what_upstream_says_they_mean() {
        for (method, url, verb, group, namespace, resource, subresource, name) in [
            (Method::GET, "/api/v1/namespaces/x/pods", "list", "", "x", "pods", "", ""),
            (Method::GET, "/api/v1/namespaces/x/pods/p", "get", "", "x", "pods", "", "p"),
            (Method::GET, "/api/v1/pods?watch=1", "watch", "", "", "pods", "", ""),
            (Method::GET, "/api/v1/pods?watch=false", "list", "", "", "pods", "", ""),
            (Method::GET, "/api/v1/watch/namespaces/x/pods/p", "watch", "", "x", "pods", "", "p"),
            (Method::GET, "/api/v1/namespaces/x", "get", "", "x", "namespaces", "", "x"),
            (Method::PUT, "/api/v1/namespaces/x/finalize", "update", "", "x", "namespaces", "finalize", "x"),
            (Method::PUT, "/api/v1/namespaces/x/status", "update", "", "x", "namespaces", "status", "x"),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/x/deployments",
                "deletecollection",
                "apps",
                "x",
                "deployments",
                "",
                "",
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/x/deployments/d/scale",
                "patch",
                "apps",
                "x",
                "deployments",
                "scale",
                "d",
            ),
            (Method::GET, "/%61pi/v1/namespaces/x%2Fpods/p", "get", "", "x", "pods", "", "p"),
            (Method::GET, "/api/v1/namespaces/x/pods/p%2Fq", "get", "", "x", "pods", "q", "p"),
            (Method::GET, "/api/v1/pods?fieldSelector=metadata.name%3Dp", "list", "", "", "pods", "", "p"),
        ] {
            let got = info(method, url);
            let parts = (got.verb.as_str(), got.group.as_str(), got.namespace.as_str(), got.resource.as_str());
            assert_eq!(parts, (verb, group, namespace, resource), "{url}");
            assert_eq!((got.subresource.as_str(), got.name.as_str()), (subresource, name), "{url}");
        }
    }

    #[test]
    fn other_paths_keep_their_method_as_the_verb() {
        let got = info(Method::GET, "/apis/apps/v1");
        assert!(!got.resource_request);
        assert_eq!(got.verb, "get");
        assert!(RequestInfo::new(&Method::GET, "/api/v1/watch", &Query::default()).is_err());
    }
}
