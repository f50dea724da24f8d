//! Small pages about the server: its version, its flags, its state, the keys of its tokens
//! (component-base `zpages`, apiserver `pkg/server/routes`).

use std::time::SystemTime;

use ::http::{HeaderValue, Method, header};

use super::{Documents, openid::OpenId};
use crate::{
    api::{ApiError, release},
    codec::{self, Format},
    json,
    object::{Map, Style, Value, write_json},
    server::{
        context::Exchange,
        endpoints::{method_not_allowed, unknown_resource},
        http::{Body, Response},
        negotiate::{self, accept_header},
        respond,
    },
};

/// What these pages show.
pub struct Facts {
    /// When the process began to serve.
    pub started: SystemTime,
    /// Flags by name with the value in force.
    pub flags: Vec<(String, String)>,
    /// `None`: tokens cannot be verified by others.
    pub openid: Option<OpenId>,
}

impl Documents {
    /// Answers one of these pages; `None` where the path is none.
    pub(super) fn plain(&self, cx: &Exchange, path: &str) -> Option<Response> {
        match path.strip_suffix('/').unwrap_or(path) {
            "/version" => Some(routed_as(cx, "application/json", version)),
            "/.well-known/openid-configuration" => {
                let openid = self.facts.openid.as_ref()?;
                let make =
                    || respond::response(200, "application/json", Body::Full(openid.configuration.clone().into()));
                Some(kept_an_hour(routed_as(cx, "application/json", make)))
            }
            "/openid/v1/jwks" => {
                let openid = self.facts.openid.as_ref()?;
                let make = || respond::response(200, KEY_SET, Body::Full(openid.keys.clone().into()));
                Some(kept_an_hour(routed_as(cx, KEY_SET, make)))
            }
            "/statusz" if path == "/statusz" => Some(self.zpage(cx, &STATUSZ)),
            "/flagz" if path == "/flagz" => Some(self.zpage(cx, &FLAGZ)),
            _ if path.starts_with("/version/") => Some(respond::error(cx, &unknown_resource())),
            _ => None,
        }
    }

    fn zpage(&self, cx: &Exchange, page: &Page) -> Response {
        match negotiate::negotiate_page(&accept_header(&cx.parts.headers), page.kind, &VERSIONS) {
            Some(None) => respond::text(200, (page.text)(self)),
            Some(Some((format, version))) => {
                let mut object = (page.object)(self);
                object.insert("kind", page.kind);
                object.insert("apiVersion", format!("{GROUP}/{version}"));
                object.insert("metadata", json!({"name": "apiserver"}));
                self.structured(cx, page, format, version, object)
            }
            None => {
                let types = "application/json, application/yaml, text/plain";
                let message = format!("only the following media types are accepted: {types}");
                respond::error(cx, &ApiError::not_acceptable(message))
            }
        }
    }

    fn structured(&self, cx: &Exchange, page: &Page, format: Format, version: &str, object: Map) -> Response {
        let body = match codec::encode(format, &Value::Object(object), Style::Compact) {
            Ok(body) => body,
            Err(why) => return respond::error(cx, &ApiError::internal(why)),
        };
        let mut response = respond::response(200, "application/json", Body::Full(body.into()));
        let media_type = format!("{};g={GROUP};v={version};as={}", format.media_type(), page.kind);
        if let Ok(media_type) = HeaderValue::from_str(&media_type) {
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        }
        if version != VERSIONS[0] {
            let name = page.name;
            let text =
                format!("299 - \"This version of the {name} endpoint is deprecated. Please use a newer version.\"");
            response.headers_mut().extend(HeaderValue::from_str(&text).map(|value| (header::WARNING, value)));
        }
        response
    }

    fn paths(&self) -> Vec<&'static str> {
        vec!["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"]
    }
}

const KEY_SET: &str = "application/jwk-set+json";
const GROUP: &str = "config.k8s.io";
/// The first is the one to use.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// A page that has a text for people and an object for programs.
struct Page {
    name: &'static str,
    kind: &'static str,
    text: fn(&Documents) -> String,
    object: fn(&Documents) -> Map,
}

const STATUSZ: Page = Page {
    name: "statusz",
    kind: "Statusz",
    text: |documents| {
        let (started, up) = times(documents);
        format!(
            "\napiserver statusz\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
             compatibility guarantees and is for debugging purposes only.\n\nStarted: {}\nUp: {} hr {:02} min {:02} sec\n\
             Binary version: {}\nEmulation version: {}.{}\nPaths: {}\n",
            started.strftime("%a %b %e %H:%M:%S UTC %Y"),
            up / 3600,
            up / 60 % 60,
            up % 60,
            binary_version(),
            release::KUBERNETES_MAJOR,
            release::KUBERNETES_MINOR,
            documents.paths().join(" ")
        )
    },
    object: |documents| {
        let (started, up) = times(documents);
        Map::from([
            ("startTime", Value::from(started.to_string())),
            ("uptimeSeconds", Value::from(up)),
            ("goVersion", Value::from("")),
            ("binaryVersion", Value::from(binary_version())),
            ("emulationVersion", Value::from(format!("{}.{}", release::KUBERNETES_MAJOR, release::KUBERNETES_MINOR))),
            ("paths", Value::from(documents.paths())),
        ])
    },
};

const FLAGZ: Page = Page {
    name: "flagz",
    kind: "Flagz",
    text: |documents| {
        let mut text = "\napiserver flagz\nWarning: This endpoint is not meant to be machine parseable, has no \
                        formatting compatibility guarantees and is for debugging purposes only.\n"
            .to_owned();
        for (name, value) in &documents.facts.flags {
            text.push_str(&format!("{name}:{value}\n"));
        }
        text
    },
    object: |documents| {
        let flags = documents.facts.flags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Map::from([("flags", flags.collect::<Map>())])
    },
};

fn binary_version() -> &'static str {
    release::KUBERNETES_VERSION.trim_start_matches('v')
}

/// When the process began, in whole seconds, and for how many it has been there.
fn times(documents: &Documents) -> (jiff::Timestamp, i64) {
    let started = jiff::Timestamp::try_from(documents.facts.started).unwrap_or_default();
    let whole = jiff::Timestamp::from_second(started.as_second()).unwrap_or_default();
    let up = documents.facts.started.elapsed().map_or(0, |up| up.as_secs());
    (whole, i64::try_from(up).unwrap_or(i64::MAX))
}

/// A page of the router: GET alone, and this media type alone.
fn routed_as(cx: &Exchange, media_type: &'static str, make: impl FnOnce() -> Response) -> Response {
    if cx.parts.method != Method::GET {
        return respond::error(cx, &method_not_allowed());
    }
    if negotiate::choose(&accept_header(&cx.parts.headers), &[media_type]).is_none() {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
        return respond::error(cx, &ApiError::not_acceptable(message).with_details(Default::default()));
    }
    make()
}

fn version() -> Response {
    let mut body = Vec::new();
    write_json(&mut body, &release::version_info(), Style::Indented);
    respond::response(200, "application/json", Body::Full(body.into()))
}

/// Keys change seldom; errors are not kept.
fn kept_an_hour(mut response: Response) -> Response {
    if response.status().is_success() {
        let value = HeaderValue::from_static("public, max-age=3600");
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
    response
}
