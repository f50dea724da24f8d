use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use http::Request;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls_pki_types::CertificateDer;

use super::*;
use crate::pki::VerdictCache;
use crate::server::http::Transport;

struct Ca {
    issuer: Issuer<'static, KeyPair>,
    bundle: Arc<TrustBundle>,
}

fn ca(name: &str) -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let bundle = Arc::new(TrustBundle::new(vec![certificate.der().clone()]).unwrap());
    Ca { issuer: Issuer::new(params, key), bundle }
}

impl Ca {
    fn client(
        &self,
        name: &str,
        groups: &[&str],
        uids: &[&str],
        usage: ExtendedKeyUsagePurpose,
    ) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        // One attribute of each type is all that rcgen can write.
        if let [group] = groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        if let [uid] = uids {
            params.distinguished_name.push(DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]), *uid);
        }
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.issuer).unwrap().der().clone()
    }

    fn user(&self, name: &str) -> CertificateDer<'static> {
        self.client(name, &[], &[], ExtendedKeyUsagePurpose::ClientAuth)
    }
}

fn conn(certificates: Vec<CertificateDer<'static>>) -> ConnInfo {
    ConnInfo {
        peer: None,
        local: None,
        transport: Transport::Tls,
        http2: false,
        certificates: certificates.into(),
        verdict: VerdictCache::default(),
        peer_uid: None,
        id: 1,
    }
}

fn parts(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().uri("/version");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn judge(
    authn: &Authenticators,
    headers: &[(&str, &str)],
    certificates: Vec<CertificateDer<'static>>,
) -> Result<Caller, Unauthenticated> {
    authn.authenticate(&mut parts(headers), &conn(certificates)).now_or_never().expect("nothing here waits")
}

fn name(result: Result<Caller, Unauthenticated>) -> Result<String, String> {
    result.map(|caller| caller.user.name.clone()).map_err(|refused| refused.reason)
}

fn with_tokens(mut config: Config) -> Authenticators {
    let users = [("a", UserInfo::named("alice").with_groups(["dev"]))];
    config.tokens = vec![Arc::new(StaticTokens::new(users, config.api_audiences.clone()))];
    config.anonymous = Anonymous::Everywhere;
    config.loopback_token = Some("loop".to_owned());
    Authenticators::new(config)
}

#[test]
fn tokens_are_taken_in_every_form_upstream_takes() {
    let authn = with_tokens(Config::default());
    for header in ["Bearer a", "bearer a", "BEARER a", "Bearer a ", "Bearer a extra"] {
        let caller = judge(&authn, &[("authorization", header)], vec![]).unwrap();
        assert_eq!(caller.user.name, "alice", "{header}");
        assert_eq!(caller.user.groups, ["dev", "system:authenticated"]);
    }
    for header in ["Bearer", "Bearer ", "Basic YTp4", "a", "Token a", ""] {
        let caller = judge(&authn, &[("authorization", header)], vec![]).unwrap();
        assert!(caller.is_anonymous() && caller.warnings.is_empty(), "{header}");
    }
    let caller = judge(&authn, &[("authorization", "Bearer  a")], vec![]).unwrap();
    assert!(caller.is_anonymous());
    assert_eq!(
        caller.warnings,
        ["the provided Authorization header contains extra space before the bearer token, and is ignored"]
    );
}

#[test]
fn a_wrong_token_is_not_anonymous_and_success_removes_the_credential() {
    let authn = with_tokens(Config::default());
    assert_eq!(name(judge(&authn, &[("authorization", "Bearer x")], vec![])), Err("invalid bearer token".to_owned()));
    let mut request =
        parts(&[("authorization", "Bearer a"), ("x-remote-user", "root"), ("x-remote-extra-a", "b"), ("accept", "x")]);
    authn.authenticate(&mut request, &conn(vec![])).now_or_never().unwrap().unwrap();
    assert_eq!(request.headers.keys().map(|it| it.as_str()).collect::<Vec<_>>(), ["accept"]);
}

#[test]
fn the_loopback_token_is_the_server_itself() {
    let authn = with_tokens(Config { api_audiences: vec!["api".to_owned()], ..Config::default() });
    let caller = judge(&authn, &[("authorization", "Bearer loop")], vec![]).unwrap();
    assert_eq!(*caller.user, UserInfo::apiserver());
}

#[test]
fn a_websocket_brings_its_token_as_one_of_several_subprotocols() {
    let authn = with_tokens(Config::default());
    let ask = |protocols: &str| {
        let mut request = parts(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-protocol", protocols),
        ]);
        let result = authn.authenticate(&mut request, &conn(vec![])).now_or_never().unwrap();
        (name(result), request.headers["sec-websocket-protocol"].to_str().unwrap().to_owned())
    };
    let prefix = "base64url.bearer.authorization.k8s.io.";
    assert_eq!(ask(&format!("{prefix}YQ, x,y")), (Ok("alice".to_owned()), "x,y".to_owned()));
    assert_eq!(ask(&format!("{prefix}YQ")).0, Err("missing additional subprotocol".to_owned()));
    assert_eq!(ask(&format!("{prefix}***, x")).0, Err("invalid base64.bearer.authorization token encoding".to_owned()));
    assert_eq!(ask(&format!("{prefix}eA, x")).0, Err("invalid bearer token".to_owned()));
    assert_eq!(ask("x").0, Ok("system:anonymous".to_owned()));
    let result = judge(&authn, &[("sec-websocket-protocol", &format!("{prefix}YQ, x"))], vec![]);
    assert_eq!(name(result), Ok("system:anonymous".to_owned()));
}

#[test]
fn a_websocket_is_known_by_any_of_its_connection_headers() {
    let authn = with_tokens(Config::default());
    let mut request = parts(&[
        ("connection", "close"),
        ("upgrade", "websocket"),
        ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.YQ, x"),
    ]);
    request.headers.append("connection", "UPGRADE".parse().unwrap());
    let result = authn.authenticate(&mut request, &conn(vec![])).now_or_never().unwrap();
    assert_eq!(name(result), Ok("alice".to_owned()));
}

#[test]
fn a_certificate_names_user_groups_uid_and_itself() {
    let ca = ca("clients");
    let authn = with_tokens(Config { client_ca: Some(ca.bundle.clone()), ..Config::default() });
    let certificate = ca.client("carol", &["ops"], &["u-1"], ExtendedKeyUsagePurpose::ClientAuth);
    let caller = judge(&authn, &[("authorization", "Bearer nonsense")], vec![certificate]).unwrap();
    assert_eq!((caller.user.name.as_str(), caller.user.uid.as_str()), ("carol", "u-1"));
    assert_eq!(caller.user.groups, ["ops", "system:authenticated"]);
    assert!(caller.user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("X509SHA256="));
}

#[test]
fn a_certificate_that_is_not_believed_is_an_error_unless_something_else_is() {
    let (ca, others) = (ca("clients"), ca("others"));
    let authn = with_tokens(Config { client_ca: Some(ca.bundle.clone()), ..Config::default() });
    let foreign = others.user("carol");
    let error = name(judge(&authn, &[], vec![foreign.clone()])).unwrap_err();
    assert!(error.starts_with("verifying certificate SN="), "{error}");
    assert!(error.ends_with("failed: x509: certificate signed by unknown authority"), "{error}");
    assert_eq!(name(judge(&authn, &[("authorization", "Bearer a")], vec![foreign])), Ok("alice".to_owned()));
    let server = ca.client("carol", &[], &[], ExtendedKeyUsagePurpose::ServerAuth);
    assert!(name(judge(&authn, &[], vec![server])).unwrap_err().ends_with("incompatible key usage"));
    // Without a name it is no credential at all.
    let nameless = ca.client("", &["ops"], &[], ExtendedKeyUsagePurpose::ClientAuth);
    assert_eq!(name(judge(&authn, &[], vec![nameless])), Ok("system:anonymous".to_owned()));
    let empty_uid = ca.client("carol", &[], &[""], ExtendedKeyUsagePurpose::ClientAuth);
    assert_eq!(name(judge(&authn, &[], vec![empty_uid])), Err("UID cannot be an empty string".to_owned()));
}

fn behind_proxy(proxies: &Ca, clients: &Ca) -> Authenticators {
    let headers = ProxyHeaders { username: vec!["X-Remote-User".into()], ..FrontProxy::standard_headers() };
    let proxy = FrontProxy { bundle: proxies.bundle.clone(), allowed_names: vec!["proxy".into()], headers };
    with_tokens(Config { front_proxy: Some(proxy), client_ca: Some(clients.bundle.clone()), ..Config::default() })
}

#[test]
fn a_front_proxy_says_who_the_user_is() {
    let (proxies, clients) = (ca("proxies"), ca("clients"));
    let authn = behind_proxy(&proxies, &clients);
    let caller = judge(
        &authn,
        &[
            ("X-Remote-User", "erin"),
            ("X-Remote-Group", "g1"),
            ("X-Remote-Group", "g2"),
            ("X-Remote-Uid", "77"),
            ("X-Remote-Extra-Scopes", "a"),
            ("X-Remote-Extra-Scopes", "b"),
            ("X-Remote-Extra-Example.com%2fKey", "v"),
            ("X-Remote-Extra-Bad%zz", "v"),
        ],
        vec![proxies.user("proxy")],
    )
    .unwrap();
    assert_eq!(caller.user.name, "erin");
    assert_eq!(caller.user.uid, "77");
    assert_eq!(caller.user.groups, ["g1", "g2", "system:authenticated"]);
    let extra: Vec<_> = caller.user.extra.iter().map(|(key, values)| (key.as_str(), values.join(" "))).collect();
    assert_eq!(extra, [("bad%zz", "v".to_owned()), ("example.com/key", "v".to_owned()), ("scopes", "a b".to_owned())]);
}

#[test]
fn front_proxy_headers_count_only_with_a_proxys_certificate() {
    let (proxies, clients) = (ca("proxies"), ca("clients"));
    let authn = behind_proxy(&proxies, &clients);
    let headers = [("X-Remote-User", "erin")];
    assert_eq!(name(judge(&authn, &headers, vec![])), Ok("system:anonymous".to_owned()));
    assert_eq!(name(judge(&authn, &headers, vec![clients.user("carol")])), Ok("carol".to_owned()));
    let error = name(judge(&authn, &headers, vec![proxies.user("other")])).unwrap_err();
    assert!(error.contains("x509: subject with cn=other is not in the allowed list"), "{error}");
    // No user header, or an empty one: the certificate is then a client's, and not of the clients' CA.
    assert!(judge(&authn, &[], vec![proxies.user("proxy")]).is_err());
    assert!(judge(&authn, &[("X-Remote-User", ""), ("X-Remote-User", "erin")], vec![proxies.user("proxy")]).is_err());
    let anonymous = judge(&authn, &[("X-Remote-User", "system:anonymous")], vec![proxies.user("proxy")]).unwrap();
    assert!(anonymous.is_anonymous() && anonymous.user.groups.is_empty());
}

#[test]
fn anonymous_may_be_off_or_limited_to_paths() {
    let off = Authenticators::new(Config::default());
    assert_eq!(name(judge(&off, &[], vec![])), Err(String::new()));
    let paths = |path: &str| {
        Authenticators::new(Config { anonymous: Anonymous::Paths([path.to_owned()].into()), ..Config::default() })
    };
    assert_eq!(name(judge(&paths("/version"), &[], vec![])), Ok("system:anonymous".to_owned()));
    assert!(judge(&paths("/livez"), &[], vec![]).is_err());
}

#[test]
fn a_token_is_reviewed_for_the_audiences_asked_for() {
    let authn = with_tokens(Config { api_audiences: vec!["api".into(), "b".into()], ..Config::default() });
    let review = |token: &str, audiences: &[String]| authn.review_token(token, audiences).now_or_never().unwrap();
    let found = review("a", &[]).unwrap().unwrap();
    assert_eq!(found.audiences, ["api", "b"]);
    assert_eq!(found.user.groups, ["dev", "system:authenticated"]);
    assert_eq!(review("a", &["b".to_owned(), "c".to_owned()]).unwrap().unwrap().audiences, ["b"]);
    assert_eq!(review("a", &["x".to_owned()]), Err("invalid bearer token".to_owned()));
    assert_eq!(review("nope", &[]), Err("invalid bearer token".to_owned()));
}

struct Counting(Arc<AtomicUsize>);

impl TokenAuthenticator for Counting {
    fn authenticate_token<'a>(&'a self, token: &'a str, _: &'a [String]) -> TokenAnswer<'a> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let user = (token == "good").then(|| Authenticated { user: Arc::new(UserInfo::named("u")), audiences: vec![] });
        Either::Right(Box::pin(ready(Ok(user))))
    }
}

#[test]
fn good_tokens_are_remembered_and_bad_ones_are_not() {
    let asked = Arc::new(AtomicUsize::new(0));
    let cache = TokenCache::new(Counting(asked.clone())).unwrap();
    let ask =
        |token: &str, audiences: &[String]| cache.authenticate_token(token, audiences).now_or_never().unwrap().unwrap();
    for _ in 0..3 {
        assert!(ask("good", &[]).is_some());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(ask("good", &["x".to_owned()]).is_some());
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    for _ in 0..3 {
        assert!(ask("bad", &[]).is_none());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 5);
}

#[test]
fn judging_may_move_between_threads() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let authn = with_tokens(Config::default());
    let (mut request, conn) = (parts(&[]), conn(vec![]));
    assert!(sendable(authn.authenticate(&mut request, &conn)).now_or_never().unwrap().is_ok());
}
