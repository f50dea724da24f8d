//! Authenticators and authorizers of a validated configuration.

use std::sync::Arc;

use super::authn::{Anonymous, Authenticators, Config, FrontProxy, ProxyHeaders, StaticTokens, TokenAuthenticator};
use super::authz::{AlwaysAllow, AlwaysDeny, Authorizer, Node, Rbac, Union};
use super::user::UserInfo;
use crate::options::completed::{self, AuthorizationMode};
use crate::pki::{PkiError, TrustBundle};

/// An authority of the configuration that cannot be one.
#[derive(Debug)]
pub struct BadAuthority {
    /// The option it came from.
    pub key: &'static str,
    pub error: PkiError,
}

/// The authenticators of one generation. `own_ca` (PEM) is the authority that kenter made for itself, believed where
/// the configuration names no other. There is no loopback token: in-process calls come with their user decided.
pub fn authenticators(
    options: &completed::Authentication,
    own_ca: Option<&str>,
) -> Result<Authenticators, BadAuthority> {
    let bad = |key| move |error| BadAuthority { key, error };
    let client_ca = match (&options.client_ca, own_ca) {
        (Some(ca), _) => Some(TrustBundle::new(ca.certificates.clone())),
        (None, Some(pem)) => Some(TrustBundle::from_pem(pem.as_bytes())),
        (None, None) => None,
    };
    let client_ca = client_ca.transpose().map_err(bad("authentication.client_ca_file"))?.map(Arc::new);
    let front_proxy = match &options.request_header {
        Some(proxy) => {
            let bundle = TrustBundle::new(proxy.client_ca.certificates.clone());
            let bundle = bundle.map_err(bad("authentication.requestheader_client_ca_file"))?;
            Some(front_proxy(proxy, Arc::new(bundle)))
        }
        None => None,
    };
    let api_audiences = options.service_account.api_audiences.clone();
    Ok(Authenticators::new(Config {
        client_ca,
        front_proxy,
        tokens: tokens(options, &api_audiences),
        loopback_token: None,
        anonymous: match &options.anonymous {
            completed::Anonymous::Off => Anonymous::Off,
            completed::Anonymous::Everywhere => Anonymous::Everywhere,
            completed::Anonymous::Paths(paths) => Anonymous::Paths(paths.clone()),
        },
        api_audiences,
    }))
}

fn front_proxy(options: &completed::RequestHeader, bundle: Arc<TrustBundle>) -> FrontProxy {
    FrontProxy {
        bundle,
        allowed_names: options.allowed_names.clone(),
        headers: ProxyHeaders {
            username: options.username_headers.clone(),
            uid: options.uid_headers.clone(),
            group: options.group_headers.clone(),
            extra_prefix: options.extra_headers_prefix.clone(),
        },
    }
}

fn tokens(options: &completed::Authentication, api_audiences: &[String]) -> Vec<Arc<dyn TokenAuthenticator>> {
    if options.tokens.is_empty() {
        return Vec::new();
    }
    let users = options.tokens.iter().map(|(token, user)| {
        let completed::TokenUser { name, uid, groups } = user.clone();
        (token.reveal(), UserInfo { name, uid, groups, ..UserInfo::default() })
    });
    vec![Arc::new(StaticTokens::new(users, api_audiences.to_vec()))]
}

/// The authorizers of one generation in configured order, under upstream's names. `rbac` outlives generations, with
/// what it has read.
pub fn authorizer(options: &completed::Authorization, rbac: &Arc<Rbac>) -> Union {
    let named = |mode: &AuthorizationMode| -> (String, Arc<dyn Authorizer>) {
        match mode {
            AuthorizationMode::AlwaysAllow => ("alwaysallow".to_owned(), Arc::new(AlwaysAllow)),
            AuthorizationMode::AlwaysDeny => ("alwaysdeny".to_owned(), Arc::new(AlwaysDeny)),
            AuthorizationMode::Rbac => ("rbac".to_owned(), rbac.clone()),
            AuthorizationMode::Node => ("node".to_owned(), Arc::new(Node)),
        }
    };
    Union::new(options.modes.iter().map(named).collect())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::auth::authz::{Attributes, Decision};
    use crate::auth::testing::Objects;
    use crate::auth::user::MASTERS;

    fn decide(modes: &[AuthorizationMode], user: &UserInfo) -> Decision {
        let rbac = Arc::new(Rbac::new(Arc::new(Objects::default())));
        let union = authorizer(&completed::Authorization { modes: modes.to_vec() }, &rbac);
        union.authorize(&Attributes::of_path(user, "get", "/x")).now_or_never().expect("nothing here waits")
    }

    #[test]
    fn the_first_opinion_counts_and_refusals_tell_who_said_what() {
        use AuthorizationMode::{AlwaysAllow, AlwaysDeny, Node, Rbac};
        let user = UserInfo::named("u");
        assert_eq!(
            decide(&[AlwaysDeny, Node, Rbac], &user),
            Decision::no_opinion("alwaysdeny: Everything is forbidden.")
        );
        assert_eq!(decide(&[AlwaysDeny, AlwaysAllow], &user), Decision::allow(""));
        assert_eq!(decide(&[Node, Rbac], &user), Decision::no_opinion(""));
    }

    #[test]
    fn masters_may_do_everything_whatever_is_configured() {
        let root = UserInfo::named("root").with_groups([MASTERS]);
        assert!(decide(&[AuthorizationMode::AlwaysDeny], &root).allowed());
    }
}
