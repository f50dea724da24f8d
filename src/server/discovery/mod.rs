//! What the server says of itself: discovery, OpenAPI, the index of paths and small pages.
//!
//! Everything is made out of rows: those of the generation, which never change, and those of custom resources, which
//! come and go. A [`Documents`] belongs to a generation; what it makes is kept until the custom rows (or the APIServices)
//! are others. Documents of OpenAPI are made when they are asked for, one group and version at a time.

mod aggregated;
mod index;
mod items;
mod openapi;
mod openid;
mod pages;
mod plain;
mod priorities;
#[cfg(test)]
mod tests;

pub use openid::OpenId;
pub use plain::Facts;

use std::sync::{Arc, OnceLock, Weak};

use ::http::{HeaderValue, Method, header};
use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;

use self::priorities::{Listed, ListedGroup, Origin, Priority};
use super::{
    context::Exchange,
    endpoints::{method_not_allowed, unknown_resource},
    generic::Rows,
    health::Check,
    http::{Body, Response},
    negotiate::{self, Accepted, Offer, accept_header},
    respond,
};
use crate::{
    api::ApiError,
    codec::{self, Format},
    object::{Map, Style, Value, write_json_ranked},
    registry::{
        catalog::{Catalog, Group},
        reader::ObjectReader,
    },
    schema,
};

const REGISTRATION: &str = "apiregistration.k8s.io";

/// What [`Documents`] are made from.
pub struct Sources {
    /// The rows of the three servers; they stay the same.
    pub built_in: Vec<Arc<Catalog>>,
    /// Custom resources, outliving the generation.
    pub custom: Rows,
    /// APIServices, for the groups that other servers have.
    pub reader: Arc<dyn ObjectReader>,
    /// Where clients reach the server: `host:port`.
    pub address: String,
    /// Health checks, which the index lists.
    pub checks: Arc<[Check]>,
    pub facts: Facts,
}

/// The documents of a generation.
pub struct Documents {
    built_in: Catalog,
    custom: Rows,
    reader: Arc<dyn ObjectReader>,
    address: String,
    checks: Arc<[Check]>,
    facts: Facts,
    current: ArcSwapOption<Snapshot>,
    remote: ArcSwapOption<Remote>,
    items: items::Kept,
    openapi: Arc<openapi::Kept>,
}

/// Groups and versions that APIServices hand to other servers, at one state of these.
struct Remote {
    services: u64,
    listed: Vec<(String, Listed)>,
}

/// What was made of one state of the custom rows and the APIServices. It keeps no row alive: a definition may be gone
/// for long before anybody asks again.
struct Snapshot {
    custom: Weak<Catalog>,
    services: u64,
    /// In the order of `/apis`.
    groups: Vec<ListedGroup>,
    aggregated: OnceLock<Tagged>,
    openapi: OnceLock<Arc<openapi::Index>>,
}

/// A snapshot with the custom rows it is about, for as long as a request takes.
struct Now {
    made: Arc<Snapshot>,
    custom: Arc<Catalog>,
}

/// An aggregated document as JSON, with the hash that is its ETag.
#[derive(Clone)]
struct Tagged {
    json: Bytes,
    etag: String,
}

impl Documents {
    pub fn new(sources: Sources) -> Self {
        Self {
            built_in: Catalog::new(sources.built_in.iter().flat_map(|catalog| catalog.rows().cloned())),
            custom: sources.custom,
            reader: sources.reader,
            address: sources.address,
            checks: sources.checks,
            facts: sources.facts,
            current: ArcSwapOption::empty(),
            remote: ArcSwapOption::empty(),
            items: items::Kept::default(),
            openapi: Arc::default(),
        }
    }

    /// Answers a path that is about documents; `None` where this is none, or where nobody has the group.
    pub async fn answer(&self, cx: &Exchange) -> Option<Response> {
        let path = cx.path();
        match path {
            "/" | "/index.html" => return Some(self.index()),
            "/api" | "/api/" => return Some(self.api(cx)),
            "/apis" | "/apis/" => return Some(self.apis(cx)),
            "/openapi/v2" => return Some(self.openapi_v2(cx).await),
            "/openapi/v3" => return Some(self.openapi_root()),
            _ => {}
        }
        if let Some(response) = self.plain(cx, path) {
            return Some(response);
        }
        if let Some(key) = path.strip_prefix("/openapi/v3/") {
            return Some(self.openapi_v3(cx, key).await);
        }
        let (first, rest) = path.strip_prefix('/')?.split_once('/')?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        match (first, rest.split_once('/')) {
            _ if rest.is_empty() || rest.contains("//") => None,
            ("api", None) => self.group_version(cx, "", rest),
            ("apis", None) => self.group(cx, rest),
            ("apis", Some((group, version))) if !version.contains('/') => self.group_version(cx, group, version),
            _ => None,
        }
    }

    /// What is known now; made again when custom rows or APIServices are others.
    fn now(&self) -> Now {
        let custom = self.custom.load_full();
        let services = self.reader.version(REGISTRATION, "apiservices");
        let same =
            |it: &Arc<Snapshot>| std::ptr::eq(it.custom.as_ptr(), Arc::as_ptr(&custom)) && it.services == services;
        if let Some(made) = self.current.load_full().filter(same) {
            return Now { made, custom };
        }
        let mut groups = self.groups(&custom, services);
        priorities::order_by_service(&mut groups);
        let made = Arc::new(Snapshot {
            custom: Arc::downgrade(&custom),
            services,
            groups,
            aggregated: OnceLock::new(),
            openapi: OnceLock::new(),
        });
        self.current.store(Some(made.clone()));
        Now { made, custom }
    }

    fn groups(&self, custom: &Catalog, services: u64) -> Vec<ListedGroup> {
        let built_in = priorities::of_catalog(&self.built_in, priorities::built_in, Origin::BuiltIn);
        let custom = priorities::of_catalog(custom, |_, _| Some(priorities::CUSTOM), Origin::Custom);
        let remote = self.remote(services);
        let all = built_in.chain(custom).chain(remote.listed.iter().cloned()).filter(|(group, _)| !group.is_empty());
        priorities::groups(all)
    }

    /// What other servers have, as far as it was said at this state of the APIServices.
    fn remote(&self, services: u64) -> Arc<Remote> {
        if let Some(known) = self.remote.load_full().filter(|known| known.services == services) {
            return known;
        }
        let listed = self.reader.list(REGISTRATION, "apiservices", None).into_iter().filter_map(|object| {
            object.at(&["spec", "service"]).filter(|it| !it.is_null())?;
            let number = |name: &str| object.i64_at(&["spec", name]).unwrap_or(0);
            let priority = Priority { group: number("groupPriorityMinimum"), version: number("versionPriority") };
            let version = object.str_at(&["spec", "version"]).to_owned();
            Some((object.str_at(&["spec", "group"]).to_owned(), Listed { version, priority, origin: Origin::Remote }))
        });
        let made = Arc::new(Remote { services, listed: listed.collect() });
        self.remote.store(Some(made.clone()));
        made
    }

    fn rows<'a>(&'a self, now: &'a Now, group: &str, origin: Origin) -> Option<&'a Arc<Group>> {
        match origin {
            Origin::BuiltIn => self.built_in.group(group),
            Origin::Custom => now.custom.group(group),
            Origin::Remote => None,
        }
    }

    /// `/api`: the aggregated form where it is asked for, else what the router of built-in paths answers.
    fn api(&self, cx: &Exchange) -> Response {
        if let Some(accepted) = aggregated_form(cx) {
            let made = tagged(print(&aggregated::legacy(&self.built_in), Style::Compact));
            return aggregated_answer(cx, accepted, &made, || aggregated::legacy(&self.built_in));
        }
        routed(cx, || pages::api_versions(&self.address))
    }

    /// `/apis`, which the aggregator answers whatever the method.
    fn apis(&self, cx: &Exchange) -> Response {
        let now = self.now();
        let Some(accepted) = aggregated_form(cx) else { return handled(cx, || pages::group_list(&now.made.groups)) };
        let ordered = || {
            let mut groups: Vec<&ListedGroup> = now.made.groups.iter().collect();
            priorities::order_by_name(&mut groups);
            groups
        };
        let made = now.made.aggregated.get_or_init(|| self.aggregated(&now, &ordered())).clone();
        aggregated_answer(cx, accepted, &made, || {
            let item = |group: &&ListedGroup| self.aggregated_item(&now, group);
            aggregated::document(ordered().iter().map(item).collect())
        })
    }

    fn aggregated_item(&self, now: &Now, group: &ListedGroup) -> Value {
        aggregated::group(group, |origin| self.rows(now, &group.name, origin).map(|rows| &**rows))
    }

    /// The document out of the groups' parts, of which only those are made anew whose groups have changed.
    fn aggregated(&self, now: &Now, groups: &[&ListedGroup]) -> Tagged {
        let part = |group: &&ListedGroup| {
            let rows = [Origin::BuiltIn, Origin::Custom].map(|origin| self.rows(now, &group.name, origin));
            self.items.get(group, rows, || self.aggregated_item(now, group))
        };
        let parts: Vec<Bytes> = groups.iter().map(part).collect();
        self.items.keep_only(groups);
        tagged(aggregated::join(&parts))
    }

    /// `/apis/<group>`.
    fn group(&self, cx: &Exchange, name: &str) -> Option<Response> {
        let custom = self.custom.load_full();
        let remote = self.remote(self.reader.version(REGISTRATION, "apiservices"));
        let built_in = self.built_in.group(name).into_iter();
        let built_in = priorities::of_groups(built_in, priorities::built_in, Origin::BuiltIn);
        let own = custom.group(name).into_iter();
        let own = priorities::of_groups(own, |_, _| Some(priorities::CUSTOM), Origin::Custom);
        let remote = remote.listed.iter().filter(|(group, _)| group == name && !name.is_empty()).cloned();
        let group = priorities::groups(built_in.chain(own).chain(remote)).pop()?;
        Some(handled(cx, || pages::group(&group)))
    }

    /// `/api/v1`, `/apis/<group>/<version>`. The router of built-in groups knows that a version is missing; nobody
    /// knows that of a custom group.
    fn group_version(&self, cx: &Exchange, group: &str, version: &str) -> Option<Response> {
        if let Some(rows) = self.built_in.group(group) {
            if self.built_in.serves(group, version) {
                return Some(routed(cx, || pages::resource_list(rows, version, false)));
            }
            return Some(respond::error(cx, &unknown_resource()));
        }
        let custom = self.custom.load_full();
        let rows = custom.group(group).filter(|_| custom.serves(group, version))?;
        Some(handled(cx, || pages::resource_list(rows, version, true)))
    }
}

/// What the router of built-in paths does: GET alone, and a media type it knows.
fn routed(cx: &Exchange, make: impl Fn() -> Value) -> Response {
    if cx.parts.method != Method::GET {
        return respond::error(cx, &method_not_allowed());
    }
    if !negotiate::router_accepts(&accept_header(&cx.parts.headers), cx.formats) {
        return respond::error(cx, &negotiate::router_not_acceptable(cx.formats, false));
    }
    handled(cx, make)
}

/// What a handler does: whatever the method, in the form that is asked for.
fn handled(cx: &Exchange, make: impl Fn() -> Value) -> Response {
    let Some(accepted) = negotiate::negotiate(&accept_header(&cx.parts.headers), cx.formats, Offer::PLAIN) else {
        return respond::error(cx, &negotiate::not_acceptable(cx.formats, false));
    };
    match encode(cx, accepted, &make()) {
        Ok(body) => respond::response(200, accepted.format.media_type(), Body::Full(body)),
        Err(why) => respond::error(cx, &ApiError::internal(why)),
    }
}

/// A document of `meta/v1` or discovery. That of `/api` says no apiVersion, so its type is known by its kind.
fn encode(cx: &Exchange, accepted: Accepted, value: &Value) -> Result<Bytes, String> {
    let own_version = value.str_at(&["apiVersion"]);
    if accepted.format == Format::Protobuf && own_version.is_empty() {
        let kind = value.str_at(&["kind"]);
        let table = schema::builtin();
        let ty = table.kind("", "v1", kind).ok_or_else(|| format!("no kind \"{kind}\" is registered"))?;
        let encoded = codec::protobuf::encode_object(table, ty, value).map_err(|error| error.to_string())?;
        return Ok(encoded.into());
    }
    let style = respond::style(cx, accepted);
    if accepted.format == Format::Json {
        let mut json = print(value, style);
        if style == Style::Compact {
            json.push(b'\n');
        }
        return Ok(json.into());
    }
    codec::encode(accepted.format, value, style).map(Bytes::from)
}

/// A document or a part of one as JSON, its members as upstream's types have them.
fn print(document: &Value, style: Style) -> Vec<u8> {
    let mut json = Vec::with_capacity(4096);
    write_json_ranked(&mut json, document, style, rank);
    json
}

/// Where a member stands in the types of `meta/v1` and `apidiscovery.k8s.io`.
fn rank(of: &Map, member: &str) -> usize {
    const ORDER: [&str; 26] = [
        "metadata",
        "resource",
        "subresource",
        "name",
        "singularName",
        "namespaced",
        "groupVersion",
        "group",
        "version",
        "kind",
        "responseKind",
        "scope",
        "singularResource",
        "acceptedTypes",
        "verbs",
        "shortNames",
        "categories",
        "subresources",
        "storageVersionHash",
        "versions",
        "preferredVersion",
        "resources",
        "freshness",
        "clientCIDR",
        "serverAddress",
        "serverAddressByClientCIDRs",
    ];
    // What a document is stands first in it; the resources it lists have a kind among their members.
    let document = !of.contains_key("verbs") && !of.contains_key("group");
    match member {
        "kind" if document => 0,
        "apiVersion" => 1,
        _ => 2 + ORDER.iter().position(|known| *known == member).unwrap_or(ORDER.len()),
    }
}

/// Whether the first clause that can be met asks for the aggregated form, and how that is to be written.
fn aggregated_form(cx: &Exchange) -> Option<Accepted> {
    negotiate::negotiate_discovery(&accept_header(&cx.parts.headers), cx.formats)
        .filter(|(_, aggregated)| *aggregated)
        .map(|it| it.0)
}

/// A document of this JSON.
fn tagged(mut json: Vec<u8>) -> Tagged {
    json.push(b'\n');
    Tagged { etag: hash(&json), json: json.into() }
}

/// Upper-case hexadecimal SHA-512.
fn hash(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA512, bytes).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn aggregated_answer(cx: &Exchange, accepted: Accepted, made: &Tagged, make: impl Fn() -> Value) -> Response {
    let quoted = format!("\"{}\"", made.etag);
    // Compared as a whole: lists, weak tags and "*" match nothing here.
    let mut response = if cx.header("if-none-match") == quoted {
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = ::http::StatusCode::NOT_MODIFIED;
        response
    } else {
        let plain = accepted.format == Format::Json && respond::style(cx, accepted) == Style::Compact;
        let body = if plain { Ok(made.json.clone()) } else { encode(cx, accepted, &make()) };
        match body {
            Ok(body) => respond::response(200, aggregated_type(accepted.format), Body::Full(body)),
            Err(why) => return respond::error(cx, &ApiError::internal(why)),
        }
    };
    let headers = response.headers_mut();
    headers.extend(HeaderValue::from_str(&quoted).map(|value| (header::ETAG, value)));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}

fn aggregated_type(format: Format) -> &'static str {
    match format {
        Format::Json => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Format::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Format::Protobuf => "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Format::Cbor => "application/cbor;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    }
}
