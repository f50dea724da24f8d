//! Tokens that are known beforehand, and the memory of tokens that were asked for
//! (apiserver `pkg/authentication/token/{tokenfile,cache}`).

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use aws_lc_rs::{digest, hmac};
use parking_lot::Mutex;

use super::{Authenticated, Outcome, TokenAnswer, TokenAuthenticator, for_api_audiences, now};
use crate::auth::user::{User, UserInfo};

/// A fixed table of tokens. Holds digests only, so that how long a look-up takes says nothing of a token.
pub struct StaticTokens {
    users: HashMap<[u8; 32], User>,
    api_audiences: Vec<String>,
}

fn digest_of(token: &str) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    out
}

impl StaticTokens {
    /// The last of several entries with one token counts.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, UserInfo)>, api_audiences: Vec<String>) -> Self {
        let users = tokens.into_iter().map(|(token, user)| (digest_of(token), Arc::new(user))).collect();
        Self { users, api_audiences }
    }
}

impl TokenAuthenticator for StaticTokens {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> TokenAnswer<'a> {
        let user = self.users.get(&digest_of(token));
        now(Ok(user.and_then(|user| for_api_audiences(user.clone(), &self.api_audiences, audiences))))
    }
}

/// How long a token that was found good is believed without asking again.
const SUCCESS: Duration = Duration::from_secs(10);

/// Tokens remembered at once; beyond it those past their time go, then all.
const MAX_REMEMBERED: usize = 32_768;

/// Remembers the successes of an authenticator that costs something to ask. Failures are not remembered, so that a
/// token made a moment ago works.
pub struct TokenCache<T> {
    inner: T,
    /// Keys of the map are keyed digests: they tell nothing of a token, and nobody outside can make them collide.
    key: hmac::Key,
    known: Mutex<HashMap<[u8; 32], (Instant, Authenticated)>>,
}

impl<T: TokenAuthenticator> TokenCache<T> {
    pub fn new(inner: T) -> Result<Self, aws_lc_rs::error::Unspecified> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &aws_lc_rs::rand::SystemRandom::new())?;
        Ok(Self { inner, key, known: Mutex::default() })
    }

    fn key_of(&self, token: &str, audiences: &[String]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        for text in std::iter::once(token).chain(audiences.iter().map(String::as_str)) {
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        }
        let mut out = [0; 32];
        out.copy_from_slice(context.sign().as_ref());
        out
    }

    fn known(&self, key: &[u8; 32]) -> Option<Authenticated> {
        let known = self.known.lock();
        known.get(key).filter(|(since, _)| since.elapsed() < SUCCESS).map(|(_, found)| found.clone())
    }

    fn remember(&self, key: [u8; 32], found: &Outcome) {
        let Ok(Some(found)) = found else { return };
        let mut known = self.known.lock();
        if known.len() >= MAX_REMEMBERED {
            known.retain(|_, (since, _)| since.elapsed() < SUCCESS);
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
        }
        known.insert(key, (Instant::now(), found.clone()));
    }
}

impl<T: TokenAuthenticator> TokenAuthenticator for TokenCache<T> {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> TokenAnswer<'a> {
        use futures_util::future::Either;
        let key = self.key_of(token, audiences);
        if let Some(found) = self.known(&key) {
            return now(Ok(Some(found)));
        }
        match self.inner.authenticate_token(token, audiences) {
            Either::Left(answer) => {
                let outcome = answer.into_inner();
                self.remember(key, &outcome);
                now(outcome)
            }
            Either::Right(pending) => Either::Right(Box::pin(async move {
                let outcome = pending.await;
                self.remember(key, &outcome);
                outcome
            })),
        }
    }
}
