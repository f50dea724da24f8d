//! A container's log, from its kubelet.

use super::{NodeStreams, dial_failed, kubelet_refused, streamed, target};
use crate::{
    api::{ApiError, ErrorList, FieldError, Path, duration::parse_time, field::quote},
    server::{
        context::Exchange,
        endpoints::Scope,
        http::{Body, Response, beginning},
        query::Query,
    },
};

/// The most of a kubelet's refusal that is read.
const REFUSAL_BYTES: usize = 64 * 1024;

impl NodeStreams {
    pub(super) async fn log(&self, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let pod = self.pod(scope)?;
        let query = kubelet_query(&cx.query, scope.name)?;
        let container = target::container(&pod, cx.query.first("container").unwrap_or(""))?;
        let Some(node) = self.node_of(&pod, false)? else {
            // Nothing has run yet, so there is nothing to show.
            let mut response = ::http::Response::new(Body::Empty);
            *response.status_mut() = ::http::StatusCode::NO_CONTENT;
            return Ok(response);
        };
        let path = format!("/containerLogs/{}/{}/{container}{}", scope.namespace, scope.name, target::query(&query));
        let answer = self.dialer.stream_get(&node.addresses, node.port, &path).await.map_err(dial_failed)?;
        let (parts, body) = answer.into_parts();
        if parts.status.is_success() {
            return Ok(streamed(body));
        }
        Err(kubelet_refused(parts.status.as_u16(), &beginning(body, REFUSAL_BYTES).await))
    }
}

/// The options as the kubelet takes them (kubernetes `pkg/registry/core/pod/strategy.go` LogLocation), validated as
/// `ValidatePodLogOptions` does.
fn kubelet_query(query: &Query, pod: &str) -> Result<Vec<(String, String)>, ApiError> {
    let mut out = Vec::new();
    let mut errors = ErrorList::new();
    for name in ["follow", "previous", "timestamps"] {
        if query.first(name).is_some_and(crate::server::query::is_true) {
            out.push((name.to_owned(), "true".to_owned()));
        }
    }
    let (since, time) = (query.first("sinceSeconds"), query.first("sinceTime"));
    let number = |name: &str, least: i64, errors: &mut ErrorList| -> Result<Option<i64>, ApiError> {
        let Some(text) = query.first(name) else { return Ok(None) };
        let value: i64 = text
            .parse()
            .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", quote(text))))?;
        if value < least {
            let detail = if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
            errors.push(FieldError::invalid(&Path::new(name), value, detail));
        }
        Ok(Some(value))
    };
    if let Some(value) = number("tailLines", 0, &mut errors)? {
        out.push(("tailLines".to_owned(), value.to_string()));
    }
    if let Some(value) = number("limitBytes", 1, &mut errors)? {
        out.push(("limitBytes".to_owned(), value.to_string()));
    }
    if since.is_some() && time.is_some() {
        errors.push(FieldError::forbidden(
            &Path::ROOT.key(""),
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ));
    }
    if let Some(value) = number("sinceSeconds", 1, &mut errors)? {
        out.push(("sinceSeconds".to_owned(), value.to_string()));
    }
    if let Some(text) = time {
        parse_time(text).map_err(|error| ApiError::bad_request(error.to_string()))?;
        out.push(("sinceTime".to_owned(), text.to_owned()));
    }
    if query.first("stream").is_some() {
        errors.push(FieldError::forbidden(&Path::new("stream"), "may not be specified"));
    }
    if errors.is_empty() { Ok(out) } else { Err(ApiError::invalid("", "PodLogOptions", pod, &errors)) }
}
