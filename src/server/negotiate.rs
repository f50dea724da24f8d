//! Which form an answer takes and which form a body has
//! (apiserver `pkg/endpoints/handlers/negotiation`).

use ::http::HeaderMap;

use crate::{api::ApiError, codec::Format};

/// What a document may be turned into on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transform {
    None,
    /// `meta.k8s.io` Table of this version.
    Table(MetaVersion),
    PartialObjectMetadata(MetaVersion),
    PartialObjectMetadataList(MetaVersion),
}

/// Versions of the `meta.k8s.io` group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub fn group_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The outcome of negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub format: Format,
    pub transform: Transform,
    /// `;pretty=1` in the accepted clause.
    pub pretty: bool,
}

impl Accepted {
    pub const JSON: Self = Self { format: Format::Json, transform: Transform::None, pretty: false };
}

/// What an endpoint can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub table: bool,
    pub metadata: bool,
    /// Without a transformation the object has no protobuf form (custom resources).
    pub protobuf: bool,
}

impl Offer {
    /// Documents of the server itself: errors, discovery.
    pub const PLAIN: Self = Self { table: false, metadata: false, protobuf: true };
}

struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    params: Vec<(&'a str, &'a str)>,
    quality: f32,
}

/// The clauses of an Accept header by falling quality, in their order where equal.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept
        .split(',')
        .filter_map(|text| {
            let mut pieces = text.split(';').map(str::trim);
            let (kind, subtype) = pieces.next()?.split_once('/')?;
            let mut clause = Clause { kind: kind.trim(), subtype: subtype.trim(), params: Vec::new(), quality: 1.0 };
            for (name, value) in pieces.filter_map(|piece| piece.split_once('=')) {
                let value = value.trim().trim_matches('"');
                if name.trim() == "q" {
                    clause.quality = value.parse().unwrap_or(1.0);
                } else {
                    clause.params.push((name.trim(), value));
                }
            }
            Some(clause)
        })
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// The Accept header; several are one list, none is "".
pub fn accept_header(headers: &HeaderMap) -> String {
    let values: Vec<&str> = headers.get_all("accept").iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

/// The first clause that can be met in one of these formats.
pub fn negotiate(accept: &str, formats: &[Format], offer: Offer) -> Option<Accepted> {
    if accept.trim().is_empty() {
        return Some(Accepted::JSON);
    }
    for clause in clauses(accept) {
        for format in formats.iter().copied() {
            if !matches(&clause, format) {
                continue;
            }
            if let Some(accepted) = meet(&clause, format, offer) {
                return Some(accepted);
            }
        }
    }
    None
}

fn matches(clause: &Clause<'_>, format: Format) -> bool {
    let Some((kind, subtype)) = format.media_type().split_once('/') else { return false };
    match (clause.kind, clause.subtype) {
        ("*", "*") => true,
        (a, "*") => a == kind,
        (a, b) => a == kind && b == subtype,
    }
}

fn meet(clause: &Clause<'_>, format: Format, offer: Offer) -> Option<Accepted> {
    let param = |name: &str| clause.params.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match param("stream") {
        // What streams may be asked to, even where it does not; YAML never does.
        Some("watch") if format.stream_media_type().is_some() => {}
        None | Some("") => {}
        Some(_) => return None,
    }
    let version = match (param("g").unwrap_or(""), param("v").unwrap_or("")) {
        ("meta.k8s.io", "v1") => Some(MetaVersion::V1),
        ("meta.k8s.io", "v1beta1") => Some(MetaVersion::V1Beta1),
        _ => None,
    };
    let transform = match (param("as"), version) {
        (None | Some(""), _) => Transform::None,
        (Some("Table"), Some(version)) if offer.table && !matches!(format, Format::Protobuf | Format::Cbor) => {
            Transform::Table(version)
        }
        (Some("PartialObjectMetadata"), Some(version)) if offer.metadata => Transform::PartialObjectMetadata(version),
        (Some("PartialObjectMetadataList"), Some(version)) if offer.metadata => {
            Transform::PartialObjectMetadataList(version)
        }
        _ => return None,
    };
    if format == Format::Protobuf && transform == Transform::None && !offer.protobuf {
        return None;
    }
    Some(Accepted { format, transform, pretty: param("pretty") == Some("1") })
}

/// The first clause that discovery can meet, and whether it asks for the aggregated form.
pub fn negotiate_discovery(accept: &str, formats: &[Format]) -> Option<(Accepted, bool)> {
    if accept.trim().is_empty() {
        return Some((Accepted::JSON, false));
    }
    for clause in clauses(accept) {
        let param =
            |name: &str| clause.params.iter().rev().find(|(key, _)| *key == name).map_or("", |(_, value)| value);
        let aggregated = [("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2")];
        let aggregated = aggregated.iter().all(|(name, value)| param(name) == *value);
        for format in formats.iter().copied() {
            if !matches(&clause, format) {
                continue;
            }
            if aggregated {
                return Some((Accepted { format, transform: Transform::None, pretty: param("pretty") == "1" }, true));
            }
            if let Some(accepted) = meet(&clause, format, Offer::PLAIN) {
                return Some((accepted, false));
            }
        }
    }
    None
}

/// How a page about the server is to be written: as text (`Some(None)`), or as an object of this kind in one of these
/// versions of `config.k8s.io`. A structured type without the kind cannot be met.
pub fn negotiate_page<'v>(accept: &str, kind: &str, versions: &[&'v str]) -> Option<Option<(Format, &'v str)>> {
    if accept.trim().is_empty() {
        return Some(None);
    }
    clauses(accept).iter().find_map(|clause| {
        let param =
            |name: &str| clause.params.iter().rev().find(|(key, _)| *key == name).map_or("", |(_, value)| value);
        if param("as").is_empty() {
            return matches!((clause.kind, clause.subtype), ("text", "plain" | "*") | ("*", "*")).then_some(None);
        }
        let format = [Format::Json, Format::Yaml].into_iter().find(|format| matches(clause, *format))?;
        let version = versions.iter().find(|version| **version == param("v"))?;
        (param("as") == kind && param("g") == "config.k8s.io").then_some(Some((format, *version)))
    })
}

/// The place of the first of these media types that can be had; the first where the client has no wish.
pub fn choose(accept: &str, offers: &[&str]) -> Option<usize> {
    if accept.trim().is_empty() {
        return (!offers.is_empty()).then_some(0);
    }
    let fits = |clause: &Clause<'_>, offer: &str| match (clause.kind, clause.subtype, offer.split_once('/')) {
        ("*", "*", _) => true,
        (kind, "*", Some((own, _))) => kind == own,
        (kind, subtype, own) => own == Some((kind, subtype)),
    };
    clauses(accept).iter().find_map(|clause| offers.iter().position(|offer| fits(clause, offer)))
}

/// Whether the router of built-in resources lets a request through: a media type as it is written, or `*/*`.
pub fn router_accepts(accept: &str, formats: &[Format]) -> bool {
    accept.trim().is_empty()
        || clauses(accept).iter().any(|clause| {
            (clause.kind == "*" && clause.subtype == "*")
                || formats
                    .iter()
                    .any(|format| format.media_type().split_once('/') == Some((clause.kind, clause.subtype)))
        })
}

/// The router's own 406.
pub fn router_not_acceptable(formats: &[Format], watchable: bool) -> ApiError {
    let mut available: Vec<&str> = formats.iter().map(|format| format.media_type()).collect();
    if watchable {
        available.extend(formats.iter().filter_map(|format| format.told_stream_media_type()));
    }
    ApiError::not_acceptable(format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", ")))
        .with_details(Default::default())
}

/// The 406 of a handler.
pub fn not_acceptable(formats: &[Format], stream: bool) -> ApiError {
    let list: Vec<&str> = match stream {
        true => formats.iter().filter_map(|format| format.told_stream_media_type()).collect(),
        false => formats.iter().map(|format| format.media_type()).collect(),
    };
    ApiError::not_acceptable(format!("only the following media types are accepted: {}", list.join(", ")))
}

/// The format of a body. A missing Content-Type is JSON.
///
/// # Errors
/// 415 with what would be accepted.
pub fn body_format(headers: &HeaderMap, formats: &[Format]) -> Result<Format, ApiError> {
    let text = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or("");
    if text.is_empty() {
        return Ok(Format::Json);
    }
    let base = media_type(text);
    let format = formats.iter().copied().find(|format| base.as_deref() == Some(format.media_type()));
    format.ok_or_else(|| unsupported_body(formats))
}

fn unsupported_body(formats: &[Format]) -> ApiError {
    let accepted: Vec<&str> = formats.iter().map(|format| format.media_type()).collect();
    unsupported_media_type(&accepted)
}

/// The media type of a header without its parameters, which have to be well-formed (Go's `mime.ParseMediaType`).
fn media_type(text: &str) -> Option<String> {
    let (base, mut rest) = text.split_once(';').map_or((text, ""), |(base, rest)| (base, rest));
    let mut names: Vec<String> = Vec::new();
    while !rest.trim_start().is_empty() {
        let (name, value) = rest.trim_start().split_once('=').unwrap_or((rest, ""));
        let name = name.to_ascii_lowercase();
        let value_length = parameter_value(value).filter(|_| is_token(&name) && !names.contains(&name));
        let after = match value_length {
            Some(length) => value.get(length..).unwrap_or("").trim_start(),
            // A trailing semicolon is no mistake.
            None => return rest.trim().is_empty().then(|| base.trim().to_ascii_lowercase()),
        };
        names.push(name);
        rest = match after.strip_prefix(';') {
            Some(rest) => rest,
            None if after.is_empty() => "",
            None => return None,
        };
    }
    Some(base.trim().to_ascii_lowercase())
}

/// How long the value at the beginning of this text is: a token or a quoted text.
fn parameter_value(text: &str) -> Option<usize> {
    let Some(quoted) = text.strip_prefix('"') else {
        let length = text.bytes().take_while(|byte| is_token_byte(*byte)).count();
        return (length > 0).then_some(length);
    };
    let mut escaped = false;
    for (at, byte) in quoted.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 2),
            _ => {}
        }
    }
    None
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

/// The format of a custom resource's body, which has no protobuf form.
pub fn body_format_without_protobuf(headers: &HeaderMap, formats: &[Format]) -> Result<Format, ApiError> {
    match body_format(headers, formats) {
        Ok(Format::Protobuf) => Err(unsupported_body(formats)),
        other => other,
    }
}

pub fn unsupported_media_type(accepted: &[&str]) -> ApiError {
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}

/// Whether the answer is indented: the query parameter decides, else people's clients, else the accepted clause.
pub fn pretty(query: Option<&str>, user_agent: &str, accepted: Accepted) -> bool {
    if let Some(value) = query {
        return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    accepted.pretty || ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| user_agent.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCE: Offer = Offer { table: true, metadata: true, protobuf: true };

    #[test]
    fn a_clause_that_cannot_be_met_is_skipped() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(table, Format::USUAL, RESOURCE).unwrap().transform, Transform::Table(MetaVersion::V1));
        assert_eq!(negotiate(table, Format::USUAL, Offer::PLAIN).unwrap().transform, Transform::None);
        assert_eq!(negotiate("application/json;as=Nope;v=v1;g=meta.k8s.io", Format::USUAL, RESOURCE), None);
    }

    #[test]
    fn quality_orders_clauses_and_wildcards_prefer_json() {
        assert_eq!(
            negotiate("application/json;q=0.5, application/yaml", Format::USUAL, RESOURCE).unwrap().format,
            Format::Yaml
        );
        assert_eq!(negotiate("*/*", Format::USUAL, RESOURCE).unwrap().format, Format::Json);
        assert_eq!(negotiate("text/html", Format::USUAL, RESOURCE), None);
        assert!(!router_accepts("application/*", Format::USUAL));
    }

    #[test]
    fn a_content_type_with_broken_parameters_is_none() {
        let format = |text: &str| {
            body_format(&HeaderMap::from_iter([(::http::header::CONTENT_TYPE, text.parse().unwrap())]), Format::USUAL)
                .ok()
        };
        for text in
            ["application/json", "application/json; charset=utf-8", "application/JSON;", "application/json ; a=\"b;c\""]
        {
            assert_eq!(format(text), Some(Format::Json), "{text}");
        }
        for text in [
            "application/json; charset",
            "application/json; =x",
            "application/json; a=b; a=c",
            "application/json; a=\"b",
        ] {
            assert_eq!(format(text), None, "{text}");
        }
        assert_eq!(format("application/cbor"), None);
    }

    #[test]
    fn only_what_streams_can_be_asked_to() {
        let format = |text: &str, offer: Offer| negotiate(text, Format::USUAL, offer).map(|it| it.format);
        for offer in [RESOURCE, Offer::PLAIN] {
            assert_eq!(format("application/json;stream=watch", offer), Some(Format::Json));
            assert_eq!(format("application/yaml;stream=watch", offer), None);
        }
    }
}
