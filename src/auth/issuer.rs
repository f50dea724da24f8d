//! Who issues service account tokens: the claims of one (kubernetes `pkg/serviceaccount/claims.go`), signed.

use jiff::Timestamp;

use crate::{
    json,
    object::{Map, Value, to_vec},
    pki::{PkiError, SigningKey},
};

/// The lifetime that clients ask for who do not know yet that tokens end; it is lengthened for them.
const WARN_ONLY_SECONDS: i64 = 60 * 60 + 7;

/// What a lengthened lifetime is at most.
const EXTENDED_SECONDS: i64 = 24 * 365 * 60 * 60;

/// Issues tokens of one generation.
pub struct Issuer {
    /// `iss` of what it issues.
    pub name: String,
    pub key: SigningKey,
    /// Audiences of the API, which a request without any is for.
    pub api_audiences: Vec<String>,
}

/// Name and UID of an object that a token is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub uid: String,
}

impl Named {
    fn to_value(&self) -> Value {
        let mut out = Map::new();
        for (member, text) in [("name", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                out.insert(member, text.as_str());
            }
        }
        out.into()
    }
}

/// The object whose end is the token's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// With the node it runs on, as far as that is known.
    Pod(Named, Option<Named>),
    Secret(Named),
    Node(Named),
}

/// What a token says.
pub struct Ticket<'a> {
    pub namespace: &'a str,
    pub account: Named,
    pub bound: Option<Bound>,
    pub audiences: &'a [String],
    pub seconds: i64,
}

impl Issuer {
    /// # Errors
    /// The signature could not be made.
    pub fn issue(&self, ticket: &Ticket<'_>, now: Timestamp) -> Result<String, PkiError> {
        self.key.sign(&to_vec(&self.claims(ticket, now.as_second())))
    }

    fn claims(&self, ticket: &Ticket<'_>, now: i64) -> Value {
        let mut own =
            Map::from([("namespace", Value::from(ticket.namespace)), ("serviceaccount", ticket.account.to_value())]);
        let mut seconds = ticket.seconds;
        match &ticket.bound {
            Some(Bound::Pod(pod, node)) => {
                own.insert("pod", pod.to_value());
                if let Some(node) = node {
                    own.insert("node", node.to_value());
                }
                if seconds == WARN_ONLY_SECONDS && ticket.audiences.iter().all(|it| self.api_audiences.contains(it)) {
                    own.insert("warnafter", now.saturating_add(seconds));
                    seconds = EXTENDED_SECONDS;
                }
            }
            Some(Bound::Secret(secret)) => drop(own.insert("secret", secret.to_value())),
            Some(Bound::Node(node)) => drop(own.insert("node", node.to_value())),
            None => {}
        }
        json!({
            "iss": (self.name.as_str()),
            "sub": (format!("system:serviceaccount:{}:{}", ticket.namespace, ticket.account.name)),
            "aud": (ticket.audiences.iter().map(|it| Value::from(it.as_str())).collect::<Vec<_>>()),
            "exp": (now.saturating_add(seconds)),
            "iat": now,
            "nbf": now,
            "jti": (crate::api::unique::uuid()),
            "kubernetes.io": own
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer() -> Issuer {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let key = SigningKey::from_pem(key.serialize_pem().as_bytes()).unwrap();
        Issuer { name: "https://issuer".to_owned(), key, api_audiences: vec!["api".to_owned()] }
    }

    fn named(name: &str) -> Named {
        Named { name: name.to_owned(), uid: format!("{name}-uid") }
    }

    #[test]
    fn a_token_says_whose_it_is_for_whom_and_until_when() {
        let audiences = ["x".to_owned()];
        let ticket = Ticket { namespace: "n", account: named("a"), bound: None, audiences: &audiences, seconds: 600 };
        let mut claims = issuer().claims(&ticket, 1000);
        assert_eq!(claims.remove_at(&["jti"]).and_then(|id| id.as_str().map(str::len)), Some(36));
        assert_eq!(
            claims,
            json!({
                "iss": "https://issuer", "sub": "system:serviceaccount:n:a", "aud": ["x"],
                "exp": 1600, "iat": 1000, "nbf": 1000,
                "kubernetes.io": {"namespace": "n", "serviceaccount": {"name": "a", "uid": "a-uid"}}
            })
        );
    }

    #[test]
    fn a_pods_token_of_the_old_kind_lives_longer_and_says_when_it_should_have_ended() {
        let audiences = ["api".to_owned()];
        let bound = Some(Bound::Pod(named("p"), Some(named("node"))));
        let ticket = Ticket { namespace: "n", account: named("a"), bound, audiences: &audiences, seconds: 3607 };
        let claims = issuer().claims(&ticket, 0);
        assert_eq!(claims.i64_at(&["exp"]), Some(31_536_000));
        assert_eq!(claims.i64_at(&["kubernetes.io", "warnafter"]), Some(3607));
        assert_eq!(claims.str_at(&["kubernetes.io", "node", "uid"]), "node-uid");
        let elsewhere = ["other".to_owned()];
        let claims = issuer().claims(&Ticket { audiences: &elsewhere, ..ticket }, 0);
        assert_eq!(claims.i64_at(&["exp"]), Some(3607));
    }
}
