//! Authenticators and authorizers of a validated configuration.

use std::sync::Arc;

use super::authn::{Anonymous, Authenticators, Config, FrontProxy, ProxyHeaders, StaticTokens, TokenAuthenticator};
use super::authz::{AlwaysAllow, AlwaysDeny, Authorizer, Node, Rbac, Union};
use super::user::UserInfo;
use crate::options::completed::{self, AuthorizationMode};
use crate::pki::{PkiError, TrustBundle};

/// The authenticators of one generation. `own_ca` is the authority that kenter made for itself, believed where the
/// configuration names no other; `loopback_token` is the in-process client's.
pub fn authenticators(
    options: &completed::Authentication,
    own_ca: Option<Arc<TrustBundle>>,
    loopback_token: Option<String>,
) -> Result<Authenticators, PkiError> {
    let bundle = |ca: &completed::CaBundle| TrustBundle::new(ca.certificates.clone()).map(Arc::new);
    let client_ca = match &options.client_ca {
        Some(ca) => Some(bundle(ca)?),
        None => own_ca,
    };
    let front_proxy = match &options.request_header {
        Some(proxy) => Some(front_proxy(proxy, bundle(&proxy.client_ca)?)),
        None => None,
    };
    let api_audiences = options.service_account.api_audiences.clone();
    Ok(Authenticators::new(Config {
        client_ca,
        front_proxy,
        tokens: tokens(options, &api_audiences),
        loopback_token,
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
