//! Who a request is from: the credentials of a request, tried in upstream's order
//! (kubernetes `pkg/kubeapiserver/authenticator/config.go`, apiserver `pkg/authentication/request/*`).
//!
//! loopback token → front proxy → client certificate → bearer token (header, then websocket subprotocol) →
//! anonymous. The first that knows the caller wins. A credential that is there and wrong is an error: it is
//! remembered while the others are tried, and keeps the request from being anonymous. Every failure is the same 401;
//! what was wrong is for the log and for TokenReview.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::{BoxFuture, Either, Ready, ready};
use http::{HeaderMap, header::AUTHORIZATION, request::Parts};

use crate::auth::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User, UserInfo};
use crate::pki::TrustBundle;
use crate::server::http::ConnInfo;

mod bearer;
mod certificate;
mod front_proxy;
mod tokens;

pub use front_proxy::{FrontProxy, ProxyHeaders, clear_headers};
pub(crate) use front_proxy::{text, unescape_key};
pub use tokens::{StaticTokens, TokenCache};

/// What a credential amounts to: somebody, nothing that this authenticator knows, or a credential that is wrong.
pub type Outcome = Result<Option<Authenticated>, String>;

/// An answer that is there already, or one that has to be fetched.
pub type TokenAnswer<'a> = Either<Ready<Outcome>, BoxFuture<'a, Outcome>>;

/// The answer that is there already.
pub fn now<'a>(outcome: Outcome) -> TokenAnswer<'a> {
    Either::Left(ready(outcome))
}

/// Somebody whom a credential proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub user: User,
    /// The audiences the credential is good for; empty where the credential knows none.
    pub audiences: Vec<String>,
}

/// Turns a bearer token into a user.
pub trait TokenAuthenticator: Send + Sync {
    /// `audiences` are the ones wanted; empty wants none in particular. The answer's audiences are those of them
    /// that the token is good for.
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> TokenAnswer<'a>;
}

/// Whom nobody may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    #[default]
    Off,
    Everywhere,
    /// Exactly these URL paths.
    Paths(BTreeSet<String>),
}

/// Everything authentication needs of a configuration.
#[derive(Default)]
pub struct Config {
    pub client_ca: Option<Arc<TrustBundle>>,
    pub front_proxy: Option<FrontProxy>,
    /// In the order they are asked.
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
    /// The in-process client's own token; random, and of this process alone.
    pub loopback_token: Option<String>,
    pub anonymous: Anonymous,
    /// Audiences of the API itself.
    pub api_audiences: Vec<String>,
}

/// The authenticators of one generation.
pub struct Authenticators {
    config: Config,
    /// The loopback token's authenticator, where there is one.
    loopback: Vec<Arc<dyn TokenAuthenticator>>,
}

/// Who sent the request, and what to tell the sender besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub user: User,
    /// Texts for `Warning` headers.
    pub warnings: Vec<&'static str>,
}

impl Caller {
    /// Whether nothing proved who this is; over HTTP/2 the connection of such a caller ends with this answer.
    pub fn is_anonymous(&self) -> bool {
        self.user.name == ANONYMOUS || self.user.in_group(UNAUTHENTICATED)
    }
}

/// Why a request is answered with 401. The text is for the log alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unauthenticated {
    /// Empty where there was no credential and anonymous requests are off.
    pub reason: String,
    pub warnings: Vec<&'static str>,
}

/// What is looked at while a request is judged. Success takes the credential away from the request.
struct Attempt<'a> {
    headers: &'a mut HeaderMap,
    path: &'a str,
    conn: Option<&'a ConnInfo>,
    audiences: &'a [String],
    errors: Vec<String>,
    warnings: Vec<&'static str>,
}

impl Attempt<'_> {
    /// The somebody of an outcome; an error is remembered.
    fn take(&mut self, outcome: Outcome) -> Option<Authenticated> {
        outcome.unwrap_or_else(|error| {
            self.errors.push(error);
            None
        })
    }

    fn warn(&mut self, text: &'static str) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}

impl Authenticators {
    pub fn new(config: Config) -> Self {
        let mut loopback: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
        if let Some(token) = &config.loopback_token {
            let users = [(token.as_str(), UserInfo::apiserver())];
            loopback.push(Arc::new(StaticTokens::new(users, config.api_audiences.clone())));
        }
        Self { config, loopback }
    }

    /// Audiences of the API itself.
    pub fn api_audiences(&self) -> &[String] {
        &self.config.api_audiences
    }

    /// Judges a request. On success the credential is gone from its headers, so that nothing behind can see or
    /// forward it: `Authorization`, the front proxy's headers, the token's subprotocol.
    pub async fn authenticate(&self, parts: &mut Parts, conn: &ConnInfo) -> Result<Caller, Unauthenticated> {
        let mut attempt = Attempt {
            path: parts.uri.path(),
            headers: &mut parts.headers,
            conn: Some(conn),
            audiences: &self.config.api_audiences,
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        let found = self.attempt(&mut attempt).await;
        let Attempt { errors, warnings, .. } = attempt;
        let reason = || crate::auth::authz::aggregate(errors).unwrap_or_default();
        let Some(found) = found else {
            return Err(Unauthenticated { reason: reason(), warnings });
        };
        parts.headers.remove(AUTHORIZATION);
        clear_headers(&mut parts.headers, &FrontProxy::standard_headers());
        if let Some(proxy) = &self.config.front_proxy {
            clear_headers(&mut parts.headers, &proxy.headers);
        }
        Ok(Caller { user: found.user, warnings })
    }

    /// Judges a token as TokenReview does: as a request that has nothing but this token.
    pub async fn review_token(&self, token: &str, audiences: &[String]) -> Outcome {
        let Ok(value) = http::HeaderValue::from_str(&format!("Bearer {token}")) else {
            return Err(bearer::INVALID.to_owned());
        };
        let mut headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        let mut attempt = Attempt {
            headers: &mut headers,
            path: "",
            conn: None,
            audiences: if audiences.is_empty() { &self.config.api_audiences } else { audiences },
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        match self.attempt(&mut attempt).await {
            Some(found) => Ok(Some(found)),
            None => crate::auth::authz::aggregate(attempt.errors).map_or(Ok(None), Err),
        }
    }

    async fn attempt(&self, attempt: &mut Attempt<'_>) -> Option<Authenticated> {
        if !self.loopback.is_empty() {
            let outcome = bearer::from_header(&self.loopback, attempt).await;
            if let Some(found) = attempt.take(outcome) {
                return Some(found);
            }
        }
        // Errors of the loopback token alone do not keep a request from being anonymous.
        let before = attempt.errors.len();
        if let Some(found) = self.configured(attempt).await {
            return Some(with_authenticated_group(found));
        }
        if attempt.errors.len() > before || !self.anonymous_may(attempt.path) {
            return None;
        }
        Some(Authenticated { user: Arc::new(UserInfo::anonymous()), audiences: attempt.audiences.to_vec() })
    }

    async fn configured(&self, attempt: &mut Attempt<'_>) -> Option<Authenticated> {
        if let Some(proxy) = &self.config.front_proxy {
            let outcome = proxy.authenticate(attempt, &self.config.api_audiences);
            if let Some(found) = attempt.take(outcome) {
                return Some(found);
            }
        }
        if let Some(bundle) = &self.config.client_ca {
            let outcome = certificate::authenticate(bundle, attempt.conn);
            if let Some(found) = attempt.take(outcome) {
                return Some(found);
            }
        }
        if self.config.tokens.is_empty() {
            return None;
        }
        let outcome = bearer::from_header(&self.config.tokens, attempt).await;
        if let Some(found) = attempt.take(outcome) {
            return Some(found);
        }
        let outcome = bearer::from_websocket(&self.config.tokens, attempt).await;
        attempt.take(outcome)
    }

    fn anonymous_may(&self, path: &str) -> bool {
        match &self.config.anonymous {
            Anonymous::Off => false,
            Anonymous::Everywhere => true,
            Anonymous::Paths(paths) => paths.contains(path),
        }
    }
}

/// Who is somebody is in `system:authenticated`, unless a credential said otherwise.
fn with_authenticated_group(mut found: Authenticated) -> Authenticated {
    let user = &found.user;
    if user.name != ANONYMOUS && !user.in_group(AUTHENTICATED) && !user.in_group(UNAUTHENTICATED) {
        Arc::make_mut(&mut found.user).groups.push(AUTHENTICATED.to_owned());
    }
    found
}

/// A credential that knows no audiences is good for those of the API: gives it the wanted ones among them, or
/// nobody where there are none (apiserver `pkg/authentication/authenticator/audagnostic.go`).
fn for_api_audiences(user: User, api: &[String], wanted: &[String]) -> Option<Authenticated> {
    if wanted.is_empty() {
        return Some(Authenticated { user, audiences: Vec::new() });
    }
    let audiences: Vec<String> = api.iter().filter(|it| wanted.contains(it)).cloned().collect();
    (!audiences.is_empty()).then_some(Authenticated { user, audiences })
}

#[cfg(test)]
mod tests;
