//! A proxy in front that has authenticated the user and says so in headers. Believed only with a client
//! certificate of the proxies' own CA (apiserver `pkg/authentication/request/headerrequest`).

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderMap, HeaderName};

use super::{Attempt, Outcome, for_api_audiences};
use crate::auth::user::UserInfo;
use crate::pki::TrustBundle;

/// Names of the headers a front proxy uses; they are compared without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeaders {
    /// The first one that has a value counts.
    pub username: Vec<String>,
    /// The first one that has a value counts.
    pub uid: Vec<String>,
    /// All values of all of them count.
    pub group: Vec<String>,
    /// What follows the prefix, decoded, is the key.
    pub extra_prefix: Vec<String>,
}

pub struct FrontProxy {
    pub bundle: Arc<TrustBundle>,
    /// Common names that proxies may have; empty: any that the CA signed.
    pub allowed_names: Vec<String>,
    pub headers: ProxyHeaders,
}

impl FrontProxy {
    /// The headers that are taken away from every request, whatever is configured.
    pub fn standard_headers() -> ProxyHeaders {
        let one = |name: &str| vec![name.to_owned()];
        ProxyHeaders {
            username: one("x-remote-user"),
            uid: one("x-remote-uid"),
            group: one("x-remote-group"),
            extra_prefix: one("x-remote-extra-"),
        }
    }

    pub(super) fn authenticate(&self, attempt: &mut Attempt<'_>, api_audiences: &[String]) -> Outcome {
        let wanted = attempt.audiences;
        if !wanted.is_empty() && !api_audiences.iter().any(|it| wanted.contains(it)) {
            return Ok(None);
        }
        let Some(conn) = attempt.conn.filter(|conn| !conn.certificates.is_empty()) else { return Ok(None) };
        let identity = self.bundle.judge(&conn.certificates, &conn.verdict).map_err(|reason| reason.to_string())?;
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(&identity.common_name) {
            return Err(format!("x509: subject with cn={} is not in the allowed list", identity.common_name));
        }
        let Some(user) = self.headers.user(attempt.headers) else { return Ok(None) };
        clear_headers(attempt.headers, &self.headers);
        Ok(for_api_audiences(Arc::new(user), api_audiences, wanted))
    }
}

impl ProxyHeaders {
    fn user(&self, headers: &HeaderMap) -> Option<UserInfo> {
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| headers.get(name.as_str())).map(text);
            values.find(|value| !value.is_empty())
        };
        let name = first(&self.username)?;
        let uid = first(&self.uid).unwrap_or_default();
        let groups = self.group.iter().flat_map(|name| headers.get_all(name.as_str())).map(text);
        Some(UserInfo { name, uid, groups: groups.filter(|it| !it.is_empty()).collect(), extra: self.extra(headers) })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefix {
            for (name, value) in headers {
                if let Some(key) = after_prefix(name, prefix) {
                    extra.entry(unescape_key(key)).or_default().push(text(value));
                }
            }
        }
        extra
    }
}

/// Header values are bytes; what is no UTF-8 in them shows as replacement characters.
pub(crate) fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// What follows the prefix in a header's name, which is always in lower case.
fn after_prefix<'a>(name: &'a HeaderName, prefix: &str) -> Option<&'a str> {
    let (start, rest) = name.as_str().split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Decodes `%2f` and the like; a key that is not well encoded is kept as it is (Go's `url.PathUnescape`).
pub(crate) fn unescape_key(key: &str) -> String {
    let mut out = Vec::with_capacity(key.len());
    let mut bytes = key.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|it| char::from(it).to_digit(16));
        match (digit(bytes.next()), digit(bytes.next())) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => return key.to_owned(),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Takes a front proxy's headers away.
pub fn clear_headers(headers: &mut HeaderMap, names: &ProxyHeaders) {
    for name in names.username.iter().chain(&names.uid).chain(&names.group) {
        headers.remove(name.as_str());
    }
    if names.extra_prefix.is_empty() {
        return;
    }
    let extra: Vec<HeaderName> = headers
        .keys()
        .filter(|name| names.extra_prefix.iter().any(|prefix| after_prefix(name, prefix).is_some()))
        .cloned()
        .collect();
    for name in extra {
        headers.remove(name);
    }
}
