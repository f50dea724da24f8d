//! Certificates: the ones a newcomer gets, the checks of the ones an operator brings, and the reading of the ones
//! clients show.
//!
//! - [`trust`]: may this chain be believed, and whom does it name. Called once per connection and bundle.
//! - [`pair`]: do a certificate file and a key file belong together; every way they may not has its own words.
//! - [`SigningKey`]: the key of service account tokens.
//! - [`newcomer`]: CA, serving certificate and admin kubeconfig where none are configured.
//!
//! One crypto provider, always named ([`provider`]): with two linked, rustls' process default is a coin toss.
//! Nothing here knows requests, users or configuration.

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

pub mod newcomer;
pub mod pair;
mod signing;
pub mod trust;

#[cfg(test)]
mod tests;

pub use newcomer::{Newcomer, NewcomerOptions};
pub use pair::{PkiError, check_pair, issued, read_pair, to_pem};
pub use signing::{SigningKey, key_id};
pub use trust::{ClientIdentity, TrustBundle, VerdictCache, parse_client_identity};

/// The one crypto provider of the process.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    PROVIDER.clone()
}
